"""Read the lines of a chunk of VW text into records as VW does."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.features.hash_kernels import hash_name
from onlineauto.formats.json.label_kernels import (
    count_vw_parts,
    next_vw_part,
    read_vw_label,
    vw_number,
    vw_probability,
)
from onlineauto.formats.lines.feature_kernels import close_span, hash_string
from onlineauto.formats.lines.label_kernels import (
    ACTION,
    CCB,
    COLON,
    COMMA,
    CONFINED,
    SHARED,
    SLOT,
    UNLABELLED,
    add_cost,
    add_tag,
    is_word,
    next_part,
)
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
from onlineauto.formats.lines.mark_kernels import next_one
from onlineauto.formats.lines.problem_code_kernels import ProblemCode
from onlineauto.formats.lines.reader_state_kernels import Text, default_number, is_blank, name_slot, report
from onlineauto.formats.numbers.float_kernels import parse_vw_float
from onlineauto.jit import F32, entry_kernel, inline_kernel, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.records import Records
    from onlineauto.formats.lines.reader_state_kernels import Reader

_SAVE = np.frombuffer(b"save", np.uint8)
_ZERO = np.float32(0)

_SPACE, _TAB, _MINUS, _PLUS, _ZERO_DIGIT, _NINE = 32, 9, 45, 43, 48, 57
_ONE = np.float32(1)
_TOLERANCE = np.float32(1e-4)
_MOST_WORDS = 4


@kernel
def _read_action(text: Text, start: int, end: int) -> np.uint32:
    """Return the number at the start of a text, like VW's ``int_of_string``: 0 with a warning if none."""
    data = text.data
    p, value = start, np.int64(0)
    if p < end and (data[p] == _MINUS or data[p] == _PLUS):
        p += 1
    first = p
    while p < end and _ZERO_DIGIT <= data[p] <= _NINE:
        value = np.int64(value * 10 + data[p] - _ZERO_DIGIT) & np.int64(0xFFFFFFFF)
        p += 1
    if p == first:
        report(text.state, ProblemCode.VW_INT, start, end, False)
        return np.uint32(0)
    return np.uint32(-value if data[start] == _MINUS else value)


@kernel
def _read_outcome(text: Text, start: int, end: int, costs: Records) -> None:
    """Read ``action:cost:probability[,action:probability...]``; empty parts do not count."""
    data, state = text.data, text.state
    part, p = next_vw_part(data, start, end, COMMA)
    if count_vw_parts(data, part, p, COLON) != 3:
        report(state, ProblemCode.SLOT_OUTCOME, start, end, True)
        return
    first, q = next_vw_part(data, part, p, COLON)
    second, r = next_vw_part(data, q, p, COLON)
    third, s = next_vw_part(data, r, p, COLON)
    action = _read_action(text, first, q)
    total = probability = vw_probability(text, third, s)
    add_cost(state, costs, action, vw_number(text, second, r), probability)
    n = 1
    while not state.fatal:
        part, p = next_vw_part(data, p, end, COMMA)
        if part == p:
            break
        if count_vw_parts(data, part, p, COLON) != 2:
            report(state, ProblemCode.SLOT_OUTCOME, part, p, True)
            return
        first, q = next_vw_part(data, part, p, COLON)
        second, r = next_vw_part(data, q, p, COLON)
        _read_action(text, first, q)
        total += vw_probability(text, second, r)
        n += 1
    if n > 1 and not abs(total - _ONE) < _TOLERANCE:
        report(state, ProblemCode.SLOT_SUM, start, end, True)


@kernel
def _read_lists_or_outcome(text: Text, p: int, end: int, costs: Records, outcome: bool) -> None:
    """Read the outcome of a slot's label if `outcome` is true, else the lists; a second outcome is fatal."""
    data, state = text.data, text.state
    begin, found = p, False
    while not state.fatal:
        start, p = next_vw_part(data, p, end, _SPACE)
        if start == p:
            return
        if (next_part(data, start, p, COLON) < p) != outcome:
            continue
        if outcome:
            if found:
                report(state, ProblemCode.SLOT_LABEL, begin, end, True)
                return
            _read_outcome(text, start, p, costs)
            found = True
            continue
        after = start
        while True:
            part, after = next_vw_part(data, after, p, COMMA)
            if part == after:
                break
            add_cost(state, costs, _read_action(text, part, after), UNLABELLED, CONFINED)


