"""What members of ``--rnd`` guess: a normal number of the name of each feature, times its value."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.explorers.sample_kernels import mix_state
from tests.naive.explorers import merand48

if TYPE_CHECKING:
    from collections.abc import Sequence

F = np.float32
APART = 0xD6E8FEB86659FD93
"""Between the numbers of two members."""

_LOGF = ctypes.CDLL("libm.so.6").logf
_LOGF.restype, _LOGF.argtypes = ctypes.c_float, [ctypes.c_float]


def normal(state: int) -> np.float32:
    """The next normal number of VW's generator."""
    while True:
        first, state = merand48(state)
        second, state = merand48(state)
        x, y = F(2) * first - F(1), F(2) * second - F(1)
        size = x * x + y * y
        if 0 < size < 1:
            return F(x * np.sqrt(F(-2) * F(_LOGF(float(size))) / size))


def guess(
    features: Sequence[tuple[int, np.float32]], *, seed: int, member: int, spread: np.float32
) -> np.float32:
    """Guess of an example with these hashes of names, and their values."""
    squares = total = F(0)
    for name, x in features:
        number = normal(int(mix_state(np.uint64(seed), np.uint64((name + member * APART) % 2**64))))
        squares, total = squares + x * x, total + x * number
    return F(spread * total / np.sqrt(F(2) * max(F(1e-12), squares)))
