"""Members that cross: learn a weight for each product of features of the context and of the action.

One has single features of the context, one has pairs as well, and one triples too; each learns by itself. A
number counts as the bin that it is in, in pairs and triples as the group of bins. They are crossed with the
action as such or, if there are too many to tell apart, with each of its features and with its whole line.

Actions that are told apart come in fours. A product has its weights with the four side by side, so that they
are found once for all of them.

A weight is learnt by a Kalman filter that keeps its variance but no covariances: what was seen often changes
little, what is new changes much, and no rate has to be chosen. It starts at 0, and all of them add up to how
much the cost differs from the mean. They lie in cells of a table by their hash, and share them if need be.

Source: Dredze, Crammer and Pereira, *Confidence-weighted linear classification*, 2008.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.event.example_kernels import line_of
from onlineauto.engine.event.state import ACTIONS, MEMBERS, MOST_ACTIONS, MOST_CROSSED, ORDERS, WIDEST
from onlineauto.engine.stack.action_key_kernels import action_key
from onlineauto.engine.stack.member_input_kernels import (
    SINGLES,
    all_rest,
    bin_of,
    context_line,
    joins,
    place_of,
    works,
)
from onlineauto.jit import inline_kernel, kernel, short_loop

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.event.state import Actions, Buffers, Crosses, Members, Run

SPREAD, KEEPS = 0.1, 0.9995
"""Variance of a weight before the first event, and what a weight keeps of its certainty when it is learnt."""

_FINE, _COARSE, _KEYS, _PRODUCTS, _CELLS = range(5)
_MOST_KEYS, _LATEST, _SURE, _LARGEST = 8, 1000.0, 1e-7, 1e30
_SINGLE, _PAIRED, _TRIPLED = MOST_CROSSED
_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)
_BYTE, _BIN_SHIFT, _GROUP_SHIFT = np.uint64(8), np.uint64(40), np.uint64(41)
_OF_ACTION = np.uint64(1) << np.uint64(42)
_SECOND, _THIRD, _FOURTH = np.uint64(1), np.uint64(2), np.uint64(3)
_FOUR = ~_FOURTH
"""Bits of a key or a cell that say which one of four it is, and those that say which four."""


@inline_kernel
def _mixed(key: np.uint64) -> np.uint64:
    """Return a hash of a key."""
    mixed = (key ^ (key >> _SHIFT)) * _MIX
    mixed = (mixed ^ (mixed >> _SHIFT)) * _MIX
    return mixed ^ (mixed >> _SHIFT)


@inline_kernel
def _is_new(crossed: NDArray[np.uint64], n: int, coarse: np.uint64) -> bool:
    """Return whether none of the first `n` features is this one."""
    new = True
    for i in range(n):
        new = new and crossed[_COARSE, i] != coarse
    return new


@inline_kernel
def _take_features(run: Run, line: int, crossed: NDArray[np.uint64], most: int) -> int:
    """Put the hashes of the features of a line into two rows: bins of numbers, and groups of bins.

    A feature that is repeated is taken once: no product may have its cell twice, as the step that is right
    for one would be too far for two. Returns how many there are, `most` + 1 if more than `most`.
    """
    members, stream, n = run.live.stack.members, run.stream, 0
    for span in range(stream.lines[line].start, stream.lines[line + 1].start):
        short_loop()
        if run.layout.ignore[run.layout.key[stream.spans[span].namespace]]:
            continue
        for i in range(stream.spans[span].start, stream.spans[span + 1].start):
            short_loop()
            feature, value = stream.features[i].hash, np.float64(stream.features[i].value)
            if n > most or value == 0.0 or not math.isfinite(value):
                continue
            place, number = place_of(members, np.uint64(feature)), -1
            if members.feature[place] != 0:
                number = members.number[members.input[place]]
            if number < 0 and value == 1.0:
                fine = coarse = _mixed(np.uint64(feature))
            elif number >= 0 and members.bins[number] > 0:
                at = bin_of(members, number, value)
                name = np.uint64(number + 1) << _BYTE
                part, group = np.uint64(members.part[number, at]), np.uint64(members.group[number, at])
                fine = _mixed((name + part) + (np.uint64(1) << _BIN_SHIFT))
                coarse = _mixed((name + group) + (np.uint64(1) << _GROUP_SHIFT))
            else:
                continue
            if _is_new(crossed, n, coarse):
                if n < most:
                    crossed[_FINE, n], crossed[_COARSE, n] = fine, coarse
                n += 1
    return n


@kernel
def _multiply(crossed: NDArray[np.uint64], n: int, pairs: bool, triples: bool) -> tuple[int, int, int]:
    """Fill the products of `n` features: the empty one and single ones, pairs, triples.

    Returns where each kind ends; pairs and triples may be left out.
    """
    coarse, products = crossed[_COARSE], crossed[_PRODUCTS]
    products[0] = np.uint64(0)
    for i in range(n):
        products[1 + i] = crossed[_FINE, i]
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
def _any_works(members: Members) -> bool:
    """Return whether one of the members that cross has scores."""
    return works(members, SINGLES) or works(members, SINGLES + 1) or works(members, SINGLES + 2)


@inline_kernel
def _take_products(run: Run, actions: Actions, learns: bool, buffers: Buffers) -> tuple[int, int, int]:
    """Fill the products of the context of an event; return where each kind of them ends.

    If the event is learnt, note how many features the context has, by which members have scores or not.
    """
    members, line, n = run.live.stack.members, context_line(run, actions), 0
    if line >= 0:
        n = _take_features(run, line, buffers.crossed, _SINGLE)
    if learns:
        members.tally[WIDEST] = max(members.tally[WIDEST], n)
    n = min(n, _SINGLE)
    triples = works(members, SINGLES + 2) and n <= _TRIPLED
    pairs = (triples or works(members, SINGLES + 1)) and n <= _PAIRED
    return _multiply(buffers.crossed, n, pairs, triples)


@inline_kernel
def _take_keys(run: Run, actions: Actions, action: int, buffers: Buffers) -> int:
    """Fill the keys by which the context is crossed with an action of many; return their number."""
    keys = buffers.crossed[_KEYS]
    n = min(_take_features(run, line_of(run, actions, action), buffers.crossed, _MOST_KEYS), _MOST_KEYS)
    for i in range(n):
        short_loop()
        keys[i] = _mixed(buffers.crossed[_COARSE, i] + _OF_ACTION)
    keys[n] = _mixed(action_key(run, actions, action) + _OF_ACTION)
    return n + 1


@inline_kernel
def _key_of(index: int) -> np.uint64:
    """Return the key by which the context is crossed with an action that is told apart, of this index."""
    return (_mixed(np.uint64(index // 4) + _OF_ACTION) & _FOUR) | np.uint64(index % 4)


@inline_kernel
def _find_cells(crossed: NDArray[np.uint64], key: np.uint64, end: int, shift: np.uint64) -> None:
    """Fill the cells of the products before `end`, crossed with a key; their last two bits are the key's.

    They are found in a loop of their own, so that several are at once, and none of the memory is waited for.
    """
    products, cells = crossed[_PRODUCTS], crossed[_CELLS]
    for i in range(end):
        cells[i] = ((((products[i] ^ (key | _FOURTH)) * _MIX) >> shift) & _FOUR) | (key & _FOURTH)


@inline_kernel
def _shift(crosses: Crosses) -> np.uint64:
    """Return by how much a hash is shifted to be a cell."""
    cells, shift = len(crosses.weights), 64
    while cells > 1:
        cells >>= 1
        shift -= 1
    return np.uint64(shift)


@kernel
def _add_up(
    crosses: Crosses, crossed: NDArray[np.uint64], keys: int, ends: tuple[int, int, int]
) -> tuple[float, float, float]:
    """Return the sums of the weights of all products with the keys: of each member.

    Those of triples are the most, and are added up in four sums, as one addition waits for the last.
    """
    weights, cells, shift = crosses.weights, crossed[_CELLS], _shift(crosses)
    one, two, three = 0.0, 0.0, 0.0
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for k in range(keys):
        _find_cells(crossed, crossed[_KEYS, k], ends[2], shift)
        for i in range(ends[0]):
            one += weights[cells[i], 0]
            two += weights[cells[i], 1]
            three += weights[cells[i], 2]
        for i in range(ends[0], ends[1]):
            two += weights[cells[i], 1]
            three += weights[cells[i], 2]
        for i in range(ends[1], ends[2] - 3, 4):
            a += weights[cells[i], 2]
            b += weights[cells[i + 1], 2]
            c += weights[cells[i + 2], 2]
            d += weights[cells[i + 3], 2]
        for i in range(ends[2] - (ends[2] - ends[1]) % 4, ends[2]):
            a += weights[cells[i], 2]
    return one, two, three + ((a + b) + (c + d))


@kernel
def _add_up_four(
    crosses: Crosses, crossed: NDArray[np.uint64], key: np.uint64, end: int, order: int
) -> tuple[float, float, float, float]:
    """Return the sums of the weights of the products before `end`, with four actions from this key on."""
    weights, cells = crosses.weights, crossed[_CELLS]
    one, two, three, four = 0.0, 0.0, 0.0, 0.0
    _find_cells(crossed, key, end, _shift(crosses))
    for i in range(end):
        cell = cells[i]
        one += weights[cell, order]
        two += weights[cell + _SECOND, order]
        three += weights[cell + _THIRD, order]
        four += weights[cell + _FOURTH, order]
    return one, two, three, four


@inline_kernel
def score_crosses(run: Run, actions: Actions, begin: int, end: int, buffers: Buffers) -> None:
    """Fill the columns of the members that cross, of the actions [begin, end) that are known."""
    members, known = run.live.stack.members, buffers.known
    if not _any_works(members):
        return
    ends, mean = _take_products(run, actions, False, buffers), members.crosses.mean[0]
    if joins(members):
        _score_joint(run, actions, begin, end, ends, buffers)
        return
    for order in range(ORDERS):
        short_loop()
        if not works(members, SINGLES + order):
            continue
        column = buffers.score.shape[1] - 1 - MEMBERS + SINGLES + order
        for four in range((min(members.tally[ACTIONS], MOST_ACTIONS) + 3) // 4):
            short_loop()
            sums, found = (0.0, 0.0, 0.0, 0.0), False
            for action in range(begin, end):
                short_loop()
                if known[action] < 0 or known[action] // 4 != four:
                    continue
                if not found:
                    sums = _add_up_four(
                        members.crosses, buffers.crossed, _key_of(4 * four), ends[order], order
                    )
                    found = True
                buffers.score[action, column] = mean + sums[known[action] % 4]


@inline_kernel
def _score_joint(
    run: Run, actions: Actions, begin: int, end: int, ends: tuple[int, int, int], buffers: Buffers
) -> None:
    """Fill the columns of the members that cross, of the actions [begin, end) of many."""
    members, score = run.live.stack.members, buffers.score
    first, mean = score.shape[1] - 1 - MEMBERS + SINGLES, members.crosses.mean[0]
    for action in range(begin, end):
        short_loop()
        if buffers.known[action] < 0:
            continue
        keys = _take_keys(run, actions, action, buffers)
        sums = _add_up(members.crosses, buffers.crossed, keys, ends)
        for order in range(ORDERS):
            short_loop()
            if works(members, SINGLES + order):
                score[action, first + order] = mean + sums[order]


@kernel
def learn_products(
    crosses: Crosses, crossed: NDArray[np.uint64], keys: int, end: int, order: int, cost: float, weight: float
) -> None:
    """Let the member of an order learn the cost of an event from the products before `end`."""
    weights, spreads, cells, shift = crosses.weights, crosses.spread, crossed[_CELLS], _shift(crosses)
    error, total = cost - crosses.mean[0], 1.0 / weight
    for k in range(keys):
        _find_cells(crossed, crossed[_KEYS, k], end, shift)
        for i in range(end):
            if spreads[cells[i], order] == 0:
                spreads[cells[i], order] = SPREAD
            error -= weights[cells[i], order]
            total += spreads[cells[i], order]
    if not math.isfinite(error):
        return
    for k in range(keys):
        _find_cells(crossed, crossed[_KEYS, k], end, shift)
        for i in range(end):
            spread = np.float64(spreads[cells[i], order])
            learnt = weights[cells[i], order] + spread * (error / total)
            weights[cells[i], order] = min(max(learnt, -_LARGEST), _LARGEST)
            less = (spread - spread * (spread / total)) / KEEPS
            spreads[cells[i], order] = min(max(less, _SURE), SPREAD)


@inline_kernel
def learn_crosses(
    run: Run, actions: Actions, action: int, index: int, cost: float, weight: float, buffers: Buffers
) -> None:
    """Let the members that cross learn the cost of the logged action of an event, known by its index."""
    members = run.live.stack.members
    if not members.crossing or all_rest(members, SINGLES, SINGLES + ORDERS):
        return
    ends = _take_products(run, actions, True, buffers)
    if _any_works(members):
        buffers.crossed[_KEYS, 0], keys = _key_of(index), 1
        if joins(members):
            keys = _take_keys(run, actions, action, buffers)
        for order in range(ORDERS):
            short_loop()
            if works(members, SINGLES + order):
                learn_products(members.crosses, buffers.crossed, keys, ends[order], order, cost, weight)
    seen = np.float64(members.seen[MOST_ACTIONS] + 1)
    members.crosses.mean[0] += (cost - members.crosses.mean[0]) / min(seen, _LATEST)
