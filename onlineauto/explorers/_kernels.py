"""From ranked scores to probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.jit import F32, inline_kernel, kernel, short_loop

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ZERO = np.float32(0)
_ONE = np.float32(1)
_FEW = 32  # inserted one by one; more are sorted by a heap
_TOLERANCE = np.float32(0.0001)


@inline_kernel
def _is_before(score: NDArray[np.float32], one: int, other: int) -> bool:
    """Whether action `one` is ranked before `other`: by its score, then by its number."""
    return bool(score[one] < score[other] or (score[one] == score[other] and one < other))


@inline_kernel
def _sift(score: NDArray[np.float32], order: NDArray[np.int32], root: int, n: int) -> None:
    """Let the action at `root` of a heap of `n`, whose first is ranked last, sink to its place."""
    action = order[root]
    child = 2 * root + 1
    while child < n:
        short_loop()
        if child + 1 < n and _is_before(score, order[child], order[child + 1]):
            child += 1
        if not _is_before(score, action, order[child]):
            break
        order[root] = order[child]
        root, child = child, 2 * child + 1
    order[root] = action


@kernel
def rank(score: NDArray[np.float32], n: int, order: NDArray[np.int32]) -> None:
    """Write into `order` the actions 0 .. n-1 by (score, action), both ascending: best first."""
    for action in range(n):
        short_loop()
        i = action
        while n <= _FEW and i > 0 and score[action] < score[order[i - 1]]:
            short_loop()
            order[i] = order[i - 1]
            i -= 1
        order[i] = action
    if n > _FEW:
        for root in range(n // 2 - 1, -1, -1):
            _sift(score, order, root, n)
        for last in range(n - 1, 0, -1):
            order[0], order[last] = order[last], order[0]
            _sift(score, order, 0, last)


@inline_kernel
def count_tied(score: NDArray[np.float32], n: int) -> int:
    """How many leading entries of ranked `score` are within 1e-4 (relative) of the first."""
    tied = 1
    while tied < n and abs(score[tied] - score[0]) <= _TOLERANCE * (abs(score[tied]) + abs(score[0])):
        short_loop()
        tied += 1
    return tied


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
