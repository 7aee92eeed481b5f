"""Assign numbers to the names of namespaces, in a hash table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.features.hash_kernels import few_bytes, hash_name
from onlineauto.jit import entry_kernel, inline_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.records import Records
    from onlineauto.formats.records.json_state_kernels import JsonText
    from onlineauto.formats.records.reader_state_kernels import Text

_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)
_ONE = np.uint64(1)


@inline_kernel
def _key(data: NDArray[np.uint8], start: int, end: int) -> np.uint64:
    """Return a 64-bit hash of a name's length and words of eight bytes; it is never 0."""
    key = np.uint64(end - start) * _MIX
    while start < end:
        stop = min(start + 8, end)
        key = (key ^ few_bytes(data, start, stop)) * _MIX
        key ^= key >> _SHIFT
        start = stop
    return key | _ONE


@inline_kernel
def _slot(names: Records, key: np.uint64) -> int:
    """Return the row of `key` in the table, or the free row for it."""
    mask = np.uint64(len(names) - 1)
    slot = (key >> _SHIFT) & mask
    while names[slot].key != 0 and names[slot].key != key:
        slot = (slot + _ONE) & mask
    return slot  # type: ignore[return-value]


@entry_kernel
def insert(old: Records, new: Records) -> None:
    """Copy a table into a larger, empty one."""
    for i in range(len(old)):
        if old[i].key != 0:
            new[_slot(new, old[i].key)] = old[i]


@inline_kernel
def name_slot(text: Text | JsonText, start: int, end: int, names: Records) -> int:
    """Return the row of the namespace called ``data[start:end]``; a new name gets the next number."""
    key = _key(text.data, start, end)
    slot = _slot(names, key)
    name = names[slot]
    if name.key == 0:
        name.key = key
        name.start = start
        name.end = end
        name.hash = hash_name(text.data, start, end, text.rules.hash_seed, text.rules.hash_all)
        name.number = text.state.names
        text.state.names += 1
    return slot


@inline_kernel
def default_number(state: Records) -> int:
    """Return the number of the namespace that has no name."""
    if state.default_name < 0:
        state.default_name = state.names
        state.names += 1
    return np.int64(state.default_name)  # type: ignore[return-value]
