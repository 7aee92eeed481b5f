"""Crosses: learn a weight for each product of features of the context and of the action.

The member has three scores that learn separately: the first from single features of the context, the second
from pairs as well, the third from triples too. A number is represented by its bin; in pairs and triples, by
its group of bins. Products are crossed with the action's index or, if there are too many actions, with each
feature of the action and with its whole line.

Indexed actions are stored in groups of four: the weights of a product for four actions are adjacent, so that
one look-up finds all four.

Each weight is learnt by a Kalman filter that stores its variance but no covariances. What was seen often
changes little, what is new changes much, and no learning rate has to be chosen. Weights start at 0, and their
sum is the difference of the cost from the mean. Weights are cells of a hashed table, so products may share a
cell.

Source: Dredze, Crammer and Pereira, *Confidence-weighted linear classification*, 2008.
"""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.engine.ensemble.branches import (
    count_learnt,
    mean_retention,
    merge_statistic,
    shares,
)
from onlineauto.engine.ensemble.cells import CELLS, CellMember
from onlineauto.engine.ensemble.cost_kernels import LATEST
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
from onlineauto.engine.records.ensemble import (
    MOST_ACTIONS,
    MOST_CROSSED,
    MOST_KEYS,
    MOST_PRODUCTS,
    Known,
    WideCount,
)
from onlineauto.jit import entry_kernel, inline_kernel, short_loop
from onlineauto.state.schema import between, field, finite, jointly, make, record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from onlineauto.engine.ensemble.branches import Branch
    from onlineauto.engine.records.ensemble import Inputs
    from onlineauto.engine.records.loop import Actions, Buffers, Context, LoopRun
    from onlineauto.features.records import Stream

ORDERS = 3
"""Number of scores: features of the context one by one, in pairs, in triples."""

_FEWEST_CELLS, _MOST_CELLS = 1 << 14, 1 << 20
SPREAD = 0.1
"""Variance of a weight before the first event."""
_MOST_CELLS_OF_EVENT = MOST_PRODUCTS * (MOST_KEYS + 1)


@record
class Crosses(NamedTuple):
    """Weights of products of context and action."""

    weights: NDArray[np.float32] = field(ORDERS, CELLS, read=finite, merge=jointly, predicts=True)
    # Variance of a weight, 0 if it was never learnt
    spread: NDArray[np.float32] = field(ORDERS, CELLS, read=between(0.0, 1.0), merge=jointly)
    mean: NDArray[np.float64] = field(1, read=finite, merge=jointly, predicts=True)  # of the costs


class CrossesScratch(NamedTuple):
    """Scratch of the member."""

    cells: NDArray[np.uint64]  # [MOST_PRODUCTS * (MOST_KEYS + 1)]


@inline_kernel
def _ends_of(
    run: LoopRun, actions: Actions, buffers: Buffers, first: int, learns: bool
) -> tuple[int, int, int]:
    """Fill the products of the context of an event; return the end of those of each score, 0 for no score.

    A score skips events with more features than it crosses. If the event is learnt, the number of features is
    noted; it decides which scores work.
    """
    members, n = run.live.ensemble.members, take_context(run, actions, buffers)
    if learns:
        note_width(members.inputs, n, WideCount.CROSSES)
    single = works(members, first) and n <= MOST_CROSSED[0]
    pairs = works(members, first + 1) and n <= MOST_CROSSED[1]
    triples = works(members, first + 2) and n <= MOST_CROSSED[2]
    take_products(buffers, pairs, triples)
    ends = buffers.members.ends
    return (
        ends[Ends.SINGLE] if single else 0,
        ends[Ends.PAIRED] if pairs else 0,
        ends[Ends.TRIPLED] if triples else 0,
    )


@inline_kernel
def _score_joint(
    context: Context,
    run: LoopRun,
    actions: Actions,
    part: Part,
    ends: tuple[int, int, int],
    state: Crosses,
    cells: NDArray[np.uint64],
) -> None:
    """Score actions that are joined."""
    buffers, shift, mean = context.buffers, shift_of(state.weights.shape[1]), state.mean[0]
    products, keys = buffers.members.crossed[Crossed.PRODUCTS], buffers.members.keys
    for action in range(part.begin, part.end):
        short_loop()
        if buffers.members.known[action] < 0:
            continue
        one = two = three = 0.0
        for k in range(take_keys(run, actions, action, buffers)):
            find_cells(products, max(ends[0], ends[1], ends[2]), keys[action, k], shift, cells, 0)
            one += sum_of(state.weights[0], cells, ends[0])
            two += sum_of(state.weights[1], cells, ends[1])
            three += sum_of(state.weights[2], cells, ends[2])
        sums = one, two, three
        for order in range(ORDERS):
            short_loop()
            if ends[order] > 0:
                buffers.score[action, part.column + order] = mean + sums[order]


