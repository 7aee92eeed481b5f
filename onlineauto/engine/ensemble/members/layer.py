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
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.engine.ensemble.branches import count_learnt, mean_retention, merge_moments, shares
from onlineauto.engine.ensemble.input_kernels import deviations, works
from onlineauto.engine.ensemble.least_squares_kernels import Prepared, Regression
from onlineauto.engine.ensemble.member import TOGETHER, Kernels, Lesson, Need, Needs, Part, Work
from onlineauto.engine.ensemble.number_bin_kernels import add_value
from onlineauto.engine.ensemble.regression import WaveMember, price_of_waves
from onlineauto.engine.ensemble.regression_kernels import KEEPS, score_of
from onlineauto.engine.ensemble.wave_kernels import (
    WAVES,
    WAVY_SPREAD,
    Basis,
    add_wave,
    make_waves,
)
from onlineauto.engine.records.ensemble import MEMORY, MOST_ACTIONS, Known, all_actions, few_actions
from onlineauto.jit import call_at, entry_kernel, inline_kernel, kernel, short_loop
from onlineauto.state.schema import field, jointly, nested, record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from onlineauto.engine.ensemble.branches import Branch
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


def _measure(stored: Stored, array: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return stored measures, which are finite."""
    stored.finite(array.dtype, (len(_Measure), -1))
    return all_actions(stored, array)


@record
class LayerState(NamedTuple):
    """State of the member."""

    basis: Basis
    regression: Regression = nested(Regression)
    # Count, mean and variance of the scores of `features`
    measure: NDArray[np.float64] = field(
        len(_Measure), MOST_ACTIONS, read=_measure, write=few_actions, merge=jointly, predicts=True
    )


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
    inputs, before = context.live.ensemble.members.inputs, state.regression.prepared[Prepared.OUTPUTS]
    if before <= MOST_ACTIONS < inputs.tally[Known.ACTIONS]:
        state.measure[:, 0] = 0.0
    call_at(context.units.grow_regression, (state.regression, inputs, WAVES))


class Layer(WaveMember):
    """Least squares on waves of the scores that `features` gives to all actions."""

    name = "layer"
    record = LayerState
    merges = "weights averaged by their precision, though each branch had other scores of `features`"
    needs = (Needs(least_actions=2, most_actions=MOST_ACTIONS, events=_AFTER, upon="features"),)
    least_worth = LEAST_WORTH

    def kernels(self) -> Kernels:
        """Return the member's kernels."""
        return Kernels(score_layer, learn_layer, grow_layer)

    def make_scratch(self) -> LayerScratch:
        """Return scratch for the waves of an event."""
        return LayerScratch(np.zeros(WAVES, np.float32))

    def prices(self, work: Work) -> tuple[float]:
        """Return the work of the regressions and of the waves."""
        return (price_of_waves(work) + (work.n_actions / TOGETHER + 1) * WAVES,)

    def order(self, branch: Branch) -> NDArray[np.int64]:
        """Return the merged index of each action."""
        return branch.actions

    def merge(self, base: Branch, branches: Sequence[Branch], inputs: Inputs) -> LayerState:
        """Return the merged regressions, and the means and variances of all scores.

        The result is not exact, because each branch learnt from the scores of its own `features`.
        """
        branches = self.comparable(base, branches)
        began, *ends = [branch.state.measure for branch in (base, *branches)]
        learnt = np.array([np.maximum(end[_Measure.COUNT] - began[_Measure.COUNT], 0.0) for end in ends])
        totals = np.array(count_learnt(branches), np.float64)
        learnt = np.where(began[_Measure.COUNT] < MEMORY, learnt, totals[:, None])
        part = shares(learnt, mean_retention(began[_Measure.COUNT], MEMORY))
        mean, variance = merge_moments(began[_Measure.MEAN :], [end[_Measure.MEAN :] for end in ends], part)
        count = np.minimum(began[_Measure.COUNT] + learnt.sum(axis=0), MEMORY)
        state: LayerState = super().merge(base, branches, inputs)
        return state._replace(measure=np.array([count, mean, variance]))


MEMBER = Layer()