@kernel
def read_vw_slot_label(text: Text, p: int, end: int, line: Records, costs: Records) -> None:
    """Read ``ccb shared``, ``ccb action`` or ``ccb slot [outcome] [list]``; anything else is fatal.

    Source
    ------
    VW 9.11.9, ``parse_ccb_label``.
    """
    data = text.data
    n, begin = count_vw_parts(data, p, end, _SPACE), p
    start, p = next_vw_part(data, p, end, _SPACE)
    kind, after = next_vw_part(data, p, end, _SPACE)
    line.shared, line.slot = is_word(data, kind, after, SHARED), is_word(data, kind, after, SLOT)
    known = line.shared or line.slot or is_word(data, kind, after, ACTION)
    if not (known and is_word(data, start, p, CCB)) or n > (_MOST_WORDS if line.slot else 2):
        report(text.state, ProblemCode.SLOT_LABEL, begin, end, True)
        return
    _read_lists_or_outcome(text, after, end, costs, True)
    _read_lists_or_outcome(text, after, end, costs, False)


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

    Parameters and results are those of `read_lines` in `onlineauto.formats.text.text_kernels`.
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


_QUOTE = 39


@kernel
def _after_tab(data: NDArray[np.uint8], start: int, end: int) -> int:
    """Return the position after the first tab, `start` if there is none."""
    for i in range(start, end):
        if data[i] == _TAB:
            return i + 1
    return start


@kernel
def read_vw_head(
    text: Text, start: int, bar: int, line: Records, costs: Records, tag: NDArray[np.uint8]
) -> None:
    """Read label and tag of a line as VW does: a tab discards everything before it.

    Source
    ------
    VW 9.11.9, ``substring_to_example`` in ``parse_example_text.cc`` and the label parsers.
    """
    data = text.data
    start = _after_tab(data, start, bar)
    last = bar
    while last > start and data[last - 1] == _SPACE:
        last -= 1
    first = last
    while first > start and data[first - 1] != _SPACE:
        first -= 1
    if first == last:
        if text.rules.slots:
            report(text.state, ProblemCode.SLOT_LABEL, start, start, True)
        return
    end = bar
    if last == bar or data[first] == _QUOTE:
        add_tag(text, first, last, tag)
        end = first
    if text.rules.slots:
        read_vw_slot_label(text, start, end, line, costs)
    else:
        read_vw_label(text, start, end, line, costs)


_BAR, _COLON, _NEWLINE, _RETURN = 124, 58, 10, 13

_ENDS_FEATURE = np.zeros(256, np.bool_)
_ENDS_FEATURE[[_SPACE, _TAB, _RETURN, _BAR]] = True

_ENDS_STRING = np.zeros(256, np.bool_)
_ENDS_STRING[[_SPACE, _TAB, _RETURN, _NEWLINE]] = True


class Feature(NamedTuple):
    """A feature that was read, and its problem."""

    after: int  # position after the feature
    hash: np.uint32
    value: F32
    nameless: bool  # the feature has no name; its number must be added to its hash
    code: ProblemCode  # the problem, and the bounds of the offending text
    start: int
    end: int


@kernel
def _string(data: NDArray[np.uint8], p: int, end: int) -> tuple[int, int]:
    """Return the bounds of VW's string value at `p`, after blanks; they are equal if nothing else is left."""
    start = p
    while start < end and _ENDS_STRING[data[start]]:
        start += 1
    if start == end:
        return p, p
    stop = start
    while stop < end and not _ENDS_STRING[data[stop]]:
        stop += 1
    return start, stop


