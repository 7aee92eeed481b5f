"""Read the values of an event that Python's `marshal` has written one after the other.

``marshal.dumps(value, 2)`` takes Python's own types alone, so that no date or array becomes a name unnoticed.
Each value begins with a byte that says what it is. Numbers are little-endian. Texts, lists and tuples have
their size first, and the members of a dictionary end with a byte of their own.

Source
------
The function ``w_object`` of ``Python/marshal.c``; version 2 of the format has been the same since Python 2.5.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.jit import inline_kernel, kernel
from onlineauto.jit.words import load1, load4, load8

if TYPE_CHECKING:
    from numpy.typing import NDArray

DICT, END, LIST, TUPLE, NONE, MISSING = b"{0[(N."
"""First bytes of values; `MISSING` is that of Ellipsis, which stands for what an event does not have."""
_TRUE, _FALSE, _INT, _LONG, _FLOAT, _TEXT, _INTERNED = b"TFilgut"
_SURROGATE = 0xED, 0xA0
_MOST_DIGITS = 4
LARGE = (2 - 2.0**-24) * 2.0**127
"""Numbers from here on are rounded to infinity as float32."""


@inline_kernel
def count_at(data: NDArray[np.uint8], p: int) -> int:
    """Return the number of bytes, values or digits of what begins at `p`."""
    return np.int64(np.int32(load4(data, p + 1)))  # type: ignore[return-value]


@kernel
def text_at(data: NDArray[np.uint8], p: int) -> tuple[int, int]:
    """Return the bounds of the text at `p`; -1 and -1 if there is none, or one that is no UTF-8."""
    if load1(data, p) != _TEXT and load1(data, p) != _INTERNED:
        return -1, -1
    start = p + 5
    stop = start + count_at(data, p)
    for i in range(start, stop):
        if data[i] == _SURROGATE[0] and data[i + 1] >= _SURROGATE[1]:
            return -1, -1
    return start, stop


@inline_kernel
def truth_at(data: NDArray[np.uint8], p: int) -> int:
    """Return 1 if True is at `p`, 0 if False is, -1 if neither is."""
    byte = load1(data, p)
    return 1 if byte == _TRUE else 0 if byte == _FALSE else -1


@kernel
def number_at(data: NDArray[np.uint8], p: int) -> tuple[float, int]:
    """Return the number at `p` and the position after it; -1 if there is none, or if it is no float32.

    NaN is returned as such.
    """
    byte, number, after = load1(data, p), 0.0, -1
    if byte == _INT:
        number, after = float(np.int32(load4(data, p + 1))), p + 5
    elif byte == _FLOAT:
        number, after = np.int64(load8(data, p + 1)).view(np.float64), p + 9
    elif byte == _LONG:
        count = count_at(data, p)
        n = abs(count)
        whole: Any = 0
        if n <= _MOST_DIGITS:
            for i in range(n):
                place = p + 5 + 2 * i
                whole |= (np.int64(data[place]) | np.int64(data[place + 1]) << 8) << (15 * i)
            number, after = float(whole if count > 0 else -whole), p + 5 + 2 * n
    if math.isnan(number) or abs(number) < LARGE:
        return number, after
    return number, -1


@kernel
def whole_at(data: NDArray[np.uint8], p: int) -> tuple[int, int]:
    """Return the number from 0 at `p` and the position after it; -1 and that position if there is nothing.

    The position is -1 if anything else is there.
    """
    byte = load1(data, p)
    if byte in (MISSING, NONE):
        return -1, p + 1
    number = count_at(data, p)
    return number, p + 5 if byte == _INT and number >= 0 else -1
