"""Read members of a context's objects and elements of its arrays: features, namespaces, actions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.features.hash_kernels import few_bytes, hash_name, is_hashed_as_it_is, murmur3_of_few
from onlineauto.formats.json.ccb_kernels import (
    is_in_slots,
    open_outcomes,
    open_part,
    open_slots,
    read_slot_list,
)
from onlineauto.formats.json.label_kernels import (
    read_label,
    read_label_index,
    read_label_property,
    take_label,
)
from onlineauto.formats.json.log_kernels import is_label_index, is_label_property, read_original_cost
from onlineauto.formats.json.stage_kernels import (
    ARRAY,
    MULTI,
    NAMESPACE,
    add_feature,
    open_again,
    open_frame,
    open_namespace,
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
    skip_value,
)
from onlineauto.formats.lines.mark_kernels import next_one
from onlineauto.formats.records.json_state_kernels import fail
from onlineauto.formats.records.problem_code_kernels import ProblemCode
from onlineauto.jit import inline_kernel, kernel
from onlineauto.jit.words import load1, load8, store8

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.records import Records
    from onlineauto.formats.records.json_state_kernels import JsonText, Stage
    from onlineauto.formats.records.reader_state_kernels import Reader

_QUOTE, _COLON, _OPEN_LIST, _OPEN_OBJECT, _UNDERSCORE = 34, 58, 91, 123, 95
_F, _N, _T = 102, 110, 116
_ONE = np.float32(1)
_ZERO = np.float32(0)
_ONE_MORE = np.uint32(1)
_SPACE, _TAB = 32, 9
_REPLACED = np.arange(256).astype(np.uint8)
_REPLACED[[32, 9, 124, 58]] = _UNDERSCORE
_LABEL, _TEXT, _MULTI, _SLOTS, _SLOT_ID, _ORIGINAL, _ACTIONS, _PMF, _OUTCOMES = (
    name_of(name)
    for name in (
        *(b"_label", b"_text", b"_multi", b"_slots", b"_slot_id"),
        *(b"_original_label_cost", b"_a", b"_p", b"_outcomes"),
    )
)
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
    if byte == _N:
        if not text.rules.quirks.narrow_json:  # a missing number has an index, too
            event.array_hash = np.uint32(event.array_hash + _ONE_MORE)
        return read_word(text, p)[1]
    if byte == _OPEN_OBJECT:
        open_again(open_frame(text, NAMESPACE, p, stage.frames), frame)
        return p + 1
    if byte == _OPEN_LIST or (text.rules.quirks.narrow_json and byte in (_QUOTE, _T, _F)):
        fail(text, ProblemCode.JSON_UNEXPECTED, p, text.end)
    elif byte == _QUOTE:
        p = _read_string_element(text, p, frame, stage)
    elif byte in (_T, _F):
        word, p = read_word(text, p)
        add_feature(stage, frame, event.array_hash, _ONE if word == TRUE else _ZERO)
    else:
        number, p = _read_number(text, p)
        add_feature(stage, frame, event.array_hash, number)
    event.array_hash = np.uint32(event.array_hash + _ONE_MORE)
    return p
