"""Features: least squares on the features of the context, and on bins of those that are numbers.

Each action has a separate regression. If there are too many actions, all share one, whose inputs are those of
the context and of the action. The terms of each action are then added to the score of the context.
"""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.engine.ensemble.input_kernels import (
    bin_of,
    copy_numbers,
    joins,
    standardise,
    take_feature,
    used_features,
    works,
)
from onlineauto.engine.ensemble.least_squares_kernels import Prepared, Regression
from onlineauto.engine.ensemble.member import ClassKernels, ClassMember, Kernels, Lesson, Needs, Part, Work
from onlineauto.engine.ensemble.regression import RegressionMember, price_of_inputs
from onlineauto.engine.ensemble.regression_kernels import KEEPS, renew_weight, score_classes, score_of
from onlineauto.engine.ensemble.renewal_kernels import is_renewed
from onlineauto.engine.event.example_kernels import line_of
from onlineauto.engine.event.pass_kernels import run_on
from onlineauto.engine.records.ensemble import MOST_ACTIONS, MOST_NUMBERS, Known
from onlineauto.jit import call_at, entry_kernel, inline_kernel, kernel, short_loop
from onlineauto.state.schema import nested, record

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.ensemble.class_kernels import Classes, ClassEvent
    from onlineauto.engine.records.ensemble import Inputs
    from onlineauto.engine.records.loop import Actions, Context, LoopRun
    from onlineauto.features.records import Stream

UNSURE = 1.0 / 3.0
"""Variance of the weight of a feature before the first event."""


@record
class FeaturesState(NamedTuple):
    """State of the member."""

    regression: Regression = nested(Regression)


class FeaturesScratch(NamedTuple):
    """Scratch of the member."""

    raw: NDArray[np.float64]  # [numbers]: the numbers of an action


@inline_kernel
def _line_terms(run: LoopRun, line: int, state: Regression, raw: NDArray[np.float64]) -> float:
    """Return the terms that an action's line adds to the context's score; `raw` are the context's numbers."""
    inputs, numbers, stream = (
        run.live.ensemble.members.inputs,
        run.live.ensemble.members.inputs.numbers,
        run.stream,
    )
    weights, added = state.weights[0], 0.0
    for span in range(stream.lines[line].start, stream.lines[line + 1].start):
        short_loop()
        begin, end = used_features(run, span)
        for i in range(begin, end):
            short_loop()
            feature, value = stream.features[i].hash, np.float64(stream.features[i].value)
            if not math.isfinite(value):
                continue
            own, number, before = take_feature(inputs, feature, value, raw)
            if own >= 0:
                added += weights[own] * value
            if number >= 0:
                change = standardise(inputs, number, raw[number]) - standardise(inputs, number, before)
                added += weights[numbers.of_number[number]] * change
                if numbers.bins[number] > 0:
                    added += weights[numbers.of_bin[number, bin_of(inputs, number, raw[number])]]
                    added -= weights[numbers.of_bin[number, bin_of(inputs, number, before)]]
    return added


@entry_kernel
def score_features(
    context: Context,
    stream: Stream,
    actions: Actions,
    part: Part,
    state: FeaturesState,
    scratch: FeaturesScratch,
) -> None:
    """Score the actions of an event."""
    run, scores, known = run_on(context, stream), context.buffers.score, context.buffers.members.known
    inputs, taken = run.live.ensemble.members.inputs, context.buffers.members.taken
    n, numbers = inputs.tally[Known.FEATURES], inputs.tally[Known.NUMBERS]
    joined = joins(inputs)
    if joined and inputs.seen[0] == 0:
        return
    shared = score_of(state.regression, 0, taken.values, n) if joined else 0.0
    for action in range(part.begin, part.end):
        short_loop()
        if joined:
            copy_numbers(taken.raw, scratch.raw, numbers)
            added = _line_terms(run, line_of(run, actions, action), state.regression, scratch.raw)
            scores[action, part.column] = shared + added
        elif known[action] >= 0:
            scores[action, part.column] = score_of(state.regression, known[action], taken.values, n)


