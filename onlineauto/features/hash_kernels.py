"""MurmurHash3 and VW's rule for hashing names, over bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.jit import inline_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["hash_name", "murmur3"]

_C1 = np.uint32(0xCC9E2D51)
_C2 = np.uint32(0x1B873593)
_C3 = np.uint32(0xE6546B64)
_C4 = np.uint32(0x85EBCA6B)
_C5 = np.uint32(0xC2B2AE35)
_FIVE = np.uint32(5)
_TEN = np.uint32(10)

# Numba widens an operation of two uint32 to uint64, hence a cast back to uint32 after each.


@inline_kernel
def _rotate_left(x: np.uint32, bits: int) -> np.uint32:
    return np.uint32((x << bits) | (x >> (32 - bits)))


@inline_kernel
def _scramble(k: np.uint32) -> np.uint32:
    return np.uint32(_rotate_left(np.uint32(k * _C1), 15) * _C2)


@inline_kernel
def _finish(h: np.uint32) -> np.uint32:
    h = np.uint32((h ^ (h >> 16)) * _C4)
    h = np.uint32((h ^ (h >> 13)) * _C5)
    return np.uint32(h ^ (h >> 16))


@inline_kernel
def murmur3(data: NDArray[np.uint8], start: int, end: int, seed: np.uint32) -> np.uint32:
    """MurmurHash3_x86_32 of ``data[start:end]``, in blocks of four little-endian bytes.

    Parameters
    ----------
    data : uint8[:]
        Buffer that holds the bytes to hash.
    start, end : int
        Bytes ``start <= i < end`` are hashed.
    seed : uint32
        Seed of the hash.

    Returns
    -------
    uint32
        The hash.

    Source
    ------
    Austin Appleby's MurmurHash3, the 32-bit variant for x86; VW's ``uniform_hash``.

    Examples
    --------
    >>> int(murmur3(np.frombuffer(b"tested", np.uint8), 0, 6, np.uint32(0)))
    2247989476
    """
    h = np.uint32(seed)
    length = end - start
    tail = start + (length & ~3)
    for i in range(start, tail, 4):
        block = data[i] | (data[i + 1] << 8) | (data[i + 2] << 16) | (data[i + 3] << 24)
        h = _rotate_left(np.uint32(h ^ _scramble(np.uint32(block))), 13)
        h = np.uint32(h * _FIVE + _C3)
    if tail < end:
        k = np.uint32(data[tail])
        if tail + 1 < end:
            k = np.uint32(k | (data[tail + 1] << 8))
        if tail + 2 < end:
            k = np.uint32(k | (data[tail + 2] << 16))
        h = np.uint32(h ^ _scramble(k))
    return _finish(np.uint32(h ^ np.uint32(length)))


@inline_kernel
def hash_name(data: NDArray[np.uint8], start: int, end: int, seed: np.uint32, hash_all: bool) -> np.uint32:
    """Hash of a namespace's or a feature's name ``data[start:end]``.

    By default bytes up to 0x20 at both ends are dropped; if only digits are left (or nothing), the hash is
    their decimal value plus `seed`, modulo 2^32; else it is the murmur hash of what is left.

    Parameters
    ----------
    data : uint8[:]
        Buffer that holds the name.
    start, end : int
        The name is the bytes ``start <= i < end``.
    seed : uint32
        Hash of the namespace for a feature, ``--hash_seed`` for a namespace.
    hash_all : bool
        ``--hash all``: the murmur hash of all the bytes, digits and blanks too.

    Returns
    -------
    uint32
        The hash, not masked by ``-b``.

    Source
    ------
    VW option ``--hash strings|all``.

    Examples
    --------
    >>> int(hash_name(np.frombuffer(b" 0012", np.uint8), 0, 5, np.uint32(5), False))
    17
    """
    if hash_all:
        return murmur3(data, start, end, seed)
    while start < end and data[start] <= 0x20:
        start += 1
    while start < end and data[end - 1] <= 0x20:
        end -= 1
    number = np.uint32(0)
    for i in range(start, end):
        digit = np.uint32(data[i] - np.uint8(48))
        if digit > 9:
            return murmur3(data, start, end, seed)
        number = np.uint32(number * _TEN + digit)
    return np.uint32(number + np.uint32(seed))
