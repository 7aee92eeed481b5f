"""Find lines and events in a text and manage their records, for the readers of all formats."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.formats.lines.label_kernels import UNLABELLED, slot_problem
from onlineauto.formats.lines.mark_kernels import next_one
from onlineauto.formats.lines.problem_code_kernels import ProblemCode
from onlineauto.formats.lines.reader_state_kernels import is_blank, report
from onlineauto.jit import entry_kernel, inline_kernel, kernel
from onlineauto.jit.words import load1

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.records import Records
    from onlineauto.formats.lines.reader_state_kernels import ReaderRules

DONE, GROW, STOPPED = range(3)
"""Reasons to return: everything is read; the next line needs a larger table of names; a problem is fatal."""

_BAR, _NEWLINE, _RETURN = 124, 10, 13
_MARK = np.frombuffer(b"\xef\xbb\xbf", np.uint8)
_ZERO = np.float32(0)
_ONE = np.float32(1)


class LineBounds(NamedTuple):
    """Bounds of a line."""

    start: int  # first byte of the line, after a byte order mark
    stop: int  # end of the line, before carriage returns
    after: int  # beginning of the next line
    control: int  # position of the first control byte; at or after `stop` if there is none


# -- where lines and events end ---------------------------------------------------------------------------


@kernel
def _has_mark(data: NDArray[np.uint8], start: int, end: int) -> bool:
    """Return whether a line begins with UTF-8's byte order mark."""
    if end - start < len(_MARK):
        return False
    for i in range(len(_MARK)):
        if data[start + i] != _MARK[i]:
            return False
    return True


@inline_kernel
def _trim(data: NDArray[np.uint8], start: int, end: int, bare: bool) -> tuple[int, int]:
    """Return the bounds of a line without its byte order mark and carriage returns, or only one if `bare`."""
    if start < end and load1(data, start) == _MARK[0] and _has_mark(data, start, end):
        start += len(_MARK)
    while end > start and load1(data, end - 1) == _RETURN:
        end -= 1
        if bare:
            break
    return start, end


@kernel
def _is_separator(data: NDArray[np.uint8], newline: int, bare: bool) -> bool:
    """Return whether the line that ends at `newline` separates events; examined from its end."""
    p = newline
    while p > 0 and (data[p - 1] == _RETURN or (not bare and is_blank(data[p - 1]))):
        p -= 1
        if bare:
            break
    if p >= len(_MARK) and _has_mark(data, p - len(_MARK), p):
        p -= len(_MARK)
    return p == 0 or data[p - 1] == _NEWLINE


@entry_kernel
def find_cut(data: NDArray[np.uint8], previous_cut: int, end: int, multiline: bool, bare: bool) -> int:
    """Return the end of the last complete event of ``data[:end]``, 0 if none ends after `previous_cut`."""
    for i in range(end - 1, previous_cut - 1, -1):
        if data[i] == _NEWLINE and (not multiline or _is_separator(data, i, bare)):
            return i + 1
    return 0


@inline_kernel
def _find(data: NDArray[np.uint8], bits: NDArray[np.uint8], p: int, end: int, byte: int) -> int:
    """Return the first position of `byte`, which `bits` marks, or `end` if there is none."""
    p = next_one(bits, p)
    while p < end and load1(data, p) != byte:
        p = next_one(bits, p + 1)
    return p


@inline_kernel
def find_line(data: NDArray[np.uint8], breaks: NDArray[np.uint8], p: int, end: int, bare: bool) -> LineBounds:
    """Return the bounds of the line that begins at `p`, trimmed."""
    control = next_one(breaks, p)
    newline = _find(data, breaks, control, end, _NEWLINE)
    start, stop = _trim(data, p, newline, bare)
    return LineBounds(start, stop, min(newline + 1, end), control)


