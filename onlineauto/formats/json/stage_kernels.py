"""Assemble a JSON event (lines, open namespaces, features, costs) and write it to the records.

A JSON object may add features to a line or a namespace after others; a Block must be contiguous. So the
features of an event are first *staged* in the order of the text, each in a *segment* of one namespace.
Segments whose namespaces begin with the same byte form a *group*. Groups are listed in the order in which the
first namespace of each is closed, which is VW's order of summation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.features.vector_kernels import settle_zeros
from onlineauto.formats.lines.feature_kernels import close_span
from onlineauto.formats.lines.label_kernels import CONFINED, UNLABELLED, add_cost
from onlineauto.formats.lines.line_kernels import open_line
from onlineauto.formats.lines.problem_code_kernels import ProblemCode
from onlineauto.formats.lines.reader_state_kernels import default_number, name_slot, report
from onlineauto.jit import F32, inline_kernel, kernel
from onlineauto.jit.words import load1

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.records import Records
    from onlineauto.formats.lines.reader_state_kernels import Reader, ReaderRules

LOG_OBJECT, NAMESPACE, LABEL, ARRAY, MULTI, SLOTS, OUTCOMES = range(7)
"""Kinds of open objects and arrays; the last four are arrays."""

_SPACE = 32
_ONE = np.float32(1)
_ZERO = np.float32(0)

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
        ("zeros", np.bool_),  # whether it is an array whose last segment has zeros
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


# -- the beginning of events and lines ---------------------------------------------------------------------


@kernel
def begin_event(event: Records) -> None:
    """Reset the stage for a new event."""
    event.depth = 0
    event.bad = event.closed = event.found = event.has_probability = event.unused = event.skip = False
    event.lines = event.groups = event.segments = event.features = event.costs = event.line = 0
    event.index = -1
    event.action = 0
    event.cost = UNLABELLED
    event.probability = event.drop = event.ranked = event.baseline = event.original_cost = _ZERO
    event.first_cost = _ZERO
    event.n_costs = event.n_slots = event.first_slot = event.early = event.listed = event.pmf = 0
    event.outcome = event.first_included = event.last_included = -1
    event.n_ranked = event.n_baseline = event.drop_start = event.drop_end = 0
    event.label_start = event.label_end = 0
    event.index_at[0] = event.index_at[1] = 0
    event.id[0] = event.id[1] = event.time[0] = event.time[1] = 0


@kernel
def begin_line(event: Records, lines: Records) -> None:
    """Add a line to the staged event and make it the current line."""
    event.line = event.lines
    line = lines[event.lines]
    line.groups = line.first = line.last = line.first_cost = line.last_cost = -1
    line.tag = line.tag_end = 0
    line.label = UNLABELLED
    line.weight = _ONE
    line.initial = _ZERO
    line.shared = line.slot = False
    event.lines += 1


# -- open frames -------------------------------------------------------------------------------------------


@inline_kernel
def open_frame(text: JsonText, kind: int, p: int, frames: Records) -> Records:
    """Open an object or an array and return its frame; the event is malformed if too many are nested."""
    event = text.event
    if event.depth == len(frames):
        fail(text, ProblemCode.JSON_TOO_DEEP, p, p + 1)
        event.depth -= 1
    frame = frames[np.uint64(event.depth)]
    event.depth += 1
    frame.kind = kind
    frame.filled = frame.root = frame.lost = frame.zeros = False
    frame.group = frame.segment = -1
    return frame


@inline_kernel
def open_namespace(text: JsonText, start: int, end: int, names: Records, frame: Records) -> None:
    """Assign the namespace called ``data[start:end]`` to a frame."""
    data = text.data
    empty = start == end
    if (empty and not text.rules.quirks.empty_namespace) or (
        end == start + 1 and load1(data, start) == _SPACE
    ):
        open_default(text, frame)
        return
    name = names[name_slot(text.data, text.rules, text.state, start, end, names)]
    frame.number = name.number
    frame.hash = name.hash
    frame.byte = 0 if empty else np.int64(load1(data, start))  # an empty C string begins with its 0
    frame.lost = text.rules.quirks.lost_namespaces and frame.byte >= 128


@inline_kernel
def open_default(text: JsonText, frame: Records) -> None:
    """Assign the namespace without a name to a frame."""
    frame.number = default_number(text.state)
    frame.hash = text.rules.default_hash
    frame.byte = _SPACE


@kernel
def open_again(frame: Records, outer: Records) -> None:
    """Assign the namespace of the enclosing frame to a frame."""
    frame.number = outer.number
    frame.hash = outer.hash
    frame.byte = outer.byte
    frame.lost = outer.lost


@inline_kernel
def _find_group(stage: Stage, byte: int) -> int:
    """Return the current line's group for namespaces that begin with `byte`, made if missing."""
    event, groups = stage.event[0], stage.groups
    line = stage.lines[np.uint64(event.line)]
    i = line.groups
    while i >= 0:
        if groups[np.uint64(i)].byte == byte:
            return i  # type: ignore[no-any-return]
        i = groups[np.uint64(i)].made
    i = event.groups
    event.groups += 1
    group = groups[np.uint64(i)]
    group.byte = byte
    group.listed = False
    group.made = line.groups
    group.next = group.first = group.last = -1
    line.groups = i
    return i  # type: ignore[no-any-return]


