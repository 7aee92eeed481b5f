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
from enum import IntEnum
from math import comb
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlineauto.engine.ensemble.branches import averaging, learnt_by, merge_cells, merged, shares
from onlineauto.engine.ensemble.input_kernels import (
    action_key,
    bin_of,
    context_line,
    is_rule,
    joins,
    place_of,
)
from onlineauto.engine.ensemble.member import Kernels, Lesson, Member, Needs, Part, Sizes, Work
from onlineauto.engine.ensemble.need_kernels import works
from onlineauto.engine.ensemble.prices import LEARNT
from onlineauto.engine.event.example_kernels import line_of
from onlineauto.engine.event.pass_kernels import run_on
from onlineauto.engine.records.ensemble import MOST_ACTIONS, OF_CROSSES, Known
from onlineauto.jit import entry_kernel, inline_kernel, kernel, short_loop
from onlineauto.jit.four import element, load_from, splat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from onlineauto.engine.ensemble.branches import Branch
    from onlineauto.engine.records.ensemble import Inputs, Members
    from onlineauto.engine.records.loop import Actions, Context, LoopRun
    from onlineauto.features.records import Stream
    from onlineauto.features.stored import Stored

ORDERS = 3
"""Number of scores: features of the context one by one, in pairs, in triples."""

MOST_CROSSED = 64, 24, 10
"""Maximum number of features of a context that are crossed with the action singly, in pairs, in triples."""

MOST_PRODUCTS = 512
"""Maximum number of products of a context: 1 + 24 + 24 · 23 / 2, or 1 + 10 + 45 + 120, rounded up."""

_FEWEST_CELLS, _MOST_CELLS = 1 << 14, 1 << 20
SPREAD, KEEPS = 0.1, 0.9995
"""Variance of a weight before the first event, and the part of its precision that survives an update."""


class Crossed(IntEnum):
    """Rows of `crossed`, the scratch memory of a caller of the loop."""

    FINE = 0
    COARSE = 1
    KEYS = 2
    PRODUCTS = 3
    CELLS = 4


_MOST_KEYS, LATEST, SURE, LARGEST = 8, 1000.0, 1e-7, 1e30
_SINGLE, _PAIRED, _TRIPLED = MOST_CROSSED
_LIMITS = np.array(sorted(MOST_CROSSED))
_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)
_BYTE, _BIN_SHIFT, _GROUP_SHIFT = np.uint64(8), np.uint64(40), np.uint64(41)
_OF_ACTION = np.uint64(1) << np.uint64(42)
_FOURTH = np.uint64(3)
_FOUR = ~_FOURTH
"""Bits of a key or a cell: the position within a group of four, and the group."""


class Crosses(NamedTuple):
    """Weights of products of context and action."""

    weights: NDArray[np.float32]  # [ORDERS, cells]
    spread: NDArray[np.float32]  # [ORDERS, cells]: variance of a weight, 0 if it was never learnt
    mean: NDArray[np.float64]  # [1]: of the costs


class CrossesScratch(NamedTuple):
    """Scratch of the member."""

    crossed: NDArray[np.uint64]  # [5, MOST_PRODUCTS]


@inline_kernel
def _mixed(key: np.uint64) -> np.uint64:
    """Return a hash of a key."""
    mixed = (key ^ (key >> _SHIFT)) * _MIX
    mixed = (mixed ^ (mixed >> _SHIFT)) * _MIX
    return mixed ^ (mixed >> _SHIFT)


@inline_kernel
def _is_new(crossed: NDArray[np.uint64], n: int, coarse: np.uint64) -> bool:
    """Return whether none of the first `n` features has the hash `coarse`."""
    new = True
    for i in range(n):
        new = new and crossed[Crossed.COARSE, i] != coarse
    return new


