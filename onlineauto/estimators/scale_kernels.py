"""What is known of rewards and logged probabilities before an event: given, or learnt and widened.

A scale is a float64 array of `SCALE_SIZE`, one for all challengers: [lowest reward, highest reward, least
probability of a logged action or 0 if none is known, how many events were beyond]. Nothing is taken in while
the range has no width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.jit import inline_kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LOW, HIGH, FLOOR, OUTSIDE = range(4)
"""Entries of a scale."""

SCALE_SIZE = 4


@inline_kernel
def in_unit(x: float) -> float:
    """The nearest number in [0, 1]; NaN counts as 0."""
    return min(max(0.0, x), 1.0)


@inline_kernel
def is_beyond(scale: NDArray[np.float64], reward: float) -> bool:
    """Whether a reward is out of the range known so far."""
    return not scale[LOW] <= reward <= scale[HIGH]


@inline_kernel
def widen(scale: NDArray[np.float64], reward: float, p: float) -> None:
    """Let the scale hold a finite reward and a logged probability, after all states have taken them in.

    Increments to come are scaled by it; what bets won and lost before remains. A floor of 0 stays 0.
    """
    beyond = is_beyond(scale, reward)
    scale[LOW], scale[HIGH] = min(scale[LOW], reward), max(scale[HIGH], reward)
    if 0.0 < p < scale[FLOOR] * (1.0 - 1e-6):
        scale[FLOOR] = p
        beyond = True
    if beyond:
        scale[OUTSIDE] += 1.0
