"""Layer: waves of the scores that `features` gives to all actions, as inputs of one more regression.

The scores of all actions together locate a context. A sum of terms of single features cannot have its peak in
the middle, where for example a price is neither low nor high. But where the actions for low and for high
prices both score little, the layer learns that the action between them is best. Scores are standardised by
the mean and variance so far of each action. An action that an event does not have, or that was never learnt,
is 0.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlineauto.engine.ensemble.branches import mean_retention, merge_moments, shares, without_learning
from onlineauto.engine.ensemble.input_kernels import deviations
from onlineauto.engine.ensemble.member import Kernels, Lesson, Member, Need, Needs, Part, Sizes, Work
from onlineauto.engine.ensemble.need_kernels import works
from onlineauto.engine.ensemble.number_bin_kernels import MEMORY, add_value
from onlineauto.engine.ensemble.prices import EACH, TOGETHER
from onlineauto.engine.ensemble.regression import (
    begin_regression,
    make_basis,
    make_regression,
    merge_waves,
    regression_state,
    regression_to_predict,
    restore_regression,
)
from onlineauto.engine.ensemble.regression_kernels import KEEPS, Prepared, score_of
from onlineauto.engine.ensemble.wave_kernels import (
    WAVES,
    WAVY_SPREAD,
    Basis,
    add_wave,
    make_waves,
)
from onlineauto.engine.records.ensemble import MOST_ACTIONS, Known
from onlineauto.jit import call_at, entry_kernel, inline_kernel, kernel, short_loop

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from onlineauto.engine.ensemble.branches import Branch
    from onlineauto.engine.ensemble.least_squares_kernels import Regression
    from onlineauto.engine.records.ensemble import Inputs
    from onlineauto.engine.records.loop import Actions, Buffers, Context
    from onlineauto.features.records import Stream
    from onlineauto.state.stored import Stored

LEAST_WORTH = 100.0
"""Minimum worth of the layer, about a twentieth of the squared error of 2,000 events. The minimum is high
because the layer also rescales the differences between actions, which reduces the error but changes no
choice."""

_AFTER = 1024
"""Number of learnt events before the layer has scores; the scores of `features` are too noisy until then."""


class _Measure(IntEnum):
    """Rows of `measure`."""

    COUNT = 0
    MEAN = 1
    VARIANCE = 2


class LayerState(NamedTuple):
    """State of the member."""

    regression: Regression
    basis: Basis
    measure: NDArray[np.float64]  # [3, actions]: count, mean and variance of the scores of `features`


class LayerScratch(NamedTuple):
    """Scratch of the member."""

    waves: NDArray[np.float32]  # [WAVES]


@inline_kernel
def _column_of_features(context: Context, part_score: int, column: int) -> int:
    """Return the column of the scores of `features`."""
    return int(column - part_score + context.live.ensemble.members.needs[part_score, Need.UPON])


@kernel
def take_layer(
    state: LayerState, n: int, column: int, buffers: Buffers, scratch: LayerScratch, n_known: int
) -> None:
    """Compute the waves of a column of scores of `n` actions; `n_known` is the number of known actions."""
    inputs, measure = scratch.waves, state.measure
    inputs[:WAVES] = 0
    for action in range(n):
        short_loop()
        at = buffers.members.known[action]
        if at < 0:
            continue
        score = np.float64(buffers.score[action, column])
        distance = deviations(score, measure[_Measure.MEAN, at], measure[_Measure.VARIANCE, at])
        add_wave(state.basis, inputs, at * WAVES, distance)
    make_waves(state.basis, inputs, math.sqrt(1.0 / n_known))


@kernel
def measure_scores(state: LayerState, n: int, column: int, buffers: Buffers) -> None:
    """Update the mean and variance of each action with a column of scores of an event's `n` actions."""
    measure = state.measure
    for action in range(n):
        short_loop()
        at, score = buffers.members.known[action], np.float64(buffers.score[action, column])
        if at < 0 or not math.isfinite(score):
            continue
        measure[_Measure.COUNT, at] = min(measure[_Measure.COUNT, at] + 1.0, MEMORY)
        add_value(measure[_Measure.MEAN], measure[_Measure.VARIANCE], at, score, measure[_Measure.COUNT, at])


@entry_kernel
def score_layer(
    context: Context, stream: Stream, actions: Actions, part: Part, state: LayerState, scratch: LayerScratch
) -> None:
    """Score the actions of an event, after `features` has scored them."""
    buffers, known = context.buffers, context.live.ensemble.members.inputs.tally[Known.ACTIONS]
    column = _column_of_features(context, part.score, part.column)
    take_layer(state, actions.n, column, buffers, scratch, known)
    for action in range(part.begin, part.end):
        short_loop()
        if buffers.members.known[action] >= 0:
            score = score_of(state.regression, buffers.members.known[action], scratch.waves, WAVES)
            buffers.score[action, part.column] = score


