"""Numbers for the names of namespaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.features.hash_kernels import hash_name
from onlineauto.formats.column_kernels import DEFAULT_NUMBER, N_FRESH, N_NAMES
from onlineauto.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.formats.column_kernels import Names, Reader, Rules

__all__ = ["insert", "number_of_default", "number_of_name"]

_OFFSET = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)
_ONE = np.uint64(1)


@kernel
def _key(data: NDArray[np.uint8], start: int, end: int) -> np.uint64:
    """64-bit hash of a name, never 0 (FNV-1a, then one round of mixing)."""
    key = _OFFSET
    for i in range(start, end):
        key = (key ^ np.uint64(data[i])) * _PRIME
    key = (key ^ (key >> _SHIFT)) * _MIX
    return key | _ONE


@kernel
def _slot(key_column: NDArray[np.uint64], key: np.uint64) -> int:
    """Where `key` is in the table, or the free place where it belongs."""
    mask = np.uint64(len(key_column) - 1)
    slot = (key >> _SHIFT) & mask
    while key_column[slot] != 0 and key_column[slot] != key:
        slot = (slot + _ONE) & mask
    return np.int64(slot)


@kernel
def insert(old: Names, new: Names, n_names: int) -> None:
    """Copy a table into a larger, empty one."""
    for i in range(len(old.key)):
        if old.key[i] != 0:
            slot = _slot(new.key, old.key[i])
            new.key[slot] = old.key[i]
            new.number[slot] = old.number[i]
    for i in range(n_names):
        new.hash[i] = old.hash[i]


@kernel
def _add(reader: Reader, start: int, end: int, hash_: np.uint32) -> int:
    names, at = reader.names, reader.at
    number, fresh = at[N_NAMES], at[N_FRESH]
    names.hash[number] = hash_
    names.fresh_start[fresh] = start
    names.fresh_end[fresh] = end
    at[N_NAMES] = number + 1
    at[N_FRESH] = fresh + 1
    return number  # type: ignore[no-any-return]


@kernel
def number_of_name(data: NDArray[np.uint8], start: int, end: int, rules: Rules, reader: Reader) -> int:
    """Number of the namespace called ``data[start:end]``; a new name gets the next one."""
    names = reader.names
    key = _key(data, start, end)
    slot = _slot(names.key, key)
    if names.key[slot] == 0:
        names.key[slot] = key
        hash_ = hash_name(data, start, end, rules.hash_seed, rules.hash_all)
        names.number[slot] = _add(reader, start, end, hash_)
    return np.int64(names.number[slot])


@kernel
def number_of_default(rules: Rules, reader: Reader) -> int:
    """Number of the namespace that has no name."""
    at = reader.at
    if at[DEFAULT_NUMBER] < 0:
        at[DEFAULT_NUMBER] = _add(reader, -1, -1, rules.default_hash)
    return at[DEFAULT_NUMBER]  # type: ignore[no-any-return]
