"""Read CCB slots of JSON: ``_slots``, a log's ``_outcomes``, and their ``_a``, ``_p``, ``_inc``.

The log of a slot is written in the slot itself or in its outcome. In exact mode a cost may be anywhere: as in
VW, it is stored until the next slot or outcome that lists actions.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.formats.json.stage_kernels import (
    MULTI,
    NAMESPACE,
    OUTCOMES,
    SLOTS,
    begin_line,
    close_namespace,
    confine,
    drop_label,
    fail,
    has_outcome,
    include,
    open_default,
    open_frame,
    put_outcome,
)
from onlineauto.formats.json.token_kernels import (
    is_name,
    name_of,
    next_entry,
    open_list,
    other_than,
    read_list,
    read_word,
    skip_value,
)
from onlineauto.formats.lines.label_kernels import UNLABELLED, is_unused, probability_problem
from onlineauto.formats.lines.problem_code_kernels import ProblemCode
from onlineauto.jit import F32, inline_kernel, kernel

if TYPE_CHECKING:
    from onlineauto.features.records import Records
    from onlineauto.formats.json.stage_kernels import JsonText, Stage
    from onlineauto.formats.json.token_kernels import String

_OPEN_LIST, _OPEN_OBJECT, _N = 91, 123, 110
_ONE = np.uint32(1)
_ZERO = np.float32(0)
_LARGEST = 2.0**32
_ACTIONS, _INCLUDED = name_of(b"_a"), name_of(b"_", b"inc")


@kernel
def open_slots(text: JsonText, p: int, stage: Stage) -> int:
    """Open the array of slots at `p` and return the position after its bracket.

    VW accepts the array only in the context itself and after the actions, and it closes the context's
    namespace.
    """
    event = text.event
    outer = stage.frames[event.depth - 1]
    passed = other_than(text, p, _OPEN_LIST)
    if passed >= 0:
        return passed
    misplaced = text.rules.quirks.narrow_json and not (outer.root and event.lines > 1)
    if event.n_slots > 0 or event.line > 0 or misplaced:
        fail(text, ProblemCode.JSON_UNEXPECTED, p, text.end)
        return text.end
    close_namespace(stage, outer)
    open_frame(text, SLOTS, p, stage.frames)
    return p + 1


@kernel
def open_outcomes(text: JsonText, p: int, frames: Records) -> int:
    """Open the array of logged outcomes of the slots at `p` and return the position after its bracket.

    Native mode accepts only one such array. If it comes before the context, it is skipped and read later.
    """
    event = text.event
    passed = other_than(text, p, _OPEN_LIST)
    if passed >= 0:
        return passed
    if event.early > 0 or event.outcome >= 0:
        fail(text, ProblemCode.JSON_OUTCOMES, p, text.end)
        return text.end
    if not (text.rules.quirks.narrow_json or event.closed):
        event.early = p
        return skip_value(text, p)
    open_frame(text, OUTCOMES, p, frames)
    event.outcome = 0
    return p + 1


@inline_kernel
def open_part(text: JsonText, p: int, kind: int, stage: Stage) -> int:
    """Open the action, slot or outcome at `p` and return the position after its brace.

    In native mode null is skipped.
    """
    event = text.event
    byte = text.data[p] if p < text.end else 0
    if byte == _N and not text.rules.quirks.narrow_json:
        return read_word(text, p)[1]
    if byte != _OPEN_OBJECT:
        fail(text, ProblemCode.JSON_UNEXPECTED, p, text.end)
        return text.end
    if kind == OUTCOMES:
        if event.outcome >= event.n_slots:
            fail(text, ProblemCode.JSON_OUTCOMES, p, p + 1)
            return text.end
        event.line = event.first_slot + event.outcome
        event.outcome += 1
    else:
        begin_line(event, stage.lines)
    if kind == SLOTS:
        event.first_slot = event.line if event.n_slots == 0 else event.first_slot
        event.n_slots += 1
        stage.lines[event.line].slot = True
    if kind != MULTI:
        event.index = -1
        if not text.rules.quirks.any_outcome:
            forget_label(event)
    open_default(text, open_frame(text, NAMESPACE, p, stage.frames))
    return p + 1


# -- outcomes ----------------------------------------------------------------------------------------------


@kernel
def is_in_slots(event: Records, frames: Records) -> bool:
    """Return whether the innermost object is, or is inside, a slot or an outcome."""
    for i in range(event.depth - 1):
        if frames[i].kind >= SLOTS:
            return True
    return False


@kernel
def _action_of(value: F32) -> np.uint32:
    """Return the action number of a JSON number.

    NaN gives 0, as in VW. A value out of range gives the largest number, which is not a valid action.
    """
    if np.isnan(value):
        return np.uint32(0)
    return np.uint32(np.int64(value)) if 0 <= value < _LARGEST else np.uint32(_LARGEST - 1)


@kernel
def _read_included(text: JsonText, p: int, stage: Stage) -> int:
    """Read the list of a slot's allowed actions and return the position after the list."""
    p, listed, more = open_list(text, p)
    while more:
        begin = p
        value, p, known, more = next_entry(text, p, listed)
        if known and not (0 <= value < _LARGEST and value == math.floor(value)):
            fail(text, ProblemCode.JSON_UNEXPECTED, begin, p)
        elif known:
            include(text.event, stage.costs, np.uint32(np.int64(value)))
    return text.end if text.event.bad else p