@entry_kernel
def learn_layer(
    context: Context,
    stream: Stream,
    actions: Actions,
    lesson: Lesson,
    state: LayerState,
    scratch: LayerScratch,
) -> None:
    """Learn an event that was scored."""
    members, buffers = context.live.ensemble.members, context.buffers
    if not buffers.members.scored[lesson.score]:
        return
    if lesson.known >= 0 and works(members, lesson.score):
        n_seen = members.inputs.seen[lesson.known]
        call_at(
            context.units.learn_regression,
            (state.regression, lesson, scratch.waves, n_seen, WAVY_SPREAD, KEEPS),
        )
    measure_scores(state, actions.n, _column_of_features(context, lesson.score, lesson.column), buffers)


@entry_kernel
def grow_layer(context: Context, state: LayerState) -> None:
    """Prepare for new actions."""
    inputs, before = context.live.ensemble.members.inputs, state.regression.prepared[Prepared.ACTIONS]
    if before <= MOST_ACTIONS < inputs.tally[Known.ACTIONS]:
        state.measure[:, 0] = 0.0
    call_at(context.units.grow_regression, (state.regression, inputs, WAVES))


class Layer(Member):
    """Least squares on waves of the scores that `features` gives to all actions."""

    name = "layer"
    version = 2  # version 1 has float64
    merges = "weights averaged by their precision, though each branch had other scores of `features`"
    least_squares = (WAVY_SPREAD, KEEPS)
    any_order = False
    needs = (Needs(least_actions=2, most_actions=MOST_ACTIONS, events=_AFTER, upon="features"),)
    least_worth = LEAST_WORTH

    def kernels(self) -> Kernels:
        """Return the member's kernels."""
        return Kernels(score_layer, learn_layer, grow_layer)

    def make_state(self, sizes: Sizes) -> LayerState:
        """Return regressions without actions."""
        return LayerState(make_regression(sizes.actions, WAVES), make_basis(), np.zeros((3, sizes.actions)))

    def make_scratch(self) -> LayerScratch:
        """Return scratch for the waves of an event."""
        return LayerScratch(np.zeros(WAVES, np.float32))

    def prices(self, work: Work) -> tuple[float]:
        """Return the work: scores, the covariance, which learns one event in four, and the waves."""
        learnt = (work.visits * WAVES + WAVES * WAVES * (1 + 1 / EACH)) / TOGETHER
        return (learnt + (work.n_actions / TOGETHER + 1) * WAVES,)

    def to_predict(self, state: LayerState) -> LayerState:
        """Return the weights, and the means and variances of scores."""
        return state._replace(regression=regression_to_predict(state.regression))

    def state(self, state: LayerState, inputs: Inputs, *, working: Sequence[bool]) -> dict[str, Any]:
        """Return the regressions of known actions, and the means and variances of scores."""
        return regression_state(state.regression, inputs, WAVES * working[0]) | {"measure": state.measure}

    def restore(self, stored: Stored, state: LayerState, inputs: Inputs) -> None:
        """Copy the stored regressions, means and variances into the state."""
        restore_regression(stored, state.regression, inputs, WAVES)
        state.measure[:] = stored["measure"].finite(state.measure.dtype, state.measure.shape)

    def begin(self, state: LayerState, inputs: Inputs) -> None:
        """Prepare for the known actions."""
        begin_regression(state.regression, inputs, WAVES)

    def merge(self, base: Branch, branches: Sequence[Branch], inputs: Inputs) -> LayerState:
        """Return weights averaged by their precision, as least squares does.

        The result is not exact, because each branch learnt from the scores of its own `features`. Waves
        depend on the order of actions, so a branch with new actions in another order than the merged inputs
        is left out.
        """
        same = [
            each if (each.actions == np.arange(len(each.actions))).all() else without_learning(each, base)
            for each in branches
        ]
        base_branch, *parts = [each._replace(state=each.state.regression) for each in (base, *same)]
        began, *ends = [each.state.measure for each in (base, *same)]
        learnt = np.array([np.maximum(end[_Measure.COUNT] - began[_Measure.COUNT], 0.0) for end in ends])
        totals = np.array([branch.seen[-1, 1] - branch.seen[-1, 0] for branch in same], np.float64)
        learnt = np.where(began[_Measure.COUNT] < MEMORY, learnt, totals[:, None])
        part = shares(learnt, mean_retention(began[_Measure.COUNT], MEMORY))
        mean, variance = merge_moments(began[_Measure.MEAN :], [end[_Measure.MEAN :] for end in ends], part)
        count = np.minimum(began[_Measure.COUNT] + learnt.sum(axis=0), MEMORY)
        regression = merge_waves(base_branch, parts, inputs, WAVY_SPREAD)
        return LayerState(regression, base.state.basis, np.array([count, mean, variance]))


MEMBER = Layer()
