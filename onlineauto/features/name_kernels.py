"""Read short names back from their hashes: MurmurHash3 of four bytes or fewer is one-to-one.

A name such as ``x_10`` or ``h=7`` contains a number, but a block has only the name's hash. Names of up to
five bytes can be computed from it. The fifth byte of a name is a digit, so ten candidates are tried. About
one in a thousand other names is mistaken for a name with a number.
"""

from __future__ import annotations

import numpy as np

from onlineauto.features.hash_kernels import C1, C2, C3, C4, C5, FIVE, rotate_left, scramble
from onlineauto.jit import entry_kernel, inline_kernel

NO_STEM = np.uint64(0)
"""The stem of names without a number."""

_MARK = np.uint64(1) << np.uint64(56)  # no stem is `NO_STEM`, or a hash
_UNDO = [np.uint32(pow(int(each), -1, 1 << 32)) for each in (C1, C2, C4, C5, FIVE)]
_UN1, _UN2, _UN4, _UN5, _FIFTH = _UNDO
_SHORTEST, _LONGEST = 3, 5
_BYTE, _SMALL = np.uint64(0xFF), 0x20
_ZERO, _NINE, _EQUALS, _LINE, _A, _Z = 48, 57, 61, 95, 97, 122


@inline_kernel
def _undo_finish(h: np.uint32) -> np.uint32:
    """Return the state before the last step of the hash, from the hash."""
    h = np.uint32((h ^ (h >> 16)) * _UN5)
    h = np.uint32((h ^ (h >> 13) ^ (h >> 26)) * _UN4)
    return np.uint32(h ^ (h >> 16))


@inline_kernel
def _undo_scramble(k: np.uint32) -> np.uint32:
    """Return the word from its result of `scramble`."""
    return np.uint32(rotate_left(np.uint32(k * _UN2), 17) * _UN1)


@inline_kernel
def _block_between(seed: np.uint32, h: np.uint32) -> np.uint32:
    """Return the four bytes that change a seed into a state of the hash."""
    return _undo_scramble(np.uint32(rotate_left(np.uint32(np.uint32(h - C3) * _FIFTH), 19) ^ seed))


@inline_kernel
def _byte(name: np.uint64, at: int) -> int:
    """Return a byte of a name."""
    return int((name >> np.uint64(8 * at)) & _BYTE)


@inline_kernel
def _length_of_stem(name: np.uint64, n: int) -> int:
    """Return the number of letters and digits before ``_`` or ``=`` and a number; 0 for other names."""
    at = n - 1
    while at > 0 and _ZERO <= _byte(name, at) <= _NINE:
        at -= 1
    good = at < n - 1 and (_byte(name, at) == _LINE or _byte(name, at) == _EQUALS)
    for i in range(at):
        byte = _byte(name, i)
        good = good and (_ZERO <= byte <= _NINE or _A <= (byte | _SMALL) <= _Z)
    return at if good else 0


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
                name = np.uint64(_block_between(seed, np.uint32(state ^ scramble(np.uint32(digit)))))
                name |= np.uint64(digit) << np.uint64(32)
            stem = _length_of_stem(name, n) if name >> np.uint64(8 * n) == 0 else 0
            if stem > 0:
                number = 0.0
                for at in range(stem + 1, n):
                    number = 10.0 * number + (_byte(name, at) - _ZERO)
                letters = name & ((np.uint64(1) << np.uint64(8 * stem)) - np.uint64(1))
                return _MARK | np.uint64(seed) << np.uint64(24) | letters, number
    return NO_STEM, 0.0
