"""The one loop: predict, learn and account for the events of a block."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from onlineauto.explorers._kernels import greedy, rank
from onlineauto.features._kernels import count_linear, cross_groups, forget, list_linear, sum_of_squares
from onlineauto.features.action_kernels import open_line, open_numbered, open_shared
from onlineauto.features.extent_kernels import cross_extents, extent_squares, list_extents
from onlineauto.jit import kernel
from onlineauto.learners._kernels import (
    HOLDOUT_WEIGHT,
    MAX_LABEL,
    MIN_LABEL,
    UNLABELLED_WEIGHT,
    T,
    clip,
    dot,
    see_label,
    update,
)
from onlineauto.learners.cost_kernels import DR, IPS, MTR, dr_cost, ips_cost, mtr_weight
from onlineauto.learners.loss_kernels import loss_value

SIMPLE, CB_ADF, CB = 0, 1, 2
"""Shapes of events: one label a line; one action a line; all actions on one line."""

IDENTITY, LOGIT, GLF1, EXPONENTIAL = 0, 1, 2, 3
"""Links."""

_ZERO = np.float32(0)
_ONE = np.float32(1)
_TWO = np.float32(2)
_FLOAT_MAX = np.float32(np.finfo(np.float32).max)


class Task(NamedTuple):
    """What to do with an event."""

    shape: int
    cb_type: int
    n_actions: int  # of ``--cb N``
    action_bits: int  # low bits of a hash that hold the action number, ``--cb N``
    explore: bool
    epsilon: np.float32
    first_only: bool
    clip_p: np.float32
    link: int
    binary: bool
    training: bool
    exact: bool
    mask: np.uint64


class Columns(NamedTuple):
    """Columns of a Block."""

    event_start: np.ndarray
    line_start: np.ndarray
    shared: np.ndarray
    label: np.ndarray
    weight: np.ndarray
    initial: np.ndarray
    cost_start: np.ndarray
    cost_action: np.ndarray
    cost: np.ndarray
    probability: np.ndarray
    span_namespace: np.ndarray
    span_start: np.ndarray
    hash: np.ndarray
    value: np.ndarray
    holdout: np.ndarray


class Model(NamedTuple):
    """Everything that learning changes."""

    weights: np.ndarray  # float32[cells, 4, lanes]
    shared: np.ndarray  # float64[8]
    lane_norm: np.ndarray  # float64[lanes]
    lane_weight: np.ndarray  # float64[lanes]
    sums: np.ndarray  # int64[2]: actions and events that mtr has averaged over


class Rows(NamedTuple):
    """Columns of Outcomes, to be filled."""

    loss: np.ndarray
    labelled: np.ndarray
    n_features: np.ndarray
    shown_features: np.ndarray
    prediction: np.ndarray
    raw: np.ndarray
    known_action: np.ndarray
    known_cost: np.ndarray
    known_probability: np.ndarray
    action_start: np.ndarray
    action: np.ndarray
    score: np.ndarray


class Buffers(NamedTuple):
    """Working columns that grow with the largest example."""

    cell: np.ndarray  # uint32[]
    value: np.ndarray  # float32[]
    score: np.ndarray  # float32[most actions of an event]


class Example(NamedTuple):
    """The listed features of one example."""

    cell: np.ndarray  # uint32[]
    value: np.ndarray  # float32[]
    n: int
    n_own: int  # own features and the constant, as VW counts them
    n_crossed: int
    squares: np.float32


class Label(NamedTuple):
    """The logged action of an event."""

    action: int  # 0-based, -1 if none
    cost: np.float32
    probability: np.float32


@kernel
def _link(link, raw):
    if link == LOGIT:
        return _ONE / (_ONE + math.exp(-raw))
    if link == GLF1:
        return _TWO / (_ONE + math.exp(-raw)) - _ONE
    if link == EXPONENTIAL:
        return math.exp(raw)
    return raw


@kernel
def _list_features(task, rule, layout, interactions, scratch, begin, groups, own, buffers):
    """List the features of the example in groups [begin, groups), and close the groups."""
    cell, value = buffers.cell, buffers.value
    need = count_linear(layout, scratch, begin, groups)
    need = cross_groups(interactions, scratch, task.mask, cell, value, need, False)
    need = cross_extents(interactions, scratch, task.mask, cell, value, need, False)
    if need > len(cell):
        cell, value = np.empty(2 * need, np.uint32), np.empty(2 * need, np.float32)
    linear = list_linear(layout, scratch, begin, groups, task.mask, cell, value)
    n = cross_groups(interactions, scratch, task.mask, cell, value, linear, True)
    n = cross_extents(interactions, scratch, task.mask, cell, value, n, True)
    squares = _ZERO
    if not (rule.adaptive or rule.normalized):
        squares = sum_of_squares(interactions, scratch, begin, groups) + extent_squares(interactions, scratch)
    forget(scratch, begin, groups)
    return Example(cell, value, n, own, n - linear, squares), Buffers(cell, value, buffers.score)


@kernel
def _list_action(task, rule, layout, interactions, scratch, columns, first, action, n_shared, used, buffers):
    """List the features of one action of the event whose actions begin at line `first`."""
    if task.shape == CB:
        groups, own = open_numbered(scratch, n_shared, used, task.action_bits, action)
        line, header = first, -1
    else:
        groups, own = open_line(layout, scratch, columns, first + action, n_shared, used)
        line, header = first + action, first - 1 if n_shared else -1
    if len(interactions.extent_start) > 1:
        list_extents(layout, scratch, columns, line, header, n_shared, groups)
    return _list_features(task, rule, layout, interactions, scratch, n_shared, groups, own, buffers)


@kernel
def _raw(rule, model, lane, example, initial):
    return dot(rule, model.shared, model.weights, lane, example.cell, example.value, example.n, initial)


@kernel
def _learn(rule, model, lane, example, initial, label, weight):
    """Widen the label range, predict, learn; return the raw and the clipped prediction from before."""
    see_label(rule, model.shared, label)
    raw = _raw(rule, model, lane, example, initial)
    prediction = clip(model.shared, raw)
    if label != _FLOAT_MAX and weight > _ZERO:
        update(
            rule,
            model.shared,
            model.lane_norm,
            model.lane_weight,
            model.weights,
            lane,
            example.cell,
            example.value,
            example.n,
            prediction,
            label,
            weight,
            example.squares,
        )
    return raw, prediction


@kernel
def _account(model, weight, labelled, holdout):
    """Count the event in the time that learning rates decay with."""
    model.shared[T] += weight
    if labelled and holdout:
        model.shared[HOLDOUT_WEIGHT] += weight
    elif not labelled:
        model.shared[UNLABELLED_WEIGHT] += weight


@kernel
def _single(task, rule, layout, interactions, scratch, columns, model, rows, event, buffers):
    """Predict and learn one line of regression or classification."""
    line = columns.event_start[event]
    groups, own = open_line(layout, scratch, columns, line, 0, 1)
    if len(interactions.extent_start) > 1:
        list_extents(layout, scratch, columns, line, -1, 0, groups)
    example, buffers = _list_features(task, rule, layout, interactions, scratch, 0, groups, own, buffers)
    label, weight, initial = columns.label[line], columns.weight[line], columns.initial[line]
    labelled, holdout = label != _FLOAT_MAX, columns.holdout[event]
    if labelled and task.training and not holdout:
        raw, prediction = _learn(rule, model, 0, example, initial, label, weight)
    else:
        raw = _raw(rule, model, 0, example, initial)
        prediction = clip(model.shared, raw)
    loss = _ZERO
    if labelled and weight > _ZERO:
        low, high = np.float32(model.shared[MIN_LABEL]), np.float32(model.shared[MAX_LABEL])
        loss = loss_value(rule.loss, rule.low, rule.high, prediction, label, low, high) * weight
    prediction = _link(task.link, prediction)
    if task.binary:
        prediction = _ONE if prediction > _ZERO else -_ONE
        if labelled and abs(label) == _ONE:
            loss = _ZERO if label == prediction else weight
    rows.loss[event] = loss
    rows.labelled[event] = labelled
    rows.n_features[event] = own + example.n_crossed
    rows.shown_features[event] = own + example.n_crossed
    rows.raw[event] = raw
    rows.prediction[event] = prediction
    _account(model, weight, labelled, holdout)
    return buffers


@kernel
def _label_of_line(task, columns, line):
    """Logged action of a ``--cb N`` line: the first observed cost."""
    for i in range(columns.cost_start[line], columns.cost_start[line + 1]):
        if columns.cost[i] != _FLOAT_MAX and columns.probability[i] > _ZERO:
            action = np.int64(columns.cost_action[i]) - 1
            if 0 <= action < task.n_actions:
                return Label(action, columns.cost[i], columns.probability[i])
            break
    return Label(-1, _FLOAT_MAX, -_ONE)


@kernel
def _label_of_event(columns, first, n):
    """Logged action of an ADF event: the line with a cost, whatever its probability."""
    for action in range(n):
        i = columns.cost_start[first + action]
        if i + 1 == columns.cost_start[first + action + 1] and columns.cost[i] != _FLOAT_MAX:
            return Label(action, columns.cost[i], columns.probability[i])
    return Label(-1, _FLOAT_MAX, -_ONE)


@kernel
def _score_actions(task, rule, layout, interactions, scratch, columns, model, first, n, n_shared, used, buffers):
    """Predict the cost of every action into `buffers.score`; return the features they have in all."""
    total = 0
    for action in range(n):
        example, buffers = _list_action(
            task, rule, layout, interactions, scratch, columns, first, action, n_shared, used, buffers
        )
        buffers.score[action] = _raw(rule, model, 0, example, _ZERO)
        total += example.n_own + example.n_crossed
    return total, buffers


@kernel
def _learn_logged(
    task, rule, layout, interactions, scratch, columns, model, first, n, n_shared, used, label, buffers
):
    """``--cb_type mtr``: regress the logged action's cost, weighted by its inverse propensity."""
    model.sums[0] += n
    model.sums[1] += 1
    weight = mtr_weight(label.probability, task.clip_p, model.sums[1], model.sums[0])
    example, buffers = _list_action(
        task, rule, layout, interactions, scratch, columns, first, label.action, n_shared, used, buffers
    )
    if task.exact or math.isfinite(weight):
        _learn(rule, model, 0, example, _ZERO, label.cost, weight)
    return buffers


