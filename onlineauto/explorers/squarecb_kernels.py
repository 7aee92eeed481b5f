"""SquareCB over ranked scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.explorers.cost_range_kernels import best_highest
from onlineauto.jit import F32, inline_kernel, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ZERO = np.float32(0)
_ONE = np.float32(1)
_FLOAT_MAX = np.float32(np.finfo(np.float32).max)


@inline_kernel
def greediness(scale: F32, exponent: F32, learnt: int) -> F32:
    """γ (float32) after so many events: their power, times the scale."""
    return scale * np.float32(np.float64(learnt) ** np.float64(exponent))


@inline_kernel
def squarecb(score: NDArray[np.float32], n: int, gamma: F32) -> None:
    """Replace ranked scores by 1 / (n + γ · what is lost), the first one by the rest."""
    best, total = score[0], _ZERO
    for i in range(1, n):
        score[i] = _ONE / (np.float32(n) + gamma * (score[i] - best))
        total += score[i]
    score[0] = _ONE - total


@kernel
def squarecb_elim(
    score: NDArray[np.float32],
    order: NDArray[np.int32],
    n: int,
    gamma: F32,
    plausible: NDArray[np.float32],
    exact: bool,
) -> None:
    """Do so for the actions that may be the best; others have the probability 0.

    If `exact`, actions are counted as VW does: those that look better than all before them.

    Parameters
    ----------
    order : int32[n]
        Actions by rank.
    plausible : float32[2, n]
        Lowest and highest plausible cost of each action, by its number.
    """
    limit = best_highest(plausible, n)
    first, left = -1, 0
    for i in range(n):
        if plausible[0, order[i]] <= limit:
            left += 1 if first < 0 or not exact else 0
            first = i if first < 0 else first
    best, total = score[first] if first >= 0 else _FLOAT_MAX, _ZERO
    first = max(first, 0)
    for i in range(n):
        if plausible[0, order[i]] > limit:  # as what is no number is not
            score[i] = _ZERO
        elif i != first:
            score[i] = _ONE / (np.float32(left) + gamma * (score[i] - best))
            total += score[i]
    score[first] = _ONE - total
