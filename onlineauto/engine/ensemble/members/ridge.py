"""Ridge: strongly regularised least squares on features, for rewards that are rare or noisy.

Each action has a separate regression on the features of the context, numbers included, without bins. Its
weights are drawn to 0 much more than those of `features`, so that an action that was seldom logged keeps to
the mean of all costs. Nothing is forgotten, because rare rewards need all events.

Source: Hoerl and Kennard, *Ridge regression*, 1970.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.engine.ensemble.branches import merge_mean
from onlineauto.engine.ensemble.input_kernels import works
from onlineauto.engine.ensemble.least_squares_kernels import Prepared, Regression
from onlineauto.engine.ensemble.member import Kernels, Lesson, Needs, Part, Work
from onlineauto.engine.ensemble.regression import RegressionMember, price_of_inputs
from onlineauto.engine.ensemble.regression_kernels import renew_weight, score_of
from onlineauto.engine.ensemble.renewal_kernels import is_renewed
from onlineauto.engine.records.ensemble import MOST_ACTIONS, MOST_FEATURES, InputKind, Known
from onlineauto.jit import call_at, entry_kernel, inline_kernel, short_loop
from onlineauto.state.schema import field, finite, jointly, nested, record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from onlineauto.engine.ensemble.branches import Branch
    from onlineauto.engine.records.ensemble import Inputs
    from onlineauto.engine.records.loop import Actions, Buffers, Context
    from onlineauto.features.records import Stream

UNSURE = 0.01
"""Variance of the weight of a feature before the first event; 1 / UNSURE is the penalty λ."""


@record
class RidgeState(NamedTuple):
    """State of the member."""

    regression: Regression = nested(Regression)
    # The input of each weight: all that are not bins
    of: NDArray[np.int64] = field("inputs", saved=False, merge=jointly, predicts=True)
    mean: NDArray[np.float64] = field(1, read=finite, merge=jointly, predicts=True)  # of the costs


class RidgeScratch(NamedTuple):
    """Scratch of the member."""

    values: NDArray[np.float32]  # [inputs]: the inputs of an event that are not bins


@inline_kernel
def take_unbinned(state: RidgeState, buffers: Buffers, scratch: RidgeScratch) -> int:
    """Fill the values with the inputs of an event that are not bins; return how many there are."""
    n = state.regression.prepared[Prepared.INPUTS]
    for i in range(n):
        scratch.values[i] = buffers.members.taken.values[state.of[i]]
    return int(n)


@inline_kernel
def score_from_mean(
    context: Context, part: Part, regression: Regression, mean: float, values: NDArray[np.float32]
) -> None:
    """Score the known actions by their regressions on `values`, which predict costs less the mean."""
    known = context.buffers.members.known
    for action in range(part.begin, part.end):
        short_loop()
        if known[action] >= 0:
            score = score_of(regression, known[action], values, len(values))
            context.buffers.score[action, part.column] = mean + score


@inline_kernel
def learn_from_mean(
    context: Context,
    lesson: Lesson,
    regression: Regression,
    mean: NDArray[np.float64],
    values: NDArray[np.float32],
    unsure: float,
) -> None:
    """Learn a cost, less the mean of all costs before it, by the action's regression on `values`."""
    members, before = context.live.ensemble.members, mean[0]
    n_seen = members.inputs.seen
    mean[0] += (lesson.cost - before) / max((n_seen[MOST_ACTIONS] + 1) / lesson.weight, 1.0)
    if lesson.known >= 0 and works(members, lesson.score):
        less = Lesson(
            lesson.action,
            lesson.known,
            lesson.cost - before,
            lesson.weight * lesson.fair,
            lesson.score,
            lesson.column,
            lesson.again,
            lesson.trust,
            lesson.fair,
        )
        call_at(context.units.learn_regression, (regression, less, values, n_seen[lesson.known], unsure, 1.0))


@entry_kernel
def score_ridge(
    context: Context, stream: Stream, actions: Actions, part: Part, state: RidgeState, scratch: RidgeScratch
) -> None:
    """Score the actions of an event."""
    n = take_unbinned(state, context.buffers, scratch)
    score_from_mean(context, part, state.regression, state.mean[0], scratch.values[:n])


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
    n = take_unbinned(state, context.buffers, scratch)
    learn_from_mean(context, lesson, state.regression, state.mean, scratch.values[:n], UNSURE)


@entry_kernel
def grow_ridge(context: Context, state: RidgeState) -> None:
    """Prepare for new features and actions."""
    inputs, n = context.live.ensemble.members.inputs, 0
    for at in range(inputs.tally[Known.FEATURES]):
        if inputs.number[at] != InputKind.BIN:
            state.of[n] = at
            n += 1
    call_at(context.units.grow_regression, (state.regression, inputs, n))
    for at in range(n):
        if is_renewed(inputs, state.of[at]):
            renew_weight(state.regression, at, UNSURE)


def _without_bins(inputs: Inputs) -> NDArray[np.int64]:
    """Return the known inputs that are not bins."""
    return np.flatnonzero(inputs.number[: inputs.tally[Known.FEATURES]] != InputKind.BIN)


class Ridge(RegressionMember):
    """Strongly regularised least squares on features."""

    name = "ridge"
    record = RidgeState
    first_weight = 0.5  # alone it is better than the champion while clicks are few
    least_squares = (UNSURE, 1.0)
    needs = (Needs(least_actions=2, most_actions=MOST_ACTIONS, inputs=True),)

    def kernels(self) -> Kernels:
        """Return the member's kernels."""
        return Kernels(score_ridge, learn_ridge, grow_ridge)

    def make_scratch(self) -> RidgeScratch:
        """Return scratch for the inputs of an event."""
        return RidgeScratch(np.zeros(MOST_FEATURES, np.float32))

    def prices(self, work: Work) -> tuple[float]:
        """Return the work for the known inputs that are not bins."""
        return (price_of_inputs(work, work.unbinned),)

    def width(self, inputs: Inputs) -> int:
        """Return the number of known inputs that are not bins."""
        return len(_without_bins(inputs))

    def merged_inputs(self, branch: Branch, inputs: Inputs) -> NDArray[np.int64]:
        """Return the index, among the merged inputs that are not bins, of each input of the regressions."""
        known = _without_bins(inputs)
        position = np.full(len(inputs.number) + 1, -1, np.int64)
        position[known] = np.arange(len(known))
        own = branch.state.of[: branch.state.regression.prepared[Prepared.INPUTS]]
        merged: NDArray[np.int64] = position[branch.inputs[own]]
        return merged

    def begin(self, state: RidgeState, inputs: Inputs) -> None:
        """Prepare for the known features and actions."""
        known = _without_bins(inputs)
        state.of[: len(known)] = known
        super().begin(state, inputs)

    def terms(
        self, state: RidgeState, inputs: Inputs, values: NDArray[np.float32], action: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]] | None:
        """Return the products of the inputs and their weights."""
        n = int(state.regression.prepared[Prepared.INPUTS])
        of = state.of[:n]
        return of, state.regression.weights[action, :n].astype(np.float64) * values[of]

    def merge(self, base: Branch, branches: Sequence[Branch], inputs: Inputs) -> RidgeState:
        """Return the merged regressions, the known inputs that are not bins, and the mean of the costs."""
        known = _without_bins(inputs)
        of = np.zeros_like(base.state.of)
        of[: len(known)] = known
        state: RidgeState = super().merge(base, branches, inputs)
        return state._replace(of=of, mean=merge_mean(base, branches))


MEMBER = Ridge()
