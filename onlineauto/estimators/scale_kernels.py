"""What is known of rewards and logged probabilities before an event: given, or learnt and widened.

A scale is a float64 array of `SCALE_SIZE`, one for all challengers: [lowest reward, highest reward, least
probability of a logged action or 0 if none is known, how many events were beyond, how many of these had a
lesser probability, and 1 if the least one is learnt]. Nothing is taken in while
the range has no width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.jit import inline_kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LOW, HIGH, FLOOR, OUTSIDE, BELOW, LEARNT = range(6)
"""Entries of a scale."""

SCALE_SIZE = 6


@inline_kernel
def in_unit(x: float) -> float:
    """The nearest number in [0, 1]; NaN counts as 0."""
    return min(max(0.0, x), 1.0)


@inline_kernel
def is_beyond(scale: NDArray[np.float64], reward: float) -> bool:
    """Whether a reward is out of the range known so far."""
    return not scale[LOW] <= reward <= scale[HIGH]


@inline_kernel
def widen(scale: NDArray[np.float64], reward: float, p: float, n: int) -> None:
    """Let the scale hold a finite reward and a logged probability, after all states have taken them in.

    Of the `n` actions that there were, those that were not logged have 1 - p together, so one of them has
    (1 - p)/(n - 1) at most. Increments to come are scaled by the range and by the least probability; what
    bets won and lost before remains. A floor of 0 stays 0.
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
