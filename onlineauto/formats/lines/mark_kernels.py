"""Find the bytes that divide a text in one pass, 64 at a time, for later look-ups.

*Marks* end a name or a value: blank, tab, carriage return, newline, ``|`` and ``:``. *Breaks* are control
bytes other than the tab, including newlines. Each kind is a bitmap with one bit for each byte of the text.
The end of the text is also marked, so that every search ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.jit import entry_kernel, inline_kernel, local_array
from onlineauto.jit.words import LANES, below, equal, first_one, load1, load8, ones, store8

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BAR, _COLON, _NEWLINE, _RETURN, _TAB, _SPACE, _DELETE = 124, 58, 10, 13, 9, 32, 127
_ONE = np.uint64(1)
_NEAR = 8
_last = local_array(LANES, np.uint8)


def bitmap_size(end: int) -> int:
    """Return the size in bytes of a bitmap for `end` bytes of text, plus eight bytes for `next_one`."""
    return (end // LANES + 1) * 8 + 8


@inline_kernel
def _mark(
    data: NDArray[np.uint8], i: int, marks: NDArray[np.uint8], breaks: NDArray[np.uint8], index: int
) -> tuple[int, int, int]:
    """Mark the 64 bytes from `i` on in both bitmaps; return counts of blanks and tabs, bars, newlines."""
    tab = equal(data, i, _TAB)
    blank = equal(data, i, _SPACE) | tab
    bar = equal(data, i, _BAR)
    newline = equal(data, i, _NEWLINE)
    other = equal(data, i, _RETURN) | equal(data, i, _COLON)
    store8(marks, index, blank | bar | newline | other)
    store8(breaks, index, below(data, i, _SPACE) & ~tab | equal(data, i, _DELETE))
    return ones(blank), ones(bar), ones(newline)


@entry_kernel
def find_marks(
    data: NDArray[np.uint8], end: int, marks: NDArray[np.uint8], breaks: NDArray[np.uint8]
) -> tuple[int, int, int]:
    """Fill both bitmaps of ``data[:end]``; return upper bounds on its blanks and tabs, bars, newlines."""
    blanks, bars, newlines = 0, 0, 0
    aligned_end = end // LANES * LANES
    for i in range(0, aligned_end, LANES):
        n = _mark(data, i, marks, breaks, i // 8)
        blanks, bars, newlines = blanks + n[0], bars + n[1], newlines + n[2]
    last = _last()
    for i in range(LANES):
        last[i] = data[aligned_end + i] if aligned_end + i < end else _NEWLINE
    n = _mark(last, 0, marks, breaks, aligned_end // 8)
    return blanks + n[0], bars + n[1], newlines + n[2]


@inline_kernel
def next_one(bits: NDArray[np.uint8], p: int) -> int:
    """Return the first position from `p` on whose bit is 1."""
    word = load8(bits, p >> 3) >> np.uint64(p & 7)
    while word == 0:
        p = (p & ~7) + LANES
        word = load8(bits, p >> 3)
    return p + first_one(word)  # type: ignore[no-any-return]


@inline_kernel
def next_one_near(bits: NDArray[np.uint8], p: int) -> int:
    """Return the first position from `p` on whose bit is 1, testing single bits, which CPUs predict well."""
    word = load8(bits, p >> 3) >> np.uint64(p & 7)
    for _ in range(_NEAR):
        if word & _ONE:
            return p
        word >>= _ONE
        p += 1
    return next_one(bits, p)


@inline_kernel
def is_at(data: NDArray[np.uint8], p: int, end: int, byte: int) -> bool:
    """Return whether `byte` is at `p`, before the end."""
    return p < end and load1(data, p) == byte


@inline_kernel
def after_word(data: NDArray[np.uint8], marks: NDArray[np.uint8], p: int, end: int) -> int:
    """Return the position after the word at `p`, which may contain colons."""
    p = next_one(marks, p)
    while is_at(data, p, end, _COLON):
        p = next_one(marks, p + 1)
    return p


_QUOTE, _BACKSLASH = 34, 92


@inline_kernel
def _mark_json(
    data: NDArray[np.uint8],
    i: int,
    marks: NDArray[np.uint8],
    breaks: NDArray[np.uint8],
    odd: NDArray[np.uint8],
    index: int,
) -> None:
    """Mark the 64 bytes from `i` on in the eight bytes from index `index` of each bitmap."""
    control = below(data, i, _SPACE)
    store8(marks, index, equal(data, i, _QUOTE) | equal(data, i, _BACKSLASH) | control)
    store8(breaks, index, equal(data, i, _NEWLINE))
    store8(odd, index, equal(data, i, _SPACE) | equal(data, i, _BAR) | equal(data, i, _COLON) | control)


@entry_kernel
def find_json_marks(
    data: NDArray[np.uint8],
    end: int,
    marks: NDArray[np.uint8],
    breaks: NDArray[np.uint8],
    odd: NDArray[np.uint8],
) -> None:
    """Fill the bitmaps of ``data[:end]``; the position `end` is marked in each.

    `marks` receives the bytes that end or interrupt a JSON string: quotes, backslashes and control bytes.
    `breaks` receives newlines, and `odd` the bytes that VW replaces in a string, or at which it splits one.
    """
    aligned_end = end // LANES * LANES
    for i in range(0, aligned_end, LANES):
        _mark_json(data, i, marks, breaks, odd, i // 8)
    last = _last()
    for i in range(LANES):
        last[i] = data[aligned_end + i] if aligned_end + i < end else _NEWLINE
    _mark_json(last, 0, marks, breaks, odd, aligned_end // 8)