@kernel
def _estimate(task, rule, model, example, is_logged, label):
    """``--cb_type dr``: the cost model's prediction in lane 1, which learns the logged action's cost."""
    if is_logged and label.probability > _ZERO:
        _, prediction = _learn(rule, model, 1, example, _ZERO, label.cost, _ONE / label.probability)
    else:
        prediction = clip(model.shared, _raw(rule, model, 1, example, _ZERO))
    return _link(task.link, prediction)


@kernel
def _estimate_all(
    task, rule, layout, interactions, scratch, columns, model, first, n, n_shared, used, label, target, buffers
):
    """Fill `target` with the cost model's estimate of every action's cost."""
    for action in range(n):
        example, buffers = _list_action(
            task, rule, layout, interactions, scratch, columns, first, action, n_shared, used, buffers
        )
        target[action] = _estimate(task, rule, model, example, action == label.action, label)
    return buffers


@kernel
def _learn_all(
    task, rule, layout, interactions, scratch, columns, model, first, n, n_shared, used, label, target, buffers
):
    """``--cb_type ips|dr|dm``: regress every action's target cost, one after the other."""
    for action in range(n):
        cost = target[action] if task.cb_type == DR else _ZERO
        if action == label.action:
            if task.cb_type == IPS:
                cost = ips_cost(label.cost, label.probability, task.clip_p)
            elif task.cb_type == DR and label.probability > _ZERO:
                cost = dr_cost(label.cost, label.probability, task.clip_p, cost)
            elif task.cb_type != DR:
                cost = label.cost
        example, buffers = _list_action(
            task, rule, layout, interactions, scratch, columns, first, action, n_shared, used, buffers
        )
        _learn(rule, model, 0, example, _ZERO, cost, _ONE)
    return buffers


