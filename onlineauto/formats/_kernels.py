"""Read the lines of a chunk of VW text into records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.formats.code_kernels import Code
from onlineauto.formats.feature_kernels import read_features
from onlineauto.formats.label_kernels import UNLABELLED, is_word, read_head
from onlineauto.formats.reading_kernels import is_blank, report
from onlineauto.formats.vw_feature_kernels import read_vw_features
from onlineauto.formats.vw_label_kernels import read_vw_head
from onlineauto.jit import borrow, inline_kernel, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.records import Records
    from onlineauto.formats.reading_kernels import Reader, Rules

__all__ = ["DONE", "GROW", "STOPPED", "count_marks", "find_cut", "read_lines"]

DONE, GROW, STOPPED = range(3)
"""Why `read_lines` came back: all is read; the next line needs a larger table of names; a fatal problem."""

_BAR, _NEWLINE, _RETURN, _TAB, _SPACE, _DELETE = 124, 10, 13, 9, 32, 127
_MARK = np.frombuffer(b"\xef\xbb\xbf", np.uint8)
_SAVE = np.frombuffer(b"save", np.uint8)
_ZERO = np.float32(0)
_ONE = np.float32(1)


# -- where lines and events end ---------------------------------------------------------------------------


@kernel
def count_marks(data: NDArray[np.uint8], end: int) -> tuple[int, int, int]:
    """Blanks and tabs, bars, and newlines of ``data[:end]``: bounds for features, spans and lines."""
    blanks, bars, newlines = 0, 0, 0
    for i in range(end):
        byte = data[i]
        blanks += (byte == _SPACE) + (byte == _TAB)
        bars += byte == _BAR
        newlines += byte == _NEWLINE
    return blanks, bars, newlines


@kernel
def _has_mark(data: NDArray[np.uint8], start: int, end: int) -> bool:
    """Whether a line begins with UTF-8's byte order mark."""
    if end - start < len(_MARK):
        return False
    for i in range(len(_MARK)):  # noqa: SIM110 (Numba has no generator expressions)
        if data[start + i] != _MARK[i]:
            return False
    return True


@inline_kernel
def _trim(data: NDArray[np.uint8], start: int, end: int, exact: bool) -> tuple[int, int]:
    """Take the byte order mark and the carriage returns off a line; VW takes off one of them."""
    if _has_mark(data, start, end):
        start += len(_MARK)
    while end > start and data[end - 1] == _RETURN:
        end -= 1
        if exact:
            break
    return start, end


@inline_kernel
def _is_empty(data: NDArray[np.uint8], start: int, end: int, exact: bool) -> bool:
    """Whether a trimmed line separates events: for VW only if nothing is left of it."""
    if exact:
        return start == end
    while start < end and (is_blank(data[start]) or data[start] == _RETURN):
        start += 1
    return start == end


@kernel
def _is_separator(data: NDArray[np.uint8], newline: int, exact: bool) -> bool:
    """Whether the line that ends at `newline` separates events; found from its end, as lines may be long."""
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


@inline_kernel
def _find(data: NDArray[np.uint8], start: int, end: int, byte: int) -> int:
    """First place of a byte, `end` if it is not there."""
    while start < end and data[start] != byte:
        start += 1
    return start


# -- events ----------------------------------------------------------------------------------------------


@kernel
def _open_event(state: Records) -> None:
    state.first_line = state.lines
    state.first_span = state.spans
    state.first_feature = state.features
    state.first_cost = state.costs
    state.first_tag_byte = state.tag_bytes
    state.skipped = False
    state.labelled = False


@kernel
def _drop_event(state: Records) -> None:
    """Forget the lines of the event, and those still to come."""
    state.lines = state.first_line
    state.spans = state.first_span
    state.features = state.first_feature
    state.costs = state.first_cost
    state.tag_bytes = state.first_tag_byte
    state.skipped = True


@kernel
def _close_event(rules: Rules, state: Records, lines: Records, events: NDArray[np.int64]) -> None:
    n = state.lines - state.first_line
    if n == 1 and rules.multiline and not rules.exact and lines[state.first_line].shared:
        line = state.line_number
        state.line_number = lines[state.first_line].number
        report(state, Code.NO_ACTIONS, state.line_begin, state.line_begin, rules.strict)
        state.line_number = line
        _drop_event(state)
    elif n > 0:
        events[state.events] = state.first_line
        state.events += 1
    _open_event(state)


# -- lines -----------------------------------------------------------------------------------------------


@inline_kernel
def _open_line(state: Records, line: Records) -> None:
    line.number = state.line_number
    line.start = state.spans
    line.cost = state.costs
    line.tag = state.tag_bytes
    line.label = UNLABELLED
    line.weight = _ONE
    line.initial = _ZERO
    line.shared = False


@inline_kernel
def _is_control(byte: int) -> bool:
    return (byte < _SPACE and byte != _TAB) or byte == _DELETE


