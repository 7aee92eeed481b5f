"""The member baseline the slow, obvious way: a dictionary of products, like those that `crosses` has."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from tests.naive.crosses import KEEPS, LATEST, MOST, SURE, WHOLE, Names, cell_of, mixed

UNSURE, LEAST_NOISE, WIDEST = 0.3, 0.02, 24
SHARED = 0xD1B54A32D192ED00


class Baseline:
    """Weights of the context and its pairs that all actions share, and weights of each action."""

    def __init__(self) -> None:
        self.weights: dict[int, np.float32] = defaultdict(lambda: np.float32(0))
        self.spread: dict[int, np.float32] = defaultdict(lambda: np.float32(UNSURE))
        self.wide = [0] * len(MOST)
        self.mean = self.variance = self.error = 0.0

    @staticmethod
    def _cells(context: Names, keys: Sequence[int]) -> list[int]:
        single = [0, *(fine for fine, _ in context)]
        pairs = [mixed(sum(two) % WHOLE) for two in combinations([coarse for _, coarse in context], 2)]
        shared = [cell_of(product, SHARED) for product in (*single, *pairs)]
        return shared + [cell_of(product, key) for key in keys for product in single]

    def score(self, context: Names, keys: Sequence[int]) -> float | None:
        """Return the cost of an action; None if the context is too wide."""
        if len(context) > WIDEST:
            return None
        return self.mean + math.fsum(self.weights[cell] for cell in self._cells(context, keys))

    def learn(
        self, context: Names, keys: Sequence[int], cost: float, weight: float, events: int, *, works: bool
    ) -> None:
        """Learn an event, before which there were so many; it need not work to know the mean of the costs."""
        seen = max(min(events + 1, LATEST) / weight, 1)
        if works and len(context) <= WIDEST:
            cells, noise = self._cells(context, keys), 1.0
            if self.variance > 0 and self.error > 0:
                noise = min(max(self.error / self.variance, LEAST_NOISE), 1.0)
            error = cost - self.mean - math.fsum(self.weights[cell] for cell in cells)
            total = noise / weight + math.fsum(self.spread[cell] for cell in cells)
            self.error += (error**2 - self.error) / seen
            for cell in cells:
                spread = float(self.spread[cell])
                self.weights[cell] = np.float32(self.weights[cell] + spread * error / total)
                less = (spread - spread * spread / total) / KEEPS
                self.spread[cell] = np.float32(min(max(less, SURE), UNSURE))
        away = cost - self.mean
        self.mean += away / seen
        self.variance += (away * (cost - self.mean) - self.variance) / seen
