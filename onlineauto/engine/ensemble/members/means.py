"""Means: the mean cost of each action, or of each of its features, whatever the context.

Where the context says little, each weight that a learner gives to it costs reward. This member has none. The
mean of an action is shrunk towards the mean of all costs. If actions are joined, the cost of an action is the
sum of the effects of its features, and of one effect of the action as a whole. The ensemble also shrinks its
own scores towards these; see `onlineauto.engine.ensemble.shrinkage_kernels`.

Cells and the filter that learns them are those of `onlineauto.engine.ensemble.members.crosses`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.engine.ensemble.cells import CELLS, CellMember, merge_costs
from onlineauto.engine.ensemble.cost_kernels import CostMoment, noise_of, note_cost
from onlineauto.engine.ensemble.input_kernels import joins, works
from onlineauto.engine.ensemble.member import Kernels, Lesson, Needs, Part, Sizes, Work
from onlineauto.engine.ensemble.product_kernels import (
    find_cells,
    key_of,
    learn_cells,
    shift_of,
    sum_of,
    take_keys,
)
from onlineauto.engine.event.pass_kernels import run_on
from onlineauto.engine.records.ensemble import MOST_KEYS
from onlineauto.jit import entry_kernel, inline_kernel, short_loop
from onlineauto.state.schema import between, field, finite, jointly, make, record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from onlineauto.engine.ensemble.branches import Branch
    from onlineauto.engine.records.ensemble import Inputs
    from onlineauto.engine.records.loop import Actions, Buffers, Context, LoopRun
    from onlineauto.features.records import Stream

_UNSURE = 0.03
"""Variance of an effect before the first event, in units of the variance of the costs."""
_FEWEST_CELLS, _MOST_CELLS = 1 << 12, 1 << 16


@record
class MeansState(NamedTuple):
    """State of the member."""

    weights: NDArray[np.float32] = field(1, CELLS, read=finite, merge=jointly, predicts=True)
    # Variance of an effect, 0 if it was never learnt
    spread: NDArray[np.float32] = field(1, CELLS, read=between(0.0, 1.0), merge=jointly)
    # Mean and variance of the costs, and the mean squared error
    costs: NDArray[np.float64] = field(len(CostMoment), read=finite, merge=jointly, predicts=True)


class MeansScratch(NamedTuple):
    """Scratch of the member."""

    nothing: NDArray[np.uint64]  # [1]: the empty product of features of the context
    cells: NDArray[np.uint64]  # [MOST_KEYS + 1]


@inline_kernel
def _find_effects(
    run: LoopRun,
    actions: Actions,
    action: int,
    index: int,
    buffers: Buffers,
    shift: np.uint64,
    scratch: MeansScratch,
) -> int:
    """Fill the cells of an action, whose index is known, or of its features; return their number."""
    if not joins(run.live.ensemble.members.inputs):
        find_cells(scratch.nothing, 1, key_of(index), shift, scratch.cells, 0)
        return 1
    n = take_keys(run, actions, action, buffers)
    for k in range(n):
        short_loop()
        find_cells(scratch.nothing, 1, buffers.members.keys[action, k], shift, scratch.cells, k)
    return n


@entry_kernel
def score_means(
    context: Context, stream: Stream, actions: Actions, part: Part, state: MeansState, scratch: MeansScratch
) -> None:
    """Score the actions of an event."""
    run, buffers, weights = run_on(context, stream), context.buffers, state.weights[0]
    shift, known = shift_of(len(weights)), buffers.members.known
    for action in range(part.begin, part.end):
        short_loop()
        if known[action] >= 0:
            end = _find_effects(run, actions, action, known[action], buffers, shift, scratch)
            effects = sum_of(weights, scratch.cells, end)
            buffers.score[action, part.column] = state.costs[CostMoment.MEAN] + effects


@entry_kernel
def learn_means(
    context: Context,
    stream: Stream,
    actions: Actions,
    lesson: Lesson,
    state: MeansState,
    scratch: MeansScratch,
) -> None:
    """Learn an event."""
    run, weights, costs = run_on(context, stream), state.weights[0], state.costs
    error, weight = np.nan, lesson.weight * lesson.trust
    if lesson.known >= 0 and works(run.live.ensemble.members, lesson.score):
        shift = shift_of(len(weights))
        end = _find_effects(run, actions, lesson.action, lesson.known, context.buffers, shift, scratch)
        noisy_error = lesson.cost - costs[CostMoment.MEAN], noise_of(costs) / weight
        error = learn_cells(weights, state.spread[0], scratch.cells, end, noisy_error, _UNSURE)
    note_cost(costs, lesson.cost, error, run.live.ensemble.members.inputs, lesson.weight)


@entry_kernel
def grow_means(context: Context, state: MeansState) -> None:
    """Do nothing: cells need no preparation."""


class Means(CellMember):
    """The mean cost of each action or feature of an action, whatever the context."""

    name = "means"
    record = MeansState
    needs = (Needs(least_actions=2),)
    least_worth = 0.0  # the ensemble's scores are shrunk towards it
    initial_variance = _UNSURE

    def kernels(self) -> Kernels:
        """Return the member's kernels."""
        return Kernels(score_means, learn_means, grow_means)

    def make_state(self, sizes: Sizes) -> MeansState:
        """Return a table of the same number of cells as that of the live configs, within limits."""
        return make(self.record, {"cells": min(max(sizes.cells, _FEWEST_CELLS), _MOST_CELLS)})

    def make_scratch(self) -> MeansScratch:
        """Return scratch for the features of an action."""
        return MeansScratch(np.zeros(1, np.uint64), np.zeros(MOST_KEYS + 1, np.uint64))

    def prices(self, work: Work) -> tuple[float]:
        """Return the work: one effect for each action, or for each of its features if actions are joined."""
        return (work.visits * (1.0 + MOST_KEYS * work.joined),)

    def merge(self, base: Branch, branches: Sequence[Branch], inputs: Inputs) -> MeansState:
        """Return the merged cells, and the merged mean and errors of the costs."""
        state: MeansState = super().merge(base, branches, inputs)
        return state._replace(costs=merge_costs(base, branches))


MEMBER = Means()
