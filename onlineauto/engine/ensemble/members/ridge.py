"""Ridge: strongly regularised least squares on features, for rewards that are rare or noisy.

Each action has a separate regression on the features of the context, numbers included, without bins. Its
weights are drawn to 0 much more than those of `features`, so that an action that was seldom logged keeps to
the mean of all costs. Nothing is forgotten, because rare rewards need all events.

Source: Hoerl and Kennard, *Ridge regression*, 1970.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlineauto.engine.ensemble.branches import count_learnt, mean_retention, merge_statistic, shares
from onlineauto.engine.ensemble.member import ANY, Kernels, Lesson, Member, Needs, Part, Sizes, Work
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
from onlineauto.engine.ensemble.regression_kernels import Prepared, score_of
from onlineauto.engine.records.ensemble import MOST_ACTIONS, MOST_FEATURES, InputKind, Known
from onlineauto.jit import call_at, entry_kernel, inline_kernel, short_loop

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from onlineauto.engine.ensemble.branches import Branch
    from onlineauto.engine.ensemble.least_squares_kernels import Regression
    from onlineauto.engine.records.ensemble import Inputs
    from onlineauto.engine.records.loop import Actions, Buffers, Context
    from onlineauto.features.records import Stream
    from onlineauto.state.stored import Stored

UNSURE = 0.01
"""Variance of the weight of a feature before the first event; 1 / UNSURE is the penalty λ."""


class RidgeState(NamedTuple):
    """State of the member."""

    regression: Regression
    of: NDArray[np.int64]  # [inputs]: the input of each weight: all that are not bins
    mean: NDArray[np.float64]  # [1]: mean of the costs


class RidgeScratch(NamedTuple):
    """Scratch of the member."""

    values: NDArray[np.float32]  # [inputs]: the inputs of an event that are not bins


@inline_kernel
def _take(state: RidgeState, buffers: Buffers, scratch: RidgeScratch) -> int:
    """Fill the values with the inputs of an event that are not bins; return how many there are."""
    n = state.regression.prepared[Prepared.INPUTS]
    for i in range(n):
        scratch.values[i] = buffers.members.taken.values[state.of[i]]
    return int(n)


@entry_kernel
def score_ridge(
    context: Context, stream: Stream, actions: Actions, part: Part, state: RidgeState, scratch: RidgeScratch
) -> None:
    """Score the actions of an event."""
    buffers, known = context.buffers, context.buffers.members.known
    n = _take(state, buffers, scratch)
    for action in range(part.begin, part.end):
        short_loop()
        if known[action] >= 0:
            score = score_of(state.regression, known[action], scratch.values, n)
            buffers.score[action, part.column] = state.mean[0] + score


@entry_kernel
def learn_ridge(
    context: Context,
    stream: Stream,
    actions: Actions,
    lesson: Lesson,
    state: RidgeState,
    scratch: RidgeScratch,
) -> None:
    """Learn an event."""
    members, mean = context.live.ensemble.members, state.mean[0]
    n_seen = members.inputs.seen
    state.mean[0] += (lesson.cost - mean) / max((n_seen[MOST_ACTIONS] + 1) / lesson.weight, 1.0)
    if lesson.known >= 0 and works(members, lesson.score):
        n = _take(state, context.buffers, scratch)
        less = Lesson(
            lesson.action,
            lesson.known,
            lesson.cost - mean,
            lesson.weight,
            lesson.score,
            lesson.column,
            lesson.again,
            lesson.trust,
        )
        call_at(
            context.units.learn_regression,
            (state.regression, less, scratch.values[:n], n_seen[lesson.known], UNSURE, 1.0),
        )


@entry_kernel
def grow_ridge(context: Context, state: RidgeState) -> None:
    """Prepare for new features and actions."""
    inputs, n = context.live.ensemble.members.inputs, 0
    for at in range(min(inputs.tally[Known.FEATURES], MOST_FEATURES)):
        if inputs.number[at] != InputKind.BIN:
            state.of[n] = at
            n += 1
    call_at(context.units.grow_regression, (state.regression, inputs, n))


def _without_bins(inputs: Inputs) -> NDArray[np.int64]:
    """Return the known inputs that are not bins."""
    return np.flatnonzero(inputs.number[: min(inputs.tally[Known.FEATURES], MOST_FEATURES)] != InputKind.BIN)


class Ridge(Member):
    """Strongly regularised least squares on features."""

    name = "ridge"
    first_weight = 0.5  # alone it is better than the champion while clicks are few
    merges = "least squares: information matrices add up"
    least_squares = (UNSURE, 1.0)
    needs = (Needs(least_actions=2, most_features=MOST_FEATURES, most_actions=MOST_ACTIONS, inputs=True),)

    def kernels(self) -> Kernels:
        """Return the member's kernels."""
        return Kernels(score_ridge, learn_ridge, grow_ridge)

    def make_state(self, sizes: Sizes) -> RidgeState:
        """Return regressions without inputs."""
        regression = make_regression(sizes.actions, sizes.features)
        return RidgeState(regression, np.zeros(sizes.features, np.int64), np.zeros(1))

    def make_scratch(self) -> RidgeScratch:
        """Return scratch for the inputs of an event."""
        return RidgeScratch(np.zeros(MOST_FEATURES, np.float32))

    def prices(self, work: Work) -> tuple[float]:
        """Return the work: scores, inputs, and the covariance, which learns one event in four."""
        n = work.unbinned
        return ((work.visits * n + n * work.features + n * n / EACH) / TOGETHER,)

    def to_predict(self, state: RidgeState) -> RidgeState:
        """Return a state with the weights only."""
        return state._replace(regression=regression_to_predict(state.regression))

    def state(self, state: RidgeState, inputs: Inputs, *, working: Sequence[bool]) -> dict[str, Any]:
        """Return the regressions of known actions, unless there are too many features."""
        stored = regression_state(state.regression, inputs, len(_without_bins(inputs)) * working[0])
        return stored | {"mean": state.mean}

    def restore(self, stored: Stored, state: RidgeState, inputs: Inputs) -> None:
        """Copy the stored regressions into the state."""
        self.begin(state, inputs)
        restore_regression(stored, state.regression, inputs, len(_without_bins(inputs)))
        state.mean[:] = stored["mean"].finite(np.float64, (1,))

    def begin(self, state: RidgeState, inputs: Inputs) -> None:
        """Prepare for the known features."""
        known = _without_bins(inputs)
        state.of[: len(known)] = known
        begin_regression(state.regression, inputs, len(known))

    def terms(
        self, state: RidgeState, inputs: Inputs, values: NDArray[np.float32], action: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]] | None:
        """Return the products of the inputs and their weights."""
        n = int(state.regression.prepared[Prepared.INPUTS])
        of = state.of[:n]
        return of, state.regression.weights[action, :n].astype(np.float64) * values[of]

    def merge(self, base: Branch, branches: Sequence[Branch], inputs: Inputs) -> RidgeState:
        """Return regressions merged by least squares; inputs may be new in any order."""
        known = _without_bins(inputs)
        position = np.full(len(inputs.number) + 1, -1)
        position[known] = np.arange(len(known))
        parts = [
            each._replace(
                state=each.state.regression,
                inputs=position[
                    each.inputs[each.state.of[: each.state.regression.prepared[Prepared.INPUTS]]]
                ],
            )
            for each in (base, *branches)
        ]
        means = merge_statistic(
            base.state.mean,
            [each.state.mean for each in branches],
            shares(count_learnt(branches), mean_retention(float(base.seen[-1, 0]), ANY)),
        )
        regression = merge_regression(parts[0], parts[1:], inputs, UNSURE, len(known), keeps=1.0)
        numbers = np.zeros_like(base.state.of)
        numbers[: len(known)] = known
        return RidgeState(regression, numbers, means)


MEMBER = Ridge()
