"""ε-greedy over ranked scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.explorers._kernels import count_tied
from onlineauto.jit import F32, inline_kernel, short_loop

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ONE = np.float32(1)


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
