"""From ranked scores to probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.jit import F32, inline_kernel, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ZERO = np.float32(0)
_ONE = np.float32(1)
_TOLERANCE = np.float32(0.0001)


@kernel
def rank(score: NDArray[np.float32], n: int, order: NDArray[np.int32]) -> None:
    """Write into `order` the actions 0 .. n-1 by (score, action), both ascending: best first."""
    if n > 32:
        ranked = np.argsort(score[:n], kind="mergesort")
        for i in range(n):
            order[i] = ranked[i]
        return
    for action in range(n):
        i = action
        while i > 0 and score[action] < score[order[i - 1]]:
            order[i] = order[i - 1]
            i -= 1
        order[i] = action


@inline_kernel
def count_tied(score: NDArray[np.float32], n: int) -> int:
    """How many leading entries of ranked `score` are within 1e-4 (relative) of the first."""
    tied = 1
    while tied < n and abs(score[tied] - score[0]) <= _TOLERANCE * (abs(score[tied]) + abs(score[0])):
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
        score[i] = floor + bonus if i < tied else floor
