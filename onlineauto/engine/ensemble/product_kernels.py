"""Products of the features of an event's context, and the keys by which they are crossed with its actions.

Members that cross share both, so they are computed once for an event: when the first member asks for them.
They are valid until `forget_products`. A number is represented by its bin; in products of several features,
by its group of bins.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.ensemble.input_kernels import (
    action_key,
    bin_of,
    context_line,
    is_rule,
    number_of_projection,
    slot_of,
    used_features,
)
from onlineauto.engine.event.example_kernels import line_of
from onlineauto.engine.records.ensemble import MOST_CROSSED, MOST_KEYS, InVectors, Known
from onlineauto.features.hash_constants import GOLDEN
from onlineauto.jit import inline_kernel, kernel, short_loop
from onlineauto.jit.four import element, load_from, splat

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.records.ensemble import Inputs
    from onlineauto.engine.records.loop import Actions, Buffers, LoopRun


_GOLDEN = np.uint64(GOLDEN)


class Crossed(IntEnum):
    """Rows of `MemberBuffers.crossed`: hashes of features, and products. Actions use the rows `OF_ACTION`."""

    FINE = 0
    COARSE = 1
    OF_ACTION = 2
    COARSE_OF_ACTION = 3
    PRODUCTS = 4


class Ends(IntEnum):
    """Entries of `MemberBuffers.ends`: the number of features + 1; the end of each kind of products, or 0."""

    FEATURES = 0
    SINGLE = 1
    PAIRED = 2
    TRIPLED = 3


_SINGLE, _PAIRED, _TRIPLED = MOST_CROSSED
_LIMITS = np.array(sorted(MOST_CROSSED))
_SHIFT = np.uint64(32)
_BYTE, _BIN_SHIFT, _GROUP_SHIFT = np.uint64(8), np.uint64(40), np.uint64(41)
_OF_ACTION = np.uint64(1) << np.uint64(42)
_FOURTH = np.uint64(3)
_FOUR = ~_FOURTH
"""Bits of a key or a cell: the position within a group of four, and the group."""


KEEPS, SURE, _LARGEST = 0.9995, 1e-7, 1e30
"""The part of the precision of a weight that survives an update; the minimum variance and largest weight."""


@inline_kernel
def _mix_key(key: np.uint64) -> np.uint64:
    """Return a hash of a key."""
    mixed = (key ^ (key >> _SHIFT)) * _GOLDEN
    mixed = (mixed ^ (mixed >> _SHIFT)) * _GOLDEN
    return mixed ^ (mixed >> _SHIFT)


@inline_kernel
def _is_new(coarse: NDArray[np.uint64], n: int, feature: np.uint64) -> bool:
    """Return whether none of the first `n` hashes is that of a feature."""
    new = True
    for i in range(n):
        new = new and coarse[i] != feature
    return new


@inline_kernel
def _keys_of_number(inputs: Inputs, number: int, value: float) -> tuple[np.uint64, np.uint64]:
    """Return the hashes of the bin of a number, and of its group of bins."""
    at, name = bin_of(inputs, number, value), np.uint64(number + 1) << _BYTE
    part, together = (
        np.uint64(inputs.numbers.part[number, at]),
        np.uint64(inputs.numbers.group[number, at]),
    )
    own = _mix_key((name + part) + (np.uint64(1) << _BIN_SHIFT))
    return own, _mix_key((name + together) + (np.uint64(1) << _GROUP_SHIFT))


@inline_kernel
def _add_projections(inputs: Inputs, n: int, buffers: Buffers) -> int:
    """Add the projections of vectors to the `n` features of a context; return the number of features."""
    crossed = buffers.members.crossed
    for direction in range(inputs.vectors.vectors[InVectors.PROJECTED]):
        short_loop()
        number = number_of_projection(inputs, direction)
        value = buffers.members.taken.raw[max(number, 0)]
        if number >= 0 and value != 0.0 and inputs.numbers.bins[number] > 0:
            own, group = _keys_of_number(inputs, number, value)
            if n < _SINGLE:
                crossed[Crossed.FINE, n], crossed[Crossed.COARSE, n] = own, group
            n += 1
    return n


@kernel
def _take_features(
    run: LoopRun, line: int, most: int, fine: NDArray[np.uint64], coarse: NDArray[np.uint64]
) -> int:
    """Put the hashes of the features of a line into two rows: bins of numbers, and groups of bins.

    A repeated feature is used once: if a product had its cell twice, the cell would be updated twice and
    overshoot. Returns the number of features, `most` + 1 if there are more than `most`.
    """
    inputs, stream, n = run.live.ensemble.members.inputs, run.stream, 0
    for span in range(stream.lines[line].start, stream.lines[line + 1].start):
        short_loop()
        begin, end = used_features(run, span)
        for i in range(begin, end):
            short_loop()
            feature, value = stream.features[i].hash, np.float64(stream.features[i].value)
            if n > most or value == 0.0 or not math.isfinite(value):
                continue
            slot, number = slot_of(inputs, np.uint64(feature)), -1
            if inputs.feature[slot] != 0:
                number = inputs.number[inputs.input[slot]]
            if number < 0 and value == 1.0:
                own = group = _mix_key(np.uint64(feature))
            elif number >= 0 and inputs.numbers.bins[number] > 0:
                own, group = _keys_of_number(inputs, number, value)
            else:
                continue
            if _is_new(coarse, n, group):
                if n < most:
                    fine[n], coarse[n] = own, group
                n += 1
    return n


@inline_kernel
def forget_products(buffers: Buffers, begin: int, end: int) -> None:
    """Mark the products of the context and the keys of the actions [begin, end) as outdated."""
    buffers.members.ends[Ends.FEATURES] = 0
    for action in range(begin, end):
        short_loop()
        buffers.members.n_keys[action] = 0


@inline_kernel
def take_context(run: LoopRun, actions: Actions, buffers: Buffers) -> int:
    """Fill the empty product and those of single features of the context; return the number of features."""
    crossed, ends = buffers.members.crossed, buffers.members.ends
    if ends[Ends.FEATURES] == 0:
        line, n = context_line(run, actions), 0
        if line >= 0:
            n = _take_features(run, line, _SINGLE, crossed[Crossed.FINE], crossed[Crossed.COARSE])
            n = _add_projections(run.live.ensemble.members.inputs, n, buffers)
        crossed[Crossed.PRODUCTS, 0] = np.uint64(0)
        for i in range(min(n, _SINGLE)):
            crossed[Crossed.PRODUCTS, 1 + i] = crossed[Crossed.FINE, i]
        ends[Ends.FEATURES], ends[Ends.SINGLE] = n + 1, 1 + min(n, _SINGLE)
        ends[Ends.PAIRED] = ends[Ends.TRIPLED] = 0
    return int(ends[Ends.FEATURES] - 1)


@kernel
def take_products(buffers: Buffers, pairs: bool, triples: bool) -> None:
    """Add to the products of single features those of pairs and triples, if there are not too many."""
    products, coarse = buffers.members.crossed[Crossed.PRODUCTS], buffers.members.crossed[Crossed.COARSE]
    ends = buffers.members.ends
    n, end = ends[Ends.FEATURES] - 1, ends[Ends.SINGLE]
    if (pairs or triples) and n <= _PAIRED and ends[Ends.PAIRED] == 0:
        for i in range(n):
            for j in range(i):
                products[end] = _mix_key(coarse[i] + coarse[j])
                end += 1
        ends[Ends.PAIRED] = end
    if triples and n <= _TRIPLED and ends[Ends.TRIPLED] == 0:
        end = ends[Ends.PAIRED]
        for i in range(n):
            for j in range(i):
                for k in range(j):
                    products[end] = _mix_key((coarse[i] + coarse[j]) + coarse[k])
                    end += 1
        ends[Ends.TRIPLED] = end


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
def take_keys(run: LoopRun, actions: Actions, action: int, buffers: Buffers) -> int:
    """Fill the keys by which the context is crossed with a joined action; return their number."""
    members = buffers.members
    keys, n = members.keys[action], members.n_keys[action]
    if n == 0:
        fine, coarse = members.crossed[Crossed.OF_ACTION], members.crossed[Crossed.COARSE_OF_ACTION]
        n = min(_take_features(run, line_of(run, actions, action), MOST_KEYS, fine, coarse), MOST_KEYS)
        for i in range(n):
            short_loop()
            keys[i] = _mix_key(coarse[i] + _OF_ACTION)
        keys[n] = _mix_key(action_key(run, actions, action) + _OF_ACTION)
        n += 1
        members.n_keys[action] = n
    return int(n)


@inline_kernel
def key_of(index: int) -> np.uint64:
    """Return the key by which the context is crossed with the action at an index."""
    return (_mix_key(np.uint64(index // 4) + _OF_ACTION) & _FOUR) | np.uint64(index % 4)


@inline_kernel
def find_cells(
    products: NDArray[np.uint64],
    end: int,
    key: np.uint64,
    shift: np.uint64,
    cells: NDArray[np.uint64],
    start: int,
) -> None:
    """Fill the cells from `start` on: of products before `end`, crossed with a key.

    The last two bits of a cell are the key's. The separate loop lets the processor compute several cells at
    once, without waiting for memory.
    """
    for i in range(end):
        cells[start + i] = ((((products[i] ^ (key | _FOURTH)) * _GOLDEN) >> shift) & _FOUR) | (key & _FOURTH)


@inline_kernel
def shift_of(cells: int) -> np.uint64:
    """Return the number of bits by which a 64-bit hash is shifted right, to become an index below `cells`."""
    shift = 64
    while cells > 1:
        cells >>= 1
        shift -= 1
    return np.uint64(shift)


@inline_kernel
def sum_of(weights: NDArray[np.float32], cells: NDArray[np.uint64], end: int) -> float:
    """Return the sum of the weights in the cells before index `end`.

    It is added up in four sums, because each addition to a single sum would wait for the previous one.
    """
    a = b = c = d = np.float32(0)
    fours = end - end % 4
    for i in range(0, fours, 4):
        a += weights[cells[i]]
        b += weights[cells[i + 1]]
        c += weights[cells[i + 2]]
        d += weights[cells[i + 3]]
    for i in range(fours, end):
        a += weights[cells[i]]
    return np.float64((a + b) + (c + d))


@inline_kernel
def sum_of_four(
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
def has_group(known: NDArray[np.int64], begin: int, end: int, group: int) -> bool:
    """Return whether the actions [begin, end) of an event have one of a group of four known actions."""
    present = False
    for action in range(begin, end):
        short_loop()
        present = present or (known[action] >= 0 and known[action] // 4 == group)
    return present


@kernel
def learn_cells(
    weights: NDArray[np.float32],
    spreads: NDArray[np.float32],
    cells: NDArray[np.uint64],
    end: int,
    noisy_error: tuple[float, float],
    initial_variance: float,
) -> float:
    """Update the weights in the cells before index `end` by a Kalman filter without covariances.

    `noisy_error` is the cost that no weight explains, and the variance of its noise. Returns the error of the
    prediction.
    """
    error, total = noisy_error
    initial = np.float32(initial_variance)
    for i in range(end):
        known = spreads[cells[i]]
        spread = initial if known == 0 else known  # without a branch, which would often be mispredicted
        spreads[cells[i]] = spread
        error -= weights[cells[i]]
        total += np.float64(spread)
    if not math.isfinite(error):
        return error
    step, less = error / total, 1.0 / total
    for i in range(end):
        before = np.float64(spreads[cells[i]])
        learnt = weights[cells[i]] + before * step
        weights[cells[i]] = min(max(learnt, -_LARGEST), _LARGEST)
        updated = (before - before * (before * less)) * (1.0 / KEEPS)
        spreads[cells[i]] = min(max(updated, SURE), initial_variance)
    return error
