"""Baseline: the cost of a context for any action, and what each action adds to it.

Where the context moves the cost by far more than the action, learners that fit the cost of each action
separately see little of the difference between actions. For them the effect of the context is noise until it
is known for every action. This member fits both at once: weights of features of the context and of their
pairs, which all actions share, and weights of features crossed with the action. All events teach the shared
weights, so the variance explained by the context is soon removed, and the weights of actions learn the rest.

Products, cells and the filter that learns the weights are those of
`onlineauto.engine.ensemble.members.crosses`. The noise of an event is the unexplained part of the variance of
the costs, so that the member learns faster as it explains more of the context.
"""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.engine.ensemble.cells import CELLS, CellMember, merge_costs
from onlineauto.engine.ensemble.cost_kernels import CostMoment, noise_of, note_cost
from onlineauto.engine.ensemble.input_kernels import joins, works
from onlineauto.engine.ensemble.member import LEARNT, Kernels, Lesson, Needs, Part, Sizes, Work
from onlineauto.engine.ensemble.product_kernels import (
    Crossed,
    Ends,
    find_cells,
    has_group,
    key_of,
    learn_cells,
    note_width,
    shift_of,
    sum_of,
    sum_of_four,
    take_context,
    take_keys,
    take_products,
)
from onlineauto.engine.event.pass_kernels import run_on
from onlineauto.engine.records.ensemble import MOST_ACTIONS, MOST_PRODUCTS, Known, WideCount
from onlineauto.jit import entry_kernel, inline_kernel, short_loop
from onlineauto.state.schema import between, field, finite, jointly, make, record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from onlineauto.engine.ensemble.branches import Branch
    from onlineauto.engine.records.ensemble import Inputs
    from onlineauto.engine.records.loop import Actions, Buffers, Context, LoopRun
    from onlineauto.features.records import Stream

_MOST_FEATURES = 24
_UNSURE = 0.3
"""Variance of a weight before the first event, in units of the variance of the costs."""


_SHARED = np.uint64(0xD1B54A32D192ED00)
"""The key of products of the context that all actions share."""


@record
class BaselineState(NamedTuple):
    """State of the member."""

    weights: NDArray[np.float32] = field(1, CELLS, read=finite, merge=jointly, predicts=True)
    # Variance of a weight, 0 if it was never learnt
    spread: NDArray[np.float32] = field(1, CELLS, read=between(0.0, 1.0), merge=jointly)
    # Mean and variance of the costs, and the mean squared error
    costs: NDArray[np.float64] = field(len(CostMoment), read=finite, merge=jointly, predicts=True)


class BaselineScratch(NamedTuple):
    """Scratch of the member."""

    cells: NDArray[
        np.uint64
    ]  # [MOST_PRODUCTS * 2]: of the products of the context, and of those of an action


@inline_kernel
def _take_products(run: LoopRun, actions: Actions, buffers: Buffers) -> int:
    """Fill the products of the context: the empty one and single features, then pairs.

    Returns the number of features, at most one more than the limit. An event with more features than the
    limit has no products.
    """
    n = min(take_context(run, actions, buffers), _MOST_FEATURES + 1)
    if n <= _MOST_FEATURES:
        take_products(buffers, True, False)
    return n