@inline_kernel
def take_features(run: LoopRun, line: int, crossed: NDArray[np.uint64], most: int) -> int:
    """Put the hashes of the features of a line into two rows: bins of numbers, and groups of bins.

    A repeated feature is used once: if a product had its cell twice, the cell would be updated twice and
    overshoot. Returns the number of features, `most` + 1 if there are more than `most`.
    """
    inputs, stream, n = run.live.ensemble.members.inputs, run.stream, 0
    for span in range(stream.lines[line].start, stream.lines[line + 1].start):
        short_loop()
        if run.layout.ignore[run.layout.key[stream.spans[span].namespace]]:
            continue
        for i in range(stream.spans[span].start, stream.spans[span + 1].start):
            short_loop()
            feature, value = stream.features[i].hash, np.float64(stream.features[i].value)
            if n > most or value == 0.0 or not math.isfinite(value):
                continue
            place, number = place_of(inputs, np.uint64(feature)), -1
            if inputs.feature[place] != 0:
                number = inputs.number[inputs.input[place]]
            if number < 0 and value == 1.0:
                fine = coarse = _mixed(np.uint64(feature))
            elif number >= 0 and inputs.numbers.bins[number] > 0:
                at = bin_of(inputs, number, value)
                name = np.uint64(number + 1) << _BYTE
                part, group = (
                    np.uint64(inputs.numbers.part[number, at]),
                    np.uint64(inputs.numbers.group[number, at]),
                )
                fine = _mixed((name + part) + (np.uint64(1) << _BIN_SHIFT))
                coarse = _mixed((name + group) + (np.uint64(1) << _GROUP_SHIFT))
            else:
                continue
            if _is_new(crossed, n, coarse):
                if n < most:
                    crossed[Crossed.FINE, n], crossed[Crossed.COARSE, n] = fine, coarse
                n += 1
    return n


@kernel
def multiply(crossed: NDArray[np.uint64], n: int, pairs: bool, triples: bool) -> tuple[int, int, int]:
    """Fill the products of `n` features: the empty one and single ones, then `pairs`, then `triples`.

    Returns the end of each kind.
    """
    coarse, products = crossed[Crossed.COARSE], crossed[Crossed.PRODUCTS]
    products[0] = np.uint64(0)
    for i in range(n):
        products[1 + i] = crossed[Crossed.FINE, i]
    single = end = 1 + n
    if pairs:
        for i in range(n):
            for j in range(i):
                products[end] = _mixed(coarse[i] + coarse[j])
                end += 1
    paired = end
    if triples:
        for i in range(n):
            for j in range(i):
                for k in range(j):
                    products[end] = _mixed((coarse[i] + coarse[j]) + coarse[k])
                    end += 1
    return single, paired, end


@inline_kernel
def note_width(inputs: Inputs, n: int, counts: int) -> None:
    """Note the number of features of a learnt context; count wide events from entry `counts` of `wide` on.

    A context that exceeds a limit counts as one at the limit, unless exceeding it is the rule.
    """
    for at in range(len(_LIMITS)):
        short_loop()
        limit = _LIMITS[at]
        if n > limit and inputs.tally[Known.WIDEST] <= limit and not is_rule(inputs, counts + at):
            n = limit
    inputs.tally[Known.WIDEST] = max(inputs.tally[Known.WIDEST], n)


@inline_kernel
def _any_works(members: Members, first: int) -> bool:
    """Return whether any score from index `first` on is computed."""
    return works(members, first) or works(members, first + 1) or works(members, first + 2)


@inline_kernel
def _take_products(
    run: LoopRun, actions: Actions, learns: bool, first: int, scratch: CrossesScratch
) -> tuple[tuple[int, int, int], int]:
    """Fill the products of the context of an event; return the end of each kind and the number of features.

    A score skips events with more features than it crosses. If the event is learnt, the number of features is
    noted; it decides which scores work.
    """
    members, line, n = run.live.ensemble.members, context_line(run, actions), 0
    if line >= 0:
        n = take_features(run, line, scratch.crossed, _SINGLE)
    if learns:
        note_width(members.inputs, n, OF_CROSSES)
    triples = works(members, first + 2) and n <= _TRIPLED
    pairs = (triples or works(members, first + 1)) and n <= _PAIRED
    return multiply(scratch.crossed, min(n, _SINGLE), pairs, triples), n


@inline_kernel
def take_keys(run: LoopRun, actions: Actions, action: int, crossed: NDArray[np.uint64]) -> int:
    """Fill the keys by which the context is crossed with a joined action; return their number."""
    keys = crossed[Crossed.KEYS]
    n = min(take_features(run, line_of(run, actions, action), crossed, _MOST_KEYS), _MOST_KEYS)
    for i in range(n):
        short_loop()
        keys[i] = _mixed(crossed[Crossed.COARSE, i] + _OF_ACTION)
    keys[n] = _mixed(action_key(run, actions, action) + _OF_ACTION)
    return n + 1


