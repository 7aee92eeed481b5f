"""Support explorers' kernels: scratch, the counts that they read, and the propensity that learners use."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.explorers.ranking_kernels import HIGH, LEARNT, LOW, Errors
from onlineauto.jit import F32, inline_kernel, kernel

if TYPE_CHECKING:
    from onlineauto.explorers.ranking_kernels import Exploration

VOTES, BONUS, SUMS, WORK, FILLED, PART, PLACED = 0, 0, 1, 2, 3, 4, 5
"""Rows of the explorers' scratch. The first two have the lowest and the highest plausible cost, or votes and
summed scores, or bonuses. The last two are those of new actions: learnt parts, and scores by action."""

ROWS = 6

_ONE = np.float32(1)
_KEEPS = 0.999
"""Factor of the earlier errors for each learnt event: about the last 1,000 errors count."""


@inline_kernel
def learnt_probability(at: Exploration, probability: F32, action: int, n: int) -> F32:
    """Return the probability (float32) by whose inverse learners weight a cost: 1 for regression."""
    if at.regresses and (action < n - 1 or not at.quirks.weighs_last_action):
        return _ONE
    return probability


@inline_kernel
def note_cost(at: Exploration, cost: F32) -> None:
    """Widen the range of costs to a learnt cost, if the explorer reads that range."""
    if at.sees_costs:
        at.costs[LOW] = min(at.costs[LOW], cost)
        at.costs[HIGH] = max(at.costs[HIGH], cost)


@inline_kernel
def note_value(at: Exploration, cost: float) -> None:
    """Add a cost to the sums for `typical_error`."""
    sums = at.errors
    sums[Errors.EVENTS] += 1.0
    difference = cost - sums[Errors.MEAN]
    sums[Errors.MEAN] += difference / sums[Errors.EVENTS]
    sums[Errors.SQUARES] += difference * (cost - sums[Errors.MEAN])


@kernel
def note_error(at: Exploration, cost: F32, prediction: F32, weight: F32) -> None:
    """Add a learnt cost and the error of its prediction, which counts `weight`, to the same sums."""
    sums, c = at.errors, np.float64(cost)
    note_value(at, c)
    error, times = c - np.float64(prediction), np.float64(weight)
    if math.isfinite(error * error):
        sums[Errors.RECENT] = _KEEPS * sums[Errors.RECENT] + times
        sums[Errors.RECENT_SQUARES] = _KEEPS * sums[Errors.RECENT_SQUARES] + times * (error * error)


@inline_kernel
def typical_error(at: Exploration) -> float:
    """Return the typical error of a prediction, at most the standard deviation of the costs.

    It is 0 as long as all costs are equal; but 1 if events were learnt whose errors are unknown.
    """
    sums = at.errors
    if not (sums[Errors.SQUARES] > 0.0 and sums[Errors.RECENT] > 0.0):
        return 1.0 if at.counts[LEARNT] > sums[Errors.EVENTS] else 0.0
    recent = sums[Errors.RECENT_SQUARES] / sums[Errors.RECENT]
    return math.sqrt(min(sums[Errors.SQUARES] / sums[Errors.EVENTS], recent))


@inline_kernel
def note_learnt(at: Exploration) -> None:
    """Count a learnt event."""
    at.counts[LEARNT] += 1
