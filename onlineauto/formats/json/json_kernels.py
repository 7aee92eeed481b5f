"""Read the lines of a chunk of JSON into records: plain events, or those of a decision-service log.

The members of a context's objects and the elements of its arrays are features, namespaces and actions.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.features.hash_kernels import few_bytes, hash_name, is_hashed_as_it_is, murmur3_of_few
from onlineauto.formats.json.ccb_kernels import (
    close_slot,
    is_in_slots,
    open_outcomes,
    open_part,
    open_slots,
    rank_outcomes,
    read_slot_list,
)
from onlineauto.formats.json.label_kernels import (
    finish_context,
    finish_label,
    give_label,
    read_label,
    read_label_index,
    read_label_property,
    take_label,
)
from onlineauto.formats.json.log_kernels import (
    UNKNOWN,
    count_event,
    is_label_index,
    is_label_property,
    read_envelope,
    read_original_cost,
)
from onlineauto.formats.json.stage_kernels import (
    ARRAY,
    LABEL,
    LOG_OBJECT,
    MULTI,
    NAMESPACE,
    OUTCOMES,
    SLOTS,
    JsonText,
    add_feature,
    add_number,
    begin_event,
    begin_line,
    close_namespace,
    fail,
    open_again,
    open_default,
    open_frame,
    open_namespace,
    settle_array,
    write_event,
)
from onlineauto.formats.json.token_kernels import (
    MALFORMED,
    TRUE,
    String,
    is_name,
    name_of,
    other_than,
    read_json_number,
    read_json_string,
    read_word,
    skip_blanks,
    skip_value,
)
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
from onlineauto.formats.lines.mark_kernels import next_one
from onlineauto.formats.lines.problem_code_kernels import ProblemCode
from onlineauto.jit import entry_kernel, inline_kernel, kernel
from onlineauto.jit.words import LANES, equal, load1, load8, ones, store8

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.records import Records
    from onlineauto.formats.json.stage_kernels import Stage
    from onlineauto.formats.lines.reader_state_kernels import Reader

_QUOTE, _COMMA, _COLON = 34, 44, 58
_OPEN_LIST, _CLOSE_LIST, _OPEN_OBJECT, _CLOSE_OBJECT = 91, 93, 123, 125
_ONE = np.float32(1)
_ZERO = np.float32(0)
_SHORTEST_NAME = 5  # `"":{}` is the shortest member that can add a name

_UNDERSCORE, _F, _N, _T = 95, 102, 110, 116
_ONE_MORE = np.uint32(1)
_SPACE, _TAB = 32, 9
_REPLACED = np.arange(256).astype(np.uint8)
_REPLACED[[32, 9, 124, 58]] = _UNDERSCORE
_LABEL, _TEXT, _MULTI, _SLOTS, _SLOT_ID = map(
    name_of, (b"_label", b"_text", b"_multi", b"_slots", b"_slot_id")
)
_ORIGINAL, _ACTIONS, _PMF, _OUTCOMES = map(name_of, (b"_original_label_cost", b"_a", b"_p", b"_outcomes"))
_TAG, _SAME, _INCLUDED = name_of(b"_", b"tag"), name_of(b"__", b"aid"), name_of(b"_", b"inc")

# -- features ----------------------------------------------------------------------------------------------


@inline_kernel
def _copy(data: NDArray[np.uint8], start: int, end: int, to: int) -> int:
    """Copy ``data[start:end]`` to `to`, eight bytes at a time; return the position after the copy."""
    after = to + end - start
    while start < end:
        store8(data, to, load8(data, start))
        start += 8
        to += 8
    return after


@inline_kernel
def _copy_replaced(data: NDArray[np.uint8], odd: NDArray[np.uint8], string: String, to: int) -> int:
    """Copy a string with ``_`` for blanks, tabs, bars and colons, and return the position after the copy."""
    if string.plain and next_one(odd, string.start) >= string.end:
        return _copy(data, string.start, string.end, to)
    for i in range(string.start, string.end):
        data[to] = _REPLACED[data[i]]
        to += 1
    return to


@inline_kernel
def _hash_of_string(text: JsonText, key: String, value: String, seed: np.uint32, stage: Stage) -> np.uint32:
    """Return the hash of a member whose value is a string.

    Key and value are hashed as one string, or with `chain_hash` one after the other.
    """
    data, rules = text.data, text.rules
    begin, odd = stage.event[0].scratch, stage.odd
    if rules.chain_hash:
        end = _copy_replaced(data, odd, value, begin)
        chained = hash_name(data, key.start, key.end, seed, rules.hash_all)
        return hash_name(data, begin, end, chained, rules.hash_all)
    size, more = key.end - key.start, value.end - value.start
    if 0 < size < 8 and size + more <= 8 and value.plain and next_one(odd, value.start) >= value.end:
        word = few_bytes(data, key.start, key.end)
        word |= few_bytes(data, value.start, value.end) << np.uint64(8 * size)
        if is_hashed_as_it_is(word, size + more, rules.hash_all):
            return murmur3_of_few(word, size + more, seed)
    end = _copy(data, key.start, key.end, begin)
    end = _copy_replaced(data, odd, value, end)
    return hash_name(data, begin, end, seed, rules.hash_all)


@kernel
def _read_text_features(text: JsonText, words: String, stage: Stage, frame: Records) -> None:
    """Stage the words of a text as features; bars and colons count as ``_``."""
    data = text.data
    begin = stage.event[0].scratch
    p = words.start
    while p < words.end:
        to = begin
        while p < words.end and data[p] != _SPACE and data[p] != _TAB:
            data[to] = _REPLACED[data[p]]
            p, to = p + 1, to + 1
        if to > begin:
            add_feature(stage, frame, hash_name(data, begin, to, frame.hash, text.rules.hash_all), _ONE)
        p += 1


@inline_kernel
def _read_number(text: JsonText, p: int) -> tuple[np.float32, int]:
    """Return the value of a feature at `p`, finite in native mode, and the position after it."""
    value, after, kind = read_json_number(text.data, p, text.end)
    if kind == MALFORMED:
        fail(text, ProblemCode.JSON_VALUE, p, text.end)
        return _ZERO, text.end
    if not text.rules.quirks.any_number and not math.isfinite(value):
        fail(text, ProblemCode.VALUE_NOT_FINITE, p, after)
    return value, after


# -- members -----------------------------------------------------------------------------------------------


@kernel
def _open_actions(text: JsonText, p: int, lines: Records, frames: Records) -> int:
    """Open the array of actions at `p` and return the position after its bracket."""
    passed = other_than(text, p, _OPEN_LIST)
    if passed >= 0:
        return passed
    if text.event.line > 0 or (text.rules.quirks.narrow_json and text.event.lines > 1):
        fail(text, ProblemCode.JSON_UNEXPECTED, p, text.end)
        return text.end
    if not text.rules.multiline:
        fail(text, ProblemCode.JSON_SINGLE_LINE, p, p + 1)
    lines[0].shared = True
    open_frame(text, MULTI, p, frames)
    return p + 1


@kernel
def _read_string_member(text: JsonText, key: String, p: int, stage: Stage, reader: Reader) -> int:
    """Read ``_text``, ``_tag`` or a ``_label`` that is a string, and return the position after it."""
    event = text.event
    passed = other_than(text, p, _QUOTE)
    if passed >= 0:
        return passed
    string = read_json_string(text, p)
    if event.bad:
        return text.end
    if is_name(text.data, key.start, key.end, _TEXT):
        _read_text_features(text, string, stage, stage.frames[event.depth - 1])
    elif is_name(text.data, key.start, key.end, _LABEL):
        take_label(text, string, stage, reader)
    else:
        line = stage.lines[event.line]
        line.tag, line.tag_end = string.start, string.end
    return string.after


@kernel
def _is_list_of_slots(data: NDArray[np.uint8], key: String, with_pmf: bool) -> bool:
    """Return whether a member lists actions of a slot; ``_p`` does so only if `with_pmf`."""
    start, end = key.start, key.end
    actions = is_name(data, start, end, _ACTIONS) or is_name(data, start, end, _INCLUDED)
    return actions or (with_pmf and is_name(data, start, end, _PMF))


@kernel
def _read_special(text: JsonText, key: String, p: int, stage: Stage, reader: Reader) -> int:
    """Read the value at `p` of a member whose name begins with ``_`` and return the position after it."""
    data, end, rules = text.data, text.end, text.rules
    start, stop = key.start, key.end
    n = _LABEL.size
    if is_name(data, start, min(start + n, stop), _LABEL):
        if is_label_property(data, key):
            name = start + n + 1, stop
            return read_label_property(text, name, p, stage.lines, stage.frames)
        if is_label_index(data, key):
            if rules.quirks.narrow_json and is_in_slots(text.event, stage.frames):
                fail(text, ProblemCode.JSON_KEY, key.at, key.after)
                return end
            return read_label_index(text, p)
        if stop > start + n:
            fail(text, ProblemCode.JSON_KEY, key.at, key.after)
            return end
        if rules.slots:
            fail(text, ProblemCode.JSON_LABEL, p, end)
            return end
        if p < end and data[p] == _QUOTE:
            return _read_string_member(text, key, p, stage, reader)
        return read_label(text, p, stage.lines, stage.frames)
    if is_name(data, start, stop, _TEXT) or is_name(data, start, stop, _TAG):
        return _read_string_member(text, key, p, stage, reader)
    if is_name(data, start, stop, _ORIGINAL) and rules.log:
        return read_original_cost(text, p)
    if rules.slots:
        if is_name(data, start, stop, _SLOTS):
            return open_slots(text, p, stage)
        beside = not rules.log and not rules.quirks.narrow_json and text.event.line == 0
        if beside and is_name(data, start, stop, _OUTCOMES):
            return open_outcomes(text, p, stage.frames)
        if _is_list_of_slots(data, key, not rules.log or is_in_slots(text.event, stage.frames)):
            return read_slot_list(text, key, p, stage)
    unknown = is_name(data, start, stop, _SLOTS) or is_name(data, start, stop, _SLOT_ID)
    if unknown or is_name(data, start, stop, _ORIGINAL) or is_name(data, start, stop, _SAME):
        fail(text, ProblemCode.JSON_KEY, key.at, key.after)
        return end
    return skip_unread(text, key, p)


@kernel
def skip_unread(text: JsonText, key: String, p: int) -> int:
    """Skip the value at `p` of an unused member, and return the position after it.

    VW skips the value only if the member's name has no escapes and directly precedes the colon.
    """
    if text.rules.quirks.narrow_json and not (key.plain and text.data[key.end + 1] == _COLON):
        fail(text, ProblemCode.JSON_COLON, key.at, p)
        return text.end
    return skip_value(text, p)


@inline_kernel
def read_member(text: JsonText, key: String, p: int, frame: Records, stage: Stage, reader: Reader) -> int:
    """Read a namespace's member at `p`; return the position after it, or after its opening bracket."""
    data = text.data
    byte = load1(data, p) if p < text.end else np.uint8(0)
    if key.end > key.start and load1(data, key.start) == _UNDERSCORE:
        if is_name(data, key.start, key.end, _MULTI):  # tested first: nearly every event has this member
            return _open_actions(text, p, stage.lines, stage.frames)
        return _read_special(text, key, p, stage, reader)
    if byte == _QUOTE:
        value = read_json_string(text, p)
        add_feature(stage, frame, _hash_of_string(text, key, value, frame.hash, stage), _ONE)
        return value.after
    if byte in (_OPEN_OBJECT, _OPEN_LIST):
        kind = NAMESPACE if byte == _OPEN_OBJECT else ARRAY
        inner = open_frame(text, kind, p, stage.frames)
        open_namespace(text, key.start, key.end, reader.names, inner)
        if kind == ARRAY:
            text.event.array_hash = inner.hash
        return p + 1
    number = _ONE
    if byte in (_T, _F, _N):
        word, p = read_word(text, p)
        number = _ONE if word == TRUE else _ZERO
    else:
        number, p = _read_number(text, p)
    if number != _ZERO:
        add_feature(
            stage, frame, hash_name(data, key.start, key.end, frame.hash, text.rules.hash_all), number
        )
    return p


