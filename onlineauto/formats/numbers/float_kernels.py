"""Parse decimal text to float32: VW's parser, C's ``strtof``, and a strict decimal parser.

The last two round correctly for numbers of any length. Up to 18 significant digits are read into an integer.
The integer times a power of ten is a float64 with an error of a few units in the last place. Unless this
float64 is next to a midpoint of two float32 neighbours, rounding it gives the same result as rounding the
exact number. Next to a midpoint, the exact number and the midpoint are compared as big integers.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.jit import F32, inline_kernel, kernel, local_array
from onlineauto.jit.words import first_one, load1, load8

if TYPE_CHECKING:
    from numpy.typing import NDArray


def _powers_by_steps() -> NDArray[np.float32]:
    """Return powers of ten from 1e-37 to 1e38, each from its neighbour in float32, like VW's table."""
    ten = np.float32(10)
    up = [np.float32(1)]
    for _ in range(38):
        up.append(up[-1] * ten)
    down = [np.float32(1)]
    for _ in range(37):
        down.append(down[-1] / ten)
    return np.array(down[:0:-1] + up, np.float32)


_VW_POWERS = _powers_by_steps()
_LOWEST_POWER = -63
_POWERS = np.array([float(f"1e{exponent}") for exponent in range(_LOWEST_POWER, 39)])

_WORD_DIGITS = 18  # 18 digits fit into an int64
_BIG_DIGITS = 128  # a midpoint of two float32 neighbours has at most 113 significant digits
_LIMBS = 24  # 768 bits; the comparison needs at most 600
_limbs = local_array(_LIMBS, np.uint32)
_LIMB_BITS = np.uint64(32)
_HUGE = 1 << 50  # exponents saturate at this value, beyond the length of any buffer

_ZERO = np.float32(0)
_TEN = np.float32(10)
_ASCII_ZERO = np.float32(48)
_INFINITY = np.float32(np.inf)
_NAN = np.float32(np.nan)
_INFINITY_WORD = np.frombuffer(b"infinity", np.uint8)
_NAN_WORD = np.frombuffer(b"nan", np.uint8)


@kernel
def _is_digit(byte: int) -> bool:
    return 48 <= byte <= 57


@kernel
def _hex_digit(byte: int) -> int:
    """Return the value of a hexadecimal digit, or -1 for another character."""
    if 48 <= byte <= 57:
        return byte - 48
    letter = byte | 32
    if 97 <= letter <= 102:
        return letter - 87
    return -1


@kernel
def _big_times_plus(big: NDArray[np.uint32], factor: int, addend: int) -> None:
    """Set ``big = big * factor + addend`` for ``0 <= factor, addend < 2**32``; `big` is little-endian."""
    carry = np.uint64(addend)
    for i in range(_LIMBS):
        carry += np.uint64(big[i]) * np.uint64(factor)
        big[i] = np.uint32(carry)
        carry >>= _LIMB_BITS


@kernel
def _big_times_power(big: NDArray[np.uint32], base: int, exponent: int) -> None:
    """Set ``big = big * base**exponent``; a negative exponent changes nothing."""
    for _ in range(exponent):
        _big_times_plus(big, base, 0)


@kernel
def _compare_with_midpoint(
    data: NDArray[np.uint8], first: int, end: int, point: int, lower: int, unit: int
) -> int:
    """Return the sign of ``number - (lower + 1/2) * 2**unit``.

    The digits of the number start at `first`, the first significant digit. With the exponent applied, `point`
    digits are before the decimal point.
    """
    left = _limbs()
    left[:] = 0
    n_digits = 0
    sticky = False
    for i in range(first, end):
        if data[i] == 46:
            continue
        if not _is_digit(data[i]):
            break
        if n_digits < _BIG_DIGITS:
            _big_times_plus(left, 10, data[i] - 48)
            n_digits += 1
        elif data[i] != 48:
            sticky = True
            break
    right = _limbs()
    right[:] = 0
    right[0] = 2 * lower + 1
    _big_times_power(left, 10, point - n_digits)
    _big_times_power(right, 10, n_digits - point)
    _big_times_power(left, 2, 1 - unit)
    _big_times_power(right, 2, unit - 1)
    for i in range(_LIMBS - 1, -1, -1):
        if left[i] != right[i]:
            return 1 if left[i] > right[i] else -1
    return 1 if sticky else 0


