"""One contextual-bandit event: score its actions, learn the logged one, account for it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.example_kernels import account, apply_link, learn, list_action, predict
from onlineauto.engine.state import CB, Actions, Label
from onlineauto.explorers._kernels import greedy, rank
from onlineauto.features._kernels import Columns, forget
from onlineauto.features.action_kernels import open_line, open_shared
from onlineauto.jit import F32, kernel
from onlineauto.learners._kernels import clip
from onlineauto.learners.cost_kernels import DR, IPS, MTR, dr_cost, ips_cost, mtr_weight

if TYPE_CHECKING:
    from onlineauto.engine.state import Buffers, Example, Rows, Run

_ZERO = np.float32(0)
_ONE = np.float32(1)
_FLOAT_MAX = np.float32(np.finfo(np.float32).max)


@kernel
def _label_of_line(columns: Columns, line: int, n_actions: int) -> Label:
    """Logged action of a ``--cb N`` line: the first observed cost."""
    for i in range(columns.cost_start[line], columns.cost_start[line + 1]):
        if columns.cost[i] != _FLOAT_MAX and columns.probability[i] > _ZERO:
            action = np.int64(columns.cost_action[i]) - np.int64(1)
            if 0 <= action < n_actions:
                return Label(action, columns.cost[i], columns.probability[i])
            break
    return Label(np.int64(-1), _FLOAT_MAX, -_ONE)


@kernel
def _label_of_event(columns: Columns, first: int, n: int) -> Label:
    """Logged action of an ADF event: the line with a cost, whatever its probability."""
    for action in range(n):
        i = columns.cost_start[first + action]
        if i + 1 == columns.cost_start[first + action + 1] and columns.cost[i] != _FLOAT_MAX:
            return Label(np.int64(action), columns.cost[i], columns.probability[i])
    return Label(np.int64(-1), _FLOAT_MAX, -_ONE)


@kernel
def _open_event(run: Run, event: int) -> tuple[Actions, Label, int, int]:
    """Find the actions and the label, and gather what the actions share.

    Returns also how many shared features VW counts for each action, and how many once.
    """
    columns, layout = run.columns, run.layout
    first = columns.event_start[event]
    if run.task.shape == CB:
        groups, own = open_line(layout, run.scratch, columns, first, 0, 1)
        actions = Actions(first, run.task.n_actions, groups, 1 + own)
        return actions, _label_of_line(columns, first, run.task.n_actions), 0, 0
    n = columns.event_start[event + 1] - first
    if not columns.shared[first]:
        return Actions(first, n, 0, 1), _label_of_event(columns, first, n), 0, 0
    groups, used = open_shared(layout, run.scratch, columns, first)
    once = used - 1 + (1 if layout.constant_key >= 0 else 0)
    actions = Actions(first + 1, n - 1, groups, used)
    return actions, _label_of_event(columns, first + 1, n - 1), used - 1, once


@kernel
def _score_actions(run: Run, actions: Actions, buffers: Buffers) -> tuple[int, Buffers]:
    """Predict the cost of every action into `buffers.score`; return how many features are their own."""
    total = 0
    for action in range(actions.n):
        example, buffers = list_action(run, actions, action, buffers)
        buffers.score[action] = predict(run, 0, example, _ZERO)
        total += example.n_own + example.n_crossed
    return total, buffers


@kernel
def _learn_logged(run: Run, actions: Actions, label: Label, buffers: Buffers) -> Buffers:
    """``--cb_type mtr``: regress the logged action's cost, weighted by its inverse propensity."""
    sums = run.model.sums
    sums[0] += actions.n
    sums[1] += 1
    weight = mtr_weight(label.probability, run.task.clip_p, sums[1], sums[0])
    example, buffers = list_action(run, actions, int(label.action), buffers)
    if run.task.exact or math.isfinite(weight):
        learn(run, 0, example, _ZERO, label.cost, weight)
    return buffers


@kernel
def _estimate(run: Run, example: Example, is_logged: bool, label: Label) -> F32:
    """``--cb_type dr``: the cost model's prediction in lane 1, which learns the logged action's cost."""
    if is_logged and label.probability > _ZERO:
        _, prediction = learn(run, 1, example, _ZERO, label.cost, _ONE / label.probability)
    else:
        prediction = clip(run.model.shared, predict(run, 1, example, _ZERO))
    return apply_link(run.task.link, prediction)


