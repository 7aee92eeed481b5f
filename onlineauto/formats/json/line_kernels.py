"""Read the lines of a chunk of JSON into records: plain events, or those of a decision-service log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.formats.json.ccb_kernels import close_slot, open_outcomes, rank_outcomes
from onlineauto.formats.json.label_kernels import (
    give_label,
    read_label_property,
    settle_context,
    settle_label,
)
from onlineauto.formats.json.log_kernels import UNKNOWN, count_event, read_envelope
from onlineauto.formats.json.member_kernels import read_element, read_member, skip_unread
from onlineauto.formats.json.stage_kernels import (
    ARRAY,
    LABEL,
    LOG_OBJECT,
    MULTI,
    NAMESPACE,
    OUTCOMES,
    SLOTS,
    begin_event,
    begin_line,
    close_namespace,
    open_default,
    open_frame,
    write_event,
)
from onlineauto.formats.json.token_kernels import read_json_string, skip_blanks
from onlineauto.formats.lines.line_kernels import (
    DONE,
    GROW,
    STOPPED,
    LineBounds,
    begin_records,
    close_event,
    close_records,
    find_line,
)
from onlineauto.formats.records.json_state_kernels import JsonText, fail
from onlineauto.formats.records.problem_code_kernels import ProblemCode
from onlineauto.jit import entry_kernel, inline_kernel, kernel
from onlineauto.jit.words import LANES, equal, load1, ones

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.records import Records
    from onlineauto.formats.records.json_state_kernels import Stage
    from onlineauto.formats.records.reader_state_kernels import Reader

_QUOTE, _COMMA, _COLON = 34, 44, 58
_OPEN_LIST, _CLOSE_LIST, _OPEN_OBJECT, _CLOSE_OBJECT = 91, 93, 123, 125
_ONE = np.float32(1)
_ZERO = np.float32(0)
_SHORTEST_NAME = 5  # `"":{}` is the shortest member that can add a name


@inline_kernel
def _close(text: JsonText, stage: Stage, frame: Records) -> None:
    """Close the innermost object or array and complete its action, slot, label or namespace."""
    event = text.event
    event.depth -= 1
    if frame.kind == NAMESPACE or frame.kind == ARRAY:
        close_namespace(stage, frame)
        if frame.root:
            if text.rules.quirks.early_labels:
                settle_context(text, stage)
            event.closed = True
        elif frame.kind == NAMESPACE and event.line > 0 and stage.frames[event.depth - 1].kind >= SLOTS:
            close_slot(text, stage)
    elif frame.kind >= MULTI:
        event.line = 0
        if frame.kind == OUTCOMES:
            rank_outcomes(stage)
    elif frame.kind == LABEL and text.rules.quirks.early_labels:
        settle_label(event, stage.lines, stage.costs)


@inline_kernel
def _read_named(text: JsonText, p: int, frame: Records, stage: Stage, reader: Reader) -> int:
    """Read the member at `p` of an object; return the position after it, or after its opening bracket."""
    end, event = text.end, text.event
    if p >= end or load1(text.data, p) != _QUOTE:
        fail(text, ProblemCode.JSON_MEMBER, p, end)
        return end
    key = read_json_string(text, p)
    event.key[0], event.key[1] = key.at, key.after
    p = skip_blanks(text, key.after)
    if event.bad or p >= end or load1(text.data, p) != _COLON:
        fail(text, ProblemCode.JSON_COLON, p, end)
        return end
    p = skip_blanks(text, p + 1)
    if frame.kind == NAMESPACE:
        return read_member(text, key, p, frame, stage, reader)
    if frame.kind == LABEL:
        return read_label_property(text, (key.start, key.end), p, stage.lines, stage.frames)
    after = read_envelope(text, key, p, stage.lines, stage.frames)
    if after == UNKNOWN:
        return skip_unread(text, key, p)
    return after


@inline_kernel
def _read_tree(text: JsonText, p: int, stage: Stage, reader: Reader) -> None:
    """Read the whole object at `p`, whose frame is open; any text after the object is an error.

    Outcomes before the context are read last.
    """
    end, event = text.end, text.event
    frames = stage.frames
    p, after = p + 1, p
    while True:
        while event.depth > 0 and not event.bad:
            p = skip_blanks(text, p)
            frame = frames[np.uint64(event.depth - 1)]
            in_array = frame.kind >= ARRAY
            byte = load1(text.data, p) if p < end else np.uint8(0)
            if byte == (_CLOSE_LIST if in_array else _CLOSE_OBJECT):
                _close(text, stage, frame)
                p += 1
                continue
            if frame.filled:
                if byte != _COMMA:
                    code = ProblemCode.JSON_ELEMENT if in_array else ProblemCode.JSON_MEMBER
                    fail(text, code, p, end)
                    return
                p = skip_blanks(text, p + 1)
            frame.filled = True
            if in_array:
                p = read_element(text, p, frame, stage)
            else:
                p = _read_named(text, p, frame, stage, reader)
        after = max(after, p)
        if event.early == 0 or event.bad or not event.closed:
            break
        p, event.early = int(event.early), 0
        p = open_outcomes(text, p, frames)
    p = skip_blanks(text, after)
    if p < end:
        fail(text, ProblemCode.JSON_END, p, end)


@kernel
def _weight(text: JsonText) -> np.float32:
    """Return 1 - ``pdrop``, the logged share of events, by which weights are divided; 1 for simple labels."""
    event = text.event
    start, end = event.drop_start, event.drop_end
    if not _ZERO <= event.drop < _ONE:
        fail(text, ProblemCode.JSON_DROP_ONE, start, end)
    return np.float32(_ONE if text.rules.simple else _ONE - event.drop)


@kernel
def _is_event(text: JsonText, log: Records) -> bool:
    """Count a valid line of a log and return whether it is an event to learn."""
    event = text.event
    count_event(event, log)
    if event.skip:
        return False
    empty = (
        event.n_ranked == 0 and text.rules.multiline if text.rules.quirks.early_labels else not event.closed
    )
    if empty:
        log.number_events_zero_actions += 1
    return not empty


@inline_kernel
def _check_event(text: JsonText, stage: Stage) -> None:
    """Complete the event, and mark it as malformed if it cannot be learnt."""
    if text.rules.multiline and text.event.lines < 2:
        fail(text, ProblemCode.JSON_NO_MULTI, text.state.line_begin, text.state.line_begin)
    elif not text.rules.quirks.early_labels and text.event.n_slots == 0:
        give_label(text, stage)


@inline_kernel
def _open(text: JsonText, bounds: LineBounds, stage: Stage) -> int:
    """Open the object of a line and return its position, or -1 if the line is to be skipped.

    VW reads a line of a log only if its first byte is a brace.
    """
    rules = text.rules
    begin_event(text.event)
    p = skip_blanks(text, bounds.start)
    if p == bounds.stop:
        return -1
    late = rules.quirks.narrow_json and rules.log and p > bounds.start
    if late or load1(text.data, p) != _OPEN_OBJECT:
        fail(text, ProblemCode.JSON_NO_OBJECT, bounds.start, bounds.stop)
        stage.log[0].line_parse_error += rules.log
        return -1
    begin_line(text.event, stage.lines)
    frame = open_frame(text, LOG_OBJECT if rules.log else NAMESPACE, p, stage.frames)
    if not rules.log:
        open_default(text, frame)
        frame.root = True
    return p


@kernel
def _count(data: NDArray[np.uint8], start: int, end: int) -> int:
    """Return an upper bound on the number of objects and arrays in ``data[start:end]``."""
    n = 0
    for i in range(start, end, LANES):
        n += ones(equal(data, i, _OPEN_LIST) | equal(data, i, _OPEN_OBJECT))
    return n


@inline_kernel
def _has_room(data: NDArray[np.uint8], bounds: LineBounds, state: Records, names: Records) -> bool:
    """Return whether the table of names has enough free rows for all names that a line may add."""
    n_free = len(names) // 2 - state.names - 2
    if (bounds.stop - bounds.start) // _SHORTEST_NAME <= n_free:
        return True
    return bool(_count(data, bounds.start, bounds.stop) <= n_free)


@entry_kernel
def read_json_lines(
    data: NDArray[np.uint8], p: int, end: int, reader: Reader, stage: Stage
) -> tuple[int, int]:
    """Read the lines in ``p <= i < end`` into records, which are emptied first if `p` is 0.

    From `scratch` of the event on `stage`, the text is followed by a scratch of twice its size and 64 bytes.
    """
    rules, state, event, log = reader.rules[0], reader.state[0], stage.event[0], stage.log[0]
    if p == 0:
        begin_records(state)
    while p < end and not state.fatal:
        bounds = find_line(data, reader.breaks, p, end, True)
        if not _has_room(data, bounds, state, reader.names):
            return GROW, p
        begin, p = p, bounds.after
        state.line_number += 1
        state.line_begin = begin
        text = JsonText(data, reader.marks, bounds.stop, rules, state, event)
        start = _open(text, bounds, stage)
        if start < 0:
            continue
        _read_tree(text, start, stage, reader)
        weight = _weight(text)
        if not event.bad and (not rules.log or _is_event(text, log)):
            _check_event(text, stage)
            if not event.bad and not state.fatal:
                write_event(data, begin, weight, stage, reader)
                close_event(rules, rules.strict, state, reader.lines, reader.costs, reader.events)
        log.line_parse_error += event.bad
    close_records(state, reader.lines, reader.spans, reader.events)
    return (STOPPED if state.fatal else DONE), p