@inline_kernel
def _power_of_two(exponent: int) -> float:
    """Return ``2**exponent`` as a float64, for exponents from -1022 to 1023."""
    return float(np.int64((exponent + 1023) << 52).view(np.float64))


@kernel
def _round_carefully(
    data: NDArray[np.uint8], first: int, end: int, point: int, approximation: float
) -> np.float32:
    """Return the float32 nearest to a number, ties to even, from an approximation with error 2**-48."""
    bits = np.float64(approximation).view(np.int64)
    unit = max(int((bits >> 52) & 0x7FF) - 1022 - 24, -149)  # the exponent of its last bit as a float32
    scaled = approximation * _power_of_two(-unit)
    lower = int(scaled)
    above_midpoint = scaled - lower - 0.5
    if abs(above_midpoint) < 2.0**-20:
        order = _compare_with_midpoint(data, first, end, point, lower, unit)
        up = order > 0 or (order == 0 and lower % 2 == 1)
    else:
        up = above_midpoint > 0.0
    return np.float32(float(lower + 1 if up else lower) * _power_of_two(unit))


@kernel
def _nearest_float32(
    data: NDArray[np.uint8], first: int, end: int, point: int, word: int, n_digits: int
) -> np.float32:
    """Return the float32 nearest to the decimal number of `_scan_decimal`, ties to even."""
    if word == 0 or point < -45:
        return _ZERO
    if point > 39:
        return _INFINITY
    approximation = float(word) * _POWERS[point - n_digits - _LOWEST_POWER]
    # The lowest 29 bits, which a float32 does not have. A midpoint is 2**28; `approximation` has an error
    # below 4.
    rest = np.float64(approximation).view(np.int64) & 0x1FFFFFFF
    if approximation > 1.2e-38 and abs(rest - 0x10000000) > 16:
        return np.float32(approximation)
    return _round_carefully(data, first, end, point, approximation)


@kernel
def _scan_exponent(data: NDArray[np.uint8], p: int, end: int, letter: int) -> tuple[int, int]:
    """Read ``[eE][+-]?digits`` at `p`; return the exponent and the position after it, or 0 and `p`."""
    if p >= end or data[p] | 32 != letter:
        return 0, p
    i = p + 1
    negative = i < end and data[i] == 45
    if i < end and (data[i] == 43 or data[i] == 45):
        i += 1
    if i >= end or not _is_digit(data[i]):
        return 0, p
    exponent = 0
    while i < end and _is_digit(data[i]):
        exponent = min(exponent * 10 + data[i] - 48, _HUGE)
        i += 1
    return -exponent if negative else exponent, i


@kernel
def _scan_decimal(data: NDArray[np.uint8], p: int, end: int) -> tuple[np.float32, int]:
    """Read ``(digits[.digits*]|.digits)([eE][+-]?digits)?`` at `p`; return value and position after it."""
    word = 0  # the first `n_digits` significant digits
    n_digits = 0
    point = 0  # significant digits before the decimal point; minus the zeros right after it
    first = p
    seen = False
    fraction = False
    i = p
    while i < end:
        byte = data[i]
        if _is_digit(byte):
            seen = True
            if n_digits > 0 or byte != 48:
                if n_digits == 0:
                    first = i
                if n_digits < _WORD_DIGITS:
                    word = word * 10 + byte - 48
                    n_digits += 1
                if not fraction:
                    point += 1
            elif fraction:
                point -= 1
        elif byte == 46 and not fraction:
            fraction = True
        else:
            break
        i += 1
    if not seen:
        return _ZERO, p
    exponent, after = _scan_exponent(data, i, end, 101)
    return _nearest_float32(data, first, i, point + exponent, word, n_digits), after


@kernel
def parse_decimal(data: NDArray[np.uint8], start: int, end: int) -> tuple[np.float32, int]:
    """Read the longest ``[+-]?(digits[.digits*]|.digits)([eE][+-]?digits)?`` that begins ``data[start:end]``.

    >>> value, after = parse_decimal(np.frombuffer(b"2.993 b", np.uint8), 0, 7)
    >>> print(np.float32(value), after)
    2.993 5
    """
    p = start
    negative = p < end and data[p] == 45
    if p < end and (data[p] == 43 or data[p] == 45):
        p += 1
    value, after = _scan_decimal(data, p, end)
    if after == p:
        return _ZERO, start
    return -value if negative else value, after


