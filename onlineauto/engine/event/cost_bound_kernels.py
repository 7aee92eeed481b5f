"""Bounds on the costs of the actions of an event, which some explorers use to choose."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.event.example_kernels import list_action
from onlineauto.engine.event.live_config_kernels import place_of
from onlineauto.engine.event.pass_kernels import over_again, run_on
from onlineauto.engine.records.task import Shape
from onlineauto.explorers.cost_range_kernels import allowed_loss, highest_cost, lowest_cost
from onlineauto.explorers.ranking_kernels import LEARNT
from onlineauto.jit import F32, entry_kernel, inline_kernel, short_loop
from onlineauto.learners.gradient_kernels import (
    FACTOR,
    GRADIENTS,
    MAX_LABEL,
    MIN_LABEL,
    NORM,
    SCALE,
    WEIGHT,
    LearnedLabel,
    average,
    rate_of,
    rule_of,
    step_scale,
)
from onlineauto.learners.loss_kernels import loss_slope_squared

if TYPE_CHECKING:
    from onlineauto.engine.records.loop import Actions, Context
    from onlineauto.features.records import Example, Stream
    from onlineauto.learners.gradient_kernels import Model, ModelLane, Rule

_ZERO = np.float32(0)
_ONE = np.float32(1)

_X_MIN = np.float32(1.084202e-19)
_X2_MIN = np.float32(_X_MIN * _X_MIN)
_FLOAT_MAX = np.float32(np.finfo(np.float32).max)


@inline_kernel
def sensitivity(
    rule: Rule,
    model: Model,
    model_lane: ModelLane,
    example: Example,
    prediction: F32,
    lesson: LearnedLabel,
    sum_squares: F32,
) -> F32:
    """Return the change of the prediction (float32) per unit of importance weight, for a small weight."""
    scale = step_scale(rule, model.shared, _ONE)
    if not (rule.adaptive or rule.normalized):
        return scale * sum_squares
    label, weight = lesson
    slope_squared = weight * loss_slope_squared(rule.loss, rule.low, rule.high, prediction, label)
    statistics, lane = model.statistics, model_lane.lane
    per_update = norm = _ZERO
    for r in range(example.n_runs):
        short_loop()
        run = example.runs[r]
        if not example.holders[run.product, model_lane.slot]:
            continue
        for i in range(run.start, run.end):
            short_loop()
            c, x = example.cell[i], abs(example.value[i])
            x2 = x * x
            if x2 < _X2_MIN:
                if x == _ZERO and rule.guarded:  # a number of a vector
                    continue
                x, x2 = _X_MIN, _X2_MIN
            a, n = statistics[c, GRADIENTS, lane], statistics[c, SCALE, lane]
            if rule.adaptive:
                a += slope_squared * x2
            if rule.normalized:
                n = max(n, x)
                norm += x2 / (n * n) if x2 <= _FLOAT_MAX else _ONE
            per_update += x2 * rate_of(rule, a, n)
    if rule.normalized:
        sums = model.lanes[model_lane.lane]
        factor = average(rule, np.float32(sums[WEIGHT]) + weight, np.float32(sums[NORM]) + weight * norm)
        if not rule.guarded:  # in VW, an update whose slope underflows uses this factor
            model.shared[FACTOR] = factor
        per_update *= factor
    return scale * per_update


@entry_kernel
def bound_costs(context: Context, stream: Stream, actions: Actions, weight: F32) -> None:
    """Fill in the champion's lowest and highest plausible cost of each scored action; learn nothing.

    With the quirk `keeps_squares` the Σ x² of each action is stored for later learners. VW drops it if it
    removes the shared features in between: for events with a shared line, unless actions are drawn.
    """
    run, buffers = over_again(run_on(context, stream)), context.buffers
    at, shared = run.task.exploration, run.model.shared
    keeps = run.task.quirks.keeps_squares and (
        run.task.shape == Shape.CB or actions.n_shared == 0 or at.samples
    )
    low = at.low if not math.isnan(at.low) else np.float32(shared[MIN_LABEL])
    high = at.high if not math.isnan(at.high) else np.float32(shared[MAX_LABEL])
    low, high = min(low, high), max(low, high)
    allowed = allowed_loss(at.mellowness, actions.n, at.counts[LEARNT], low, high)
    rule, index = rule_of(run.rule, run.model, 0), place_of(run.live, 0, 0)
    for action in range(actions.n):
        short_loop()
        example, _ = list_action(run, actions, action, False, _ZERO, buffers)
        squares, score = buffers.squares[0], buffers.score[action, 0]
        if keeps:
            buffers.first_squares[action] = squares
        moved = sensitivity(rule, run.model, index, example, score, LearnedLabel(low - _ONE, weight), squares)
        buffers.explored[0, action] = lowest_cost(
            score, moved, allowed, low, high, at.quirks.unmoved_is_known
        )
        moved = sensitivity(
            rule, run.model, index, example, score, LearnedLabel(high + _ONE, weight), squares
        )
        buffers.explored[1, action] = highest_cost(
            score, moved, allowed, low, high, at.quirks.unmoved_is_known
        )
