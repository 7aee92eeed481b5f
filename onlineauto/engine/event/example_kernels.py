"""The features of one action: list them, predict, learn."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.records.loop import Counted
from onlineauto.engine.records.task import Shape
from onlineauto.features.group_kernels import forget, merge_shared, open_constant, open_line, open_numbered
from onlineauto.features.product_kernels import (
    cross_all,
    cross_product,
    linear_squares,
    list_linear,
    look_up,
    sum_crossed_squares,
)
from onlineauto.features.records import Example, Listing
from onlineauto.jit import F32, inline_kernel, short_loop
from onlineauto.jit.four import prefetch
from onlineauto.learners.gradient_kernels import (
    CONTRACTION,
    MAX_LABEL,
    MIN_LABEL,
    clip,
    dot,
    rule_of,
    see_label,
    update,
)
from onlineauto.learners.loss_kernels import loss_slope, loss_value

if TYPE_CHECKING:
    from onlineauto.engine.records.loop import Actions, Buffers, LoopRun
    from onlineauto.engine.records.search import Screen
    from onlineauto.features.records import Interactions
    from onlineauto.learners.gradient_kernels import LearnedLabel, ModelLane

IDENTITY, LOGIT, GLF1, EXPONENTIAL = 0, 1, 2, 3
"""Codes of the link functions."""

_ZERO = np.float32(0)
_ONE = np.float32(1)
_TWO = np.float32(2)
_FLOAT_MAX = np.float32(np.finfo(np.float32).max)

SUM, COUNT, LARGEST = 0, 1, 2
"""Entries of a feature: Σ x·residual and Σ x², with |x| divided by its maximum so far; and that maximum."""
_CLOSELY, _STRIDE, _MANY = 1024, 4, 256
"""The first `_CLOSELY` events are all measured, later ones one in `_STRIDE`. With more than `_MANY`
interactions, one in `_STRIDE` is measured from the first event on."""
_AHEAD = 24
"""Entries of features are prefetched this number of features ahead, because memory latency dominates."""
_SHRINKAGE = np.float32(10)


@inline_kernel
def _list_products(run: LoopRun, buffers: Buffers) -> None:
    """List the features of all screened interactions, and note the end of each interaction."""
    screen, n = run.screen, 0
    listing = Listing(buffers.cell, buffers.value, run.task.mask)
    for product in range(len(screen.interactions.start) - 1):
        short_loop()
        if look_up(screen.interactions, run.scratch, product):
            order = screen.interactions.start[product + 1] - screen.interactions.start[product]
            n = cross_product(run.scratch, run.stream.features, order, listing, n)
        screen.ends[product] = n


@inline_kernel
def _explain(screen: Screen, buffers: Buffers, begin: int, end: int, residual: F32) -> F32:
    """Predict a residual by the listed features [begin, end), learn it, and return the prediction."""
    table, mask = screen.table, np.uint32(len(screen.table) - 1)
    total, last = _ZERO, screen.ends[len(screen.ends) - 1] - 1
    for i in range(begin, end):
        short_loop()
        prefetch(table, buffers.cell[min(i + _AHEAD, last)] & mask, SUM)
        entry, size = table[buffers.cell[i] & mask], abs(buffers.value[i])
        if size > _FLOAT_MAX:  # a product of finite values that overflowed
            continue
        if size > entry[LARGEST]:
            ratio = entry[LARGEST] / size
            entry[SUM] *= ratio
            entry[COUNT] *= ratio * ratio
            entry[LARGEST] = size
        if size > _ZERO:
            x = buffers.value[i] / entry[LARGEST]
            total += x * entry[SUM] / (entry[COUNT] + _SHRINKAGE)
            moved = entry[SUM] + x * residual
            if math.isfinite(moved):
                entry[SUM] = moved
            entry[COUNT] += x * x
    return total / np.float32(end - begin)


@inline_kernel
def _part_of(run: LoopRun, buffers: Buffers, begin: int, end: int) -> F32:
    """Return the terms of the listed features [begin, end) in the champion's prediction."""
    total = _ZERO
    for i in range(begin, end):
        short_loop()
        total += run.model.weights[buffers.cell[i], 0] * buffers.value[i]
    return total * np.float32(run.model.lanes[0, CONTRACTION])


@inline_kernel
def screen_action(run: LoopRun, score: F32, label: F32, buffers: Buffers) -> None:
    """Update the gains of screened interactions with an open action, of this `score`, to be learnt."""
    screen, rule, shared = run.screen, run.rule, run.model.shared
    screen.seen[0] += 1
    stride = _STRIDE if screen.many > _MANY or screen.seen[0] > _CLOSELY else 1
    if screen.seen[0] % stride != 0:
        return
    if not (math.isfinite(label) and math.isfinite(score)):
        return
    low, high = np.float32(shared[MIN_LABEL]), np.float32(shared[MAX_LABEL])
    known = clip(shared, score)
    loss = loss_value(rule.loss, rule.low, rule.high, known, label, low, high)
    residual = np.float32(-0.5) * loss_slope(rule.loss, rule.low, rule.high, known, label, low, high)
    _list_products(run, buffers)
    end = 0
    for product in range(len(screen.interactions.start) - 1):
        short_loop()
        begin, end = end, screen.ends[product]
        if begin == end:
            continue
        if screen.inside[product]:
            without = clip(shared, score - _part_of(run, buffers, begin, end))
            gain = loss - loss_value(rule.loss, rule.low, rule.high, without, label, low, high)
        else:
            left = residual - _explain(screen, buffers, begin, end, residual)
            gain = residual * residual - left * left
        if math.isfinite(gain):
            screen.gains[product] += stride * gain


