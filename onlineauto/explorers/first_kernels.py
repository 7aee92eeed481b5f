"""Explore first, then exploit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.jit import inline_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ZERO = np.float32(0)
_ONE = np.float32(1)


@inline_kernel
def first(score: NDArray[np.float32], n: int, exploring: bool) -> None:
    """Replace ranked scores by the same probability for each, or by 1 for the best."""
    for i in range(n):
        score[i] = _ONE / np.float32(n) if exploring else _ZERO
    if not exploring:
        score[0] = _ONE
