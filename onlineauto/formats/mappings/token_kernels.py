"""Read the values of an event that Python's `marshal` has encoded.

``marshal.dumps(value, 2)`` accepts only built-in types, so that no date or array becomes a name unnoticed.
Each value begins with a byte for its type. Numbers are little-endian. Texts, lists and tuples begin with
their size; a dictionary ends with a terminating byte.

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
"""First bytes of values; `MISSING` is that of Ellipsis, which encodes a missing key."""
_TRUE, _FALSE, _INT, _LONG, _FLOAT, _TEXT, _INTERNED = b"TFilgut"
_SURROGATE = 0xED, 0xA0
_MOST_DIGITS = 4
LARGE = (2 - 2.0**-24) * 2.0**127
"""Numbers from this one on are rounded to infinity in float32."""


@inline_kernel
def count_at(data: NDArray[np.uint8], p: int) -> int:
    """Return the size of the value at `p`: its number of bytes, values or digits."""
    return np.int64(np.int32(load4(data, p + 1)))  # type: ignore[return-value]


@kernel
def text_at(data: NDArray[np.uint8], p: int) -> tuple[int, int]:
    """Return the bounds of the text at `p`; -1 and -1 if there is no text or it is not UTF-8."""
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
    """Return 1 for True at `p`, 0 for False, and -1 for any other value."""
    byte = load1(data, p)
    return 1 if byte == _TRUE else 0 if byte == _FALSE else -1


@kernel
def number_at(data: NDArray[np.uint8], p: int) -> tuple[float, int]:
    """Return the number at `p` and the position after it, or -1 if the value is not a float32 number.

    NaN is returned unchanged.
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
                position = p + 5 + 2 * i
                whole |= (np.int64(data[position]) | np.int64(data[position + 1]) << 8) << (15 * i)
            number, after = float(whole if count > 0 else -whole), p + 5 + 2 * n
    if math.isnan(number) or abs(number) < LARGE:
        return number, after
    return number, -1


@kernel
def whole_at(data: NDArray[np.uint8], p: int) -> tuple[int, int]:
    """Return the whole number at `p` and the position after it; -1 as number if the value is missing.

    The position is -1 for any other value.
    """
    byte = load1(data, p)
    if byte in (MISSING, NONE):
        return -1, p + 1
    number = count_at(data, p)
    return number, p + 5 if byte == _INT and number >= 0 else -1
