"""Decaying ε."""

from __future__ import annotations

import numpy as np

from onlineauto.jit import F32, inline_kernel

_POWER = np.float64(np.float32(-1) / np.float32(3))


@inline_kernel
def decayed(initial: F32, learnt: int) -> F32:
    """ε (float32) of a model after so many events."""
    return initial * np.float32(np.float64(learnt + 1) ** _POWER)
