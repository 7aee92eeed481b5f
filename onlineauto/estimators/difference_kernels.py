"""The champion test where the gain of an event is known in full, and its size is not: differences of losses.

Differences are taken to be within a bound that is learnt: so many times their typical size of late, and no
less than the largest one of at least the latter half of them. A difference beyond the bound known before it
counts as the bound. When the bound shrinks a lot, as it does while models learn, the test starts anew with
half of its level, so that all of them together have one.

It is a test of differences clipped to what was met before them. What is rarer than that, and so large that it
outweighs everything else, no test can know of before it happens.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from onlineauto.estimators.paired_kernels import observe_difference
from onlineauto.jit import inline_kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SQUARES, SEEN, BOUND, LATELY, BEFORE, NEXT, RESTARTS = range(7)
"""Entries of a spread: mean square of the differences of late, how many there were, what they are taken to be
within; the largest one of this half of them, and of the half before; when the next begins; and how often the
test has started anew."""

SPREAD_SIZE = 7

_FEW, _MEMORY, _TIMES = 32.0, 256.0, 8.0


@inline_kernel
def share(spread: NDArray[np.float64]) -> float:
    """What part of the level the test has now: ½, and half of that after each restart."""
    part: float = 0.5 ** (1.0 + spread[RESTARTS])
    return part


@inline_kernel
def observe_any_difference(
    state: NDArray[np.float64], spread: NDArray[np.float64], d: float, price: float
) -> None:
    """Take in what the challenger gained; to be better it must gain more than `price`, a part of the bound.

    `state` is that of the champion test; all zeros are a fresh one, as for `spread`. NaN counts as nothing.
    """
    if not math.isfinite(d):
        return
    if spread[BOUND] > 0.0:
        observe_difference(state, d, spread[BOUND], price)
    spread[SEEN] += 1.0
    spread[SQUARES] += (d * d - spread[SQUARES]) / min(spread[SEEN], _MEMORY)
    spread[LATELY] = max(spread[LATELY], abs(d))
    if spread[SEEN] < _FEW:
        return
    if spread[SEEN] >= spread[NEXT]:
        spread[BEFORE], spread[LATELY] = spread[LATELY], 0.0
        spread[NEXT] = 2.0 * spread[SEEN]
    largest = max(spread[BEFORE], spread[LATELY])
    bound = max(_TIMES * math.sqrt(spread[SQUARES]), largest)
    if bound > 2.0 * spread[BOUND] or largest > spread[BOUND]:
        spread[BOUND] = bound
    elif bound < 0.25 * spread[BOUND]:
        spread[BOUND] = bound
        spread[RESTARTS] += 1.0
        state[:] = 0.0
