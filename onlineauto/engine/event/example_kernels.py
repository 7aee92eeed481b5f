"""The features of one action: list them, predict, learn."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.event.screen_kernels import screen_action
from onlineauto.engine.records.loop import Counted
from onlineauto.engine.records.task import Shape
from onlineauto.features.group_kernels import forget, merge_shared, open_constant, open_line, open_numbered
from onlineauto.features.product_kernels import cross_all, linear_squares, list_linear, sum_crossed_squares
from onlineauto.features.records import Example, Listing
from onlineauto.jit import F32, inline_kernel, short_loop
from onlineauto.learners.gradient_kernels import clip, dot, rule_of, see_label, update

if TYPE_CHECKING:
    from onlineauto.engine.records.loop import Actions, Buffers, LoopRun
    from onlineauto.features.records import Interactions
    from onlineauto.learners.gradient_kernels import LearnedLabel, ModelLane

IDENTITY, LOGIT, GLF1, EXPONENTIAL = 0, 1, 2, 3
"""Codes of the link functions."""

_ZERO = np.float32(0)
_ONE = np.float32(1)
_TWO = np.float32(2)
_FLOAT_MAX = np.float32(np.finfo(np.float32).max)


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

    Returns the end of the groups, the number of the action's own features, and whether a shared group has
    changed. A shared group changes if the action adds features to it, and always under ``--cb N``, where
    hashes depend on the action.
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
    """List the features of one action of an event; if it `screens`, also measure interactions by `label`.

    Returns the listed features and their counts. Fills `buffers.squares` if the rule needs Σ x².
    """
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
    """Return Σ x² (float32) of the features of the listed action that live config `slot` uses.

    With the quirk `keeps_squares` it is the value that the first learner computed, if there is one.
    """
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
    """Widen the range of labels, then learn an example, the listed `action` with its raw prediction.

    Returns the clipped prediction (float32) from before the update.
    """
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
