"""Read the lines of a chunk of VW text into records, in native mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.formats.lines.feature_kernels import read_features
from onlineauto.formats.lines.label_kernels import (
    SHARED,
    add_tag,
    is_word,
    next_word,
    read_costs,
    read_simple,
    read_slot_label,
)
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
from onlineauto.formats.lines.mark_kernels import next_one
from onlineauto.formats.lines.problem_code_kernels import ProblemCode
from onlineauto.formats.lines.reader_state_kernels import Text, is_blank, report
from onlineauto.formats.numbers.float_kernels import DECIMAL, read_number
from onlineauto.jit import entry_kernel, inline_kernel, kernel
from onlineauto.jit.words import load1

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from onlineauto.features.records import Records
    from onlineauto.formats.lines.reader_state_kernels import Reader

_QUOTE = 39


@inline_kernel
def _last_word(data: NDArray[np.uint8], start: int, end: int) -> tuple[int, int]:
    """Return the bounds of the last word between blanks and tabs; they are equal if there is none."""
    while end > start and is_blank(load1(data, end - 1)):
        end -= 1
    first = end
    while first > start and not is_blank(load1(data, first - 1)):
        first -= 1
    return first, end


@inline_kernel
def _looks_like_label(text: Text, start: int, end: int) -> bool:
    """Return whether a tag is probably meant as a label."""
    if text.rules.simple:
        return read_number(text.data, start, end)[1] == DECIMAL
    return next_one(text.marks, start) < end or (
        text.rules.multiline and is_word(text.data, start, end, SHARED)
    )


@kernel
def read_head(
    text: Text, start: int, bar: int, line: Records, costs: Records, tag: NDArray[np.uint8]
) -> bool:
    """Read label and tag of a line and return whether they are valid; a problem is reported.

    The tag is the last word, if no blank separates it from the bar or if it begins with ``'``.
    """
    data, rules = text.data, text.rules
    first, last = _last_word(data, start, bar)
    if first == last:
        if rules.slots:
            report(text.state, ProblemCode.SLOT_LABEL, start, start, rules.strict)
        return not rules.slots
    end = bar
    if last == bar or data[first] == _QUOTE:
        add_tag(text, first, last, tag)
        end = first
        alone = next_word(text, start, end)[0] == end
        if alone and data[first] != _QUOTE and _looks_like_label(text, first, last):
            report(text.state, ProblemCode.TAG_LIKE_LABEL, first, last, False)
    if rules.simple:
        return read_simple(text, start, end, line)
    if rules.slots:
        return read_slot_label(text, start, end, line, costs)
    return read_costs(text, start, end, line, costs)


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
    """Read the lines in ``p <= i < end``, where `end` is the end of an event, into records.

    The records are emptied first if `p` is 0.
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
