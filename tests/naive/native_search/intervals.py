"""Intervals for people: where the reward of a config lies, and that of the champion over the same events.

They decide nothing; the journal shows them. A lower bound on a sum of means is the best of 48 bets, each
solved for what it says; an upper bound is a lower bound of the negated numbers.

Source: Howard and others, *Time-uniform, nonparametric, nonasymptotic confidence sequences*, 2021 (empirical
Bernstein).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tests.naive.native_search.scale import Scale

LARGEST = 0.75
STAKES = (LARGEST * 1.6 ** -np.arange(48.0)).tolist()
LOG_SHARES = (-np.log((np.arange(48.0) + 1.0) * (np.arange(48.0) + 2.0))).tolist()

GAIN, GAIN_SQUARES, LOSS, LOSS_SQUARES = range(4)


class Value:
    """What logged events say of the reward of one policy."""

    def __init__(self) -> None:
        self.sums: NDArray[np.float64] = np.zeros(4)
        """Σ x and Σ (x - what was expected)², and the same of what bounds -x."""
        self.first_bound = self.bound = 0.0
        """How far x can be from what was expected, at first and now."""
        self.rewards = self.weights = 0.0
        """Of the mean so far, which is what is expected next."""

    def observe(self, scale: Scale, weight: float, reward: float) -> None:
        """Take in a logged event: `weight` is 1/p if the policy would have done what was logged, else 0."""
        width = scale.width
        if not width > 0.0:
            return
        r = scale.part(reward)
        mean = self.rewards / self.weights if self.weights > 0.0 else 0.5
        expected = scale.low + mean * width
        if scale.floor > 0.0:
            weight = min(weight, 1.0 / scale.floor)
            x = expected + weight * (r - mean) * width
            self._add(x, -x, expected, width / scale.floor)
        else:
            x = scale.low + weight * r * width
            self._add(x, weight * (1.0 - r) * width - scale.high, expected, width)
        self.rewards += weight * weight * r
        self.weights += weight * weight

    def observe_loss(self, loss: float, bound: float) -> None:
        """Take in the loss of a single line, as a negative reward; `bound` is the largest before it."""
        if not bound > 0.0:
            return
        loss = min(loss, bound)
        mean = self.rewards / self.weights if self.weights > 0.0 else 0.0
        self._add(-loss, loss, -mean, bound)
        self.rewards += loss
        self.weights += 1.0

    def _add(self, up: float, down: float, expected: float, bound: float) -> None:
        distances = (up - expected) * (up - expected), (down + expected) * (down + expected)
        self.sums = self.sums + np.array([up, distances[0], down, distances[1]])
        self.first_bound = self.first_bound or bound
        self.bound = max(self.bound, bound)

    def interval(self, alpha: float, before: NDArray[np.float64] | None = None) -> tuple[float, float]:
        """Bounds on the sum of rewards since the sums were as they were `before`."""
        sums = (self.sums if before is None else self.sums - before).tolist()
        low = self._lower(sums[GAIN], sums[GAIN_SQUARES], alpha / 2.0)
        high = -self._lower(sums[LOSS], sums[LOSS_SQUARES], alpha / 2.0)
        return low, high

    def _lower(self, total: float, squares: float, alpha: float) -> float:
        best = -math.inf
        for stake_of_first, log_share in zip(STAKES, LOG_SHARES, strict=True):
            if not self.first_bound > 0.0:
                continue
            stake = stake_of_first / self.first_bound
            z = stake * self.bound
            if z <= LARGEST:
                psi = (-math.log1p(-z) - z) / (self.bound * self.bound)
                best = max(best, total - (psi * squares - math.log(alpha) - log_share) / stake)
        return best
