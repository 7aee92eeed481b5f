"""A CCB slot of an event: the actions that are still available to it, its label, and its chosen action."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.event.pass_kernels import account, run_on
from onlineauto.engine.records.loop import Actions, Label, Outlier
from onlineauto.features.group_kernels import leave_slot, open_slot
from onlineauto.features.records import FIRST_SLOT, INDEX_FEATURE, SHARED_LINE, SLOT_LINE
from onlineauto.jit import entry_kernel, kernel

if TYPE_CHECKING:
    from onlineauto.engine.records.loop import Context, LoopRun, Results
    from onlineauto.features.records import Stream

_ZERO = np.float32(0)
_ONE = np.float32(1)
_FLOAT_MAX = np.float32(np.finfo(np.float32).max)


@kernel
def outcome_of(stream: Stream, slot: int) -> int:
    """Return the index of the cost that is the outcome on a slot's line, -1 if it has none."""
    i = stream.lines[slot].cost
    if i < stream.lines[slot + 1].cost and stream.costs[i].probability != -np.inf:
        return i  # type: ignore[no-any-return]
    return -1


@kernel
def _list_actions(run: LoopRun, event: int) -> tuple[int, int]:
    """List the lines of a slot's available actions; return their number, and the logged one's index or -1."""
    stream, scratch, row = run.stream, run.scratch, run.stream.slots[event]
    first, end, slot = row[SHARED_LINE] + 1, row[FIRST_SLOT], row[SLOT_LINE]
    outcome = outcome_of(stream, slot)
    begin = stream.lines[slot].cost + (1 if outcome >= 0 else 0)
    confined = begin < stream.lines[slot + 1].cost
    for action in range(end - first):
        if slot == end:
            scratch.taken[action] = False
        scratch.listed[action] = not confined
    for i in range(begin, stream.lines[slot + 1].cost):
        if stream.costs[i].action < end - first:
            scratch.listed[stream.costs[i].action] = True
    n, logged = 0, -1
    for action in range(end - first):
        if scratch.listed[action] and not scratch.taken[action]:
            if outcome >= 0 and stream.costs[outcome].action == action:
                logged = n
            scratch.lines[n] = first + action
            n += 1
    return n, logged


@kernel
def open_slot_event(run: LoopRun, event: int) -> tuple[Actions, Label]:
    """Open the groups that the actions of a slot share; return its actions and its label."""
    stream, row = run.stream, run.stream.slots[event]
    n, logged = _list_actions(run, event)
    shared, index = row[SHARED_LINE], row[INDEX_FEATURE]
    slot = row[SLOT_LINE]
    if slot == row[FIRST_SLOT]:
        run.scratch.n_left[0] = 0
    groups, size, free = open_slot(run.layout, run.scratch, stream, shared, slot, index, stream.room)
    actions = Actions(shared + 1, n, n + 1, groups, free, size + (1 if index >= 0 else 0), 0)
    if logged < 0:
        return actions, Label(np.int64(-1), _FLOAT_MAX, -_ONE, _ONE, _ZERO)
    known = stream.costs[outcome_of(stream, slot)]
    if known.cost == _FLOAT_MAX:  # VW chooses the logged action, but does not learn it.
        return actions, Label(np.int64(logged), _FLOAT_MAX, -_ONE, _ONE, _ZERO)
    weight = stream.lines[run.scratch.lines[logged]].weight
    return actions, Label(np.int64(logged), known.cost, known.probability, weight, _ZERO)


@kernel
def _settle_event(run: LoopRun, results: Results, event: int, holdout: bool) -> None:
    """Account for the event whose last slot is at index `event`."""
    stream, first = run.stream, event
    shared = stream.slots[event, SHARED_LINE]
    labelled = bool(results.rows[event].labelled)
    while first > 0 and stream.slots[first - 1, SHARED_LINE] == shared:
        first -= 1
        labelled = labelled or bool(results.rows[first].labelled)
    account(run.model, stream.lines[shared].weight, labelled, holdout)


@kernel
def _own_features(run: LoopRun, slot: int) -> int:
    """Return VW's feature count of a slot without free actions: the features of its line and the constant."""
    n = 1 if run.layout.constant_key >= 0 else 0
    for span in range(run.stream.lines[slot].start, run.stream.lines[slot + 1].start):
        if not run.layout.ignore[run.layout.key[run.stream.spans[span].namespace]]:
            n += run.stream.spans[span + 1].start - run.stream.spans[span].start
    return n


@entry_kernel
def finish_slot(
    context: Context, stream: Stream, results: Results, event: int, counts: bool, holdout: bool
) -> None:
    """Fill in the row of a predicted slot: number its actions as in the event, and take the first action.

    If that is the logged one, its loss counts, else 0. If `counts`, the last slot accounts for the event.
    """
    run = run_on(context, stream)
    row, slots, slot = results.rows[event], stream.slots, stream.slots[event, SLOT_LINE]
    first, shared = row.action_start, slots[event, SHARED_LINE]
    for i in range(first, first + row.n_actions):
        results.action[i] = run.scratch.lines[results.action[i]] - shared - 1
    if row.n_actions > 0:
        run.scratch.taken[results.action[first]] = True
    else:
        row.n_features = row.shown_features = _own_features(run, slot)
    if run.task.quirks.leaves_slots:
        leave_slot(run.layout, run.scratch, stream, shared, slot, bool(slots[event, INDEX_FEATURE] >= 0))
    outcome = -1 if Outlier.NONE < row.outlier < Outlier.BEGINS_AGAIN else outcome_of(stream, slot)
    row.labelled = outcome >= 0
    row.loss = _ZERO
    if outcome >= 0:
        known = stream.costs[outcome]
        row.known_action = known.action
        row.known_cost, row.known_probability = known.cost, known.probability
        if row.n_actions > 0 and results.action[first] == known.action:
            uniform = run.task.uniform and known.probability == _ZERO
            probability = _ONE / np.float32(row.n_actions) if uniform else known.probability
            row.loss = known.cost / probability * results.score[first] * stream.lines[shared].weight
    if counts and (event + 1 == len(slots) or slots[event + 1, SHARED_LINE] != shared):
        _settle_event(run, results, event, holdout)