# -- elements ----------------------------------------------------------------------------------------------


@inline_kernel
def _read_string_element(text: JsonText, p: int, frame: Records, stage: Stage) -> int:
    """Stage a string of an array as a feature of that name, and return the position after it."""
    string = read_json_string(text, p)
    to = _copy_replaced(text.data, stage.odd, string, text.event.scratch)
    add_feature(
        stage, frame, hash_name(text.data, text.event.scratch, to, frame.hash, text.rules.hash_all), _ONE
    )
    return string.after


@inline_kernel
def read_element(text: JsonText, p: int, frame: Records, stage: Stage) -> int:
    """Read the element at `p` of an array; return the position after it, or after its opening bracket."""
    event = text.event
    if frame.kind >= MULTI:
        return open_part(text, p, frame.kind, stage)
    byte = load1(text.data, p) if p < text.end else np.uint8(0)
    native = not text.rules.quirks.narrow_json
    if byte == _N:
        if native:  # a missing number has an index, too
            add_number(stage, frame, _ZERO, True)
            event.array_hash = np.uint32(event.array_hash + _ONE_MORE)
        return read_word(text, p)[1]
    if byte == _OPEN_OBJECT:
        settle_array(stage, frame)
        open_again(open_frame(text, NAMESPACE, p, stage.frames), frame)
        return p + 1
    if byte == _OPEN_LIST or (byte in (_QUOTE, _T, _F) and not native):
        fail(text, ProblemCode.JSON_UNEXPECTED, p, text.end)
    elif byte == _QUOTE:
        p = _read_string_element(text, p, frame, stage)
    elif byte in (_T, _F):
        word, p = read_word(text, p)
        add_number(stage, frame, _ONE if word == TRUE else _ZERO, native)
    else:
        number, p = _read_number(text, p)
        add_number(stage, frame, number, native)
    event.array_hash = np.uint32(event.array_hash + _ONE_MORE)
    return p


# -- lines and events ------------------------------------------------------------------------------------


@inline_kernel
def _close(text: JsonText, stage: Stage, frame: Records) -> None:
    """Close the innermost object or array and complete its action, slot, label or namespace."""
    event = text.event
    event.depth -= 1
    if frame.kind == NAMESPACE or frame.kind == ARRAY:
        settle_array(stage, frame)
        close_namespace(stage, frame)
        if frame.root:
            if text.rules.quirks.early_labels:
                finish_context(text, stage)
            event.closed = True
        elif frame.kind == NAMESPACE and event.line > 0 and stage.frames[event.depth - 1].kind >= SLOTS:
            close_slot(text, stage)
    elif frame.kind >= MULTI:
        event.line = 0
        if frame.kind == OUTCOMES:
            rank_outcomes(stage)
    elif frame.kind == LABEL and text.rules.quirks.early_labels:
        finish_label(event, stage.lines, stage.costs)


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
