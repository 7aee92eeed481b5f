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

import math
from math import comb
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlineauto.engine.ensemble.branches import (
    count_learnt,
    mean_retention,
    merge_cells,
    merge_statistic,
    shares,
)
from onlineauto.engine.ensemble.input_kernels import joins
from onlineauto.engine.ensemble.member import Kernels, Lesson, Member, Needs, Part, Sizes, Work
from onlineauto.engine.ensemble.need_kernels import works
from onlineauto.engine.ensemble.prices import LEARNT
from onlineauto.engine.ensemble.product_kernels import (
    Crossed,
    Ends,
    find_cells,
    has_group,
    key_of,
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
    OF_CROSSES,
    Known,
)
from onlineauto.jit import entry_kernel, inline_kernel, kernel, short_loop

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from onlineauto.engine.ensemble.branches import Branch
    from onlineauto.engine.records.ensemble import Inputs
    from onlineauto.engine.records.loop import Actions, Buffers, Context, LoopRun
    from onlineauto.features.records import Stream
    from onlineauto.state.stored import Stored

ORDERS = 3
"""Number of scores: features of the context one by one, in pairs, in triples."""

_FEWEST_CELLS, _MOST_CELLS = 1 << 14, 1 << 20
SPREAD, KEEPS = 0.1, 0.9995
"""Variance of a weight before the first event, and the part of its precision that survives an update."""


LATEST, SURE, LARGEST = 1000.0, 1e-7, 1e30
_MOST_CELLS_OF_EVENT = MOST_PRODUCTS * (MOST_KEYS + 1)


class Crosses(NamedTuple):
    """Weights of products of context and action."""

    weights: NDArray[np.float32]  # [ORDERS, cells]
    spread: NDArray[np.float32]  # [ORDERS, cells]: variance of a weight, 0 if it was never learnt
    mean: NDArray[np.float64]  # [1]: of the costs


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
        note_width(members.inputs, n, OF_CROSSES)
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


@kernel
def learn_products(
    crosses: Crosses, order: int, cells: NDArray[np.uint64], end: int, cost: float, weight: float
) -> None:
    """Update the weights of an order, in the cells before index `end`, with the cost of an event."""
    weights, spreads = crosses.weights[order], crosses.spread[order]
    error, total = cost - crosses.mean[0], 1.0 / weight
    for i in range(end):
        if spreads[cells[i]] == 0:
            spreads[cells[i]] = SPREAD
        error -= weights[cells[i]]
        total += spreads[cells[i]]
    if not math.isfinite(error):
        return
    step, less = error / total, 1.0 / total
    for i in range(end):
        spread = np.float64(spreads[cells[i]])
        learnt = weights[cells[i]] + spread * step
        weights[cells[i]] = min(max(learnt, -LARGEST), LARGEST)
        updated = (spread - spread * (spread * less)) * (1.0 / KEEPS)
        spreads[cells[i]] = min(max(updated, SURE), SPREAD)


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
                learn_products(state, order, cells, n * end, lesson.cost, weight)
    n_seen = np.float64(members.inputs.seen[MOST_ACTIONS] + 1)
    state.mean[0] += (lesson.cost - state.mean[0]) / max(min(n_seen, LATEST) / weight, 1.0)


@entry_kernel
def grow_crosses(context: Context, state: Crosses) -> None:
    """Do nothing: cells need no preparation."""


class CrossesMember(Member):
    """Weights of products of features with the action."""

    name = "crosses"
    cells = ("weights", "spread")
    merges = "cell by cell: precisions add up"
    any_order = False
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
        cells = min(max(sizes.cells, _FEWEST_CELLS), _MOST_CELLS)
        shape = ORDERS, cells
        return Crosses(np.zeros(shape, np.float32), np.zeros(shape, np.float32), np.zeros(1))

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

    def to_predict(self, state: Crosses) -> Crosses:
        """Return a state with the weights only."""
        return state._replace(spread=np.zeros((ORDERS, 0), np.float32))

    def state(self, state: Crosses, inputs: Inputs, *, working: Sequence[bool]) -> dict[str, Any]:
        """Return the cells that were learnt; to predict, those in which a working score has a weight."""
        if state.spread.size:
            cells = np.flatnonzero(state.spread.any(axis=0))
            more = {"weights": state.weights.T[cells], "spread": state.spread.T[cells]}
            return {"cells": cells, **more, "mean": state.mean}
        weights = np.where(working, state.weights.T, np.float32(0))
        cells = np.flatnonzero(weights.any(axis=1))
        return {"cells": cells.astype(np.uint32), "weights": weights[cells], "mean": state.mean}

    def restore(self, stored: Stored, state: Crosses, inputs: Inputs) -> None:
        """Copy the stored cells into the state; all other cells count as never learnt."""
        learns = state.spread.size > 0
        cells = stored["cells"].array(np.int64 if learns else np.uint32, (-1,))
        if len(cells) and not (
            cells[0] >= 0 and cells[-1] < state.weights.shape[1] and (cells[1:] > cells[:-1]).all()
        ):
            raise stored["cells"].fail("cells in ascending order")
        state.weights[:] = state.spread[:] = 0.0
        state.weights.T[cells] = stored["weights"].finite(np.float32, (len(cells), ORDERS))
        if learns:
            like = np.zeros((len(cells), ORDERS), np.float32)
            state.spread.T[cells] = stored["spread"].array_between(like, 0.0, 1.0)
        state.mean[:] = stored["mean"].finite(np.float64, (1,))

    def merge(self, base: Branch, branches: Sequence[Branch], inputs: Inputs) -> Crosses:
        """Return cells merged by their precisions.

        The result is not exact for actions and bins that branches have found in different orders since the
        base.
        """
        began, ends, learnt = base.state, [each.state for each in branches], count_learnt(branches)
        weights, spread = merge_cells(
            (began.weights.T, began.spread.T),
            [(end.weights.T, end.spread.T) for end in ends],
            learnt,
            keeps=KEEPS,
            ordered=base.ordered,
            bounds=(SURE, SPREAD),
        )
        parts = shares(learnt, mean_retention(float(branches[0].seen[-1, 0]), LATEST))
        planes = np.ascontiguousarray(weights.T), np.ascontiguousarray(spread.T)
        return Crosses(*planes, merge_statistic(began.mean, [end.mean for end in ends], parts))


MEMBER = CrossesMember()
