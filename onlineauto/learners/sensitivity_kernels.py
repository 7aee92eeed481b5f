"""Compute the sensitivity: how far one more event would move a prediction, without learning the event.

Source: VW ``gd.cc``, ``sensitivity`` of unchanged weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.jit import F32, inline_kernel, short_loop
from onlineauto.learners.gradient_kernels import (
    FACTOR,
    GRADIENTS,
    NORM,
    SCALE,
    WEIGHT,
    average,
    rate_of,
    step_scale,
)
from onlineauto.learners.loss_kernels import loss_slope_squared

if TYPE_CHECKING:
    from onlineauto.features.records import Example
    from onlineauto.learners.gradient_kernels import LearnedLabel, Model, ModelLane, Rule

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
