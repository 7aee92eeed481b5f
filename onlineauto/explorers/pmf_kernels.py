"""Turn scores into probabilities: ε-greedy, softmax, and a minimum probability for every action.

The minimum probability applies ``--epsilon`` to explorers whose own formula does not use it.

Source of the minimum probability: Duchi, Shalev-Shwartz, Singer & Chandra, *Efficient Projections onto the
l1-Ball*, 2008; VW's ``enforce_minimum_probability``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.explorers.ranking_kernels import LEARNT, count_tied
from onlineauto.jit import F32, inline_kernel, kernel, short_loop

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.explorers.ranking_kernels import Exploration


_ZERO = np.float32(0)
_ONE = np.float32(1)
_ALL = np.float32(0.999)


@inline_kernel
def _sort_down(values: NDArray[np.float32], n: int) -> None:
    """Sort in descending order with Shell sort."""
    gap = 1
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for last in range(gap, n):
            value, i = values[last], last
            while i >= gap and values[i - gap] < value:
                short_loop()
                values[i] = values[i - gap]
                i -= gap
            values[i] = value
        gap //= 3


@kernel
def hold_floor(
    pmf: NDArray[np.float32], n: int, epsilon: F32, everywhere: bool, work: NDArray[np.float32]
) -> None:
    """Raise each of `n` probabilities to at least epsilon / n, and lower the others by the same amount each.

    Nothing changes at `epsilon` 0; above 0.999 all are equally likely. Zeros are raised only `everywhere`.
    """
    if not _ZERO < epsilon <= _ONE:
        return
    zeros = 0
    for i in range(n):
        zeros += 1 if not everywhere and pmf[i] == _ZERO else 0
    count = n - zeros
    size = np.float32(count)
    if epsilon > _ALL:
        for i in range(n):
            if everywhere or pmf[i] > _ZERO:
                pmf[i] = _ONE / size
        return
    least = epsilon / size
    for i in range(n):
        work[i] = pmf[i]
    _sort_down(work, n)
    total = _ZERO
    above, total_above = 0, work[0]
    for i in range(count):
        total += work[i]
        if work[i] > (np.float32(count - i - 1) * least + total - _ONE) / (np.float32(i) + _ONE) + least:
            above, total_above = i, total
    # the amount subtracted from each probability that remains above the floor
    reduction = (np.float32(count - above) - _ONE) * least + total_above - _ONE
    reduction /= np.float32(above) + _ONE
    for i in range(n):
        if everywhere or pmf[i] > _ZERO:
            pmf[i] = max(pmf[i] - reduction, least)


@inline_kernel
def falling_floor(exploration: Exploration, falls: bool, n: int) -> F32:
    """Return the minimum probability (float32): epsilon / n, or less as events are learnt if it `falls`."""
    least = exploration.epsilon / np.float32(n)
    if falls:
        return min(
            least, exploration.epsilon / np.float32(math.sqrt(np.float64(exploration.counts[LEARNT] * n)))
        )
    return least


@inline_kernel
def greedy(score: NDArray[np.float32], n: int, epsilon: F32, first_only: bool) -> None:
    """Replace ranked scores by ε-greedy probabilities; ties share the lead unless `first_only`."""
    if n == 0:
        return
    tied = 1 if first_only else count_tied(score, n)
    floor = epsilon / np.float32(n)
    bonus = (_ONE - epsilon) / np.float32(tied)
    for i in range(n):
        short_loop()
        score[i] = floor + bonus if i < tied else floor


_ZERO, _ONE = np.float32(0), np.float32(1)


@inline_kernel
def softmax(score: NDArray[np.float32], n: int, lambda_: F32) -> None:
    """Replace scores by probabilities proportional to exp(-λ score)."""
    least, total = score[0], _ZERO
    for i in range(1, n):
        least = min(least, score[i])
    for i in range(n):
        score[i] = math.exp(-lambda_ * (score[i] - least))
        if math.isnan(score[i]):  # inf - inf: the lowest score is infinite, and so is this one
            score[i] = _ONE
        total += score[i]
    for i in range(n):
        score[i] /= total