@entry_kernel
def learn_features(
    context: Context,
    stream: Stream,
    actions: Actions,
    lesson: Lesson,
    state: FeaturesState,
    scratch: FeaturesScratch,
) -> None:
    """Learn an event."""
    members = context.live.ensemble.members
    if lesson.known >= 0 and works(members, lesson.score):
        n, n_seen = members.inputs.tally[Known.FEATURES], members.inputs.seen[lesson.known]
        call_at(
            context.units.learn_regression,
            (state.regression, lesson, context.buffers.members.taken.values[:n], n_seen, UNSURE, KEEPS),
        )


@kernel
def _divide(inputs: Inputs, state: Regression, before: int, n: int) -> None:
    """Copy to the inputs [before, n) that are parts of split bins the weights of the original bins."""
    for at in range(before, n):
        if inputs.divided[at] > 0:
            for action in range(min(inputs.tally[Known.ACTIONS], MOST_ACTIONS)):
                state.weights[action, at] = state.weights[action, inputs.divided[at]]


@entry_kernel
def grow_features(context: Context, state: FeaturesState) -> None:
    """Prepare for new features, bins and actions."""
    inputs = context.live.ensemble.members.inputs
    n = inputs.tally[Known.FEATURES]
    before = state.regression.prepared[Prepared.INPUTS]
    call_at(context.units.grow_regression, (state.regression, inputs, n))
    _divide(inputs, state.regression, before, n)
    for at in range(n):
        if is_renewed(inputs, at):
            renew_weight(state.regression, at, UNSURE)


@entry_kernel
def score_classes_by_features(
    classes: Classes, event: ClassEvent, first: int, k: int, state: FeaturesState, scratch: FeaturesScratch
) -> None:
    """Score the classes of an event."""
    n = classes.inputs.tally[Known.FEATURES]
    score_classes(state.regression, event.taken.values[:n], event.score, first, k)


@entry_kernel
def learn_classes_by_features(
    classes: Classes,
    event: ClassEvent,
    lesson: Lesson,
    k: int,
    state: FeaturesState,
    scratch: FeaturesScratch,
) -> None:
    """Learn an event's class."""
    n, n_seen = classes.inputs.tally[Known.FEATURES], classes.inputs.seen[-1]
    state.regression.prepared[Prepared.INPUTS], state.regression.prepared[Prepared.OUTPUTS] = n, k
    call_at(
        event.units.learn_regression,
        (state.regression, lesson, event.taken.values[:n], n_seen, UNSURE, 1.0),
    )


class Features(RegressionMember, ClassMember):
    """Least squares on features and on bins of numbers."""

    name = "features"
    class_scores = MappingProxyType({"features": 0.0, "log of features": 0.0})
    class_kernels = ClassKernels(score_classes_by_features, learn_classes_by_features)
    record = FeaturesState
    least_squares = (UNSURE, KEEPS)
    needs = (Needs(inputs=True),)

    def kernels(self) -> Kernels:
        """Return the member's kernels."""
        return Kernels(score_features, learn_features, grow_features)

    def make_scratch(self) -> FeaturesScratch:
        """Return scratch for the numbers of an action."""
        return FeaturesScratch(np.zeros(MOST_NUMBERS))

    def prices(self, work: Work) -> tuple[float]:
        """Return the work for all known inputs."""
        return (price_of_inputs(work, work.inputs),)

    def terms(
        self, state: FeaturesState, inputs: Inputs, values: NDArray[np.float32], action: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]] | None:
        """Return the products of the inputs and their weights."""
        if inputs.tally[Known.ACTIONS] > MOST_ACTIONS:  # one regression for all actions
            return None
        weights, n = state.regression.weights[action], int(state.regression.prepared[Prepared.INPUTS])
        return np.arange(n), weights[:n].astype(np.float64) * values[:n]


MEMBER = Features()