@entry_kernel
def score_crosses(
    context: Context, stream: Stream, actions: Actions, part: Part, state: Crosses, scratch: CrossesScratch
) -> None:
    """Score the actions of an event."""
    run, buffers, cells = run_on(context, stream), context.buffers, scratch.cells
    inputs, known = run.live.ensemble.members.inputs, buffers.members.known
    ends, mean = _ends_of(run, actions, buffers, part.score, False), state.mean[0]
    if joins(inputs):
        _score_joint(context, run, actions, part, ends, state, cells)
        return
    products, shift = buffers.members.crossed[Crossed.PRODUCTS], shift_of(state.weights.shape[1])
    for group in range((min(inputs.tally[Known.ACTIONS], MOST_ACTIONS) + 3) // 4):
        short_loop()
        if not has_group(known, part.begin, part.end, group):
            continue
        find_cells(products, max(ends[0], ends[1], ends[2]), key_of(4 * group), shift, cells, 0)
        for order in range(ORDERS):
            short_loop()
            if ends[order] == 0:
                continue
            sums = sum_of_four(state.weights[order], cells, ends[order])
            for action in range(part.begin, part.end):
                short_loop()
                if known[action] >= 0 and known[action] // 4 == group:
                    buffers.score[action, part.column + order] = mean + sums[known[action] % 4]


@entry_kernel
def learn_crosses(
    context: Context,
    stream: Stream,
    actions: Actions,
    lesson: Lesson,
    state: Crosses,
    scratch: CrossesScratch,
) -> None:
    """Learn an event."""
    run, buffers, cells = run_on(context, stream), context.buffers, scratch.cells
    members, products = run.live.ensemble.members, buffers.members.crossed[Crossed.PRODUCTS]
    weight = lesson.weight * lesson.trust
    ends, shift = _ends_of(run, actions, buffers, lesson.score, True), shift_of(state.weights.shape[1])
    if lesson.known >= 0 and max(ends[0], ends[1], ends[2]) > 0:
        joined, n = joins(members.inputs), 1
        if joined:
            n = take_keys(run, actions, lesson.action, buffers)
        else:
            find_cells(products, max(ends[0], ends[1], ends[2]), key_of(lesson.known), shift, cells, 0)
        for order in range(ORDERS):
            short_loop()
            end = ends[order]
            for k in range(n if joined and end > 0 else 0):
                find_cells(products, end, buffers.members.keys[lesson.action, k], shift, cells, k * end)
            if end > 0:
                weights, spread = state.weights[order], state.spread[order]
                learn_cells(
                    weights, spread, cells, n * end, (lesson.cost - state.mean[0], 1.0 / weight), SPREAD
                )
    n_seen = np.float64(members.inputs.seen[MOST_ACTIONS] + 1)
    state.mean[0] += (lesson.cost - state.mean[0]) / max(min(n_seen, LATEST) / weight, 1.0)


@entry_kernel
def grow_crosses(context: Context, state: Crosses) -> None:
    """Do nothing: cells need no preparation."""


class CrossesMember(CellMember):
    """Weights of products of features with the action."""

    name = "crosses"
    record = Crosses
    initial_variance = SPREAD
    scores = "crosses one by one", "crosses in pairs", "crosses in triples"
    needs = tuple(Needs(width=most) for most in MOST_CROSSED)

    def kernels(self) -> Kernels:
        """Return the member's kernels."""
        return Kernels(score_crosses, learn_crosses, grow_crosses)

    def make_state(self, sizes: Sizes) -> Crosses:
        """Return a table of the same number of cells as that of the live configs, within limits.

        With too few cells the products of one event would often share cells, and weights would grow without
        bound.
        """
        return make(self.record, {"cells": min(max(sizes.cells, _FEWEST_CELLS), _MOST_CELLS)})

    def make_scratch(self) -> CrossesScratch:
        """Return scratch for the products of an event."""
        return CrossesScratch(np.zeros(_MOST_CELLS_OF_EVENT, np.uint64))

    def prices(self, work: Work) -> tuple[float, float, float]:
        """Return the work of each score: its products, and those that learning computes again."""
        widest, visits, keys = work.widest, work.visits, 2.0 if work.joined else 1.0
        single = 1 + widest
        return (
            keys * visits * single,
            keys * (visits * comb(widest, 2) + LEARNT * single),
            keys * (visits * comb(widest, 3) + LEARNT * (single + comb(widest, 2))),
        )

    def merge(self, base: Branch, branches: Sequence[Branch], inputs: Inputs) -> Crosses:
        """Return the merged cells, and the merged mean of the costs."""
        parts = shares(count_learnt(branches), mean_retention(float(branches[0].seen[-1, 0]), LATEST))
        mean = merge_statistic(base.state.mean, [branch.state.mean for branch in branches], parts)
        state: Crosses = super().merge(base, branches, inputs)
        return state._replace(mean=mean)


MEMBER = CrossesMember()
