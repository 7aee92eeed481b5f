"""Read the lines of a chunk of VW text into columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.formats.code_kernels import Code
from onlineauto.formats.column_kernels import (
    COSTS,
    EVENT_COSTS,
    EVENT_FEATURES,
    EVENT_LABELLED,
    EVENT_LINE,
    EVENT_SKIPPED,
    EVENT_SPANS,
    EVENT_TAG_BYTES,
    EVENTS,
    FATAL,
    FEATURES,
    LINE_BEGIN,
    LINE_NUMBER,
    LINES,
    N_NAMES,
    SPANS,
    TAG_BYTES,
    is_blank,
    report,
)
from onlineauto.formats.feature_kernels import read_features, read_vw_features
from onlineauto.formats.label_kernels import read_head
from onlineauto.formats.vw_label_kernels import read_vw_head
from onlineauto.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.formats.column_kernels import Reader, Rules

__all__ = ["DONE", "GROW", "STOPPED", "count_marks", "find_cut", "read_lines", "start_chunk"]

DONE, GROW, STOPPED = range(3)
"""Why `read_lines` came back: all read; the table of names is too small for the next line; a fatal problem."""

_BAR, _NEWLINE, _RETURN = 124, 10, 13
_MARK = np.frombuffer(b"\xef\xbb\xbf", np.uint8)
_SAVE = np.frombuffer(b"save", np.uint8)
_UNLABELLED = np.float32(np.finfo(np.float32).max)
_ZERO = np.float32(0)
_ONE = np.float32(1)

_IS_CONTROL = np.zeros(256, np.bool_)
_IS_CONTROL[:32] = True
_IS_CONTROL[9] = False
_IS_CONTROL[127] = True


# -- where chunks and lines end ----------------------------------------------------------------------------------


@kernel
def count_marks(data: NDArray[np.uint8], end: int) -> tuple[int, int, int]:
    """Blanks and tabs, bars, and newlines of ``data[:end]``: bounds for features, spans and lines."""
    blanks, bars, newlines = 0, 0, 0
    for i in range(end):
        byte = data[i]
        blanks += byte == 32 or byte == 9
        bars += byte == _BAR
        newlines += byte == _NEWLINE
    return blanks, bars, newlines


@kernel
def _has_mark(data: NDArray[np.uint8], start: int, end: int) -> bool:
    """Whether a line begins with UTF-8's byte order mark."""
    if end - start < len(_MARK):
        return False
    return data[start] == _MARK[0] and data[start + 1] == _MARK[1] and data[start + 2] == _MARK[2]


@kernel
def _trim(data: NDArray[np.uint8], start: int, end: int, exact: bool) -> tuple[int, int]:
    """Take the byte order mark and the carriage returns off a line; VW takes off one of them."""
    if _has_mark(data, start, end):
        start += len(_MARK)
    while end > start and data[end - 1] == _RETURN:
        end -= 1
        if exact:
            break
    return start, end


@kernel
def _is_empty(data: NDArray[np.uint8], start: int, end: int, exact: bool) -> bool:
    """Whether a trimmed line separates events: for VW only if nothing is left of it."""
    if exact:
        return start == end
    for i in range(start, end):
        if not (is_blank(data[i]) or data[i] == _RETURN):
            return False
    return True


@kernel
def _is_separator(data: NDArray[np.uint8], newline: int, exact: bool) -> bool:
    """Whether the line that ends at `newline` separates events; found from its end, so long lines cost nothing."""
    p = newline
    while p > 0 and (data[p - 1] == _RETURN or (not exact and is_blank(data[p - 1]))):
        p -= 1
        if exact:
            break
    if p >= len(_MARK) and _has_mark(data, p - len(_MARK), p):
        p -= len(_MARK)
    return p == 0 or data[p - 1] == _NEWLINE


@kernel
def find_cut(data: NDArray[np.uint8], known: int, end: int, multiline: bool, exact: bool) -> int:
    """End of the last complete event of ``data[:end]``, 0 if none ends after byte `known`."""
    for i in range(end - 1, known - 1, -1):
        if data[i] == _NEWLINE and (not multiline or _is_separator(data, i, exact)):
            return i + 1
    return 0