@kernel
def read_slot_list(text: JsonText, key: String, p: int, stage: Stage) -> int:
    """Read the value at `p` of ``_a``, ``_p`` or ``_inc`` of a slot and return the position after it."""
    event = text.event
    frames = stage.frames
    if event.depth < 2 or frames[event.depth - 2].kind < SLOTS:
        fail(text, ProblemCode.JSON_KEY, key.at, key.after)
        return text.end
    if is_name(text.data, key.start, key.end, _INCLUDED):
        return _read_included(text, p, stage)
    n, first, after = read_list(text, p)
    if is_name(text.data, key.start, key.end, _ACTIONS):
        if event.listed == 0:
            event.listed_action = _action_of(first)
        event.listed += n
        event.label_start, event.label_end = p, after
        return after
    if event.pmf == 0:
        event.listed_probability = first
    event.pmf += n
    return after


@kernel
def forget_label(event: Records) -> None:
    """Clear the label that was read, so that the next slot or line starts without one."""
    event.listed = event.pmf = 0
    event.found = event.has_probability = False
    event.action, event.cost, event.probability = 0, UNLABELLED, _ZERO


@kernel
def _problem(event: Records, labelled: bool, any_outcome: bool) -> ProblemCode:
    """Return the code of the problem of a slot's label, or `FINE`.

    `labelled` is true if the slot has an outcome already. `any_outcome` accepts any cost and any
    probability, and the last of two outcomes, like VW.
    """
    if event.listed != event.pmf or event.listed == 0:
        return ProblemCode.SLOT_LISTS
    if any_outcome:
        return ProblemCode.FINE
    if event.cost == UNLABELLED:
        return ProblemCode.NO_COST
    if not math.isfinite(event.cost):
        return ProblemCode.COST_NOT_FINITE
    if not math.isfinite(event.listed_probability):
        return ProblemCode.PROBABILITY_NOT_FINITE
    return ProblemCode.SLOT_LABELLED if labelled else probability_problem(event.listed_probability)


@kernel
def close_slot(text: JsonText, stage: Stage) -> None:
    """Assign the logged outcome to a slot, when the object of the slot or of the outcome ends."""
    event = text.event
    lines, costs = stage.lines, stage.costs
    at, start, after = event.line, event.label_start, event.label_end
    event.line = 0
    confine(event, lines, costs, at)
    if event.listed == 0 and event.pmf == 0 and (text.rules.quirks.any_outcome or event.cost == UNLABELLED):
        return
    code = _problem(event, has_outcome(lines[at], costs), text.rules.quirks.any_outcome)
    if is_unused(code):
        drop_label(text, code, start, after)
        forget_label(event)
        return
    if code != ProblemCode.FINE:
        fail(text, code, start, after)
        return
    put_outcome(event, lines, costs, at, event.listed_action, event.cost, event.listed_probability)
    forget_label(event)


@kernel
def rank_outcomes(stage: Stage) -> None:
    """Store the logged actions of the slots as the ranking of the log line, when the outcomes end."""
    event = stage.event[0]
    for slot in range(event.first_slot, event.first_slot + event.n_slots):
        if has_outcome(stage.lines[slot], stage.costs):
            action = stage.costs[stage.lines[slot].first_cost].action
            event.ranked = np.float32(action) if event.n_ranked == 0 else event.ranked
            event.n_ranked += 1


@kernel
def settle_single_slot(stage: Stage, labelled: bool) -> None:
    """Turn the label of an event without slots, if any, into the label of a single slot, like VW."""
    event = stage.event[0]
    if event.n_slots > 0 or not event.found:
        return
    begin_line(event, stage.lines)
    stage.lines[event.line].slot = True
    event.n_slots, event.first_slot = 1, event.line
    if labelled:
        put_outcome(
            event,
            stage.lines,
            stage.costs,
            event.line,
            np.uint32(event.action - _ONE),
            event.cost,
            event.probability if event.has_probability else np.float32(-1),
        )
    event.line = 0
    event.found = False
