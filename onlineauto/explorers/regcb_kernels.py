"""RegCB: the actions that may be the best, by their plausible costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.explorers.cost_range_kernels import best_highest
from onlineauto.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ZERO = np.float32(0)
_ONE = np.float32(1)
_FLOAT_MAX = np.float32(np.finfo(np.float32).max)


@kernel
def regcb(pmf: NDArray[np.float32], order: NDArray[np.int32], n: int, plausible: NDArray[np.float32]) -> None:
    """Fill in, by rank, the same probability for each action whose range begins below the end of all others'.

    Parameters
    ----------
    order : int32[n]
        Actions by rank.
    plausible : float32[2, n]
        Lowest and highest plausible cost of each action, by its number.
    """
    limit, left = best_highest(plausible, n), 0
    for action in range(n):
        left += 1 if plausible[0, action] <= limit else 0
    for i in range(n):
        pmf[i] = _ONE / np.float32(left) if plausible[0, order[i]] <= limit else _ZERO


@kernel
def regcb_optimistic(
    pmf: NDArray[np.float32],
    order: NDArray[np.int32],
    n: int,
    plausible: NDArray[np.float32],
    first_only: bool,
    exact: bool,
) -> None:
    """Fill in, by rank, 1 for the action whose range begins lowest.

    Several that begin there share it, unless `first_only`; if `exact`, each of them has 1, as in VW.
    """
    best, tied, lowest = 0, 0, _FLOAT_MAX
    for action in range(n):
        if plausible[0, action] < lowest:
            best, lowest = action, plausible[0, action]
    for action in range(n):
        tied += 1 if plausible[0, action] == lowest else 0
    share = _ONE if exact or first_only or tied == 0 else _ONE / np.float32(tied)
    for i in range(n):
        alike = not first_only and plausible[0, order[i]] == lowest
        pmf[i] = share if order[i] == best or alike else _ZERO