@kernel
def _cost_of(task, label, action, estimate):
    """Estimated cost (float32) of choosing `action`: IPS, or doubly robust with the cost model's estimates."""
    inverse = _ZERO
    if action == label.action:
        inverse = (label.cost - estimate) / label.probability
    return inverse + estimate


@kernel
def _settle(task, rows, event, n, label, estimates, has_estimates, buffers):
    """Rank the actions, turn scores into probabilities if exploring, and write the event's row."""
    at = rows.action_start[event]
    action, score = rows.action[at : at + n], rows.score[at : at + n]
    rank(buffers.score, n, action)
    for i in range(n):
        score[i] = buffers.score[action[i]]
    if task.explore:
        greedy(score, n, task.epsilon, task.first_only)
    known = label.action >= 0 and label.probability > _ZERO
    rows.labelled[event] = known
    rows.known_action[event] = label.action if known else -1
    rows.known_cost[event] = label.cost if known else _FLOAT_MAX
    rows.known_probability[event] = label.probability if known else _ZERO
    rows.prediction[event] = action[0] + 1 if n else 0
    loss = _ZERO
    if known and task.explore:
        for i in range(n):
            loss += _cost_of(task, label, action[i], _ZERO) * score[i]
    elif known and n:
        loss = _cost_of(task, label, action[0], estimates[action[0]] if has_estimates else _ZERO)
    rows.loss[event] = loss
    return known


