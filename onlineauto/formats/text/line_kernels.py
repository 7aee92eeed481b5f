"""Read the lines of a chunk of VW text into records, in native mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.formats.lines.feature_kernels import read_features
from onlineauto.formats.lines.line_kernels import (
    DONE,
    GROW,
    STOPPED,
    LineBounds,
    begin_records,
    close_event,
    close_records,
    drop_event,
    find_bar,
    find_line,
    has_room,
    is_empty,
    open_line,
)
from onlineauto.formats.records.problem_code_kernels import ProblemCode
from onlineauto.formats.records.reader_state_kernels import Text, report
from onlineauto.formats.text.head_kernels import read_head
from onlineauto.jit import entry_kernel, inline_kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from onlineauto.formats.records.reader_state_kernels import Reader


@inline_kernel
def _is_text(text: Text, bounds: LineBounds, bar: int) -> bool:
    """Return whether a line is text and has a ``|``; a problem is reported."""
    if bounds.control < bounds.stop:
        report(text.state, ProblemCode.CONTROL_BYTE, bounds.control, bounds.control + 1, text.rules.strict)
        return False
    if bar == bounds.stop:
        report(text.state, ProblemCode.NO_BAR, bounds.start, bounds.stop, text.rules.strict)
        return False
    return True


@entry_kernel
def read_lines(data: NDArray[np.uint8], p: int, end: int, reader: Reader) -> tuple[int, int]:
    """Read lines into records, from `p`, the beginning of a line, to `end`, the end of an event.

    Parameters
    ----------
    data : uint8[:]
        The text.
    p, end : int
        The bytes ``p <= i < end`` are read. If `p` is 0, the records are emptied first.
    reader : Reader
        The rules of reading, the records to fill, and the marks of ``data[:end]``.
    """
    rules, state, events = reader.rules[0], reader.state[0], reader.events
    lines, spans = reader.lines, reader.spans
    features, costs, tag, names = reader.features, reader.costs, reader.tag, reader.names
    marks, breaks = reader.marks, reader.breaks
    if p == 0:
        begin_records(state)
    while p < end and not state.fatal:
        bounds = find_line(data, breaks, p, end, False)
        if not has_room(data, bounds, state, names):
            return GROW, p
        begin, p = p, bounds.after
        state.line_number += 1
        if is_empty(data, bounds, False):
            if rules.multiline:
                close_event(rules, rules.strict, state, lines, costs, events)
            continue
        if state.skipped:
            continue
        line = open_line(state, lines, begin)
        text = Text(data, marks, bounds.stop, rules, state)
        bar = find_bar(data, marks, bounds)
        good = _is_text(text, bounds, bar)
        if good and (bar > bounds.start or rules.slots):
            good = read_head(text, bounds.start, bar, line, costs, tag) and not state.fatal
        if good and read_features(text, bar, spans, features, names):
            state.lines += 1
        else:
            drop_event(state)
        if not rules.multiline:
            close_event(rules, rules.strict, state, lines, costs, events)
    if state.fatal:
        drop_event(state)
    else:
        close_event(rules, rules.strict, state, lines, costs, events)
    close_records(state, lines, spans, events)
    return (STOPPED if state.fatal else DONE), p
