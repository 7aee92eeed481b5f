"""Update four lanes at a time, for the default rule: adaptive, normalized, invariant, by square roots.

A square root or a division of four lanes takes as long as one of a single lane. Each lane does the same
operations in the same order as `gradient_kernels.update`. A lane that does not learn is not
changed, nor is a lane whose config does not use a product.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.jit import F32, Flags, Four, inline_kernel, short_loop
from onlineauto.jit.four import (
    at_most,
    below,
    both,
    element,
    flags,
    four,
    load,
    load_flags,
    pick,
    prefetch,
    root,
    some,
    splat,
    store,
)
from onlineauto.learners.gradient_kernels import (
    FACTOR,
    GRADIENTS,
    LATEST,
    MAX_LABEL,
    MIN_LABEL,
    NORM,
    SCALE,
    WEIGHT,
    clip,
)
from onlineauto.learners.loss_kernels import loss_slope_squared, loss_step, loss_value

if TYPE_CHECKING:
    from typing import TypeAlias

    from onlineauto.features.records import Example
    from onlineauto.learners.gradient_kernels import LearnedLabel, Model, Rule

    FourFloats: TypeAlias = tuple[F32, F32, F32, F32]
    FourLessons: TypeAlias = tuple[LearnedLabel, LearnedLabel, LearnedLabel, LearnedLabel]

_ZERO = np.float32(0)
_ONE = np.float32(1)
_X_MIN = np.float32(1.084202e-19)
_X2_MIN = np.float32(_X_MIN * _X_MIN)
_FLOAT_MAX = np.float32(np.finfo(np.float32).max)
_AHEAD = np.uint64(16)
"""Number of features by which an update prefetches statistics ahead, since scores have not read them."""


@inline_kernel
def _grow(model: Model, cell: np.uint64, slot: int, size: F32, grows: Flags, guarded: bool) -> None:
    """Raise the scale of a feature to `size` and rescale its weight.

    The lanes are those of the four from `slot` on whose flag in `grows` is true.
    """
    if guarded and size > _FLOAT_MAX:  # a product of finite values that overflowed
        return
    model.touched[cell] = True
    at_n, zero, now = SCALE * model.weights.shape[1] + slot, splat(_ZERO), splat(size)
    before, weight = load(model.rows, cell, at_n), load(model.weights, cell, slot)
    rescaled = weight * (before / now)
    moves = both(grows, below(zero, before))
    if guarded:
        moves = both(moves, both(at_most(splat(-_FLOAT_MAX), rescaled), at_most(rescaled, splat(_FLOAT_MAX))))
    store(model.weights, cell, slot, pick(moves, rescaled, weight))
    store(model.rows, cell, at_n, pick(grows, now, before))


@inline_kernel
def accumulate_four(
    model: Model, slot: int, example: Example, slopes: Four, learns: Flags, guarded: bool
) -> tuple[Four, Four]:
    """Do the first pass of an update of live configs `slot` to `slot` + 3, which are also their lanes.

    Returns the predictions per unit step and Σ (x/n)² of the four.
    """
    rows, lanes = model.rows, model.weights.shape[1]
    at_a, at_n, at_rate = GRADIENTS * lanes + slot, SCALE * lanes + slot, LATEST * lanes + slot
    zero, one, largest = splat(_ZERO), splat(_ONE), splat(_FLOAT_MAX)
    per_step, norm = zero, zero
    last = np.uint64(example.runs[example.n_runs - 1].end - 1) if example.n_runs > 0 else np.uint64(0)
    for r in range(example.n_runs):
        short_loop()
        active = both(learns, load_flags(example.holders, example.runs[r].product, slot))
        if not some(active):
            continue
        for i in range(np.uint64(example.runs[r].start), np.uint64(example.runs[r].end)):
            short_loop()
            later = np.uint64(example.cell[min(i + _AHEAD, last)])
            prefetch(rows, later, at_a)
            prefetch(rows, later, at_rate)
            c, x = np.uint64(example.cell[i]), example.value[i]
            x2 = x * x
            size = abs(x)
            if x2 < _X2_MIN:
                x2, size = _X2_MIN, _X_MIN
            grows = both(active, below(load(rows, c, at_n), splat(size)))
            if some(grows):
                _grow(model, c, slot, size, grows, guarded)
            square, scale, before = splat(x2), load(rows, c, at_n), load(rows, c, at_a)
            grown = before + slopes * square
            if guarded:
                grown = pick(at_most(grown, largest), grown, before)
            grown = pick(active, grown, before)
            store(rows, c, at_a, grown)
            rate = (one / root(grown)) * (one / scale)
            if guarded:
                rate = pick(at_most(rate, largest), rate, zero)
            store(rows, c, at_rate, pick(active, rate, load(rows, c, at_rate)))
            share = square / (scale * scale)
            if x2 > _FLOAT_MAX:
                share = one
            norm = norm + pick(active, share, zero)
            per_step = per_step + pick(active, square * rate, zero)
    return per_step, norm


@inline_kernel
def move_four(model: Model, slot: int, example: Example, steps: Four, moves: Flags, guarded: bool) -> None:
    """Do the second pass of an update: move the weights of four lanes, each by its own step and rate."""
    weights, rows = model.weights, model.rows
    at_rate = LATEST * weights.shape[1] + slot
    lowest, largest = splat(-_FLOAT_MAX), splat(_FLOAT_MAX)
    for r in range(example.n_runs):
        short_loop()
        active = both(moves, load_flags(example.holders, example.runs[r].product, slot))
        if not some(active):
            continue
        for i in range(np.uint64(example.runs[r].start), np.uint64(example.runs[r].end)):
            short_loop()
            c, x = np.uint64(example.cell[i]), example.value[i]
            if not -_FLOAT_MAX < x < _FLOAT_MAX:
                continue
            before = load(weights, c, slot)
            moved = before + steps * (splat(x) * load(rows, c, at_rate))
            if guarded:
                moved = pick(both(at_most(lowest, moved), at_most(moved, largest)), moved, before)
            store(weights, c, slot, pick(active, moved, before))


@inline_kernel
def has_fours(rule: Rule, model: Model, slot: int) -> bool:
    """Return whether the rule is the default one, except for settings, and four lanes begin at `slot`."""
    return bool(rule.adaptive and rule.normalized and rule.invariant and slot + 4 <= model.weights.shape[1])


@inline_kernel
def _slope(rule: Rule, model: Model, slot: int, raw: F32, lesson: LearnedLabel) -> tuple[F32, F32]:
    """Return the clipped prediction and the squared slope (float32); -1 as slope if there is no loss."""
    label, weight = lesson
    minimum, maximum = np.float32(model.shared[MIN_LABEL]), np.float32(model.shared[MAX_LABEL])
    prediction = clip(model.shared, raw)
    loss = loss_value(rule.loss, rule.low, rule.high, prediction, label, minimum, maximum)
    slope = -_ONE
    if weight > _ZERO and model.settings[slot].plain and loss > 0.0:
        slope = weight * loss_slope_squared(rule.loss, rule.low, rule.high, prediction, label)
    return prediction, slope


@inline_kernel
def _step(
    rule: Rule, model: Model, lane: int, prediction: F32, lesson: LearnedLabel, per_step: F32, norm: F32
) -> F32:
    """Add a label to the sums of a lane; return the step (float32) of the lane, 0 if it is not finite."""
    sums, (label, weight) = model.lanes[lane], lesson
    sums[NORM] += np.float64(weight) * norm
    sums[WEIGHT] += weight
    factor = math.sqrt(np.float32(sums[WEIGHT]) / np.float32(sums[NORM]))
    model.shared[FACTOR] = factor  # an `update` whose slope underflows reads it
    scale = rule.learning_rate * model.settings[lane].rate * weight
    step = loss_step(rule.loss, rule.low, rule.high, prediction, label, scale, per_step * factor)
    if math.isnan(step) or step == _ZERO:
        return _ZERO
    step *= factor
    return _ZERO if rule.guarded and not math.isfinite(step) else step


@inline_kernel
def update_four(
    rule: Rule,
    model: Model,
    slot: int,
    example: Example,
    raw: FourFloats,
    lessons: FourLessons,
) -> bool:
    """Learn an example in four lanes from `slot` on, given their raw predictions.

    A lane learns if its weight is positive and its settings are `plain`. If a slope underflows, the function
    changes nothing and returns False; then call `update` for each lane.
    """
    p0, g0 = _slope(rule, model, slot, raw[0], lessons[0])
    p1, g1 = _slope(rule, model, slot + 1, raw[1], lessons[1])
    p2, g2 = _slope(rule, model, slot + 2, raw[2], lessons[2])
    p3, g3 = _slope(rule, model, slot + 3, raw[3], lessons[3])
    if g0 == _ZERO or g1 == _ZERO or g2 == _ZERO or g3 == _ZERO:
        return False
    learns = (g0 != -_ONE, g1 != -_ONE, g2 != -_ONE, g3 != -_ONE)
    slopes, slots = four(g0, g1, g2, g3), flags(learns[0], learns[1], learns[2], learns[3])
    per_step, norm = accumulate_four(model, slot, example, slopes, slots, rule.guarded)
    u0 = u1 = u2 = u3 = _ZERO
    if learns[0]:
        u0 = _step(rule, model, slot, p0, lessons[0], element(per_step, 0), element(norm, 0))
    if learns[1]:
        u1 = _step(rule, model, slot + 1, p1, lessons[1], element(per_step, 1), element(norm, 1))
    if learns[2]:
        u2 = _step(rule, model, slot + 2, p2, lessons[2], element(per_step, 2), element(norm, 2))
    if learns[3]:
        u3 = _step(rule, model, slot + 3, p3, lessons[3], element(per_step, 3), element(norm, 3))
    moves = flags(u0 != _ZERO, u1 != _ZERO, u2 != _ZERO, u3 != _ZERO)
    move_four(model, slot, example, four(u0, u1, u2, u3), moves, rule.guarded)
    return True
