"""Compute plausible costs: how far predictions could move with little additional loss."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.jit import F32, inline_kernel, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ZERO = np.float32(0)
_ONE = np.float32(1)
_TWO = np.float32(2)
_TOLERANCE = np.float32(1e-6)
_FLOAT_MAX = np.float32(np.finfo(np.float32).max)
_STEPS = 20


@inline_kernel
def allowed_loss(mellowness: F32, n: int, learnt: int, low: F32, high: F32) -> F32:
    """Return the squared loss (float32) that a plausible cost may add; -inf before the first event."""
    width = high - low
    return mellowness * math.log(np.float32(n * learnt)) * np.float32(np.float64(width) * np.float64(width))


@kernel
def largest_weight(distance: F32, allowed: F32, sensitivity: F32) -> F32:
    """Return the largest importance weight (float32) of an example that adds at most the `allowed` loss."""
    upper = min(distance / sensitivity, _FLOAT_MAX)
    if upper * distance * distance <= allowed:
        return upper
    lower = _ZERO
    for _ in range(_STEPS):
        weight = (upper + lower) / _TWO
        left = distance - sensitivity * weight
        excess = weight * (distance * distance - left * left) - allowed
        if excess > _ZERO:
            upper = weight
        else:
            lower = weight
        if abs(excess) <= _TOLERANCE or upper - lower <= _TOLERANCE:
            break
    return lower


@inline_kernel
def _is_known(sensitivity: F32, unmoved: bool) -> bool:
    """Return whether a label moves the prediction; if it does not, the quirk `unmoved_is_known` decides."""
    return math.isfinite(sensitivity) and (sensitivity > _ZERO or unmoved)


@inline_kernel
def lowest_cost(prediction: F32, sensitivity: F32, allowed: F32, low: F32, high: F32, unmoved: bool) -> F32:
    """Return the lowest plausible cost (float32), from the sensitivity to a label of `low` - 1."""
    if prediction < low or not _is_known(sensitivity, unmoved):
        return low
    cost = prediction - sensitivity * largest_weight(prediction - low + _ONE, allowed, sensitivity)
    if cost < low:  # False for NaN
        return low
    if cost > high:
        return high
    return cost


@inline_kernel
def highest_cost(prediction: F32, sensitivity: F32, allowed: F32, low: F32, high: F32, unmoved: bool) -> F32:
    """Return the highest plausible cost (float32), from the sensitivity to a label of `high` + 1."""
    if prediction > high or not _is_known(sensitivity, unmoved):
        return high
    cost = prediction + sensitivity * largest_weight(high + _ONE - prediction, allowed, sensitivity)
    if cost > high:
        return high
    if cost < low:
        return low
    return cost


@inline_kernel
def best_highest(plausible: NDArray[np.float32], n: int) -> F32:
    """Return the lowest of the highest plausible costs (float32); no action above it can be the best."""
    limit = _FLOAT_MAX
    for action in range(n):
        if plausible[1, action] < limit:
            limit = plausible[1, action]
    return limit
