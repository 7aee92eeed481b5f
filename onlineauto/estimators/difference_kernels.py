"""The champion test on differences of losses: each gain is known exactly, but no bound on its size is.

The bound is learnt. It is eight times the typical size of recent differences, and at least the largest size
in the latter half of all differences. A difference beyond the previous bound counts as that bound. When the
bound shrinks a lot, as it does while models learn, the test restarts with half of its level. So all restarts
together do not exceed the level.

The test is thus about differences clipped to what was seen before them. No test can foresee a difference that
is rarer, and so large that it outweighs everything else.

For some events the `reach`, the largest possible size of the difference, is known: for squared errors it
follows from the two predictions and the range of labels. Then no rare large difference is possible, and only
labels outside the range so far are clipped. The bound is the reach, but at least twice the typical size, so
stakes are up to four times as large. An event with a large reach counts much less, regardless of its outcome.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from onlineauto.estimators.paired_kernels import observe_difference
from onlineauto.jit import entry_kernel, inline_kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SQUARES, SEEN, BOUND, LATELY, BEFORE, NEXT, RESTARTS = range(7)
"""Entries of a spread:

- SQUARES, SEEN, BOUND: mean square of recent differences, number of differences, and their bound;
- LATELY, BEFORE: largest size in the present half of them, and in the half before;
- NEXT, RESTARTS: number of differences at which the next half begins, and number of restarts.
"""

SPREAD_SIZE = 7

_FEW, _MEMORY, _TIMES, _TIMES_WITHIN = 32.0, 256.0, 8.0, 2.0


@entry_kernel
@inline_kernel
def share(spread: NDArray[np.float64]) -> float:
    """Return the part of the level that the test has now: ½, and half as much after each restart."""
    part = 0.5
    for _ in range(int(min(spread[RESTARTS], 1100.0))):  # few; a power would cost more
        part *= 0.5
    return part


@entry_kernel
@inline_kernel
def observe_any_difference(
    state: NDArray[np.float64], spread: NDArray[np.float64], d: float, price: float
) -> None:
    """Add a gain `d` of the challenger, which must exceed `price`, a part of the bound; NaN is ignored."""
    if not math.isfinite(d):
        return
    if spread[BOUND] > 0.0:
        observe_difference(state, d, spread[BOUND], price)
    _learn_bound(state, spread, d, False)


@inline_kernel
def observe_difference_within(
    state: NDArray[np.float64], spread: NDArray[np.float64], d: float, reach: float
) -> None:
    """Add a gain `d` of at most `reach`, known before; use only one of these two kernels for a test."""
    if not math.isfinite(d):
        return
    if spread[BOUND] > 0.0:
        observe_difference(state, d, max(spread[BOUND], reach), 0.0)
    _learn_bound(state, spread, d, True)


@inline_kernel
def _learn_bound(
    state: NDArray[np.float64], spread: NDArray[np.float64], d: float, is_bound_known: bool
) -> None:
    """Learn the bound of differences, unless the caller knows it; restart if the bound shrinks a lot."""
    spread[SEEN] += 1.0
    spread[SQUARES] += (d * d - spread[SQUARES]) / min(spread[SEEN], _MEMORY)
    spread[LATELY] = max(spread[LATELY], abs(d))
    if spread[SEEN] < _FEW:
        return
    if spread[SEEN] >= spread[NEXT]:
        spread[BEFORE], spread[LATELY] = spread[LATELY], 0.0
        spread[NEXT] = 2.0 * spread[SEEN]
    largest = 0.0 if is_bound_known else max(spread[BEFORE], spread[LATELY])
    bound = max((_TIMES_WITHIN if is_bound_known else _TIMES) * math.sqrt(spread[SQUARES]), largest)
    if bound > 2.0 * spread[BOUND] or largest > spread[BOUND]:
        spread[BOUND] = bound
    elif bound < 0.25 * spread[BOUND]:
        spread[BOUND] = bound
        spread[RESTARTS] += 1.0
        state[:] = 0.0