@kernel
def _scan_hexadecimal(data: NDArray[np.uint8], p: int, end: int) -> tuple[np.float32, int]:
    """Read hexadecimal digits, which may contain a point, and ``([pP][+-]?digits)?`` at `p`."""
    mantissa = 0
    binary = 0  # exponent of the mantissa's last bit
    sticky = False
    fraction = False
    i = p
    while i < end:
        if data[i] == 46 and not fraction:
            fraction = True
            i += 1
            continue
        digit = _hex_digit(data[i])
        if digit < 0:
            break
        if mantissa < 1 << 56:
            mantissa = mantissa * 16 + digit
        else:
            sticky = sticky or digit != 0
            binary += 4
        if fraction:
            binary -= 4
        i += 1
    exponent, after = _scan_exponent(data, i, end, 112)
    return _nearest_binary(mantissa, sticky, binary + exponent), after


@kernel
def _nearest_binary(mantissa: int, sticky: bool, binary: int) -> np.float32:
    """Return the float32 nearest to ``mantissa * 2**binary``, or to slightly more if `sticky`."""
    bits = 0
    while mantissa >> bits:
        bits += 1
    if bits == 0 or binary + bits < -149:
        return _ZERO
    if binary + bits > 128:
        return _INFINITY
    unit = max(binary + bits - 24, -149)
    drop = unit - binary
    if drop <= 0:
        return np.float32(float(mantissa) * _power_of_two(binary))
    lower = mantissa >> drop
    twice_rest = 2 * (mantissa - (lower << drop))
    whole = 1 << drop
    up = twice_rest > whole or (twice_rest == whole and (sticky or lower % 2 == 1))
    return np.float32(float(lower + 1 if up else lower) * _power_of_two(unit))


@kernel
def _matching_letters(data: NDArray[np.uint8], p: int, end: int, word: NDArray[np.uint8]) -> int:
    """Return the number of letters of the lower-case `word` that match at `p`, in either case."""
    n = 0
    while n < len(word) and p + n < end and data[p + n] | 32 == word[n]:
        n += 1
    return n


@kernel
def _after_nan(data: NDArray[np.uint8], p: int, end: int) -> int:
    """Return the position after ``(letters, digits and underscores)`` at `p`, or `p` if absent."""
    if p >= end or data[p] != 40:
        return p
    i = p + 1
    while i < end and (_is_digit(data[i]) or 97 <= data[i] | 32 <= 122 or data[i] == 95):
        i += 1
    return i + 1 if i < end and data[i] == 41 else p


@kernel
def is_infinity_or_nan(data: NDArray[np.uint8], start: int, end: int) -> bool:
    """Return whether C's ``strtof`` reads the word ``data[start:end]`` as infinity or NaN."""
    p = start + (start < end and (data[start] == 43 or data[start] == 45))
    letters = _matching_letters(data, p, end, _INFINITY_WORD)
    if letters > 0:
        return (letters == 3 or letters == 8) and p + letters == end
    return _matching_letters(data, p, end, _NAN_WORD) == 3 and _after_nan(data, p + 3, end) == end


@kernel
def _scan_magnitude(data: NDArray[np.uint8], p: int, end: int) -> tuple[np.float32, int]:
    """Read a number without sign like C's ``strtof``; return value and position after it (`p` if none)."""
    letters = _matching_letters(data, p, end, _INFINITY_WORD)
    if letters >= 3:
        return _INFINITY, p + (8 if letters == 8 else 3)
    if _matching_letters(data, p, end, _NAN_WORD) == 3:
        return _NAN, _after_nan(data, p + 3, end)
    if p + 2 < end and data[p] == 48 and data[p + 1] | 32 == 120:
        dot = 1 if data[p + 2] == 46 else 0
        if p + 2 + dot < end and _hex_digit(data[p + 2 + dot]) >= 0:
            return _scan_hexadecimal(data, p + 2, end)
    return _scan_decimal(data, p, end)


@kernel
def _strtof(data: NDArray[np.uint8], start: int, end: int) -> tuple[np.float32, int]:
    """Read a number like C's ``strtof`` in the C locale, and not past the end of the view."""
    p = start
    while p < end and (data[p] == 32 or 9 <= data[p] <= 13):
        p += 1
    negative = p < end and data[p] == 45
    if p < end and (data[p] == 43 or data[p] == 45):
        p += 1
    value, after = _scan_magnitude(data, p, end)
    if after == p:
        return _ZERO, start
    return -value if negative else value, after


