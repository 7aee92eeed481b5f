"""Off-policy evaluation, event by event."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

_STAKES = [0.75 * 1.6**-j for j in range(48)]


def lower_mean(xs: list[float], centres: list[float], bounds: list[float], *, alpha: float) -> float:
    """Return a lower bound on the mean of the expected `xs`, each at most its bound below its centre.

    For every stake the product of exp(stake·(x - μ) - ψ(stake·b)·(x - m)²/b²) is at 1/α with a probability of
    α at most; stakes have shares of α.
    """
    first, largest = bounds[0], max(bounds)
    squares = sum((x - m) ** 2 for x, m in zip(xs, centres, strict=True))
    best = -math.inf
    for j, stake in enumerate(_STAKES):
        z = stake / first * largest
        if z > 0.75:
            continue
        psi = -math.log(1 - z) - z
        share = alpha / ((j + 1) * (j + 2))
        best = max(best, sum(xs) - (psi * squares / largest**2 + math.log(1 / share)) / (stake / first))
    return best / len(xs)


@dataclass
class Evaluator:
    """Doubly robust estimates of events whose rewards are in a known range, with a known floor."""

    low: float
    high: float
    floor: float
    alpha: float
    xs: list[float] = field(default_factory=list)
    centres: list[float] = field(default_factory=list)

    def add(self, w: float, reward: float, predicted: float, expected: float) -> None:
        self.xs.append(expected + min(w, 1 / self.floor) * (reward - predicted))
        self.centres.append(expected)

    def interval(self) -> tuple[float, float]:
        bounds = [(self.high - self.low) / self.floor] * len(self.xs)
        low = lower_mean(self.xs, self.centres, bounds, alpha=self.alpha / 2)
        mirrored = ([-x for x in self.xs], [-m for m in self.centres])
        high = -lower_mean(*mirrored, bounds, alpha=self.alpha / 2)
        return max(low, self.low), min(high, self.high)
