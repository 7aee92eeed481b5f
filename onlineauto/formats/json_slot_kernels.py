"""Slots of JSON: ``_slots`` of the context, ``_outcomes`` of a log, and their ``_a``, ``_p``, ``_inc``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.formats.code_kernels import Code
from onlineauto.formats.json_name_kernels import is_name, name_of
from onlineauto.formats.json_number_kernels import INTEGER, read_json_number
from onlineauto.formats.json_stage_kernels import (
    NAMESPACE,
    OUTCOMES,
    SLOTS,
    add_staged_cost,
    begin_line,
    close_namespace,
    open_default,
    open_frame,
    put_outcome,
)
from onlineauto.formats.json_state_kernels import fail
from onlineauto.formats.json_token_kernels import read_list, skip_blanks
from onlineauto.formats.label_kernels import UNLABELLED, probability_problem
from onlineauto.formats.slot_event_kernels import CONFINED
from onlineauto.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.records import Records
    from onlineauto.formats.json_state_kernels import JsonRules, Stage
    from onlineauto.formats.json_token_kernels import String
    from onlineauto.formats.reading_kernels import Reader

__all__ = ["close_slot", "open_outcomes", "open_slot", "open_slots", "read_slot_list", "settle_single_slot"]

_OPEN_LIST, _CLOSE_LIST, _OPEN_OBJECT, _COMMA = 91, 93, 123, 44
_ONE = np.uint32(1)
_LARGEST = 2.0**32
_ACTIONS, _INCLUDED = name_of(b"_a"), name_of(b"_", b"inc")


@kernel
def open_slots(
    data: NDArray[np.uint8], p: int, end: int, rules: JsonRules, stage: Stage, reader: Reader
) -> int:
    """Open the array of slots at `p`; the byte after its bracket.

    VW closes the namespace that it stands in, usually the context, and goes on in that without a name.
    """
    event, state = stage.event[0], reader.state[0]
    outer = stage.frames[event.depth - 1]
    late = event.n_slots > 0 or (rules.exact and event.lines < 2)
    if p >= end or data[p] != _OPEN_LIST or late:
        fail(state, event, Code.JSON_UNEXPECTED, p, end, rules.strict)
        return end
    close_namespace(stage, outer)
    if rules.exact and not outer.root:
        open_default(rules, state, outer)
        outer.group = outer.segment = -1
    open_frame(SLOTS, p, rules, state, event, stage.frames)
    return p + 1


@kernel
def open_outcomes(
    data: NDArray[np.uint8],
    p: int,
    end: int,
    rules: JsonRules,
    state: Records,
    event: Records,
    frames: Records,
) -> int:
    """Open the array of what was logged of the slots, at `p`; the byte after its bracket."""
    if p >= end or data[p] != _OPEN_LIST or not event.closed:
        fail(state, event, Code.JSON_OUTCOMES, p, end, rules.strict)
        return end
    open_frame(OUTCOMES, p, rules, state, event, frames)
    event.outcome = 0
    return p + 1


@kernel
def open_slot(
    data: NDArray[np.uint8], p: int, end: int, rules: JsonRules, kind: int, stage: Stage, reader: Reader
) -> int:
    """Open the slot, or what was logged of one, at `p`; the byte after its brace."""
    event, state = stage.event[0], reader.state[0]
    if p >= end or data[p] != _OPEN_OBJECT:
        fail(state, event, Code.JSON_UNEXPECTED, p, end, rules.strict)
        return end
    if kind == SLOTS:
        event.first_slot = event.lines if event.n_slots == 0 else event.first_slot
        event.n_slots += 1
        begin_line(event, stage.lines)
        stage.lines[event.line].slot = True
    elif event.outcome >= event.n_slots:
        fail(state, event, Code.JSON_OUTCOMES, p, p + 1, rules.strict)
        return end
    else:
        event.line = event.first_slot + event.outcome
        event.outcome += 1
    if not rules.exact:  # where VW would take what an earlier one left behind
        event.listed, event.pmf = 0, 0
        event.found = event.has_probability = False
        event.cost = UNLABELLED
    open_default(rules, state, open_frame(NAMESPACE, p, rules, state, event, stage.frames))
    return p + 1


@kernel
def _read_included(
    data: NDArray[np.uint8], p: int, end: int, rules: JsonRules, stage: Stage, reader: Reader
) -> int:
    """Read the list of the actions that a slot is confined to; the byte after it."""
    event, state = stage.event[0], reader.state[0]
    if p >= end or data[p] != _OPEN_LIST:
        fail(state, event, Code.JSON_UNEXPECTED, p, end, rules.strict)
        return end
    p = skip_blanks(data, p + 1, end)
    while p < end and data[p] != _CLOSE_LIST:
        value, after, kind = read_json_number(data, p, end)
        if kind != INTEGER or value >= _LARGEST:
            fail(state, event, Code.JSON_UNEXPECTED, p, end, rules.strict)
            return end
        add_staged_cost(
            event, stage.lines, stage.costs, event.line, np.uint32(np.int64(value)), UNLABELLED, CONFINED
        )
        p = skip_blanks(data, after, end)
        if p < end and data[p] == _COMMA:
            p = skip_blanks(data, p + 1, end)
        elif p >= end or data[p] != _CLOSE_LIST:
            fail(state, event, Code.JSON_ELEMENT, p, end, rules.strict)
            return end
    return p + 1


@kernel
def read_slot_list(
    data: NDArray[np.uint8],
    marks: NDArray[np.uint8],
    key: String,
    p: int,
    end: int,
    rules: JsonRules,
    stage: Stage,
    reader: Reader,
) -> int:
    """Read the value at `p` of ``_a``, ``_p`` or ``_inc`` of a slot: the byte after it."""
    event, state = stage.event[0], reader.state[0]
    outer = stage.frames[max(event.depth - 2, 0)].kind
    nested = bool(outer == SLOTS and not stage.frames[max(event.depth - 3, 0)].root)
    if (outer != SLOTS and outer != OUTCOMES) or (rules.exact and nested):  # VW gives it to another slot
        fail(state, event, Code.JSON_KEY, key.at, key.after, rules.strict)
        return end
    if is_name(data, key.start, key.end, _INCLUDED):
        return _read_included(data, p, end, rules, stage, reader)
    n, first, after = read_list(data, marks, p, end, rules, state, event)
    if is_name(data, key.start, key.end, _ACTIONS):
        if event.listed == 0:
            event.action = np.uint32(np.int64(first)) if 0 <= first < _LARGEST else np.uint32(_LARGEST - 1)
        event.listed += n
        event.label_start, event.label_end = p, after
        return after
    if event.pmf == 0:
        event.probability = first
    event.pmf += n
    event.probability_at[0], event.probability_at[1] = p, after
    return after


@kernel
def _problem(event: Records) -> Code:
    """What is wrong with what was logged of a slot, in native mode."""
    if event.listed != event.pmf:
        return Code.SLOT_LISTS
    if event.cost == UNLABELLED:
        return Code.NO_COST
    if not math.isfinite(event.cost):
        return Code.COST_NOT_FINITE
    if not math.isfinite(event.probability):
        return Code.PROBABILITY_NOT_FINITE
    return probability_problem(event.probability)


@kernel
def close_slot(rules: JsonRules, stage: Stage, state: Records, kind: int) -> None:
    """Give a slot what was logged of it, at the end of its object or of that of its outcome."""
    event = stage.event[0]
    at, start, end = event.line, event.label_start, event.label_end
    event.line = 0
    logged = event.listed > 0 and event.pmf > 0
    if rules.exact:
        if not logged:
            return
        if event.listed != event.pmf:
            fail(state, event, Code.SLOT_LISTS, start, end, True)
            return
    elif event.listed > 0 or event.pmf > 0 or event.cost != UNLABELLED:
        code = _problem(event)
        if code != Code.FINE:
            fail(state, event, code, start, end, rules.strict)
            return
    if logged:
        put_outcome(event, stage.lines, stage.costs, at, event.action, event.cost, event.probability)
        event.ranked = np.float32(event.action) if event.n_ranked == 0 else event.ranked
        event.n_ranked += 1 if kind == OUTCOMES else 0
        event.listed = event.pmf = 0
        event.cost = UNLABELLED
        event.found = event.has_probability = False


@kernel
def settle_single_slot(stage: Stage) -> None:
    """Make the label of an event without slots that of a slot, as VW does."""
    event = stage.event[0]
    if event.n_slots > 0 or not event.found:
        return
    begin_line(event, stage.lines)
    stage.lines[event.line].slot = True
    event.n_slots, event.first_slot = 1, event.line
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
