"""``untouched_zeros``: large arrays of zeros that take memory and time only where they are used."""

from __future__ import annotations

import math
import mmap
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LARGE = 1 << 20


def untouched_zeros(*shape: int) -> NDArray[np.float32]:
    """Return zeros: float32 of a shape.

    Each page of a large array takes memory when it is first written. `numpy.zeros` instead clears all of a
    large array if it gets the memory of another one that was freed, or takes huge pages.

    >>> untouched_zeros(2, 3).shape
    (2, 3)
    """
    n = 4 * math.prod(shape)
    if n < _LARGE or not hasattr(mmap, "MADV_NOHUGEPAGE"):
        return np.zeros(shape, np.float32)
    memory = mmap.mmap(-1, n)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, np.float32).reshape(shape)
