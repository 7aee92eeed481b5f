"""Moments of costs: what members of costs know of all costs, and how well they predict them."""

from __future__ import annotations

import math
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.ensemble.number_bin_kernels import add_value
from onlineauto.engine.records.ensemble import MOST_ACTIONS
from onlineauto.jit import inline_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.records.ensemble import Inputs

LATEST = 1000.0
"""Number of latest events over which members average costs and errors."""

_LEAST_NOISE = 0.02
"""Minimum noise of an event, in units of the variance of the costs."""


class CostMoment(IntEnum):
    """Entries of the costs of a member."""

    MEAN = 0
    VARIANCE = 1
    ERROR = 2  # mean squared error of the member


@inline_kernel
def noise_of(costs: NDArray[np.float64]) -> float:
    """Return the unexplained part of the variance of the costs so far, at least `_LEAST_NOISE`."""
    variance, error = costs[CostMoment.VARIANCE], costs[CostMoment.ERROR]
    return min(max(error / variance, _LEAST_NOISE), 1.0) if variance > 0.0 and error > 0.0 else 1.0


@inline_kernel
def note_cost(costs: NDArray[np.float64], cost: float, error: float, inputs: Inputs, weight: float) -> None:
    """Add a learnt cost and the error of its prediction to the moments; NaN if it was not predicted."""
    n_seen = min(np.float64(inputs.seen[MOST_ACTIONS] + 1), LATEST)
    events = max(n_seen / weight, 1.0)
    if math.isfinite(error):
        costs[CostMoment.ERROR] += (error * error - costs[CostMoment.ERROR]) / events
    add_value(costs[:1], costs[1:2], 0, cost, events)