# -- events ------------------------------------------------------------------------------------------------------


@kernel
def _open_event(reader: Reader) -> None:
    at = reader.at
    at[EVENT_LINE] = at[LINES]
    at[EVENT_SPANS] = at[SPANS]
    at[EVENT_FEATURES] = at[FEATURES]
    at[EVENT_COSTS] = at[COSTS]
    at[EVENT_TAG_BYTES] = at[TAG_BYTES]
    at[EVENT_SKIPPED] = 0
    at[EVENT_LABELLED] = 0


@kernel
def _drop_event(reader: Reader) -> None:
    """Forget the lines of the event, and those still to come."""
    at = reader.at
    at[LINES] = at[EVENT_LINE]
    at[SPANS] = at[EVENT_SPANS]
    at[FEATURES] = at[EVENT_FEATURES]
    at[COSTS] = at[EVENT_COSTS]
    at[TAG_BYTES] = at[EVENT_TAG_BYTES]
    at[EVENT_SKIPPED] = 1


@kernel
def _close_event(rules: Rules, reader: Reader) -> None:
    at, columns = reader.at, reader.columns
    first, n_lines = at[EVENT_LINE], at[LINES]
    if rules.multiline and not rules.exact and n_lines == first + 1 and columns.shared[first]:
        _report_no_actions(rules, reader)
        _drop_event(reader)
    elif n_lines > first:
        columns.event_start[at[EVENTS]] = first
        at[EVENTS] += 1
    _open_event(reader)


@kernel
def _report_no_actions(rules: Rules, reader: Reader) -> None:
    at = reader.at
    line = at[LINE_NUMBER]
    at[LINE_NUMBER] = reader.columns.line_number[at[EVENT_LINE]]
    report(reader, Code.NO_ACTIONS, at[LINE_BEGIN], at[LINE_BEGIN], rules.strict)
    at[LINE_NUMBER] = line


# -- lines -------------------------------------------------------------------------------------------------------


@kernel
def _open_line(reader: Reader) -> None:
    at, columns = reader.at, reader.columns
    line = at[LINES]
    columns.line_number[line] = at[LINE_NUMBER]
    columns.line_start[line] = at[SPANS]
    columns.cost_start[line] = at[COSTS]
    columns.tag_start[line] = at[TAG_BYTES]
    columns.shared[line] = False
    columns.label[line] = _UNLABELLED
    columns.weight[line] = _ONE
    columns.initial[line] = _ZERO


@kernel
def _find(data: NDArray[np.uint8], start: int, end: int, byte: int) -> int:
    """First place of a byte, `end` if it is not there."""
    while start < end and data[start] != byte:
        start += 1
    return start


@kernel
def _has_control_byte(data: NDArray[np.uint8], start: int, end: int) -> bool:
    found = False
    for i in range(start, end):
        byte = data[i]
        found |= (byte < 32 and byte != 9) or byte == 127
    return found


@kernel
def _text_problem(
    data: NDArray[np.uint8], start: int, bar: int, end: int, rules: Rules, reader: Reader
) -> bool:
    """Whether a line is no text, or has no features; reports it."""
    if _has_control_byte(data, start, end):
        i = start
        while not _IS_CONTROL[data[i]]:
            i += 1
        report(reader, Code.CONTROL_BYTE, i, i + 1, rules.strict)
        return True
    if bar == end:
        report(reader, Code.NO_BAR, start, end, rules.strict)
        return True
    return False


@kernel
def _read_line(data: NDArray[np.uint8], start: int, end: int, rules: Rules, reader: Reader) -> None:
    """Read a line that is not empty; a bad one takes its event with it."""
    bar = _find(data, start, end, _BAR)
    good = (
        not _text_problem(data, start, bar, end, rules, reader)
        and read_head(data, start, bar, rules, reader)
        and read_features(data, bar, end, rules, reader)
    )
    if good:
        reader.at[LINES] += 1
    else:
        _drop_event(reader)