@inline_kernel
def _open_segment(stage: Stage, frame: Records) -> None:
    """Begin a run of features of the frame's namespace."""
    event, segments = stage.event[0], stage.segments
    if frame.group < 0:
        frame.group = _find_group(stage, frame.byte)
    group = stage.groups[np.uint64(frame.group)]
    i = event.segments
    event.segments += 1
    segment = segments[np.uint64(i)]
    segment.number = frame.number
    segment.start = segment.end = event.features
    segment.next = -1
    if group.last >= 0:
        segments[np.uint64(group.last)].next = i
    else:
        group.first = i
    group.last = i
    frame.segment = i


@inline_kernel
def _stage_feature(stage: Stage, frame: Records, hash_: np.uint32, value: F32) -> None:
    """Stage a feature of the frame's namespace."""
    event = stage.event[0]
    if frame.segment < 0 or frame.segment != event.segments - 1:
        _open_segment(stage, frame)
    i = np.uint64(event.features)
    stage.features[i].hash = hash_
    stage.features[i].value = value
    event.features += 1
    stage.segments[np.uint64(frame.segment)].end = event.features


@inline_kernel
def add_feature(stage: Stage, frame: Records, hash_: np.uint32, value: F32) -> None:
    """Stage a feature of the frame's namespace, unless its value is 0."""
    if value != _ZERO and not frame.lost:
        _stage_feature(stage, frame, hash_, value)


@inline_kernel
def add_number(stage: Stage, frame: Records, value: F32, with_zeros: bool) -> None:
    """Stage the next number of an array; 0 only if `with_zeros`, until `settle_array`."""
    event = stage.event[0]
    if not frame.lost and (with_zeros or value != _ZERO):
        frame.zeros |= value == _ZERO
        _stage_feature(stage, frame, event.array_hash, value)


@kernel
def settle_array(stage: Stage, frame: Records) -> None:
    """Remove the zeros of an array's last segment, unless the segment is a vector."""
    if frame.zeros:
        segment = stage.segments[frame.segment]
        segment.end = settle_zeros(stage.features, segment.start, segment.end)
        stage.event[0].features = segment.end
        frame.zeros = False


@inline_kernel
def close_namespace(stage: Stage, frame: Records) -> None:
    """List the group of a namespace with features, unless it is listed already."""
    if frame.group < 0 or stage.groups[np.uint64(frame.group)].listed:
        return
    groups, line = stage.groups, stage.lines[np.uint64(stage.event[0].line)]
    groups[np.uint64(frame.group)].listed = True
    if line.last >= 0:
        groups[np.uint64(line.last)].next = frame.group
    else:
        line.first = frame.group
    line.last = frame.group


@kernel
def _stage_cost(event: Records, costs: Records, action: np.uint32, cost: F32, probability: F32) -> int:
    """Stage a cost that is not assigned to a line yet, and return its index."""
    i = event.costs
    event.costs += 1
    costs[i].action = action
    costs[i].cost = cost
    costs[i].probability = probability
    costs[i].next = -1
    return i  # type: ignore[no-any-return]


@kernel
def _append_costs(line: Records, costs: Records, first: int, last: int) -> None:
    """Append the staged costs from `first` to `last` to those of a line."""
    if line.last_cost >= 0:
        costs[line.last_cost].next = first
    else:
        line.first_cost = first
    line.last_cost = last


