"""The row of an event in the results: opened before the prediction, filled in afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.event.new_action_kernels import bound_new, has_new_actions, place_new_actions
from onlineauto.engine.event.pass_kernels import account, call_explorer, put_drawn_first
from onlineauto.engine.records.loop import EventMode
from onlineauto.engine.records.task import Shape
from onlineauto.explorers.pmf_kernels import greedy
from onlineauto.explorers.ranking_kernels import note_cost, note_learnt, note_value, rank
from onlineauto.jit import F32, inline_kernel, kernel, short_loop
from onlineauto.learners.loss_kernels import DR

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.records.loop import Buffers, Context, Label, LoopRun, Results

_ZERO = np.float32(0)
_UNLABELLED = np.float32(np.finfo(np.float32).max)


@inline_kernel
def open_row(run: LoopRun, results: Results, event: int, n_actions: int) -> None:
    """Open the row of an event; its actions follow those of the previous event."""
    row = results.rows[event]
    row.known_action = -1
    row.known_cost = _UNLABELLED
    row.n_actions = 0 if run.task.shape == Shape.SIMPLE else n_actions
    row.action_start = 0
    if event > 0:
        row.action_start = results.rows[event - 1].action_start + results.rows[event - 1].n_actions


@inline_kernel
def _cost_of(label: Label, action: int, estimate: F32) -> F32:
    """Return the estimated cost (float32) of choosing `action`: doubly robust, or IPS if `estimate` is 0."""
    if action == label.action:
        return (label.cost - estimate) / label.probability + estimate
    return estimate


@inline_kernel
def _actions_of(results: Results, event: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the actions of an event and their scores, or probabilities, as views of the results."""
    first = results.rows[event].action_start
    end = first + results.rows[event].n_actions
    return results.action[first:end], results.score[first:end]


@inline_kernel
def rank_actions(results: Results, event: int, buffers: Buffers, column: int) -> None:
    """Rank the actions of an event by a column of the scores."""
    order, score = _actions_of(results, event)
    n = len(order)
    for i in range(n):
        short_loop()
        score[i] = buffers.score[i, column]
    rank(score, n, order)
    for i in range(n):
        short_loop()
        score[i] = buffers.score[order[i], column]


@inline_kernel
def rank_placed(run: LoopRun, results: Results, event: int, buffers: Buffers, column: int) -> bool:
    """Rank actions, with new ones in their places; return whether there are any."""
    rank_actions(results, event, buffers, column)
    exploration, (order, score) = run.task.exploration, _actions_of(results, event)
    new = has_new_actions(run, len(order), buffers)
    if new:
        place_new_actions(order, score, buffers.explored, exploration.active and not exploration.direct)
    return new


@inline_kernel
def explore(
    context: Context, results: Results, event: int, label: Label, learns: bool, mode: int, new: bool
) -> None:
    """Replace ranked scores by probabilities, bounded for `new` actions; put a chosen action first."""
    task, streamed = context.task, mode == EventMode.LEARN
    order, score = _actions_of(results, event)
    if label.initial != _ZERO:  # explorers compare differences with the size of scores
        for i in range(len(order)):
            short_loop()
            score[i] -= label.initial
    if task.exploration.direct:
        greedy(score, len(order), task.exploration.epsilon, task.exploration.first_only)
    elif len(order) > 0:
        call_explorer(context, order, score)
    if new:
        bound_new(order, score, context.buffers.explored)
    if len(results.name) > 0 and len(order) > 0:
        logs = learns or (task.quirks.draws_logged and task.slots and task.training and streamed)
        logged, keeps = int(label.action) if logs else -1, bool(task.quirks.draws_aside or streamed)
        put_drawn_first(context, order, score, logged, results.name[event], results.named[event], keeps)


@kernel
def leave_out(run: LoopRun, results: Results, event: int, label: Label) -> None:
    """Account for an event that is not learnt because of its cost, see `keep_weight`; it is not predicted."""
    row, exploration = results.rows[event], run.task.exploration
    row.n_actions = row.n_features = row.shown_features = 0
    row.loss = row.prediction = _ZERO
    row.labelled = label.probability > _ZERO
    if row.labelled:
        row.known_action, row.known_cost = label.action, label.cost
        row.known_probability = label.probability
    note_cost(exploration, label.cost - label.initial)
    if exploration.sees_errors:
        note_value(exploration, np.float64(label.cost))
    note_learnt(exploration)
    account(run.model, label.weight, bool(row.labelled), False)


@inline_kernel
def finish_bandit(
    run: LoopRun, results: Results, event: int, label: Label, learns: bool, buffers: Buffers
) -> bool:
    """Fill in the row of a ranked event; return whether its logged action has a known probability."""
    order, score = _actions_of(results, event)
    n, row = len(order), results.rows[event]
    known = bool(label.action >= 0 and label.probability > _ZERO)
    loss = _ZERO
    if known and run.task.exploration.active:
        for i in range(n):
            short_loop()
            loss += _cost_of(label, order[i], _ZERO) * score[i]
        loss *= label.weight
    elif known and n > 0:
        estimated = learns and run.model.settings[0].cb_type == DR
        loss = _cost_of(label, order[0], buffers.target[order[0]] if estimated else _ZERO)
    row.loss = loss
    if known:
        row.known_action = label.action
        row.known_cost = label.cost
        row.known_probability = label.probability
    row.prediction = order[0] + 1 if n > 0 else 0
    return known