@kernel
def _bandit(task, rule, layout, interactions, scratch, columns, model, rows, event, target, buffers):
    """Predict and learn one contextual-bandit event."""
    first, last = columns.event_start[event], columns.event_start[event + 1]
    if task.shape == CB:
        n, n_once = task.n_actions, 0
        n_shared, own = open_line(layout, scratch, columns, first, 0, 1)
        used = 1 + own
        n_repeated = 0
        label = _label_of_line(task, columns, first)
    else:
        header = 1 if columns.shared[first] else 0
        n_shared, used = 0, 1
        if header:
            n_shared, used = open_shared(layout, scratch, columns, first)
        n_repeated = used - 1
        n_once = n_repeated + (1 if layout.constant_key >= 0 else 0) if header else 0
        first += header
        n = last - first
        label = _label_of_event(columns, first, n)
    n_own, buffers = _score_actions(
        task, rule, layout, interactions, scratch, columns, model, first, n, n_shared, used, buffers
    )
    holdout = columns.holdout[event]
    learns = label.action >= 0 and task.training and not (holdout and (task.shape == CB or not task.exact))
    has_estimates = learns and task.cb_type == DR
    if has_estimates:
        buffers = _estimate_all(
            task, rule, layout, interactions, scratch, columns, model, first, n, n_shared, used, label, target, buffers
        )
    known = _settle(task, rows, event, n, label, target, has_estimates, buffers)
    if learns and task.cb_type == MTR:
        buffers = _learn_logged(
            task, rule, layout, interactions, scratch, columns, model, first, n, n_shared, used, label, buffers
        )
    elif learns:
        buffers = _learn_all(
            task, rule, layout, interactions, scratch, columns, model, first, n, n_shared, used, label, target, buffers
        )
    forget(scratch, 0, n_shared)
    rows.shown_features[event] = n_own + n * n_repeated
    rows.n_features[event] = rows.shown_features[event] if task.explore else n_own + n_once
    _account(model, _ONE, known, holdout)
    return buffers


@kernel
def run_events(task, rule, layout, interactions, scratch, columns, model, rows, start, stop, target, buffers):
    """Predict, learn and account for events [start, stop); return the buffers, grown if need was."""
    for event in range(start, stop):
        if task.shape == SIMPLE:
            buffers = _single(task, rule, layout, interactions, scratch, columns, model, rows, event, buffers)
        else:
            buffers = _bandit(task, rule, layout, interactions, scratch, columns, model, rows, event, target, buffers)
    return buffers
