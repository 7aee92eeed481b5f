"""Support explorers' kernels: scratch, the counts that they read, and the propensity that learners use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.explorers._kernels import HIGH, LEARNT, LOW
from onlineauto.jit import F32, inline_kernel

if TYPE_CHECKING:
    from onlineauto.explorers._kernels import Exploration

VOTES, BONUS, SUMS, WORK, FILLED = 0, 0, 1, 2, 3
"""Rows of the explorers' scratch. The first two have the lowest and the highest plausible cost, or votes and
summed scores, or bonuses."""

ROWS = 4

_ONE = np.float32(1)


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
def note_learnt(at: Exploration) -> None:
    """Count a learnt event."""
    at.counts[LEARNT] += 1