@inline_kernel
def key_of(index: int) -> np.uint64:
    """Return the key by which the context is crossed with the action at an index."""
    return (_mixed(np.uint64(index // 4) + _OF_ACTION) & _FOUR) | np.uint64(index % 4)


@inline_kernel
def find_cells(crossed: NDArray[np.uint64], key: np.uint64, end: int, shift: np.uint64) -> None:
    """Fill the cells of the products before index `end`, crossed with a key; the last two bits are the key's.

    The separate loop lets the processor compute several cells at once, without waiting for memory.
    """
    products, cells = crossed[Crossed.PRODUCTS], crossed[Crossed.CELLS]
    for i in range(end):
        cells[i] = ((((products[i] ^ (key | _FOURTH)) * _MIX) >> shift) & _FOUR) | (key & _FOURTH)


@inline_kernel
def shift_of(cells: int) -> np.uint64:
    """Return the number of bits by which a hash is shifted to number one of `cells` cells."""
    shift = 64
    while cells > 1:
        cells >>= 1
        shift -= 1
    return np.uint64(shift)


@inline_kernel
def _sum_of(weights: NDArray[np.float32], cells: NDArray[np.uint64], end: int) -> float:
    """Return the sum of the weights in the cells before index `end`.

    It is added up in four sums, because each addition to a single sum would wait for the previous one.
    """
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    fours = end - end % 4
    for i in range(0, fours, 4):
        a += weights[cells[i]]
        b += weights[cells[i + 1]]
        c += weights[cells[i + 2]]
        d += weights[cells[i + 3]]
    for i in range(fours, end):
        a += weights[cells[i]]
    return (a + b) + (c + d)


@inline_kernel
def _sum_of_four(
    weights: NDArray[np.float32], cells: NDArray[np.uint64], end: int
) -> tuple[float, float, float, float]:
    """Return four sums of the weights of the products before index `end`: of the four actions of a group.

    `cells` are those of the first of these actions.
    """
    one, other = splat(np.float32(0)), splat(np.float32(0))
    for i in range(0, end - 1, 2):
        one = one + load_from(weights, cells[i])
        other = other + load_from(weights, cells[i + 1])
    if end % 2 == 1:
        one = one + load_from(weights, cells[end - 1])
    total = one + other
    return element(total, 0), element(total, 1), element(total, 2), element(total, 3)


@inline_kernel
def _score_joint(
    context: Context,
    run: LoopRun,
    actions: Actions,
    part: Part,
    products: tuple[tuple[int, int, int], int],
    state: Crosses,
    scratch: CrossesScratch,
) -> None:
    """Score actions that are joined."""
    buffers, (ends, n), shift = context.buffers, products, shift_of(state.weights.shape[1])
    for action in range(part.begin, part.end):
        short_loop()
        if buffers.members.known[action] < 0:
            continue
        keys = take_keys(run, actions, action, scratch.crossed)
        for order in range(ORDERS):
            short_loop()
            if works(run.live.ensemble.members, part.score + order) and n <= MOST_CROSSED[order]:
                buffers.score[action, part.column + order] = state.mean[0]
        for k in range(keys):
            find_cells(scratch.crossed, scratch.crossed[Crossed.KEYS, k], ends[2], shift)
            for order in range(ORDERS):
                short_loop()
                if works(run.live.ensemble.members, part.score + order) and n <= MOST_CROSSED[order]:
                    total = _sum_of(state.weights[order], scratch.crossed[Crossed.CELLS], ends[order])
                    buffers.score[action, part.column + order] += total


@entry_kernel
def score_crosses(
    context: Context, stream: Stream, actions: Actions, part: Part, state: Crosses, scratch: CrossesScratch
) -> None:
    """Score the actions of an event."""
    run, buffers = run_on(context, stream), context.buffers
    members, known = run.live.ensemble.members, buffers.members.known
    products, mean = _take_products(run, actions, False, part.score, scratch), state.mean[0]
    if joins(members.inputs):
        _score_joint(context, run, actions, part, products, state, scratch)
        return
    ends, n = products
    shift, cells = shift_of(state.weights.shape[1]), scratch.crossed[Crossed.CELLS]
    for four in range((min(members.inputs.tally[Known.ACTIONS], MOST_ACTIONS) + 3) // 4):
        short_loop()
        present = False
        for action in range(part.begin, part.end):
            short_loop()
            present = present or (known[action] >= 0 and known[action] // 4 == four)
        if not present:
            continue
        find_cells(scratch.crossed, key_of(4 * four), ends[2], shift)
        for order in range(ORDERS):
            short_loop()
            if not works(members, part.score + order) or n > MOST_CROSSED[order]:
                continue
            sums = _sum_of_four(state.weights[order], cells, ends[order])
            for action in range(part.begin, part.end):
                short_loop()
                if known[action] >= 0 and known[action] // 4 == four:
                    buffers.score[action, part.column + order] = mean + sums[known[action] % 4]


@kernel
def learn_products(
    crosses: Crosses, crossed: NDArray[np.uint64], keys: int, end: int, order: int, cost: float, weight: float
) -> None:
    """Let the weights of an order learn the cost of an event from the products before index `end`."""
    weights, spreads, cells = crosses.weights[order], crosses.spread[order], crossed[Crossed.CELLS]
    shift, error, total = shift_of(len(weights)), cost - crosses.mean[0], 1.0 / weight
    for k in range(keys):
        find_cells(crossed, crossed[Crossed.KEYS, k], end, shift)
        for i in range(end):
            if spreads[cells[i]] == 0:
                spreads[cells[i]] = SPREAD
            error -= weights[cells[i]]
            total += spreads[cells[i]]
    if not math.isfinite(error):
        return
    for k in range(keys):
        if keys > 1:
            find_cells(crossed, crossed[Crossed.KEYS, k], end, shift)
        for i in range(end):
            spread = np.float64(spreads[cells[i]])
            learnt = weights[cells[i]] + spread * (error / total)
            weights[cells[i]] = min(max(learnt, -LARGEST), LARGEST)
            less = (spread - spread * (spread / total)) * (1.0 / KEEPS)
            spreads[cells[i]] = min(max(less, SURE), SPREAD)


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
    run, members = run_on(context, stream), context.live.ensemble.members
    ends, n = _take_products(run, actions, True, lesson.score, scratch)
    if lesson.known >= 0 and _any_works(members, lesson.score):
        scratch.crossed[Crossed.KEYS, 0], keys = key_of(lesson.known), 1
        if joins(members.inputs):
            keys = take_keys(run, actions, lesson.action, scratch.crossed)
        for order in range(ORDERS):
            short_loop()
            if works(members, lesson.score + order) and n <= MOST_CROSSED[order]:
                learn_products(state, scratch.crossed, keys, ends[order], order, lesson.cost, lesson.weight)
    seen = np.float64(members.inputs.seen[MOST_ACTIONS] + 1)
    state.mean[0] += (lesson.cost - state.mean[0]) / min(seen, LATEST)


@entry_kernel
def grow_crosses(context: Context, state: Crosses) -> None:
    """Do nothing: cells need no preparation."""


class CrossesMember(Member):
    """Weights of products of features with the action."""

    name = "crosses"
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
        return CrossesScratch(np.zeros((5, MOST_PRODUCTS), np.uint64))

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
            state.spread.T[cells] = stored["spread"].within(like, 0.0, 1.0)
        state.mean[:] = stored["mean"].finite(np.float64, (1,))

    def merge(self, base: Branch, branches: Sequence[Branch], inputs: Inputs) -> Crosses:
        """Return cells merged by their precisions.

        The result is not exact for actions and bins that branches have found in different orders since the
        base.
        """
        began, ends, learnt = base.state, [each.state for each in branches], learnt_by(branches)
        weights, spread = merge_cells(
            (began.weights.T, began.spread.T),
            [(end.weights.T, end.spread.T) for end in ends],
            learnt,
            keeps=KEEPS,
            between=(SURE, SPREAD),
        )
        parts = shares(learnt, averaging(float(branches[0].seen[-1, 0]), LATEST))
        planes = np.ascontiguousarray(weights.T), np.ascontiguousarray(spread.T)
        return Crosses(*planes, merged(began.mean, [end.mean for end in ends], parts))


MEMBER = CrossesMember()
