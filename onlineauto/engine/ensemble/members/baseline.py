"""Baseline: the cost of a context whatever the action, and what each action adds to it.

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

import math
from enum import IntEnum
from math import comb
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlineauto.engine.ensemble.branches import (
    averaging,
    learnt_by,
    merge_cells,
    merge_moments,
    merged,
    shares,
)
from onlineauto.engine.ensemble.input_kernels import context_line, joins
from onlineauto.engine.ensemble.member import Kernels, Lesson, Member, Needs, Part, Sizes, Work
from onlineauto.engine.ensemble.members.crosses import (
    KEEPS,
    LARGEST,
    LATEST,
    MOST_PRODUCTS,
    SURE,
    Crossed,
    find_cells,
    key_of,
    multiply,
    note_width,
    shift_of,
    take_features,
    take_keys,
)
from onlineauto.engine.ensemble.need_kernels import works
from onlineauto.engine.ensemble.number_bin_kernels import add_value
from onlineauto.engine.ensemble.prices import LEARNT
from onlineauto.engine.event.pass_kernels import run_on
from onlineauto.engine.records.ensemble import MOST_ACTIONS, OF_BASELINE
from onlineauto.jit import entry_kernel, inline_kernel, kernel, short_loop

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from onlineauto.engine.ensemble.branches import Branch
    from onlineauto.engine.records.ensemble import Inputs
    from onlineauto.engine.records.loop import Actions, Context, LoopRun
    from onlineauto.features.records import Stream
    from onlineauto.features.stored import Stored

_MOST_FEATURES = 24
_UNSURE = 0.3
"""Variance of a weight before the first event, in units of the variance of the costs."""


class _Cost(IntEnum):
    """Entries of `costs`."""

    MEAN = 0
    VARIANCE = 1
    ERROR = 2


_LEAST_NOISE = 0.02
"""Minimum noise of an event, in units of the variance of the costs."""

_SHARED = np.uint64(0xD1B54A32D192ED00)
"""The key of products of the context that all actions share."""


class BaselineState(NamedTuple):
    """State of the member."""

    weights: NDArray[np.float32]  # [cells, 1]
    spread: NDArray[np.float32]  # [cells, 1]: variance of a weight, 0 if it was never learnt
    costs: NDArray[np.float64]  # [3]: mean and variance of the costs, and the mean squared error


class BaselineScratch(NamedTuple):
    """Scratch of the member."""

    crossed: NDArray[np.uint64]  # [5, MOST_PRODUCTS]


@inline_kernel
def _take_products(run: LoopRun, actions: Actions, scratch: BaselineScratch) -> tuple[int, int, int]:
    """Fill the products of the context: the empty one and single features, then pairs.

    Returns the end of each kind, and the number of features. An event with more features than the limit has
    no products.
    """
    line, n = context_line(run, actions), 0
    if line >= 0:
        n = take_features(run, line, scratch.crossed, _MOST_FEATURES)
    single, end, _ = multiply(scratch.crossed, min(n, _MOST_FEATURES), True, False)
    return single, end, n


@kernel
def _sum_of(state: BaselineState, crossed: NDArray[np.uint64], key: np.uint64, end: int) -> float:
    """Return the sum of the weights of the products before index `end`, crossed with a key."""
    cells, total = crossed[Crossed.CELLS], 0.0
    find_cells(crossed, key, end, shift_of(len(state.weights)))
    for i in range(end):
        total += state.weights[cells[i], 0]
    return total


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
    run, buffers, crossed = run_on(context, stream), context.buffers, scratch.crossed
    single, end, n = _take_products(run, actions, scratch)
    if n > _MOST_FEATURES:
        return
    shared, joined = (
        state.costs[_Cost.MEAN] + _sum_of(state, crossed, _SHARED, end),
        joins(run.live.ensemble.members.inputs),
    )
    for action in range(part.begin, part.end):
        short_loop()
        known = buffers.members.known[action]
        if known < 0:
            continue
        crossed[Crossed.KEYS, 0], keys = key_of(known), 1
        if joined:
            keys = take_keys(run, actions, action, crossed)
        total = shared
        for k in range(keys):
            short_loop()
            total += _sum_of(state, crossed, crossed[Crossed.KEYS, k], single)
        buffers.score[action, part.column] = total


@kernel
def _observe(
    state: BaselineState, crossed: NDArray[np.uint64], key: np.uint64, end: int
) -> tuple[float, float]:
    """Return the sums of weights and variances of the products before index `end`, crossed with a key."""
    weights, spread, cells, total, unsure = state.weights, state.spread, crossed[Crossed.CELLS], 0.0, 0.0
    find_cells(crossed, key, end, shift_of(len(state.weights)))
    for i in range(end):
        if spread[cells[i], 0] == 0:
            spread[cells[i], 0] = _UNSURE
        total += weights[cells[i], 0]
        unsure += spread[cells[i], 0]
    return total, unsure


@kernel
def _learn(
    state: BaselineState, crossed: NDArray[np.uint64], key: np.uint64, end: int, step: float, total: float
) -> None:
    """Let the weights of the products before index `end` learn: `step` is error / variance of the error."""
    weights, spreads, cells = state.weights, state.spread, crossed[Crossed.CELLS]
    find_cells(crossed, key, end, shift_of(len(state.weights)))
    for i in range(end):
        spread = np.float64(spreads[cells[i], 0])
        weights[cells[i], 0] = min(max(weights[cells[i], 0] + spread * step, -LARGEST), LARGEST)
        less = (spread - spread * (spread / total)) / KEEPS
        spreads[cells[i], 0] = min(max(less, SURE), _UNSURE)


@inline_kernel
def _noise_of(state: BaselineState) -> float:
    """Return the unexplained part of the variance of the costs so far, at least `_LEAST_NOISE`."""
    variance, error = state.costs[_Cost.VARIANCE], state.costs[_Cost.ERROR]
    return min(max(error / variance, _LEAST_NOISE), 1.0) if variance > 0.0 and error > 0.0 else 1.0


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
    run, members, crossed = run_on(context, stream), context.live.ensemble.members, scratch.crossed
    single, end, n = _take_products(run, actions, scratch)
    seen = min(np.float64(members.inputs.seen[MOST_ACTIONS] + 1), LATEST)
    note_width(members.inputs, n, OF_BASELINE)
    if lesson.known >= 0 and works(members, lesson.score) and n <= _MOST_FEATURES:
        crossed[Crossed.KEYS, 0], keys = key_of(lesson.known), 1
        if joins(members.inputs):
            keys = take_keys(run, actions, lesson.action, crossed)
        total, unsure = _observe(state, crossed, _SHARED, end)
        for k in range(keys):
            own, more = _observe(state, crossed, crossed[Crossed.KEYS, k], single)
            total += own
            unsure += more
        error = lesson.cost - state.costs[_Cost.MEAN] - total
        unsure += _noise_of(state) / lesson.weight
        if math.isfinite(error):
            state.costs[_Cost.ERROR] += (error * error - state.costs[_Cost.ERROR]) / seen
            _learn(state, crossed, _SHARED, end, error / unsure, unsure)
            for k in range(keys):
                _learn(state, crossed, crossed[Crossed.KEYS, k], single, error / unsure, unsure)
    add_value(state.costs[:1], state.costs[1:2], 0, lesson.cost, seen)


@entry_kernel
def grow_baseline(context: Context, state: BaselineState) -> None:
    """Do nothing: cells need no preparation."""


class Baseline(Member):
    """Cost of a context whatever the action, and what each action adds to it."""

    name = "baseline"
    needs = (Needs(least_actions=2, width=_MOST_FEATURES),)
    merges = "cell by cell: precisions add up"
    any_order = False

    def kernels(self) -> Kernels:
        """Return the member's kernels."""
        return Kernels(score_baseline, learn_baseline, grow_baseline)

    def make_state(self, sizes: Sizes) -> BaselineState:
        """Return a table of the same number of cells as that of the live configs, within limits."""
        cells = min(max(sizes.cells, 1 << 14), 1 << 18)
        return BaselineState(np.zeros((cells, 1), np.float32), np.zeros((cells, 1), np.float32), np.zeros(3))

    def make_scratch(self) -> BaselineScratch:
        """Return scratch for the products of an event."""
        return BaselineScratch(np.zeros((5, MOST_PRODUCTS), np.uint64))

    def prices(self, work: Work) -> tuple[float]:
        """Return the work: products of the context once, and its features for each action."""
        keys, single = 2.0 if work.joined else 1.0, 1 + work.widest
        return ((1.0 + LEARNT) * (single + comb(work.widest, 2)) + keys * work.visits * single,)

    def to_predict(self, state: BaselineState) -> BaselineState:
        """Return a state with the weights only."""
        return state._replace(spread=np.zeros((0, 1), np.float32))

    def state(self, state: BaselineState, inputs: Inputs, *, working: Sequence[bool]) -> dict[str, Any]:
        """Return the cells that were learnt; of a state that can only predict, those with a weight."""
        learns = len(state.spread) > 0
        cells = np.flatnonzero(state.spread[:, 0] if learns else state.weights[:, 0] * working[0])
        more = {"spread": state.spread[cells]} if learns else {}
        return {"cells": cells, "weights": state.weights[cells], "costs": state.costs} | more

    def restore(self, stored: Stored, state: BaselineState, inputs: Inputs) -> None:
        """Copy the stored cells into the state; all other cells count as never learnt."""
        cells = stored["cells"].counts((-1,), most=len(state.weights) - 1)
        shape = len(cells), 1
        state.weights[:] = 0.0
        state.weights[cells] = stored["weights"].finite(np.float32, shape)
        if len(state.spread):
            state.spread[:] = 0.0
            state.spread[cells] = stored["spread"].within(np.zeros(shape, np.float32), 0.0, 1.0)
        state.costs[:] = stored["costs"].finite(np.float64, (3,))

    def merge(self, base: Branch, branches: Sequence[Branch], inputs: Inputs) -> BaselineState:
        """Return cells merged by their precisions, and the merged mean and errors of the costs."""
        began, ends, learnt = base.state, [each.state for each in branches], learnt_by(branches)
        weights, spread = merge_cells(
            (began.weights, began.spread),
            [(end.weights, end.spread) for end in ends],
            learnt,
            keeps=KEEPS,
            between=(SURE, _UNSURE),
        )
        parts = shares(learnt, averaging(float(branches[0].seen[-1, 0]), LATEST))
        mean, variance = merge_moments(began.costs, [end.costs for end in ends], parts)
        error = merged(began.costs[_Cost.ERROR], [end.costs[_Cost.ERROR] for end in ends], parts)
        return BaselineState(weights, spread, np.array([mean, variance, error]))


MEMBER = Baseline()
