"""The scale: the range of rewards and the smallest propensity, as known before an event.

Both are fixed, or learnt and widened. A scale is a float64 array of `SCALE_SIZE`, shared by all challengers:
[lowest reward, highest reward, smallest propensity or 0 if unknown, number of events beyond these, number of
events below that propensity, and 1 if the smallest propensity is learnt]. While the range has no width,
states ignore all events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.jit import entry_kernel, inline_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

LOW, HIGH, FLOOR, OUTSIDE, BELOW, LEARNT = range(6)
"""Entries of a scale."""

SCALE_SIZE = 6


@inline_kernel
def in_unit(x: float) -> float:
    """Return the number in [0, 1] that is nearest to `x`; 0 for NaN."""
    return min(max(0.0, x), 1.0)


@inline_kernel
def is_beyond(scale: NDArray[np.float64], reward: float) -> bool:
    """Return whether `reward` is outside the range known so far."""
    return not scale[LOW] <= reward <= scale[HIGH]


@entry_kernel
@inline_kernel
def widen(scale: NDArray[np.float64], reward: float, p: float, n: int) -> None:
    """Widen the scale to a finite reward and a propensity; call it after all states have observed them.

    Of `n` actions, one that was not logged has at most (1 - p)/(n - 1). A floor of 0 stays 0.
    """
    beyond, below = is_beyond(scale, reward), 0.0 < p < scale[FLOOR] * (1.0 - 1e-6)
    scale[LOW], scale[HIGH] = min(scale[LOW], reward), max(scale[HIGH], reward)
    least = min(p, (1.0 - p) / (n - 1)) if n > 1 and p < 1.0 else p
    if 0.0 < least < scale[FLOOR] * (1.0 - 1e-6):
        scale[FLOOR] = least
    if below:
        scale[BELOW] += 1.0
    if beyond or below:
        scale[OUTSIDE] += 1.0


def make_scale(low: float, high: float, *, floor: float | None) -> NDArray[np.float64]:
    """Return a new scale, float64[6], see `onlineauto.estimators.scale_kernels`."""
    scale = np.zeros(SCALE_SIZE)
    scale[[LOW, HIGH]] = low, high
    scale[[FLOOR, LEARNT]] = (1.0, 1.0) if floor is None else (floor, 0.0)
    return scale
