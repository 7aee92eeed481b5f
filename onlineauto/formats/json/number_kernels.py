"""Read JSON numbers like VW: in float64 with the rounding errors of each step, then rounded to float32."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.jit import F32, inline_kernel, kernel
from onlineauto.jit.words import load1

if TYPE_CHECKING:
    from numpy.typing import NDArray

MALFORMED, INTEGER, NUMBER = range(3)
"""Kinds of numbers.

`MALFORMED` is a text that is not a number, or a number too large for a float64. `INTEGER` is a whole number
from 0 to 2^32 - 1, without point and exponent. `NUMBER` is any other number.
"""

_POWERS = np.array([float(f"1e{i}") for i in range(309)])
_ZERO = np.float32(0)
_TEN = np.uint64(10)
_EXACT = np.uint64((1 << 53) - 1)
_LARGEST_32 = np.uint64((1 << 32) - 1)
_LARGEST = np.uint64((1 << 64) - 1)
_LARGEST_NEGATIVE = np.uint64(1 << 63)
_MAXIMUM = float(np.finfo(np.float64).max)
_LEAST_EXPONENT = 2147483639
_MINUS, _PLUS, _POINT = 45, 43, 46


@inline_kernel
def _is_digit(data: NDArray[np.uint8], p: int, end: int) -> bool:
    return p < end and 48 <= load1(data, p) <= 57


@inline_kernel
def _digit(data: NDArray[np.uint8], p: int) -> np.uint64:
    return np.uint64(load1(data, p) - np.uint8(48))


@kernel
def _times_power_of_ten(number: float, exponent: int) -> float:
    """Return ``number * 10**exponent``, computed like RapidJSON's normal precision."""
    if exponent < -308:
        number /= _POWERS[308]
        exponent += 308
    if exponent < -308:
        return 0.0
    if exponent >= 0:
        return float(number * _POWERS[min(exponent, 308)])
    return float(number / _POWERS[-exponent])


@kernel
def _read_exponent(data: NDArray[np.uint8], p: int, end: int, decimals: int) -> tuple[int, int]:
    """Return the exponent after an ``e`` and the position after the exponent, or -1 if it is malformed."""
    negative = p < end and data[p] == _MINUS
    if p < end and (data[p] == _MINUS or data[p] == _PLUS):
        p += 1
    if not _is_digit(data, p, end):
        return 0, -1
    exponent = 0
    most = (_LEAST_EXPONENT - decimals) // 10 if negative else 308 + decimals
    while _is_digit(data, p, end):
        exponent = exponent * 10 + data[p] - 48
        p += 1
        if exponent > most:
            if not negative:
                return 0, -1
            while _is_digit(data, p, end):
                p += 1
    return (-exponent if negative else exponent), p


@kernel
def _read_long(data: NDArray[np.uint8], start: int, end: int) -> tuple[F32, int, int]:
    """Read any number like RapidJSON's ``ParseNumber``: return value, position after it, and kind."""
    negative = data[start] == _MINUS
    p = start + 1 if negative else start
    first, most = p, (_LARGEST_NEGATIVE if negative else _LARGEST)
    whole = np.uint64(0)
    while _is_digit(data, p, end) and whole <= (most - _digit(data, p)) // _TEN:
        whole = whole * _TEN + _digit(data, p)
        p += 1
    number, is_float, significant = np.float64(whole), False, p - first - 1
    while _is_digit(data, p, end):
        number, is_float = number * 10.0 + np.float64(_digit(data, p)), True
        p += 1
    if p == first or (data[first] == 48 and p > first + 1):
        return _ZERO, p, MALFORMED
    decimals = 0
    if p < end and data[p] == _POINT:
        p += 1
        if not _is_digit(data, p, end):
            return _ZERO, p, MALFORMED
        if not is_float:
            while _is_digit(data, p, end) and whole <= _EXACT:
                whole = whole * _TEN + _digit(data, p)
                decimals += 1
                significant += 1 if whole != 0 else 0
                p += 1
            number, is_float = np.float64(whole), True
        while _is_digit(data, p, end):
            if significant < 17:
                number = number * 10.0 + np.float64(_digit(data, p))
                decimals += 1
                significant += 1 if number > 0.0 else 0
            p += 1
    exponent = 0
    if p < end and (data[p] | 32) == 101:
        exponent, p = _read_exponent(data, p + 1, end, decimals)
        if p < 0:
            return _ZERO, start, MALFORMED
        is_float = True
    if not is_float:
        value = np.float32(whole)
        kind = INTEGER if not negative and whole <= _LARGEST_32 else NUMBER
        return (-value if negative else value), p, kind
    number = np.float64(_times_power_of_ten(float(number), exponent - decimals))
    if number > _MAXIMUM:
        return _ZERO, start, MALFORMED
    return np.float32(-number if negative else number), p, NUMBER


@inline_kernel
def read_json_number(data: NDArray[np.uint8], start: int, end: int) -> tuple[F32, int, int]:
    """Read the number at `start` and return its value, the position after it, and its kind.

    Source
    ------
    RapidJSON's ``ParseNumber`` without ``kParseFullPrecisionFlag``, as VW 9.11.9 uses it.
    """
    negative = start < end and load1(data, start) == _MINUS
    first = start + negative
    p, number = first, np.uint64(0)
    while _is_digit(data, p, end):
        number = number * _TEN + _digit(data, p)
        p += 1
    whole, decimals = p - first, 0
    if p < end and load1(data, p) == _POINT:
        p += 1
        while _is_digit(data, p, end):
            number = number * _TEN + _digit(data, p)
            p += 1
        decimals = p - first - whole - 1
        if decimals == 0:
            return _ZERO, p, MALFORMED
    is_short = 0 < whole <= 9 and whole + decimals <= 15 and (whole == 1 or load1(data, first) != 48)
    if not is_short or (p < end and (load1(data, p) | np.uint8(32)) == 101):
        return _read_long(data, start, end) if start < end else (_ZERO, start, MALFORMED)
    if decimals == 0:
        value = np.float32(np.int64(number))
        return (-value if negative else value), p, (NUMBER if negative else INTEGER)
    value = np.float32(np.float64(np.int64(number)) / _POWERS[decimals])
    return (-value if negative else value), p, NUMBER
