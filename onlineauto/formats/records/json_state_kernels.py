"""State for reading JSON: the current event, and counters of the log.

A JSON object may add features to a line or a namespace after others; a Block must be contiguous. So the
features of an event are first *staged* in the order of the text, each in a *segment* of one namespace.
Segments whose namespaces begin with the same byte form a *group*. Groups are listed in the order in which the
first namespace of each is closed, which is VW's order of summation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.formats.records.reader_state_kernels import report
from onlineauto.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.records import Records
    from onlineauto.formats.records.problem_code_kernels import ProblemCode
    from onlineauto.formats.records.reader_state_kernels import ReaderRules

EVENT = np.dtype(
    [
        ("scratch", np.int64),  # first free byte after the text
        ("depth", np.int64),  # number of open objects and arrays
        ("bad", np.bool_),
        ("closed", np.bool_),  # the context is complete
        # Numbers of staged records.
        ("lines", np.int64),
        ("groups", np.int64),
        ("segments", np.int64),
        ("features", np.int64),
        ("costs", np.int64),
        ("line", np.int64),  # the current line
        ("key", np.int64, (2,)),  # bounds of the last name, quotes included
        ("array_hash", np.uint32),  # hash of the next element of an array
        # The label; `index` is its action, -1 if unknown.
        ("index", np.int64),
        ("found", np.bool_),
        ("action", np.uint32),
        ("cost", np.float32),
        ("probability", np.float32),
        ("has_probability", np.bool_),
        ("unused", np.bool_),  # the label is not finite and is not used
        # Fields of CCB slots.
        ("n_slots", np.int64),
        ("first_slot", np.int64),  # line of the first slot
        ("outcome", np.int64),  # number of outcomes read; -1 before their array
        ("early", np.int64),  # position of the outcomes if they precede the context, else 0
        ("listed", np.int64),  # number of actions in the slot's `_a`
        ("pmf", np.int64),  # number of probabilities in its `_p`
        ("listed_action", np.uint32),  # first action in `_a`
        ("listed_probability", np.float32),  # first probability in `_p`
        ("first_included", np.int64),  # staged costs: the allowed actions of a slot, -1 if none
        ("last_included", np.int64),
        # Text bounds of the label's last part, and of its action, cost and probability.
        ("label_start", np.int64),
        ("label_end", np.int64),
        ("index_at", np.int64, (2,)),
        ("cost_at", np.int64, (2,)),
        ("probability_at", np.int64, (2,)),
        # Fields of decision-service logs.
        ("n_ranked", np.int64),  # number of entries of "a"
        ("ranked", np.float32),  # the first entry
        ("n_baseline", np.int64),
        ("baseline", np.float32),
        ("drop", np.float32),
        ("drop_start", np.int64),
        ("drop_end", np.int64),
        ("skip", np.bool_),
        ("original_cost", np.float32),
        ("first_cost", np.float32),  # the first original cost of several
        ("n_costs", np.int64),
        ("id", np.int64, (2,)),  # bounds of the string, quotes included
        ("time", np.int64, (2,)),
    ],
    align=True,
)
"""The current event."""

FRAME = np.dtype(
    [
        ("kind", np.int64),
        ("filled", np.bool_),  # whether it has a member or an element already
        ("root", np.bool_),  # whether it is the context itself
        ("lost", np.bool_),  # whether it is a namespace whose features VW loses
        ("number", np.int32),  # number of the namespace
        ("hash", np.uint32),
        ("byte", np.int64),  # first byte of its name
        ("group", np.int64),  # its group, -1 before its first feature
        ("segment", np.int64),
    ],
    align=True,
)
"""Record of an open object or array."""

STAGED = {
    "lines": np.dtype(
        [
            ("groups", np.int64),  # the newest group, -1 if none; linked through `made`
            ("first", np.int64),  # the first and the last listed group
            ("last", np.int64),
            ("first_cost", np.int64),
            ("last_cost", np.int64),
            ("tag", np.int64),
            ("tag_end", np.int64),
            ("label", np.float32),
            ("weight", np.float32),
            ("initial", np.float32),
            ("shared", np.bool_),
            ("slot", np.bool_),
        ],
        align=True,
    ),
    "groups": np.dtype(
        [
            ("byte", np.int64),
            ("listed", np.bool_),
            ("made", np.int64),
            ("next", np.int64),
            ("first", np.int64),
            ("last", np.int64),
        ],
        align=True,
    ),
    "segments": np.dtype(
        [("start", np.int64), ("end", np.int64), ("next", np.int64), ("number", np.int32)], align=True
    ),
    "costs": np.dtype(
        [("next", np.int64), ("action", np.uint32), ("cost", np.float32), ("probability", np.float32)],
        align=True,
    ),
}
"""Staged records of an event; links such as `next` are indices, -1 for none."""

LOG = np.dtype(
    [
        ("line_parse_error", np.int64),
        ("number_events_zero_actions", np.int64),
        ("number_skipped_events", np.int64),
        ("sum_cost_original", np.float32),
        ("sum_cost_original_baseline", np.float32),
        ("sum_cost_original_first_slot", np.float32),
        ("sum_cost_original_label_equal_baseline_first_slot", np.float32),
        ("number_label_equal_baseline_first_slot", np.int64),
        ("number_label_not_equal_baseline_first_slot", np.int64),
        ("has_first_id", np.bool_),
        ("has_first_time", np.bool_),
        # Bounds in the buffer of those read since the last chunk; empty if there are none.
        ("first_id", np.int64, (2,)),
        ("last_id", np.int64, (2,)),
        ("first_time", np.int64, (2,)),
        ("last_time", np.int64, (2,)),
    ],
    align=True,
)
"""Counters of a decision-service log."""


class Stage(NamedTuple):
    """The arrays in which an event is assembled, large enough for any event of the text."""

    event: Records  # [1]
    log: Records  # [1]
    frames: Records
    lines: Records
    groups: Records
    segments: Records
    features: Records
    costs: Records
    quiet: Records  # [1]: a reader's state whose problems are not reported
    odd: NDArray[np.uint8]  # bitmap of the bytes that VW replaces in strings


class JsonText(NamedTuple):
    """A line of JSON and the rules of reading, which most kernels pass on unchanged."""

    data: NDArray[np.uint8]
    marks: NDArray[np.uint8]
    end: int  # of the line
    rules: ReaderRules  # a record with these fields
    state: Records
    event: Records


@kernel
def fail(text: JsonText, code: ProblemCode, start: int, end: int) -> None:
    """Mark the event as malformed and report the problem, unless the event is marked already."""
    if not text.event.bad:
        report(text.state, code, start, end, text.rules.strict)
    text.event.bad = True


@kernel
def drop_label(text: JsonText, code: ProblemCode, start: int, end: int) -> None:
    """Mark the label unused and report the problem, unless the event is marked already."""
    if not text.event.bad:
        report(text.state, code, start, end, text.rules.strict)
    text.event.unused = True
