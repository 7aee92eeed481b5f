"""Read the envelope of an event in a decision-service log, and update the log's counters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.formats.json.ccb_kernels import open_outcomes
from onlineauto.formats.json.label_kernels import read_label_index, read_label_property
from onlineauto.formats.json.stage_kernels import NAMESPACE, fail, open_default, open_frame
from onlineauto.formats.json.token_kernels import (
    MALFORMED,
    NULL,
    TRUE,
    String,
    is_name,
    name_of,
    other_than,
    read_json_string,
    read_list,
    read_number_or_null,
    read_word,
)
from onlineauto.formats.lines.problem_code_kernels import ProblemCode
from onlineauto.jit import inline_kernel, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.records import Records
    from onlineauto.formats.json.stage_kernels import JsonText

UNKNOWN = -1
"""Returned instead of a position for a member that does not belong to the envelope."""

_QUOTE, _OPEN_OBJECT, _UNDERSCORE = 34, 123, 95
_ZERO = np.float32(0)
_ONE = np.float32(1)
_C, _A, _DROP, _ID, _TIME = map(name_of, (b"c", b"a", b"pdrop", b"EventId", b"Timestamp"))
_SKIP, _ORIGINAL, _BASELINE = map(name_of, (b"_skipLearn", b"_original_label_cost", b"_ba"))
_OUTCOMES, _LABEL_ = map(name_of, (b"_outcomes", b"_label_"))
_LABEL_INDEX = name_of(b"_label", b"index")


@inline_kernel
def is_label_property(data: NDArray[np.uint8], key: String) -> bool:
    """Return whether a key begins with ``_label_``."""
    return is_name(data, key.start, min(key.start + _LABEL_.size, key.end), _LABEL_)


@inline_kernel
def is_label_index(data: NDArray[np.uint8], key: String) -> bool:
    """Return whether a key is ``_labelIndex``, with any case of "Index"."""
    return is_name(data, key.start, key.end, _LABEL_INDEX)


@kernel
def read_original_cost(text: JsonText, p: int) -> int:
    """Add the number at `p` to the event's original cost and return the position after it."""
    event = text.event
    value, after, kind = read_number_or_null(text, p, ProblemCode.JSON_UNEXPECTED)
    if kind == MALFORMED:
        return after
    event.original_cost = np.float32(event.original_cost + value)
    event.first_cost = event.first_cost if event.n_costs > 0 else value
    event.n_costs += 1
    return after


@kernel
def _read_drop(text: JsonText, p: int) -> int:
    """Read ``pdrop``, the share of such events that was not logged, and return the position after it."""
    event = text.event
    event.drop = _ZERO
    value, after, kind = read_number_or_null(text, p, ProblemCode.JSON_UNEXPECTED)
    if kind != MALFORMED:
        event.drop, event.drop_start, event.drop_end = value, p, after
    return after


@kernel
def _read_text(text: JsonText, p: int, bounds: NDArray[np.int64]) -> int:
    """Store the bounds of the string at `p` in `bounds` and return the position after it."""
    passed = other_than(text, p, _QUOTE)
    if passed >= 0:
        return passed
    after = read_json_string(text, p).after
    bounds[0], bounds[1] = p, after
    return after


@kernel
def _read_skip(text: JsonText, p: int) -> int:
    """Read ``_skipLearn``, the mark of events not to learn, and return the position after it."""
    word, after = read_word(text, p)
    if word != NULL:
        text.event.skip = word == TRUE
    return after


@kernel
def _open_context(text: JsonText, p: int, frames: Records) -> int:
    """Open the context at `p` and return the position after its brace."""
    passed = other_than(text, p, _OPEN_OBJECT)
    if passed >= 0:
        return passed
    if text.event.closed:
        fail(text, ProblemCode.JSON_TWO_CONTEXTS, p, p + 1)
    frame = open_frame(text, NAMESPACE, p, frames)
    open_default(text, frame)
    frame.root = True
    return p + 1


@inline_kernel
def read_envelope(text: JsonText, key: String, p: int, lines: Records, frames: Records) -> int:
    """Read the value at `p` of a member of the envelope and return the position after it, or `UNKNOWN`."""
    data, event = text.data, text.event
    start, stop = key.start, key.end
    if is_name(data, start, stop, _C):
        return _open_context(text, p, frames)
    if is_name(data, start, stop, _A):
        n, first, after = read_list(text, p)
        event.ranked = event.ranked if event.n_ranked > 0 else first
        event.n_ranked += n
        return after
    if is_name(data, start, stop, _DROP):
        return _read_drop(text, p)
    if is_name(data, start, stop, _ID):
        return _read_text(text, p, event.id)
    if is_name(data, start, stop, _TIME):
        return _read_text(text, p, event.time)
    if stop == start or data[start] != _UNDERSCORE:
        return UNKNOWN
    if is_label_property(data, key):
        name = start + _LABEL_.size, stop
        return read_label_property(text, name, p, lines, frames)
    if is_label_index(data, key):
        return read_label_index(text, p)
    if is_name(data, start, stop, _SKIP):
        return _read_skip(text, p)
    if is_name(data, start, stop, _ORIGINAL):
        return read_original_cost(text, p)
    if is_name(data, start, stop, _BASELINE):
        n, first, after = read_list(text, p)
        event.baseline = event.baseline if event.n_baseline > 0 else first
        event.n_baseline += n
        return after
    if is_name(data, start, stop, _OUTCOMES):
        if text.rules.slots:
            return open_outcomes(text, p, frames)
        fail(text, ProblemCode.JSON_KEY, key.at, key.after)
        return text.end
    return UNKNOWN


@kernel
def _note(
    bounds: NDArray[np.int64], first: NDArray[np.int64], last: NDArray[np.int64], has_first: bool
) -> bool:
    """Copy the bounds of an event's string to the log's first or last one; return whether a first one exists.

    `has_first` is true if a first one existed before. An empty string is ignored.
    """
    if bounds[1] - bounds[0] <= 2:
        return has_first
    to = last if has_first else first
    to[0], to[1] = bounds[0], bounds[1]
    return True


@kernel
def count_event(event: Records, log: Records) -> None:
    """Count a valid event of a log, learnt or skipped."""
    log.has_first_id = _note(event.id, log.first_id, log.last_id, log.has_first_id)
    log.has_first_time = _note(event.time, log.first_time, log.last_time, log.has_first_time)
    log.sum_cost_original = np.float32(log.sum_cost_original + event.original_cost)
    if event.n_ranked > 0 and event.ranked == _ONE:
        log.sum_cost_original_baseline = np.float32(log.sum_cost_original_baseline + event.original_cost)
    log.sum_cost_original_first_slot = np.float32(log.sum_cost_original_first_slot + event.first_cost)
    if event.n_ranked > 0 and event.n_baseline > 0 and event.ranked == event.baseline:
        log.number_label_equal_baseline_first_slot += 1
        log.sum_cost_original_label_equal_baseline_first_slot = np.float32(
            log.sum_cost_original_label_equal_baseline_first_slot + event.first_cost
        )
    elif event.n_ranked > 0 and event.n_baseline > 0:
        log.number_label_not_equal_baseline_first_slot += 1
    if event.skip:
        log.number_skipped_events += 1
