"""Hash bytes with MurmurHash3, and names by VW's rule; read short names with a number from their hashes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.jit import entry_kernel, inline_kernel
from onlineauto.jit.words import load1, load4, load8

if TYPE_CHECKING:
    from numpy.typing import NDArray

_C1, _C2, _C3, _C4, _C5, _FIVE = map(
    np.uint32, (0xCC9E2D51, 0x1B873593, 0xE6546B64, 0x85EBCA6B, 0xC2B2AE35, 5)
)  # of MurmurHash3

_TEN = np.uint32(10)

_FIRST = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)
"""Masks that keep the first n bytes of a word, by n."""

_EACH = np.uint64(0x0101010101010101)
_BYTE = np.uint64(0xFF)

# Numba widens operations on two uint32 to uint64, so each result is cast back to uint32.


@inline_kernel
def _rotate_left(x: np.uint32, bits: int) -> np.uint32:
    """Return a word rotated to the left."""
    return np.uint32((x << bits) | (x >> (32 - bits)))


@inline_kernel
def _scramble(k: np.uint32) -> np.uint32:
    """Return a word after the mixing step of MurmurHash3; 0 remains 0."""
    return np.uint32(_rotate_left(np.uint32(k * _C1), 15) * _C2)


@inline_kernel
def _block(h: np.uint32, k: np.uint32) -> np.uint32:
    h = _rotate_left(np.uint32(h ^ _scramble(k)), 13)
    return np.uint32(h * _FIVE + _C3)


@inline_kernel
def _finish(h: np.uint32) -> np.uint32:
    h = np.uint32((h ^ (h >> 16)) * _C4)
    h = np.uint32((h ^ (h >> 13)) * _C5)
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
    h = np.uint32(h ^ _scramble(np.uint32(word)))  # no effect if no bytes are left
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
    h = np.uint32(h ^ _scramble(np.uint32(few_bytes(data, tail, end))))  # no effect if no bytes are left
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


# -- names with a number -----------------------------------------------------------------------------------
#
# MurmurHash3 of four bytes or fewer is one-to-one. A name such as ``x_10`` or ``h=7`` contains a number, but
# a block has only the name's hash. Names of up to five bytes can be computed from it: the fifth byte is a
# digit, so ten candidates are tried. About one in a thousand other names is mistaken for one with a number.

NO_STEM = np.uint64(0)
"""The stem of names without a number."""

_MARK = np.uint64(1) << np.uint64(56)  # no stem is `NO_STEM`, or a hash
_UN1, _UN2, _UN4, _UN5, _FIFTH = (np.uint32(pow(int(c), -1, 1 << 32)) for c in (_C1, _C2, _C4, _C5, _FIVE))
_SHORTEST, _LONGEST = 3, 5
_SMALL = 0x20
_ZERO, _NINE, _EQUALS, _LINE, _A, _Z = 48, 57, 61, 95, 97, 122


@inline_kernel
def _undo_finish(h: np.uint32) -> np.uint32:
    """Return the state before the last step of the hash, from the hash."""
    h = np.uint32((h ^ (h >> 16)) * _UN5)
    h = np.uint32((h ^ (h >> 13) ^ (h >> 26)) * _UN4)
    return np.uint32(h ^ (h >> 16))


@inline_kernel
def _undo_scramble(k: np.uint32) -> np.uint32:
    """Return the word from its result of `_scramble`."""
    return np.uint32(_rotate_left(np.uint32(k * _UN2), 17) * _UN1)


@inline_kernel
def _block_between(seed: np.uint32, h: np.uint32) -> np.uint32:
    """Return the four bytes that change a seed into a state of the hash."""
    return _undo_scramble(np.uint32(_rotate_left(np.uint32(np.uint32(h - _C3) * _FIFTH), 19) ^ seed))


@inline_kernel
def _byte(name: np.uint64, index: int) -> int:
    """Return a byte of a name."""
    return int((name >> np.uint64(8 * index)) & _BYTE)


@inline_kernel
def _length_of_stem(name: np.uint64, n: int) -> int:
    """Return the number of letters and digits before ``_`` or ``=`` and a number; 0 for other names."""
    end = n - 1
    while end > 0 and _ZERO <= _byte(name, end) <= _NINE:
        end -= 1
    good = end < n - 1 and (_byte(name, end) == _LINE or _byte(name, end) == _EQUALS)
    for i in range(end):
        byte = _byte(name, i)
        good = good and (_ZERO <= byte <= _NINE or _A <= (byte | _SMALL) <= _Z)
    return end if good else 0


@entry_kernel
@inline_kernel
def split_number(h: np.uint32, seed: np.uint32) -> tuple[np.uint64, float]:
    """Return a key of the stem, and the number, of the name with this hash and seed.

    Examples
    --------
    >>> from onlineauto.features.hash_kernels import hash_name
    >>> seed = np.uint32(7)
    >>> ten, nine = (hash_name(np.frombuffer(x, np.uint8), 0, len(x), seed, False) for x in (b"x_10", b"x_9"))
    >>> split_number(ten, seed)[1], split_number(ten, seed)[0] == split_number(nine, seed)[0]
    (10.0, True)
    """
    before = _undo_finish(h)
    for n in range(_SHORTEST, _LONGEST + 1):
        for digit in range(_ZERO, _NINE + 1 if n == _LONGEST else _ZERO + 1):
            state = np.uint32(before ^ np.uint32(n))
            if n == _SHORTEST:
                name = np.uint64(_undo_scramble(np.uint32(state ^ seed)))
            elif n < _LONGEST:
                name = np.uint64(_block_between(seed, state))
            else:
                name = np.uint64(_block_between(seed, np.uint32(state ^ _scramble(np.uint32(digit)))))
                name |= np.uint64(digit) << np.uint64(32)
            stem = _length_of_stem(name, n) if name >> np.uint64(8 * n) == 0 else 0
            if stem > 0:
                number = 0.0
                for i in range(stem + 1, n):
                    number = 10.0 * number + (_byte(name, i) - _ZERO)
                letters = name & ((np.uint64(1) << np.uint64(8 * stem)) - np.uint64(1))
                return _MARK | np.uint64(seed) << np.uint64(24) | letters, number
    return NO_STEM, 0.0