@inline_kernel
def is_empty(data: NDArray[np.uint8], bounds: LineBounds, bare: bool) -> bool:
    """Return whether a line is empty and so separates events; if `bare`, blanks are content, as in VW."""
    p = bounds.start
    while not bare and p < bounds.stop and (is_blank(load1(data, p)) or load1(data, p) == _RETURN):
        p += 1
    return p == bounds.stop


@inline_kernel
def find_bar(data: NDArray[np.uint8], marks: NDArray[np.uint8], bounds: LineBounds) -> int:
    """Return the position of the first bar of a line, or the line's end."""
    return _find(data, marks, bounds.start, bounds.stop, _BAR)


# -- events ----------------------------------------------------------------------------------------------


@kernel
def _open_event(state: Records) -> None:
    """Store the number of records before the event that begins."""
    state.first_line = state.lines
    state.first_span = state.spans
    state.first_feature = state.features
    state.first_cost = state.costs
    state.first_tag_byte = state.tag_bytes
    state.skipped = False
    state.labelled = False


@kernel
def drop_event(state: Records) -> None:
    """Remove the lines of the event, and skip its remaining lines."""
    state.lines = state.first_line
    state.spans = state.first_span
    state.features = state.first_feature
    state.costs = state.first_cost
    state.tag_bytes = state.first_tag_byte
    state.skipped = True


@kernel
def close_event(
    rules: ReaderRules,
    fatal: bool,
    state: Records,
    lines: Records,
    costs: Records,
    events: NDArray[np.int64],
) -> None:
    """Combine the lines since the last event into an event; report and drop a malformed event."""
    n, first = state.lines - state.first_line, state.first_line
    code, bad = ProblemCode.FINE, first
    if rules.slots and n > 0:
        code, bad = slot_problem(lines, costs, first, state.lines, state.costs, rules.quirks.any_outcome)
    elif n == 1 and rules.multiline and not rules.quirks.lone_shared and lines[first].shared:
        code = ProblemCode.NO_ACTIONS
    if code != ProblemCode.FINE:
        line = state.line_number
        state.line_number = lines[bad].number
        report(state, code, state.line_begin, state.line_begin, fatal)
        state.line_number = line
        drop_event(state)
    elif n > 0:
        events[state.events] = first
        state.events += 1
    _open_event(state)


# -- lines -----------------------------------------------------------------------------------------------


@inline_kernel
def open_line(state: Records, lines: Records, p: int) -> Records:
    """Return the empty record of the line that begins at `p`."""
    state.line_begin = p
    line = lines[np.uint64(state.lines)]
    line.number = state.line_number
    line.start = state.spans
    line.cost = state.costs
    line.tag = state.tag_bytes
    line.label = UNLABELLED
    line.weight = _ONE
    line.initial = _ZERO
    line.shared = line.slot = False
    return line


@kernel
def _count_bars(data: NDArray[np.uint8], start: int, end: int) -> int:
    bars = 0
    for i in range(start, end):
        bars += data[i] == _BAR
    return bars


@inline_kernel
def has_room(data: NDArray[np.uint8], bounds: LineBounds, state: Records, names: Records) -> bool:
    """Return whether the table of names has enough free rows for all names that a line may add."""
    n_free: int = len(names) // 2 - state.names - 1
    return bounds.stop - bounds.start <= n_free or _count_bars(data, bounds.start, bounds.stop) <= n_free


# -- records ---------------------------------------------------------------------------------------------


@kernel
def begin_records(state: Records) -> None:
    """Empty the records."""
    state.events = state.lines = state.spans = state.features = state.costs = state.tag_bytes = 0
    _open_event(state)


@kernel
def close_records(state: Records, lines: Records, spans: Records, events: NDArray[np.int64]) -> None:
    """End the last record of each kind with its sentinel."""
    events[state.events] = state.lines
    line = lines[state.lines]
    line.start = state.spans
    line.cost = state.costs
    line.tag = state.tag_bytes
    spans[state.spans].start = state.features
