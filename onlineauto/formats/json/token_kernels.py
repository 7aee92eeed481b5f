"""Read JSON tokens: strings, words, lists of numbers; skip unused values."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.formats.json.name_kernels import is_name, name_of
from onlineauto.formats.json.number_kernels import MALFORMED, read_json_number
from onlineauto.formats.lines.mark_kernels import next_one, next_one_near
from onlineauto.formats.records.json_state_kernels import fail
from onlineauto.formats.records.problem_code_kernels import ProblemCode
from onlineauto.jit import F32, inline_kernel, kernel
from onlineauto.jit.words import load1

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.formats.records.json_state_kernels import JsonText

FALSE, TRUE, NULL = range(3)
"""Meanings of the JSON words."""

_QUOTE, _BACKSLASH, _COMMA, _N = 34, 92, 44, 110
_OPEN_LIST, _CLOSE_LIST, _OPEN_OBJECT, _CLOSE_OBJECT = 91, 93, 123, 125
_FALSE, _TRUE, _NULL = (name_of(word) for word in (b"false", b"true", b"null"))
_NAN_NAME = name_of(b"", b"nan")
_NAN = np.float32(np.nan)
_ZERO = np.float32(0)
_ESCAPES = np.zeros(256, np.uint8)
_ESCAPES[np.frombuffer(b'"\\/bfnrt', np.uint8)] = np.frombuffer(b'"\\/\b\f\n\r\t', np.uint8)


class String(NamedTuple):
    """Bounds of a string in the buffer, after its escapes are decoded."""

    start: int
    end: int
    after: int  # position after the string in the text
    at: int  # position of the opening quote
    plain: bool  # whether it has no escapes


@inline_kernel
def skip_blanks(text: JsonText, p: int) -> int:
    """Return the first position from `p` on that is not a blank, within the line."""
    data = text.data
    while p < text.end and (load1(data, p) == 32 or load1(data, p) == 9 or load1(data, p) == 13):
        p += 1
    return p


@kernel
def _hexadecimal(data: NDArray[np.uint8], p: int, end: int) -> int:
    """Return the value of four hexadecimal digits, -1 if they are malformed."""
    if p + 4 > end:
        return -1
    value = 0
    for i in range(p, p + 4):
        byte = data[i]
        letter = byte | 32
        if 48 <= byte <= 57:
            value = value * 16 + byte - 48
        elif 97 <= letter <= 102:
            value = value * 16 + letter - 87
        else:
            return -1
    return value


@kernel
def _read_code_point(data: NDArray[np.uint8], p: int, end: int) -> tuple[int, int]:
    r"""Read the digits after ``\u``; return the code point, -1 if malformed, and the position after it."""
    high = _hexadecimal(data, p, end)
    p += 4
    if not 0xD800 <= high <= 0xDFFF:
        return high, p
    if high > 0xDBFF or p + 6 > end or data[p] != _BACKSLASH or data[p + 1] != 117:
        return -1, p
    low = _hexadecimal(data, p + 2, end)
    if not 0xDC00 <= low <= 0xDFFF:
        return -1, p
    return ((high - 0xD800) << 10) + (low - 0xDC00) + 0x10000, p + 6


@kernel
def _write_code_point(data: NDArray[np.uint8], to: int, point: int) -> int:
    """Write a code point as UTF-8 and return the position after it."""
    if point < 0x80:
        data[to] = point
        return to + 1
    if point < 0x800:
        data[to] = 0xC0 | (point >> 6)
    elif point < 0x10000:
        data[to] = 0xE0 | (point >> 12)
        to += 1
        data[to] = 0x80 | ((point >> 6) & 0x3F)
    else:
        data[to] = 0xF0 | (point >> 18)
        data[to + 1] = 0x80 | ((point >> 12) & 0x3F)
        to += 2
        data[to] = 0x80 | ((point >> 6) & 0x3F)
    data[to + 1] = 0x80 | (point & 0x3F)
    return to + 2


@kernel
def _decode(text: JsonText, start: int) -> String:
    """Decode the string from `start`, after the quote, into the free space of the scratch.

    `ReadingQuirks.nul_ends_string` says how a NUL is handled.
    """
    data, end, event = text.data, text.end, text.event
    p, to, last = start, int(event.scratch), -1
    while p < end and data[p] != _QUOTE and data[p] >= 32:
        if data[p] != _BACKSLASH:
            data[to] = data[p]
            p, to = p + 1, to + 1
            continue
        escape = p
        p += 2
        if p <= end and data[p - 1] == 117:
            point, p = _read_code_point(data, p, end)
            if point < 0:
                p = end
            elif point == 0 and text.rules.quirks.nul_ends_string and last < 0:
                last = to
            else:
                to = _write_code_point(data, to, point)
        elif p <= end and _ESCAPES[data[p - 1]] != 0:
            data[to] = _ESCAPES[data[p - 1]]
            to += 1
        else:
            p = end
        if p >= end:
            fail(text, ProblemCode.JSON_STRING, escape, end)
            return String(start, start, end, start - 1, False)
    if p >= end or data[p] != _QUOTE:
        fail(text, ProblemCode.JSON_STRING, start - 1, end)
        return String(start, start, end, start - 1, False)
    first = int(event.scratch)
    event.scratch = to
    return String(first, last if last >= 0 else to, p + 1, start - 1, False)


@inline_kernel
def read_json_string(text: JsonText, p: int) -> String:
    """Read the string whose quote is at `p`; the event is malformed if there is none."""
    stop = next_one_near(text.marks, p + 1)
    if stop < text.end and load1(text.data, stop) == _QUOTE:
        return String(p + 1, stop, stop + 1, p, True)
    return _decode(text, p + 1)


@kernel
def read_word(text: JsonText, p: int) -> tuple[int, int]:
    """Read ``true``, ``false`` or ``null`` and return its meaning and the position after it."""
    data, end = text.data, text.end
    if is_name(data, p, min(p + 4, end), _TRUE):
        return TRUE, p + 4
    if is_name(data, p, min(p + 5, end), _FALSE):
        return FALSE, p + 5
    if is_name(data, p, min(p + 4, end), _NULL):
        return NULL, p + 4
    fail(text, ProblemCode.JSON_VALUE, p, end)
    return NULL, end


@kernel
def other_than(text: JsonText, p: int, mark: int) -> int:
    """Return -1 if the byte at `p` is `mark`, else the position after the value at `p`.

    Null is skipped. Any other value makes the event malformed.
    """
    byte = text.data[p] if p < text.end else 0
    if byte == mark:
        return -1
    if byte == _N:
        return read_word(text, p)[1]
    fail(text, ProblemCode.JSON_UNEXPECTED, p, text.end)
    return text.end


@inline_kernel
def read_number_or_null(text: JsonText, p: int, problem: ProblemCode) -> tuple[F32, int, int]:
    """Read a number like `read_json_number`, or null.

    The kind is `MALFORMED` for null, and for malformed numbers, which are reported as `problem`.
    """
    if p < text.end and load1(text.data, p) == _N:
        return _ZERO, read_word(text, p)[1], MALFORMED
    value, after, kind = read_json_number(text.data, p, text.end)
    if kind == MALFORMED:
        fail(text, problem, p, text.end)
        return _ZERO, text.end, MALFORMED
    return value, after, kind


@kernel
def skip_value(text: JsonText, start: int) -> int:
    """Skip the value at `start` and return the position after it; only strings and brackets are examined.

    Source
    ------
    VW 9.11.9, ``DefaultState::Ignore``.
    """
    data, end = text.data, text.end
    p, objects, lists = start, 0, 0
    while p < end:
        byte = load1(data, p)
        if byte == _QUOTE:
            p = next_one(text.marks, p + 1)
            while p < end and load1(data, p) != _QUOTE:
                p = next_one(text.marks, p + (2 if data[p] == _BACKSLASH else 1))
        elif byte == _OPEN_OBJECT:
            objects += 1
        elif byte == _OPEN_LIST:
            lists += 1
        elif objects == 0 and lists == 0 and byte in (_COMMA, _CLOSE_OBJECT, _CLOSE_LIST):
            return p
        elif byte == _CLOSE_OBJECT:
            objects -= 1
        elif byte == _CLOSE_LIST:
            lists -= 1
        p += 1
    fail(text, ProblemCode.JSON_VALUE, start, end)
    return end


@inline_kernel
def read_entry(text: JsonText, p: int, problem: ProblemCode) -> tuple[F32, int, bool]:
    """Read a number, ``"NaN"`` or null; return value, position after it, and False for null.

    `problem` is the code for a byte that begins neither of them.
    """
    byte = load1(text.data, p) if p < text.end else np.uint8(0)
    if byte == _QUOTE:
        string = read_json_string(text, p)
        if not is_name(text.data, string.start, string.end, _NAN_NAME):
            fail(text, ProblemCode.JSON_UNEXPECTED, p, string.after)
        return _NAN, string.after, True
    value, after, kind = read_number_or_null(text, p, problem)
    return value, after, kind != MALFORMED


@inline_kernel
def open_list(text: JsonText, p: int) -> tuple[int, bool, bool]:
    """Open the list at `p`, or a single entry without brackets.

    Returns the position of its content, whether there are brackets, and whether there are entries.
    """
    if p >= text.end or text.data[p] != _OPEN_LIST:
        return p, False, True
    p = skip_blanks(text, p + 1)
    if p < text.end and text.data[p] == _CLOSE_LIST:
        return p + 1, True, False
    return p, True, True


@inline_kernel
def next_entry(text: JsonText, p: int, in_list: bool) -> tuple[F32, int, bool, bool]:
    """Read an entry of a list opened by `open_list`, and the comma or bracket after the entry.

    Returns the value, the position after it, whether it is a value, and whether more entries follow.
    """
    value, p, known = read_entry(text, p, ProblemCode.JSON_VALUE)
    if not in_list:
        return value, p, known, False
    p = skip_blanks(text, p)
    if p < text.end and text.data[p] == _CLOSE_LIST:
        return value, p + 1, known, False
    if p >= text.end or text.data[p] != _COMMA:
        fail(text, ProblemCode.JSON_ELEMENT, p, text.end)
    return value, skip_blanks(text, p + 1), known, not text.event.bad


@kernel
def read_list(text: JsonText, p: int) -> tuple[int, F32, int]:
    """Read one number or a list; return the count, the first number, and the position after the last."""
    n, first = 0, _ZERO
    p, listed, more = open_list(text, p)
    while more:
        value, p, known, more = next_entry(text, p, listed)
        if known:
            first = first if n > 0 else value
            n += 1
    return n, first, text.end if text.event.bad else p