@kernel
def _is_save(reader: Reader) -> bool:
    """Whether the line is VW's command to save the model: a tag ``save...`` and no features."""
    at, columns = reader.at, reader.columns
    line = at[LINES]
    first = columns.tag_start[line]
    if at[SPANS] > columns.line_start[line] or at[TAG_BYTES] < first + len(_SAVE):
        return False
    for i in range(len(_SAVE)):
        if columns.tag[first + i] != _SAVE[i]:
            return False
    return True


@kernel
def _drop_line(reader: Reader, features: int) -> None:
    """Forget the line; `features` were there before it."""
    at, columns = reader.at, reader.columns
    line = at[LINES]
    at[SPANS] = columns.line_start[line]
    at[FEATURES] = features
    at[COSTS] = columns.cost_start[line]
    at[TAG_BYTES] = columns.tag_start[line]


@kernel
def _read_vw_line(data: NDArray[np.uint8], start: int, end: int, rules: Rules, reader: Reader) -> None:
    """Read a line as VW does; of an event, what is fatal to VW takes this line only."""
    at, features = reader.at, reader.at[FEATURES]
    bar = _find(data, start, end, _BAR)
    read_vw_head(data, start, bar, end, rules, reader)
    if at[FATAL] == 0:
        read_vw_features(data, bar, end, rules, reader)
    save = _is_save(reader)
    if save:
        report(reader, Code.VW_SAVE, start, bar, False)
    if save or at[FATAL] != 0:
        _drop_line(reader, features)
    else:
        at[LINES] += 1


@kernel
def _take_line(data: NDArray[np.uint8], start: int, end: int, rules: Rules, reader: Reader) -> None:
    """Read one line, or end the event if it is empty."""
    at = reader.at
    if _is_empty(data, start, end, rules.exact):
        if rules.multiline:
            _close_event(rules, reader)
    elif at[EVENT_SKIPPED] == 0:
        _open_line(reader)
        if rules.exact:
            _read_vw_line(data, start, end, rules, reader)
        else:
            _read_line(data, start, end, rules, reader)
        if not rules.multiline:
            _close_event(rules, reader)


@kernel
def _has_room(data: NDArray[np.uint8], start: int, end: int, reader: Reader) -> bool:
    """Whether the table stays half empty even if every namespace of the line is new."""
    room = len(reader.names.key) // 2 - reader.at[N_NAMES] - 1
    if end - start <= room:
        return True
    bars = 0
    for i in range(start, end):
        bars += data[i] == _BAR
    return bars <= room


@kernel
def start_chunk(reader: Reader) -> None:
    """Empty the columns; line numbers and names go on."""
    at = reader.at
    at[: TAG_BYTES + 1] = 0
    _open_event(reader)


@kernel
def read_lines(data: NDArray[np.uint8], p: int, end: int, rules: Rules, reader: Reader) -> tuple[int, int]:
    """Read lines from `p` on, which is a line's beginning, to `end`, which is an event's.

    Parameters
    ----------
    data : uint8[:]
        The text.
    p, end : int
        The bytes ``p <= i < end`` are read.
    rules : Rules
        How to read.
    reader : Reader
        Where to write; `start_chunk` emptied it.

    Returns
    -------
    reason : int
        `DONE`, `GROW` or `STOPPED`.
    p : int
        Where to go on.
    """
    at, columns = reader.at, reader.columns
    while p < end and at[FATAL] == 0:
        newline = _find(data, p, end, _NEWLINE)
        if not _has_room(data, p, newline, reader):
            return GROW, p
        at[LINE_NUMBER] += 1
        at[LINE_BEGIN] = p
        start, stop = _trim(data, p, newline, rules.exact)
        _take_line(data, start, stop, rules, reader)
        p = min(newline + 1, end)
    if at[FATAL] == 0 or rules.exact:
        _close_event(rules, reader)
    else:
        _drop_event(reader)
    columns.event_start[at[EVENTS]] = at[LINES]
    columns.line_start[at[LINES]] = at[SPANS]
    columns.cost_start[at[LINES]] = at[COSTS]
    columns.tag_start[at[LINES]] = at[TAG_BYTES]
    columns.span_start[at[SPANS]] = at[FEATURES]
    return (DONE if at[FATAL] == 0 else STOPPED), p