@inline_kernel
def _has_control_byte(data: NDArray[np.uint8], start: int, end: int) -> bool:
    found = False
    for i in range(start, end):
        found |= _is_control(data[i])
    return found


@kernel
def _is_text(data: NDArray[np.uint8], start: int, bar: int, end: int, strict: bool, state: Records) -> bool:
    """Whether a line is text and has a ``|``; reports if not."""
    good = True
    if _has_control_byte(data, start, end):
        while not _is_control(data[start]):
            start += 1
        report(state, Code.CONTROL_BYTE, start, start + 1, strict)
        good = False
    elif bar == end:
        report(state, Code.NO_BAR, start, end, strict)
        good = False
    return good


@kernel
def _is_save(state: Records, line: Records, tag: NDArray[np.uint8]) -> bool:
    """Whether the line is VW's command to save the model: a tag ``save...`` and no features."""
    if state.spans > line.start:
        return False
    return is_word(tag, line.tag, min(state.tag_bytes, line.tag + len(_SAVE)), _SAVE)


@kernel
def _settle_vw_line(
    start: int, bar: int, strict: bool, state: Records, line: Records, tag: NDArray[np.uint8]
) -> bool:
    """Warn about the weight and the command to save; whether the line is an example."""
    if line.weight < _ZERO:
        report(state, Code.VW_WEIGHT, start, bar, strict)
    save = _is_save(state, line, tag)
    if save:
        report(state, Code.VW_SAVE, start, bar, False)
    return not (save or state.fatal)


@kernel
def _drop_line(state: Records, line: Records, features: int) -> None:
    """Forget the line, before which there were so many features."""
    state.spans = line.start
    state.features = features
    state.costs = line.cost
    state.tag_bytes = line.tag


@kernel
def _has_room(data: NDArray[np.uint8], start: int, end: int, room: int) -> bool:
    """Whether a line cannot bring more than `room` new names."""
    if end - start <= room:
        return True
    bars = 0
    for i in range(start, end):
        bars += data[i] == _BAR
    return bars <= room


@kernel
def _close_records(state: Records, lines: Records, spans: Records, events: NDArray[np.int64]) -> None:
    """End the last record of each kind."""
    events[state.events] = state.lines
    line = lines[state.lines]
    line.start = state.spans
    line.cost = state.costs
    line.tag = state.tag_bytes
    spans[state.spans].start = state.features


@kernel
def read_lines(data: NDArray[np.uint8], p: int, end: int, rules: Rules, reader: Reader) -> tuple[int, int]:
    """Read lines from `p` on, which is a line's beginning, to `end`, which is an event's.

    Parameters
    ----------
    data : uint8[:]
        The text.
    p, end : int
        The bytes ``p <= i < end`` are read; 0 begins with empty records.
    rules : Rules
        How to read.
    reader : Reader
        Where to write.

    Returns
    -------
    reason : int
        `DONE`, `GROW` or `STOPPED`.
    p : int
        Where to go on.
    """
    data, reader = borrow(data), borrow(reader)
    state, events, lines, spans = reader.state[0], reader.events, reader.lines, reader.spans
    features, costs, tag, names = reader.features, reader.costs, reader.tag, reader.names
    if p == 0:
        state.events = state.lines = state.spans = state.features = state.costs = state.tag_bytes = 0
        _open_event(state)
    while p < end and not state.fatal:
        newline = _find(data, p, end, _NEWLINE)
        if not _has_room(data, p, newline, len(names) // 2 - state.names - 1):
            return GROW, p
        state.line_number += 1
        state.line_begin = p
        start, stop = _trim(data, p, newline, rules.exact)
        p = min(newline + 1, end)
        if _is_empty(data, start, stop, rules.exact):
            if rules.multiline:
                _close_event(rules, state, lines, events)
            continue
        if state.skipped:
            continue
        n_features, line = state.features, lines[state.lines]
        _open_line(state, line)
        bar = _find(data, start, stop, _BAR)
        if rules.exact:
            if bar > start:
                read_vw_head(data, start, bar, stop, rules, state, line, costs, tag)
            if not state.fatal:
                read_vw_features(data, bar, stop, rules, state, spans, features, names)
            if _settle_vw_line(start, bar, rules.strict, state, line, tag):
                state.lines += 1
            else:
                _drop_line(state, line, n_features)
        else:
            good = _is_text(data, start, bar, stop, rules.strict, state)
            if good and bar > start:
                good = read_head(data, start, bar, rules, state, line, costs, tag)
            if good and read_features(data, bar, stop, rules, state, spans, features, names):
                state.lines += 1
            else:
                _drop_event(state)
        if not rules.multiline:
            _close_event(rules, state, lines, events)
    if state.fatal and not rules.exact:
        _drop_event(state)
    else:
        _close_event(rules, state, lines, events)
    _close_records(state, lines, spans, events)
    return (STOPPED if state.fatal else DONE), p
