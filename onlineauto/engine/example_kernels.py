"""One example: list its features, predict it, learn it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.state import CB, Buffers, Example
from onlineauto.features._kernels import count_linear, cross_groups, forget, list_linear, sum_of_squares
from onlineauto.features.action_kernels import open_line, open_numbered
from onlineauto.features.extent_kernels import cross_extents, extent_squares, list_extents
from onlineauto.jit import F32, kernel
from onlineauto.learners._kernels import HOLDOUT_WEIGHT, UNLABELLED_WEIGHT, T, clip, dot, see_label, update

if TYPE_CHECKING:
    from onlineauto.engine.state import Actions, Model, Run

IDENTITY, LOGIT, GLF1, EXPONENTIAL = 0, 1, 2, 3
"""Links."""

_ZERO = np.float32(0)
_ONE = np.float32(1)
_TWO = np.float32(2)
_FLOAT_MAX = np.float32(np.finfo(np.float32).max)


@kernel
def apply_link(link: int, raw: F32) -> F32:
    """Turn a clipped prediction (float32) into what is predicted."""
    if link == LOGIT:
        return _ONE / (_ONE + math.exp(-raw))
    if link == GLF1:
        return _TWO / (_ONE + math.exp(-raw)) - _ONE
    if link == EXPONENTIAL:
        return math.exp(raw)
    return raw


@kernel
def _list_features(run: Run, begin: int, groups: int, own: int, buffers: Buffers) -> tuple[Example, Buffers]:
    """List the features of the example in groups [begin, groups), and close the groups."""
    interactions, scratch, mask = run.interactions, run.scratch, run.task.mask
    cell, value = buffers.cell, buffers.value
    need = count_linear(run.layout, scratch, begin, groups)
    need = cross_groups(interactions, scratch, mask, cell, value, need, False)
    need = cross_extents(interactions, scratch, mask, cell, value, need, False)
    if need > len(cell):
        cell, value = np.empty(2 * need, np.uint32), np.empty(2 * need, np.float32)
    linear = list_linear(run.layout, scratch, begin, groups, mask, cell, value)
    n = cross_groups(interactions, scratch, mask, cell, value, linear, True)
    n = cross_extents(interactions, scratch, mask, cell, value, n, True)
    squares = _ZERO
    if not (run.rule.adaptive or run.rule.normalized):
        squares = sum_of_squares(interactions, scratch, begin, groups) + extent_squares(interactions, scratch)
    forget(scratch, begin, groups)
    example = Example(cell, value, n, own, n - linear, squares)
    return example, Buffers(cell, value, buffers.score, buffers.target)


@kernel
def list_line(run: Run, line: int, buffers: Buffers) -> tuple[Example, Buffers]:
    """List the features of a line that stands by itself; return the buffers, grown if need was."""
    groups, own = open_line(run.layout, run.scratch, run.columns, line, 0, 1)
    if len(run.interactions.extent_start) > 1:
        list_extents(run.layout, run.scratch, run.columns, line, -1, 0, groups)
    return _list_features(run, 0, groups, own, buffers)


@kernel
def list_action(run: Run, actions: Actions, action: int, buffers: Buffers) -> tuple[Example, Buffers]:
    """List the features of one action of an event; return the buffers, grown if need was."""
    line, header = actions.first, -1
    if run.task.shape == CB:
        groups, own = open_numbered(run.scratch, actions.n_shared, actions.used, run.task.action_bits, action)
    else:
        line += action
        header = actions.first - 1 if actions.n_shared else -1
        groups, own = open_line(run.layout, run.scratch, run.columns, line, actions.n_shared, actions.used)
    if len(run.interactions.extent_start) > 1:
        list_extents(run.layout, run.scratch, run.columns, line, header, actions.n_shared, groups)
    return _list_features(run, actions.n_shared, groups, own, buffers)


@kernel
def predict(run: Run, lane: int, example: Example, initial: F32) -> F32:
    """Raw prediction (float32) of a listed example."""
    model = run.model
    return dot(run.rule, model.shared, model.weights, lane, example.cell, example.value, example.n, initial)


@kernel
def learn(run: Run, lane: int, example: Example, initial: F32, label: F32, weight: F32) -> tuple[F32, F32]:
    """Widen the label range, predict, learn; return the raw and the clipped prediction from before."""
    model = run.model
    see_label(run.rule, model.shared, label)
    raw = predict(run, lane, example, initial)
    prediction = clip(model.shared, raw)
    if label != _FLOAT_MAX and weight > _ZERO:
        update(
            run.rule,
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
def account(model: Model, weight: F32, labelled: bool, holdout: bool) -> None:
    """Count the event in the time that learning rates decay with."""
    model.shared[T] += weight
    if labelled and holdout:
        model.shared[HOLDOUT_WEIGHT] += weight
    elif not labelled:
        model.shared[UNLABELLED_WEIGHT] += weight