@inline_kernel
def apply_link(link: int, raw: F32) -> F32:
    """Return the prediction (float32) of a link function for a clipped sum."""
    if link == LOGIT:
        return _ONE / (_ONE + math.exp(-raw))
    if link == GLF1:
        return _TWO / (_ONE + math.exp(-raw)) - _ONE
    if link == EXPONENTIAL:
        return math.exp(raw)
    return raw


@inline_kernel
def line_of(run: LoopRun, actions: Actions, action: int) -> int:
    """Return the line of an action of an event."""
    return run.scratch.lines[action] if run.task.slots else actions.first + action


@inline_kernel
def open_action(run: LoopRun, actions: Actions, action: int) -> tuple[int, int, bool]:
    """Open the groups of one action, after those that all actions share.

    Returns the end of the groups, the number of the action's own features, and whether a shared group
    has changed: if the action adds features to it, and always under ``--cb N``.
    """
    scratch, stream, n_shared = run.scratch, run.stream, actions.n_shared
    merged = run.task.shape == Shape.CB
    if merged:
        how = run.task.numbering
        groups, n_linear = open_numbered(scratch, stream.features, n_shared, actions.room, how, action)
    else:
        line = line_of(run, actions, action)
        groups, n_linear, free = open_line(run.layout, scratch, stream, line, n_shared, actions.room)
        with_constant = open_constant(run.layout, scratch, stream, n_shared, groups)
        n_linear += with_constant - groups
        groups = with_constant
        merged = merge_shared(scratch, stream, n_shared, groups, free)
    return groups, n_linear, merged


@inline_kernel
def shown_features(run: LoopRun, actions: Actions, action: int, counted: Counted) -> int:
    """Return the number of features VW prints for an action; a late ``shared`` line counts for all others."""
    features = counted.own + counted.crossed
    lines = run.stream.lines
    if run.task.shape != Shape.CB_ADF or not lines[line_of(run, actions, action)].shared:
        return features
    constant = 1 if run.layout.constant_key >= 0 else 0
    return (actions.n_lines - 1) * (features - constant)


@inline_kernel
def _count(interactions: Interactions, example: Example, own: int, linear: int) -> Counted:
    """Return VW's feature counts of an example with `own` features, `linear` of which are listed."""
    crossed = 0
    for r in range(example.n_runs):
        product = example.runs[r].product
        single = product > 0 and interactions.start[product] - interactions.start[product - 1] == 1
        if example.holders[product, 0] and not single:
            crossed += example.runs[r].end - example.runs[r].start
    return Counted(own, crossed - linear)


@inline_kernel
def list_action(
    run: LoopRun, actions: Actions, action: int, screens: bool, label: F32, buffers: Buffers
) -> tuple[Example, Counted]:
    """List the features of one action, and count them; if it `screens`, measure interactions by `label`."""
    scratch, features, n_shared = run.scratch, run.stream.features, actions.n_shared
    interactions, listing = run.interactions, Listing(buffers.cell, buffers.value, run.task.mask)
    groups, n_linear, _ = open_action(run, actions, action)
    if screens:
        screen_action(run, buffers.score[action, 0], label, buffers)
    linear = list_linear(run.layout, scratch, features, n_shared, groups, listing)
    _, n_runs = cross_all(interactions, scratch, features, listing, buffers.runs, linear)
    example = Example(buffers.cell, buffers.value, buffers.runs, n_runs, interactions.holders)
    if not (run.rule.adaptive or run.rule.normalized):
        squares = linear_squares(run.layout, scratch, features, n_shared, groups)
        for slot in range(run.live.n):
            buffers.squares[slot] = squares + sum_crossed_squares(interactions, scratch, features, slot)
    forget(scratch, n_shared, groups)
    return example, _count(interactions, example, n_linear, linear)


@inline_kernel
def begin_squares(n: int, buffers: Buffers) -> None:
    """Set Σ x² of each of the `n` actions to NaN, which means not yet computed."""
    for action in range(n):
        short_loop()
        buffers.first_squares[action] = np.float32(math.nan)


@inline_kernel
def _squares_of(run: LoopRun, buffers: Buffers, action: int, slot: int) -> F32:
    """Return Σ x² (float32) of live config `slot`'s features; VW `keeps_squares` of the first learner."""
    if run.task.quirks.keeps_squares and not math.isnan(buffers.first_squares[action]):
        return buffers.first_squares[action]
    return buffers.squares[slot]


@inline_kernel
def predict(run: LoopRun, model_lane: ModelLane, example: Example, initial: F32) -> F32:
    """Return the raw prediction (float32) of an example: a sum that begins with `initial`."""
    return dot(rule_of(run.rule, run.model, model_lane.slot), run.model, model_lane, example, initial)


@inline_kernel
def learn(
    run: LoopRun,
    model_lane: ModelLane,
    example: Example,
    raw: F32,
    lesson: LearnedLabel,
    action: int,
    buffers: Buffers,
) -> F32:
    """Widen the range of labels, learn the listed `action`; return its clipped prediction before that."""
    model, rule = run.model, rule_of(run.rule, run.model, model_lane.slot)
    learns = not rule.guarded or (math.isfinite(lesson.label) and math.isfinite(lesson.weight))
    if learns:
        see_label(rule, model.shared, lesson.label)
    prediction = clip(model.shared, raw)
    if learns and lesson.label != _FLOAT_MAX and lesson.weight > _ZERO:
        squares = _squares_of(run, buffers, action, model_lane.slot)
        if update(rule, model, model_lane, example, prediction, lesson, squares):
            buffers.first_squares[action] = squares
    return prediction
