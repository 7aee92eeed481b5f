"""Read words as numbers, in native mode."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.formats.numbers.float_kernels import is_infinity_or_nan, parse_decimal
from onlineauto.jit import F32, inline_kernel, kernel
from onlineauto.jit.words import first_one, load1, load8

if TYPE_CHECKING:
    from numpy.typing import NDArray

DECIMAL, NOT_FINITE, PARTLY, WORD = range(4)
"""Kinds of words: a finite number; infinity, NaN or too large; a number and more; no number at all."""

_ZERO = np.float32(0)

# Constants for eight characters in a word, the first one in its lowest byte.
_BYTES = np.uint64(0x0101010101010101)
_ZEROS = np.uint64(ord("0")) * _BYTES
_POINTS = np.uint64(ord(".") ^ ord("0")) * _BYTES
_HIGH_BITS = np.uint64(0x80) * _BYTES
_ABOVE_NINE = np.uint64(0x80 - 10) * _BYTES
_FIRST = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)
_EIGHT, _SIXTEEN, _THIRTY_TWO = np.uint64(8), np.uint64(16), np.uint64(32)
_TEN = np.uint64(10)
_FOURTHS = np.uint64(0x000000FF000000FF)
_ODD_PAIRS, _EVEN_PAIRS = np.uint64(100 + (10**6 << 32)), np.uint64(1 + (10**4 << 32))
_EIGHT_DECIMALS = np.uint64(10**8)


@inline_kernel
def _number_of_digits(digits: np.uint64) -> np.uint64:
    """Return the number of eight decimal digits, one per byte: join pairs, then fours, then both halves."""
    pairs = digits * _TEN + (digits >> _EIGHT)
    halves = (pairs & _FOURTHS) * _ODD_PAIRS + ((pairs >> _SIXTEEN) & _FOURTHS) * _EVEN_PAIRS
    return halves >> _THIRTY_TWO


@inline_kernel
def short_decimal(data: NDArray[np.uint8], start: int, end: int) -> tuple[F32, bool]:
    """Return the value of the word ``data[start:end]`` and True, if it is a short decimal number.

    Short numbers, the most common ones, are ``-?``, 1 to 7 digits and optionally ``.`` with up to 8 digits.
    For other numbers, and in a buffer's last bytes, the second result is False and the caller must use
    `read_number`.

    The digits make an integer below 10**15 and a power of ten up to 10**8, both exact in float64. Their
    quotient, rounded to float64, is a midpoint of two float32 neighbours only if the number itself is one:
    any other number is at least 1e-15 away from a midpoint. So rounding again gives the nearest float32.
    """
    if start + 17 > len(data):
        return _ZERO, False
    negative = load1(data, start) == 45
    start += negative
    length = end - start
    word = load8(data, start) ^ _ZEROS
    others = word ^ _POINTS
    whole = min(first_one((others - _BYTES) & ~others & _HIGH_BITS) >> 3, length)
    rest = max(length - whole - 1, 0)
    if whole < 1 or whole > 7 or rest > 8:
        return _ZERO, False
    digits = word << np.uint64(64 - 8 * whole)
    decimals = (load8(data, start + whole + 1) ^ _ZEROS) & _FIRST[np.uint64(rest)]
    if (digits | decimals | (digits + _ABOVE_NINE) | (decimals + _ABOVE_NINE)) & _HIGH_BITS != 0:
        return _ZERO, False
    number = _number_of_digits(digits) * _EIGHT_DECIMALS + _number_of_digits(decimals)
    value = np.float32(np.float64(np.int64(number)) / 1e8)
    return -value if negative else value, True


@kernel
def read_number(data: NDArray[np.uint8], start: int, end: int) -> tuple[np.float32, int]:
    """Return the value of the word ``data[start:end]`` (0 if it is not a finite decimal) and its kind."""
    value, after = parse_decimal(data, start, end)
    if after == end and after > start:
        if math.isfinite(value):
            return np.float32(value), DECIMAL
        return _ZERO, NOT_FINITE
    if after > start:
        return _ZERO, PARTLY
    return _ZERO, NOT_FINITE if is_infinity_or_nan(data, start, end) else WORD