@kernel
def add_staged_cost(
    event: Records,
    lines: Records,
    costs: Records,
    at: int,
    action: np.uint32,
    cost: F32,
    probability: F32,
) -> None:
    """Stage a cost for line `at`."""
    i = _stage_cost(event, costs, action, cost, probability)
    _append_costs(lines[at], costs, i, i)


@kernel
def include(event: Records, costs: Records, action: np.uint32) -> None:
    """Stage an allowed action of the slot that is closed next."""
    i = _stage_cost(event, costs, action, UNLABELLED, CONFINED)
    if event.last_included >= 0:
        costs[event.last_included].next = i
    else:
        event.first_included = i
    event.last_included = i


@kernel
def confine(event: Records, lines: Records, costs: Records, at: int) -> None:
    """Restrict the slot at line `at` to the staged actions; if the line is not a slot, drop the actions."""
    if event.first_included >= 0 and lines[at].slot:
        _append_costs(lines[at], costs, event.first_included, event.last_included)
    event.first_included = event.last_included = -1


@kernel
def has_outcome(line: Records, costs: Records) -> bool:
    """Return whether a slot's line has an outcome, which precedes the slot's allowed actions."""
    i = line.first_cost
    return bool(i >= 0 and costs[i].probability != CONFINED)


@kernel
def put_outcome(
    event: Records,
    lines: Records,
    costs: Records,
    at: int,
    action: np.uint32,
    cost: F32,
    probability: F32,
) -> None:
    """Stage the outcome of the slot at line `at`, before the slot's allowed actions.

    The outcome replaces an earlier one of the same slot.
    """
    line = lines[at]
    confined = costs[line.first_cost].next if has_outcome(line, costs) else line.first_cost
    last = line.last_cost
    line.first_cost = line.last_cost = -1
    add_staged_cost(event, lines, costs, at, action, cost, probability)
    if confined >= 0:
        _append_costs(line, costs, confined, last)


# -- the end -----------------------------------------------------------------------------------------------


@inline_kernel
def _write_features(stage: Stage, reader: Reader, staged: Records) -> None:
    """Write the spans of a line, group by group in the order of the list."""
    state, i = reader.state[0], staged.first
    while i >= 0:
        group = stage.groups[np.uint64(i)]
        j = group.first
        while j >= 0:
            segment = stage.segments[np.uint64(j)]
            to = state.features
            for k in range(segment.start, segment.end):
                feature = stage.features[np.uint64(k)]
                reader.features[np.uint64(to)].hash = feature.hash
                reader.features[np.uint64(to)].value = feature.value
                to += 1
            close_span(state, reader.spans, segment.number, to)
            j = segment.next
        i = group.next


@kernel
def _write_costs(state: Records, staged: Records, from_: Records, line: Records, costs: Records) -> None:
    """Write the costs of a line.

    As in VW, a shared line with costs is written as a line that is not shared, with one more cost at the
    beginning.
    """
    i = staged.first_cost
    line.shared = staged.shared and i < 0
    if staged.shared and i >= 0:
        add_cost(state, costs, np.uint32(0), UNLABELLED, -_ONE)
    while i >= 0:
        cost = from_[i]
        add_cost(state, costs, cost.action, cost.cost, cost.probability)
        i = cost.next


@inline_kernel
def write_event(data: NDArray[np.uint8], begin: int, weight: F32, stage: Stage, reader: Reader) -> None:
    """Write the lines of the staged event, read from `begin`, with their weights divided by `weight`."""
    state, n, n_slots = reader.state[0], stage.event[0].lines, stage.event[0].n_slots
    first_slot = stage.event[0].first_slot
    for k in range(n):
        i = k
        if n_slots > 0 and k >= first_slot:  # slots are written after all actions
            i = k + n_slots if k + n_slots < n else k + n_slots - n + first_slot
        staged = stage.lines[np.uint64(i)]
        line = open_line(state, reader.lines, begin)
        line.slot = staged.slot
        line.label = staged.label
        line.weight = np.float32(staged.weight / weight)
        line.initial = staged.initial
        _write_features(stage, reader, staged)
        _write_costs(state, staged, stage.costs, line, reader.costs)
        for p in range(staged.tag, staged.tag_end):
            reader.tag[state.tag_bytes] = data[p]
            state.tag_bytes += 1
        state.lines += 1