@inline_kernel
def _feature(text: Text, name: tuple[int, int], seed: np.uint32, weight: F32) -> Feature:
    """Read the feature of this name; a string has the value 1, independent of the namespace's weight."""
    data, end = text.data, text.end
    p = name[1]
    value = weight
    string = p, p
    code, wrong = ProblemCode.FINE, p
    if p < end and data[p] == _COLON:
        p += 1
        wrong = p
        number, after = parse_vw_float(data, p, end)
        if after == p:
            string = _string(data, p, end)
            after = string[1]
            value = _ONE
        elif math.isnan(number):
            code = ProblemCode.VW_VALUE_NAN
            value = np.float32(weight * _ZERO)
        else:
            value = np.float32(weight * np.float32(number))
        p = after
    n_unnamed = False
    if string[0] < string[1]:
        hash_ = hash_string(data, name, string, seed, text.rules.hash_all)
    elif name[0] < name[1]:
        hash_ = hash_name(data, name[0], name[1], seed, text.rules.hash_all)
    else:
        hash_ = seed
        n_unnamed = True
    return Feature(p, hash_, value, n_unnamed, code, wrong, end)


@kernel
def _weight(text: Text, p: int, bar: int) -> tuple[F32, int]:
    """Return a namespace's weight at `p`, after the colon, and the position after the weight."""
    number, after = parse_vw_float(text.data, p, text.end)
    weight = np.float32(number)
    if after >= text.end:
        report(text.state, ProblemCode.VW_NAMESPACE_FLOAT, bar, p, text.rules.strict)
    if math.isnan(weight):
        report(text.state, ProblemCode.VW_NAMESPACE_NAN, p, text.end, text.rules.strict)
        weight = _ONE
    return weight, after


@inline_kernel
def _read_span(
    text: Text, p: int, bar: int, seed: np.uint32, weight: F32, features: Records
) -> tuple[int, int]:
    """Read VW's list of features; return the position after it and the new number of features."""
    data, state = text.data, text.state
    n, n_unnamed = state.features, 0
    while p < text.end and is_blank(data[p]):
        p += 1
        if p >= text.end or _ENDS_FEATURE[data[p]]:
            continue
        feature = _feature(text, (p, next_one(text.marks, p)), seed, weight)
        p = feature.after
        if feature.code != ProblemCode.FINE:
            report(state, feature.code, feature.start, feature.end, text.rules.strict)
        hash_ = feature.hash
        if feature.nameless:
            hash_ = np.uint32(hash_ + np.uint32(n_unnamed))
            n_unnamed += 1
        if feature.value != _ZERO:
            features[n].hash = hash_
            features[n].value = feature.value
            n += 1
    if p < text.end and data[p] != _BAR and data[p] != _RETURN:
        report(state, ProblemCode.VW_FEATURES, bar, p, text.rules.strict)
    return p, n


@kernel
def read_vw_features(text: Text, bar: int, spans: Records, features: Records, names: Records) -> None:
    """Read the features of a line as VW does, including its oddities.

    Source
    ------
    VW 9.11.9, ``tc_parser`` in ``parse_example_text.cc``.
    """
    data, state = text.data, text.state
    p = bar
    while p < text.end and data[p] == _BAR:
        start = p + 1
        p = next_one(text.marks, start)
        weight, seed = _ONE, text.rules.default_hash
        has_weight = p < text.end and data[p] == _COLON
        if p > start:
            name = names[name_slot(text.data, text.rules, text.state, start, p, names)]
            number, seed = name.number, name.hash
            if has_weight:
                weight, p = _weight(text, p + 1, bar)
        elif has_weight:
            report(state, ProblemCode.VW_NAMESPACE, bar, p, text.rules.strict)
            break
        else:
            number = default_number(state)
        p, n = _read_span(text, p, bar, seed, weight, features)
        close_span(state, spans, number, n)
    if p < text.end and data[p] != _RETURN:
        report(state, ProblemCode.VW_END, bar, p, text.rules.strict)
