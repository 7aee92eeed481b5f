"""Read JSON tokens: strings, words, numbers and lists of numbers; skip unused values.

Special names are compared eight bytes at a time with constants that are compiled into the kernels. Numbers
are read like VW: in float64 with the rounding errors of each step, then rounded to float32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.formats.json.stage_kernels import fail
from onlineauto.formats.lines.mark_kernels import next_one, next_one_near
from onlineauto.formats.lines.problem_code_kernels import ProblemCode
from onlineauto.jit import F32, inline_kernel, kernel
from onlineauto.jit.words import load1, load8

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.formats.json.stage_kernels import JsonText

FALSE, TRUE, NULL = range(3)
"""Meanings of the JSON words."""

_QUOTE, _BACKSLASH, _COMMA, _N = 34, 92, 44, 110
_OPEN_LIST, _CLOSE_LIST, _OPEN_OBJECT, _CLOSE_OBJECT = 91, 93, 123, 125

_WORD = 8
_LOWER = 0x20  # the bit that turns a capital letter into a small one

MALFORMED, INTEGER, NUMBER = range(3)
"""Kinds of numbers.

`MALFORMED` is a text that is not a number, or a number too large for a float64. `INTEGER` is a whole number
from 0 to 2^32 - 1, without point and exponent. `NUMBER` is any other number.
"""
_POWERS = np.array([float(f"1e{i}") for i in range(309)])
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

    Source: RapidJSON's ``ParseNumber`` without ``kParseFullPrecisionFlag``, as VW 9.11.9 uses it.
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


class _Word(NamedTuple):
    """Up to eight bytes of a name."""

    at: int  # offset within the name
    fold: np.uint64  # bits that are set before comparing, to ignore case
    mask: np.uint64  # bits that are compared
    bytes: np.uint64


class Name(NamedTuple):
    """A name of up to 24 bytes, as words that may overlap."""

    size: int
    first: _Word
    middle: _Word
    last: _Word


def name_of(head: bytes, any_case: bytes = b"") -> Name:
    """Return the `Name` of `head` followed by `any_case`, small letters that also match their capitals."""
    text = head + any_case
    size = len(text)
    if not 0 < size <= 3 * _WORD:
        raise ValueError(f"a name of 1 to {3 * _WORD} bytes is required, not {text!r}")
    fold = bytes(len(head)) + bytes([_LOWER]) * len(any_case)
    last = max(size - _WORD, 0)
    return Name(size, *(_word_at(text, fold, at) for at in (0, min(_WORD, last), last)))


def _word_at(text: bytes, fold: bytes, at: int) -> _Word:
    """Return the `_Word` of `text` at offset `at`; `fold` has the bits to set in the whole text."""
    mask = bytes([0xFF]) * min(_WORD, len(text))
    parts = fold[at : at + _WORD], mask, text[at : at + _WORD]
    return _Word(at, *(np.uint64(int.from_bytes(part, "little")) for part in parts))


@inline_kernel
def _is_word(data: NDArray[np.uint8], start: int, word: _Word) -> bool:
    return bool((load8(data, start + word.at) | word.fold) & word.mask == word.bytes)


@inline_kernel
def is_name(data: NDArray[np.uint8], start: int, end: int, name: Name) -> bool:
    """Return whether ``data[start:end]`` is `name`; eight bytes must be readable from `start` on."""
    if end - start != name.size:
        return False
    if not _is_word(data, start, name.first):
        return False
    return name.size <= _WORD or (_is_word(data, start, name.middle) and _is_word(data, start, name.last))


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
    """Decode the string from `start`, after the quote, into the free space of the scratch."""
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
    """Return -1 if the byte at `p` is `mark`, else the position after a null; other values are malformed."""
    byte = text.data[p] if p < text.end else 0
    if byte == mark:
        return -1
    if byte == _N:
        return read_word(text, p)[1]
    fail(text, ProblemCode.JSON_UNEXPECTED, p, text.end)
    return text.end


@inline_kernel
def read_number_or_null(text: JsonText, p: int, problem: ProblemCode) -> tuple[F32, int, int]:
    """Read a number, or null of the kind `MALFORMED`; report malformed numbers as `problem`."""
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

    Source: VW 9.11.9, ``DefaultState::Ignore``.
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
    """Read a number, ``"NaN"`` or null, or report `problem`; return value, position, and False for null."""
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
