"""Read the lines of a chunk of VW text into records as VW does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.exact.text.feature_kernels import read_vw_features
from onlineauto.exact.text.head_kernels import read_vw_head
from onlineauto.formats.lines.label_kernels import is_word
from onlineauto.formats.lines.line_kernels import (
    DONE,
    GROW,
    STOPPED,
    begin_records,
    close_event,
    close_records,
    find_bar,
    find_line,
    has_room,
    is_empty,
    open_line,
)
from onlineauto.formats.records.problem_code_kernels import ProblemCode
from onlineauto.formats.records.reader_state_kernels import Text, report
from onlineauto.jit import entry_kernel, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.records import Records
    from onlineauto.formats.records.reader_state_kernels import Reader

_SAVE = np.frombuffer(b"save", np.uint8)
_ZERO = np.float32(0)


@kernel
def _is_save(state: Records, line: Records, tag: NDArray[np.uint8]) -> bool:
    """Return whether the line is VW's command to save the model: a tag ``save...`` and no features."""
    if state.spans > line.start:
        return False
    return is_word(tag, line.tag, min(state.tag_bytes, line.tag + len(_SAVE)), _SAVE)


@kernel
def _settle_vw_line(text: Text, start: int, bar: int, line: Records, tag: NDArray[np.uint8]) -> bool:
    """Warn about a negative weight or the save command; return whether the line is an event's."""
    state = text.state
    if line.weight < _ZERO:
        report(state, ProblemCode.VW_WEIGHT, start, bar, text.rules.strict)
    save = _is_save(state, line, tag)
    if save:
        report(state, ProblemCode.VW_SAVE, start, bar, False)
    return not (save or state.fatal)


@kernel
def _drop_line(state: Records, line: Records, features: int) -> None:
    """Remove the line; `features` is the number of features before it."""
    state.spans = line.start
    state.features = features
    state.costs = line.cost
    state.tag_bytes = line.tag


@entry_kernel
def read_vw_lines(data: NDArray[np.uint8], p: int, end: int, reader: Reader) -> tuple[int, int]:
    """Read lines into records, from `p`, the beginning of a line, to `end`.

    Parameters and results are those of `read_lines` in `onlineauto.formats.text.line_kernels`.
    """
    rules, state, events = reader.rules[0], reader.state[0], reader.events
    lines, spans = reader.lines, reader.spans
    features, costs, tag, names = reader.features, reader.costs, reader.tag, reader.names
    marks, breaks = reader.marks, reader.breaks
    if p == 0:
        begin_records(state)
    while p < end and not state.fatal:
        bounds = find_line(data, breaks, p, end, True)
        if not has_room(data, bounds, state, names):
            return GROW, p
        begin, p = p, bounds.after
        state.line_number += 1
        if is_empty(data, bounds, True):
            if rules.multiline:
                close_event(rules, True, state, lines, costs, events)
            continue
        n_features, line = state.features, open_line(state, lines, begin)
        text = Text(data, marks, bounds.stop, rules, state)
        bar = find_bar(data, marks, bounds)
        if bar > bounds.start or rules.slots:
            read_vw_head(text, bounds.start, bar, line, costs, tag)
        if not state.fatal:
            read_vw_features(text, bar, spans, features, names)
        if _settle_vw_line(text, bounds.start, bar, line, tag):
            state.lines += 1
        else:
            _drop_line(state, line, n_features)
        if not rules.multiline:
            close_event(rules, True, state, lines, costs, events)
    close_event(rules, True, state, lines, costs, events)
    close_records(state, lines, spans, events)
    return (STOPPED if state.fatal else DONE), p
