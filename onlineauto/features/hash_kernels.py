"""Hash bytes with MurmurHash3, and names by VW's rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.jit import entry_kernel, inline_kernel
from onlineauto.jit.words import load1, load4, load8

if TYPE_CHECKING:
    from numpy.typing import NDArray

C1, C2, C3, C4, C5, FIVE = map(np.uint32, (0xCC9E2D51, 0x1B873593, 0xE6546B64, 0x85EBCA6B, 0xC2B2AE35, 5))
"""Constants of MurmurHash3."""

_TEN = np.uint32(10)

_FIRST = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)
"""Masks that keep the first n bytes of a word, by n."""

_EACH = np.uint64(0x0101010101010101)
_BYTE = np.uint64(0xFF)

# Numba widens operations on two uint32 to uint64, so each result is cast back to uint32.


@inline_kernel
def rotate_left(x: np.uint32, bits: int) -> np.uint32:
    """Return a word rotated to the left."""
    return np.uint32((x << bits) | (x >> (32 - bits)))


@inline_kernel
def scramble(k: np.uint32) -> np.uint32:
    """Return a word after the mixing step of MurmurHash3; 0 remains 0."""
    return np.uint32(rotate_left(np.uint32(k * C1), 15) * C2)


@inline_kernel
def _block(h: np.uint32, k: np.uint32) -> np.uint32:
    h = rotate_left(np.uint32(h ^ scramble(k)), 13)
    return np.uint32(h * FIVE + C3)


@inline_kernel
def _finish(h: np.uint32) -> np.uint32:
    h = np.uint32((h ^ (h >> 16)) * C4)
    h = np.uint32((h ^ (h >> 13)) * C5)
    return np.uint32(h ^ (h >> 16))


@inline_kernel
def few_bytes(data: NDArray[np.uint8], start: int, end: int) -> np.uint64:
    """Return up to eight bytes, ``data[start:end]``, as a little-endian number."""
    if start + 8 <= len(data):
        return load8(data, start) & _FIRST[np.uint64(end - start)]  # type: ignore[no-any-return]
    word = np.uint64(0)
    for i in range(end - 1, start - 1, -1):
        word = (word << np.uint64(8)) | np.uint64(data[i])
    return word


@inline_kernel
def mark_non_digits(word: np.uint64) -> np.uint64:
    """Return a word whose bytes have the highest bit set where the byte of `word` is not a digit."""
    apart = word ^ (_EACH * np.uint64(0x30))
    return (((apart & (_EACH * np.uint64(0x7F))) + _EACH * np.uint64(0x76)) | apart) & (
        _EACH * np.uint64(0x80)
    )


@inline_kernel
def murmur3_of_few(word: np.uint64, n: int, seed: np.uint32) -> np.uint32:
    """Return `murmur3` of `n` bytes, at most eight, from a little-endian number."""
    h = np.uint32(seed)
    if n >= 4:
        h = _block(h, np.uint32(word))
        word >>= np.uint64(32)
        if n == 8:
            h = _block(h, np.uint32(word))
            word = np.uint64(0)
    h = np.uint32(h ^ scramble(np.uint32(word)))  # no effect if no bytes are left
    return _finish(np.uint32(h ^ np.uint32(n)))


@inline_kernel
def is_hashed_as_it_is(word: np.uint64, n: int, hash_all: bool) -> bool:
    """Return whether `hash_name` of 1 to 8 bytes is their plain murmur hash."""
    if hash_all:
        return True
    last = word >> np.uint64(8 * (n - 1))
    if word & _BYTE <= np.uint64(0x20) or last <= np.uint64(0x20):
        return False
    return bool(mark_non_digits(word) & _FIRST[np.uint64(n)])


@entry_kernel
@inline_kernel
def murmur3(data: NDArray[np.uint8], start: int, end: int, seed: np.uint32) -> np.uint32:
    """Return MurmurHash3_x86_32 of ``data[start:end]``, in blocks of four little-endian bytes.

    Parameters
    ----------
    data : uint8[:]
        Buffer that holds the bytes to hash.
    start, end : int
        Bytes ``start <= i < end`` are hashed.
    seed : uint32
        Seed of the hash.

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
    while start < tail:
        h = _block(h, load4(data, start))
        start += 4
    h = np.uint32(h ^ scramble(np.uint32(few_bytes(data, tail, end))))  # no effect if no bytes are left
    return _finish(np.uint32(h ^ np.uint32(length)))


@inline_kernel
def hash_word(data: NDArray[np.uint8], start: int, end: int, seed: np.uint32, hash_all: bool) -> np.uint32:
    """Return `hash_name` of a name without bytes up to 0x20 at its ends."""
    if not hash_all:
        number, i = np.uint32(0), start
        while i < end and 48 <= load1(data, i) <= 57:
            number = np.uint32(number * _TEN + np.uint32(load1(data, i) - np.uint8(48)))
            i += 1
        if i == end:
            return np.uint32(number + np.uint32(seed))
    return murmur3(data, start, end, seed)


@entry_kernel
@inline_kernel
def hash_name(data: NDArray[np.uint8], start: int, end: int, seed: np.uint32, hash_all: bool) -> np.uint32:
    """Return the hash of the name ``data[start:end]`` of a namespace or a feature.

    By default bytes up to 0x20 at both ends are dropped. If only digits are left (or nothing), the hash is
    their decimal value plus `seed`, modulo 2^32. Otherwise it is the murmur hash of what is left.

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

    Source
    ------
    VW option ``--hash strings|all``.

    Examples
    --------
    >>> int(hash_name(np.frombuffer(b" 0012", np.uint8), 0, 5, np.uint32(5), False))
    17
    """
    size = end - start
    if 0 < size <= 8:
        word = few_bytes(data, start, end)
        if is_hashed_as_it_is(word, size, hash_all):
            return murmur3_of_few(word, size, seed)
    if not hash_all:
        while start < end and load1(data, start) <= 0x20:
            start += 1
        while start < end and load1(data, end - 1) <= 0x20:
            end -= 1
    return hash_word(data, start, end, seed, hash_all)
