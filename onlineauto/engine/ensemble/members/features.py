"""Features: least squares on the features of the context, and on bins of those that are numbers.

Each action has a separate regression. If there are too many actions, all share one, whose inputs are those of
the context and of the action. The terms of each action are then added to the score of the context.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlineauto.engine.ensemble.input_kernels import bin_of, copy_numbers, joins, standardise, take_feature
from onlineauto.engine.ensemble.member import Kernels, Lesson, Member, Needs, Part, Sizes, Work
from onlineauto.engine.ensemble.need_kernels import works
from onlineauto.engine.ensemble.prices import EACH, TOGETHER
from onlineauto.engine.ensemble.regression import (
    begin_regression,
    make_regression,
    merge_regression,
    regression_state,
    regression_to_predict,
    restore_regression,
)
from onlineauto.engine.ensemble.regression_kernels import KEEPS, Prepared, score_of
from onlineauto.engine.event.example_kernels import line_of
from onlineauto.engine.event.pass_kernels import run_on
from onlineauto.engine.records.ensemble import MOST_ACTIONS, MOST_FEATURES, MOST_NUMBERS, Known
from onlineauto.jit import call_at, entry_kernel, inline_kernel, kernel, short_loop

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from onlineauto.engine.ensemble.branches import Branch
    from onlineauto.engine.ensemble.least_squares_kernels import Regression
    from onlineauto.engine.records.ensemble import Inputs
    from onlineauto.engine.records.loop import Actions, Context, LoopRun
    from onlineauto.features.records import Stream
    from onlineauto.state.stored import Stored

UNSURE = 1.0 / 3.0
"""Variance of the weight of a feature before the first event."""


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
        if run.layout.ignore[run.layout.key[stream.spans[span].namespace]]:
            continue
        for i in range(stream.spans[span].start, stream.spans[span + 1].start):
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
    state: Regression,
    scratch: FeaturesScratch,
) -> None:
    """Score the actions of an event."""
    run, scores, known = run_on(context, stream), context.buffers.score, context.buffers.members.known
    inputs, taken = run.live.ensemble.members.inputs, context.buffers.members.taken
    n, numbers = inputs.tally[Known.FEATURES], min(inputs.tally[Known.NUMBERS], MOST_NUMBERS)
    joined = joins(inputs)
    if joined and inputs.seen[0] == 0:
        return
    shared = score_of(state, 0, taken.values, n) if joined else 0.0
    for action in range(part.begin, part.end):
        short_loop()
        if joined:
            copy_numbers(taken.raw, scratch.raw, numbers)
            added = _line_terms(run, line_of(run, actions, action), state, scratch.raw)
            scores[action, part.column] = shared + added
        elif known[action] >= 0:
            scores[action, part.column] = score_of(state, known[action], taken.values, n)


@entry_kernel
def learn_features(
    context: Context,
    stream: Stream,
    actions: Actions,
    lesson: Lesson,
    state: Regression,
    scratch: FeaturesScratch,
) -> None:
    """Learn an event."""
    members = context.live.ensemble.members
    if lesson.known >= 0 and works(members, lesson.score):
        n, n_seen = members.inputs.tally[Known.FEATURES], members.inputs.seen[lesson.known]
        call_at(
            context.units.learn_regression,
            (state, lesson, context.buffers.members.taken.values[:n], n_seen, UNSURE, KEEPS),
        )


@kernel
def _divide(inputs: Inputs, state: Regression, before: int, n: int) -> None:
    """Copy to the inputs [before, n) that are parts of split bins the weights of the original bins."""
    for at in range(before, n):
        if inputs.divided[at] > 0:
            for action in range(min(inputs.tally[Known.ACTIONS], MOST_ACTIONS)):
                state.weights[action, at] = state.weights[action, inputs.divided[at]]


@entry_kernel
def grow_features(context: Context, state: Regression) -> None:
    """Prepare for new features, bins and actions."""
    inputs = context.live.ensemble.members.inputs
    n, before = min(inputs.tally[Known.FEATURES], MOST_FEATURES), state.prepared[Prepared.INPUTS]
    call_at(context.units.grow_regression, (state, inputs, n))
    _divide(inputs, state, before, n)


class Features(Member):
    """Least squares on features and on bins of numbers."""

    name = "features"
    version = 2  # version 1 has float64
    merges = "least squares: information matrices add up"
    least_squares = (UNSURE, KEEPS)
    needs = (Needs(most_features=MOST_FEATURES, inputs=True),)

    def kernels(self) -> Kernels:
        """Return the member's kernels."""
        return Kernels(score_features, learn_features, grow_features)

    def make_state(self, sizes: Sizes) -> Regression:
        """Return regressions without inputs."""
        return make_regression(sizes.actions, sizes.features)

    def make_scratch(self) -> FeaturesScratch:
        """Return scratch for the numbers of an action."""
        return FeaturesScratch(np.zeros(MOST_NUMBERS))

    def prices(self, work: Work) -> tuple[float]:
        """Return the work: scores, inputs, and the covariance, which learns one event in four."""
        n = work.inputs
        return ((work.visits * n + n * work.features + n * n / EACH) / TOGETHER,)

    def to_predict(self, state: Regression) -> Regression:
        """Return a state with the weights only."""
        return regression_to_predict(state)

    def state(self, state: Regression, inputs: Inputs, *, working: Sequence[bool]) -> dict[str, Any]:
        """Return the regressions of known actions, unless there are too many features."""
        return regression_state(state, inputs, int(inputs.tally[Known.FEATURES]) * working[0])

    def restore(self, stored: Stored, state: Regression, inputs: Inputs) -> None:
        """Copy the stored regressions into the state."""
        restore_regression(stored, state, inputs, min(int(inputs.tally[Known.FEATURES]), MOST_FEATURES))

    def begin(self, state: Regression, inputs: Inputs) -> None:
        """Prepare for the known features."""
        begin_regression(state, inputs, min(int(inputs.tally[Known.FEATURES]), MOST_FEATURES))

    def terms(
        self, state: Regression, inputs: Inputs, values: NDArray[np.float32], action: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]] | None:
        """Return the products of the inputs and their weights."""
        if inputs.tally[Known.ACTIONS] > MOST_ACTIONS:  # one regression for all actions
            return None
        n = int(state.prepared[Prepared.INPUTS])
        of = np.arange(n)
        return of, state.weights[action, :n].astype(np.float64) * values[of]

    def merge(self, base: Branch, branches: Sequence[Branch], inputs: Inputs) -> Regression:
        """Return regressions merged by least squares; inputs may be new in any order."""
        n = min(int(inputs.tally[Known.FEATURES]), MOST_FEATURES)
        return merge_regression(base, branches, inputs, UNSURE, n)


MEMBER = Features()
