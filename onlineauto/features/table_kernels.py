"""A hash table of features: open addressing in arrays of one key and one value for each slot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.features.hash_constants import GOLDEN
from onlineauto.jit import inline_kernel, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

_GOLDEN = np.uint64(GOLDEN)
_SHIFT = np.uint64(40)


@inline_kernel
def slot_of_key(keys: NDArray[np.uint64], key: np.uint64) -> int:
    """Return the slot of a key other than 0 among a power of two of `keys`, or the free slot for it."""
    mask = len(keys) - 1
    slot = int((key * _GOLDEN) >> _SHIFT) & mask
    while keys[slot] != 0 and keys[slot] != key:
        slot = (slot + 1) & mask
    return slot


@kernel
def remove(keys: NDArray[np.uint64], values: NDArray[np.int64], slot: int) -> None:
    """Remove the key of a slot, and move up those of the next slots that would no longer be found."""
    mask, at = len(keys) - 1, slot
    while keys[at] != 0:
        at = (at + 1) & mask
        first = int((keys[at] * _GOLDEN) >> _SHIFT) & mask
        if keys[at] != 0 and ((at - first) & mask) >= ((at - slot) & mask):
            keys[slot], values[slot] = keys[at], values[at]
            slot = at
    keys[slot] = 0


def insert(keys: NDArray[np.uint64], values: NDArray[np.int64], key: int, value: int) -> None:
    """Insert a new key and its value, in plain Python."""
    mask = len(keys) - 1
    slot = ((key * GOLDEN) % 2**64 >> 40) & mask
    while keys[slot] != 0:
        slot = (slot + 1) & mask
    keys[slot], values[slot] = key, value