@entry_kernel
def score_baseline(
    context: Context,
    stream: Stream,
    actions: Actions,
    part: Part,
    state: BaselineState,
    scratch: BaselineScratch,
) -> None:
    """Score the actions of an event."""
    run, buffers, cells, weights = run_on(context, stream), context.buffers, scratch.cells, state.weights[0]
    if _take_products(run, actions, buffers) > _MOST_FEATURES:
        return
    inputs, known, keys = run.live.ensemble.members.inputs, buffers.members.known, buffers.members.keys
    products, shift = buffers.members.crossed[Crossed.PRODUCTS], shift_of(len(weights))
    single, end = buffers.members.ends[Ends.SINGLE], buffers.members.ends[Ends.PAIRED]
    find_cells(products, end, _SHARED, shift, cells, 0)
    shared = state.costs[CostMoment.MEAN] + sum_of(weights, cells, end)
    if joins(inputs):
        for action in range(part.begin, part.end):
            short_loop()
            if known[action] < 0:
                continue
            total = shared
            for k in range(take_keys(run, actions, action, buffers)):
                short_loop()
                find_cells(products, single, keys[action, k], shift, cells, 0)
                total += sum_of(weights, cells, single)
            buffers.score[action, part.column] = total
        return
    for group in range((min(inputs.tally[Known.ACTIONS], MOST_ACTIONS) + 3) // 4):
        short_loop()
        if not has_group(known, part.begin, part.end, group):
            continue
        find_cells(products, single, key_of(4 * group), shift, cells, 0)
        sums = sum_of_four(weights, cells, single)
        for action in range(part.begin, part.end):
            short_loop()
            if known[action] >= 0 and known[action] // 4 == group:
                buffers.score[action, part.column] = shared + sums[known[action] % 4]


@entry_kernel
def learn_baseline(
    context: Context,
    stream: Stream,
    actions: Actions,
    lesson: Lesson,
    state: BaselineState,
    scratch: BaselineScratch,
) -> None:
    """Learn an event."""
    run, members, buffers = run_on(context, stream), context.live.ensemble.members, context.buffers
    n, cells, shift = _take_products(run, actions, buffers), scratch.cells, shift_of(state.weights.shape[1])
    error = np.nan
    note_width(members.inputs, n, WideCount.BASELINE)
    if lesson.known >= 0 and works(members, lesson.score) and n <= _MOST_FEATURES:
        products, keys = buffers.members.crossed[Crossed.PRODUCTS], buffers.members.keys
        single, end = buffers.members.ends[Ends.SINGLE], buffers.members.ends[Ends.PAIRED]
        find_cells(products, end, _SHARED, shift, cells, 0)
        if joins(members.inputs):
            for k in range(take_keys(run, actions, lesson.action, buffers)):
                short_loop()
                find_cells(products, single, keys[lesson.action, k], shift, cells, end)
                end += single
        else:
            find_cells(products, single, key_of(lesson.known), shift, cells, end)
            end += single
        noisy_error = lesson.cost - state.costs[CostMoment.MEAN], noise_of(state.costs) / lesson.weight
        error = learn_cells(state.weights[0], state.spread[0], cells, end, noisy_error, _UNSURE)
    note_cost(state.costs, lesson.cost, error, members.inputs, lesson.weight)


@entry_kernel
def grow_baseline(context: Context, state: BaselineState) -> None:
    """Do nothing: cells need no preparation."""


class Baseline(CellMember):
    """Cost of a context for any action, and what each action adds to it."""

    name = "baseline"
    record = BaselineState
    needs = (Needs(least_actions=2, width=_MOST_FEATURES),)
    initial_variance = _UNSURE

    def kernels(self) -> Kernels:
        """Return the member's kernels."""
        return Kernels(score_baseline, learn_baseline, grow_baseline)

    def make_state(self, sizes: Sizes) -> BaselineState:
        """Return a table of the same number of cells as that of the live configs, within limits."""
        return make(self.record, {"cells": min(max(sizes.cells, 1 << 14), 1 << 18)})

    def make_scratch(self) -> BaselineScratch:
        """Return scratch for the products of an event."""
        return BaselineScratch(np.zeros(2 * MOST_PRODUCTS, np.uint64))

    def prices(self, work: Work) -> tuple[float]:
        """Return the work: the products of the context once, and the context's features for each action."""
        keys, single = 2.0 if work.joined else 1.0, 1 + work.widest
        return ((1.0 + LEARNT) * (single + comb(work.widest, 2)) + keys * work.visits * single,)

    def merge(self, base: Branch, branches: Sequence[Branch], inputs: Inputs) -> BaselineState:
        """Return the merged cells, and the merged mean and errors of the costs."""
        state: BaselineState = super().merge(base, branches, inputs)
        return state._replace(costs=merge_costs(base, branches))


MEMBER = Baseline()
