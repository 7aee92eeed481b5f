"""The member means the slow, obvious way, and the shrinkage of the ensemble's scores towards it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.naive.crosses import KEEPS, LATEST, SURE, cell_of

UNSURE, LEAST_NOISE, BITS = 0.03, 0.02, 16
SHRINKAGE_KEEPS, PRIOR_SPREAD = 0.9998, 0.5


class Means:
    """The effect of each action, or of each of its features and of the action as a whole."""

    def __init__(self) -> None:
        self.weights: dict[int, np.float32] = defaultdict(lambda: np.float32(0))
        self.spread: dict[int, np.float32] = defaultdict(lambda: np.float32(UNSURE))
        self.mean = self.variance = self.error = 0.0

    def score(self, keys: Sequence[int]) -> float:
        """Return the cost of an action with so many keys."""
        return self.mean + math.fsum(self.weights[cell_of(0, key, bits=BITS)] for key in keys)

    def learn(
        self, keys: Sequence[int], cost: float, weights: tuple[float, float], events: int, *, works: bool
    ) -> None:
        """Learn an event, before which there were so many; the second weight is that of effects."""
        seen = max(min(events + 1, LATEST) / weights[0], 1)
        if works:
            cells, noise = [cell_of(0, key, bits=BITS) for key in keys], 1.0
            if self.variance > 0 and self.error > 0:
                noise = min(max(self.error / self.variance, LEAST_NOISE), 1.0)
            error = cost - self.score(keys)
            total = noise / weights[1] + math.fsum(self.spread[cell] for cell in cells)
            self.error += (error**2 - self.error) / seen
            for cell in cells:
                spread = float(self.spread[cell])
                self.weights[cell] = np.float32(self.weights[cell] + spread * error / total)
                self.spread[cell] = np.float32(min(max((spread - spread**2 / total) / KEEPS, SURE), UNSURE))
        away = cost - self.mean
        self.mean += away / seen
        self.variance += (away * (cost - self.mean) - self.variance) / seen


class Shrinkage:
    """The factors of the differences of the ensemble's scores, and of those of the means."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, float, float, float]] = []
        """Of each event both differences, that of the cost, and how much the event counts."""
        self.factors = 0.5, 0.5

    def scale(self, factor: float) -> None:
        """Multiply all differences."""
        self.rows = [(a * factor, b * factor, c * factor, count) for a, b, c, count in self.rows]

    def shrink(self, scores: Any, means: Any) -> list[np.float32]:
        level, usual = np.mean(scores), np.mean(means)
        own, other = self.factors
        return [
            np.float32(level + own * (score - level) + other * (mean - usual))
            for score, mean in zip(scores, means, strict=True)
        ]

    def learn(self, own: Any, mean: Any, cost: Any, count: float) -> None:
        """Find the factors in a fine grid around the least squares solution."""
        self.rows = [(a, b, c, SHRINKAGE_KEEPS * each) for a, b, c, each in self.rows]
        self.rows.append((own, mean, cost, count))
        a, b, c, counts = np.array(self.rows).T
        sure = math.sqrt(counts @ c**2 / counts.sum()) / PRIOR_SPREAD
        if not sure > 0:
            return
        # two further rows, of the prior: alpha is 1/2, and alpha + beta is 1
        x = np.vstack([np.column_stack([a, b]), [[sure, 0], [sure, sure]]])
        y = np.append(c, [0.5 * sure, sure])
        weights = np.sqrt(np.append(counts, [1, 1]))

        def loss(factors: tuple[float, float]) -> float:
            return float(np.sum((weights * (y - x @ factors)) ** 2))

        free = tuple(np.linalg.lstsq(weights[:, None] * x, weights * y, rcond=None)[0])
        edges = [free] if min(free) >= 0 and max(free) <= 1 else []
        for at in (0.0, 1.0):  # on each edge of the square the loss is a parabola
            for fixed in (0, 1):
                other, rest = x[:, 1 - fixed], y - at * x[:, fixed]
                best = np.sum(weights**2 * other * rest) / np.sum((weights * other) ** 2)
                best = min(max(best, 0.0), 1.0)
                edges.append((at, best) if fixed == 0 else (best, at))
        self.factors = edges[0] if len(edges) == 5 else min(edges, key=loss)