@kernel
def _estimate_all(run: Run, actions: Actions, label: Label, buffers: Buffers) -> Buffers:
    """Fill `buffers.target` with the cost model's estimate of every action's cost."""
    for action in range(actions.n):
        example, buffers = list_action(run, actions, action, buffers)
        buffers.target[action] = _estimate(run, example, action == label.action, label)
    return buffers


@kernel
def _target(run: Run, label: Label, action: int, estimate: F32) -> F32:
    """Cost (float32) to regress for an action: ``ips``, ``dr`` (from the estimate) or ``dm``."""
    cb_type = run.task.cb_type
    if action != label.action:
        return estimate if cb_type == DR else _ZERO
    if cb_type == IPS:
        return ips_cost(label.cost, label.probability, run.task.clip_p)
    if cb_type != DR:
        return label.cost
    if label.probability > _ZERO:
        return dr_cost(label.cost, label.probability, run.task.clip_p, estimate)
    return estimate


@kernel
def _learn_all(run: Run, actions: Actions, label: Label, buffers: Buffers) -> Buffers:
    """``--cb_type ips|dr|dm``: regress every action's target cost, one after the other."""
    for action in range(actions.n):
        example, buffers = list_action(run, actions, action, buffers)
        learn(run, 0, example, _ZERO, _target(run, label, action, buffers.target[action]), _ONE)
    return buffers


@kernel
def _cost_of(label: Label, action: int | np.int32, estimate: F32) -> F32:
    """Estimated cost (float32) of choosing `action`: IPS, or doubly robust if there is an estimate."""
    if action == label.action:
        return (label.cost - estimate) / label.probability + estimate
    return estimate


@kernel
def _settle(
    run: Run, rows: Rows, event: int, actions: Actions, label: Label, estimated: bool, buffers: Buffers
) -> bool:
    """Rank the actions, turn scores into probabilities if exploring, and write the event's row.

    Returns whether the event is labelled with a known probability.
    """
    n = actions.n
    at = rows.action_start[event]
    order, score = rows.action[at : at + n], rows.score[at : at + n]
    rank(buffers.score, n, order)
    for i in range(n):
        score[i] = buffers.score[order[i]]
    if run.task.explore:
        greedy(score, n, run.task.epsilon, run.task.first_only)
    known = bool(label.action >= 0 and label.probability > _ZERO)
    loss = _ZERO
    if known and run.task.explore:
        for i in range(n):
            loss += _cost_of(label, order[i], _ZERO) * score[i]
    elif known and n:
        loss = _cost_of(label, order[0], buffers.target[order[0]] if estimated else _ZERO)
    rows.loss[event] = loss
    rows.labelled[event] = known
    if known:
        rows.known_action[event] = label.action
        rows.known_cost[event] = label.cost
        rows.known_probability[event] = label.probability
    rows.prediction[event] = order[0] + 1 if n else 0
    return known


@kernel
def bandit_event(run: Run, rows: Rows, event: int, buffers: Buffers) -> Buffers:
    """Predict, learn and account for one contextual-bandit event; return the buffers, grown if need was."""
    task = run.task
    actions, label, n_repeated, n_once = _open_event(run, event)
    n_own, buffers = _score_actions(run, actions, buffers)
    holdout = run.columns.holdout[event]
    if task.shape != CB and task.exact:
        learns = label.action >= 0 and task.training  # VW trains on held-out multi-line events too
    else:
        learns = label.action >= 0 and task.training and not holdout
    estimated = bool(learns and task.cb_type == DR)
    if estimated:
        buffers = _estimate_all(run, actions, label, buffers)
    known = _settle(run, rows, event, actions, label, estimated, buffers)
    if learns and task.cb_type == MTR:
        buffers = _learn_logged(run, actions, label, buffers)
    elif learns:
        buffers = _learn_all(run, actions, label, buffers)
    forget(run.scratch, 0, actions.n_shared)
    rows.shown_features[event] = n_own + actions.n * n_repeated
    rows.n_features[event] = rows.shown_features[event] if task.explore else n_own + n_once
    account(run.model, _ONE, known, holdout)
    return buffers
