"""Softmax."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.jit import F32, inline_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ZERO, _ONE = np.float32(0), np.float32(1)


@inline_kernel
def softmax(score: NDArray[np.float32], n: int, lambda_: F32) -> None:
    """Replace scores by probabilities proportional to exp(-λ score)."""
    least, total = score[0], _ZERO
    for i in range(1, n):
        least = min(least, score[i])
    for i in range(n):
        score[i] = math.exp(-lambda_ * (score[i] - least))
        if math.isnan(score[i]):  # the least score is infinite, and this is one of them
            score[i] = _ONE
        total += score[i]
    for i in range(n):
        score[i] /= total