@kernel
def _vw_power_of_ten(exponent: int) -> np.float32:
    """Return VW's power of ten for the low eight bits of an exponent, read as a signed number."""
    exponent &= 0xFF
    if exponent >= 0x80:
        exponent -= 0x100
    if exponent > 38:
        return _INFINITY
    if exponent < -37:
        return _ZERO
    return _VW_POWERS[exponent + 37]  # type: ignore[no-any-return]


@kernel
def _vw_exponent(data: NDArray[np.uint8], p: int, end: int) -> tuple[int, int]:
    """Read VW's ``([eE]-?digits*)?`` at `p`; return the exponent modulo 256 and the position after it."""
    if p >= end or data[p] | 32 != 101:
        return 0, p
    p += 1
    negative = p < end and data[p] == 45
    if negative:
        p += 1
    exponent = 0
    while p < end and _is_digit(data[p]):
        exponent = (exponent * 10 + data[p] - 48) & 0xFF
        p += 1
    return -exponent if negative else exponent, p


@kernel
def parse_vw_float(data: NDArray[np.uint8], start: int, end: int) -> tuple[np.float32, int]:
    """Read the number in ``data[start:end]`` like VW, with its rounding errors: ``2.993`` becomes 2.99299979.

    Each digit rounds the accumulated float32. At most 35 decimals are used. The exponent wraps as an int8.
    ``-``, ``.`` and blanks are numbers (0). If another byte than a blank or a tab follows, C's ``strtof``
    reads the view again: it accepts ``+3``, ``0x10``, ``inf`` and ``nan``. The end counts as a newline.

    Source: VW 9.11.9, ``parse_float`` in ``parse_primitives.h``.

    >>> value, after = parse_vw_float(np.frombuffer(b"2.993 b", np.uint8), 0, 7)
    >>> print(np.float32(value), after)
    2.9929998 5
    """
    if start >= end or data[start] == 0:
        return _ZERO, start
    p = start
    while p < end and data[p] == 32:
        p += 1
    negative = p < end and data[p] == 45
    if negative:
        p += 1
    value = _ZERO
    while p < end and _is_digit(data[p]):
        value = value * _TEN + np.float32(data[p]) - _ASCII_ZERO
        p += 1
    decimals = 0
    if p < end and data[p] == 46:
        p += 1
        while p < end and _is_digit(data[p]):
            if decimals < 35:
                value = value * _TEN + np.float32(data[p] - 48)
                decimals += 1
            p += 1
    exponent, p = _vw_exponent(data, p, end)
    if p < end and data[p] != 32 and data[p] != 10 and data[p] != 9:
        return _strtof(data, start, end)
    value *= _vw_power_of_ten(exponent - decimals)
    return -value if negative else value, p


DECIMAL, NOT_FINITE, PARTLY, WORD = range(4)
"""Kinds of words: a finite number; infinity, NaN or too large; a number and more; no number at all."""
# Constants for eight characters in a word, the first one in its lowest byte.
_BYTES = np.uint64(0x0101010101010101)
_ZEROS = np.uint64(ord("0")) * _BYTES
_POINTS = np.uint64(ord(".") ^ ord("0")) * _BYTES
_HIGH_BITS = np.uint64(0x80) * _BYTES
_ABOVE_NINE = np.uint64(0x80 - 10) * _BYTES
_FIRST = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)
_EIGHT, _SIXTEEN, _THIRTY_TWO = np.uint64(8), np.uint64(16), np.uint64(32)
_TEN_64 = np.uint64(10)
_FOURTHS = np.uint64(0x000000FF000000FF)
_ODD_PAIRS, _EVEN_PAIRS = np.uint64(100 + (10**6 << 32)), np.uint64(1 + (10**4 << 32))
_EIGHT_DECIMALS = np.uint64(10**8)


@inline_kernel
def _number_of_digits(digits: np.uint64) -> np.uint64:
    """Return the number of eight decimal digits, one per byte: join pairs, then fours, then both halves."""
    pairs = digits * _TEN_64 + (digits >> _EIGHT)
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
