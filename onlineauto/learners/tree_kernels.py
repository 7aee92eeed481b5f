"""Boosted trees over the last events, fitted again after 256, 384, 576 and so on.

The rows of the last events are kept. When a fit is due, each of the next `ROUNDS` events grows one tree of
the next model from the same rows, and then that model replaces the current one. So no event takes long, and
all depends on the number of learnt events only, not on the clock.

A tree is symmetric: all nodes of a level test the same column. Its leaves have a value for each output. The
tests of a tree are chosen by the gradients of at most `SKETCH` random sums of outputs, so that many outputs
take little longer than few. The columns are the inputs that differ most among the rows, numbers first; each
is divided into at most `BINS` bins, and an absent input is below all values.

Sources: Friedman, *Greedy function approximation*, 2001; Prokhorenkova and others, *CatBoost*, 2018; Iosipoi
and Vakhrushev, *SketchBoost*, 2022.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.jit import kernel, short_loop

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROWS, WIDTH = 8192, 64
"""Maximum numbers of rows of a fit, and of inputs of a row: numbers first."""
COLUMNS, BINS = 64, 64
ROUNDS, DEPTH = 64, 6
LEAVES = 1 << DEPTH
SKETCH = 4
FIRST = 256
"""Learnt events before the first fit. The next fit follows after half as many again, but at most `ROWS`."""
_RATE, _PENALTY = 0.2, 1.0
SAMPLE = 1024
"""Maximum number of rows whose values determine the bins of a column."""
_ABSENT, _FAR = np.float32(-1e30), 1e29
_CLEARLY, _NONE = 1.0 + 1e-9, 1e-9
"""A test or an input replaces another one, or none, only if it is better by more than rounding."""
_MIX = np.uint64(0x9E3779B97F4A7C15)


class Grown(IntEnum):
    """Entries of `Trees.tally`."""

    EVENTS = 0
    FIT = 1  # number of events at which the next fit begins
    MODEL = 2  # index of the current model
    TREES = 3  # number of trees of the model that grows; -1 if none grows
    BEGIN = 4  # number of events when its growth began


class Trees(NamedTuple):
    """Kept rows, and two models: the current one, and the one that grows. K is the capacity for outputs.

    Attributes
    ----------
    input, value : uint16[ROWS + ROUNDS, WIDTH], float32[ROWS + ROUNDS, WIDTH]
        Inputs of the last events and their values; event n is in row n modulo the number of rows.
    length, code, weight : int64[ROWS + ROUNDS], int64[ROWS + ROUNDS], float32[ROWS + ROUNDS]
        The number of inputs, the class and the weight of each row.
    tally : int64[5]
        See `Grown`.
    outputs, columns : int64[2], int64[2]
        The number of outputs and of columns of each model.
    column, place : int64[2, COLUMNS], int64[2, n_inputs]
        The input of each column, and the column of each input, -1 without.
    split, threshold : int64[2, ROUNDS, DEPTH], float32[2, ROUNDS, DEPTH]
        The column that a level tests, and the least value that goes to the right.
    leaf, base : float32[2, ROUNDS, LEAVES, K], float32[2, K + 1]
        Values of leaves; and the scores before the first tree, also of outputs newer than the model.
    """

    input: NDArray[np.uint16]
    value: NDArray[np.float32]
    length: NDArray[np.int64]
    code: NDArray[np.int64]
    weight: NDArray[np.float32]
    tally: NDArray[np.int64]
    outputs: NDArray[np.int64]
    columns: NDArray[np.int64]
    column: NDArray[np.int64]
    place: NDArray[np.int64]
    split: NDArray[np.int64]
    threshold: NDArray[np.float32]
    leaf: NDArray[np.float32]
    base: NDArray[np.float32]


class TreeRow(NamedTuple):
    """The event that is scored or learnt: scratch memory of a caller.

    Attributes
    ----------
    input, value, length : int64[WIDTH], float32[WIDTH], int64[1]
        Its inputs, their values and their number.
    x : float32[COLUMNS]
        The values by column.
    """

    input: NDArray[np.int64]
    value: NDArray[np.float32]
    length: NDArray[np.int64]
    x: NDArray[np.float32]


class Fit(NamedTuple):
    """Memory for a fit.

    Attributes
    ----------
    prepared : int64[1]
        The number of events of the fit for which it is filled.
    x : float32[COLUMNS]
        The values of a row by column.
    bins : uint8[COLUMNS, ROWS]
        The bin of each row.
    cuts, n_cuts : float32[COLUMNS, BINS], int64[COLUMNS]
        The least value of each bin but the first.
    score, chance : float32[ROWS, K], float32[ROWS, K]
        Scores of the trees so far, and the probabilities from these.
    gradient : float64[ROWS, SKETCH + 1]
        Random sums of the gradients of outputs, and the second derivative.
    node : int64[ROWS]
        The node of each row.
    """

    prepared: NDArray[np.int64]
    x: NDArray[np.float32]
    bins: NDArray[np.uint8]
    cuts: NDArray[np.float32]
    n_cuts: NDArray[np.int64]
    sample: NDArray[np.float32]
    rank: NDArray[np.float64]
    counts: NDArray[np.float64]
    first: NDArray[np.float64]
    score: NDArray[np.float32]
    chance: NDArray[np.float32]
    gradient: NDArray[np.float64]
    node: NDArray[np.int64]
    histogram: NDArray[np.float64]
    total: NDArray[np.float64]
    left: NDArray[np.float64]
    gain: NDArray[np.float64]
    sums: NDArray[np.float64]


@kernel
def _draw(begin: int, tree: int, at: int) -> int:
    """Return a random number from 0 to 2^32 - 1."""
    mixed = (np.uint64(begin) * _MIX + np.uint64(tree)) * _MIX + np.uint64(at)
    mixed = (mixed ^ (mixed >> np.uint64(31))) * _MIX
    return int((mixed ^ (mixed >> np.uint64(29))) * _MIX >> np.uint64(32))


@kernel
def begin_row(row: TreeRow) -> None:
    """Begin the row of an event."""
    row.length[0] = 0


@kernel
def add_input(row: TreeRow, at: int, value: float) -> None:
    """Add an input to the row of an event, unless it is full."""
    n = row.length[0]
    if n < WIDTH:
        row.input[n] = at
        row.value[n] = np.float32(min(max(value, -_FAR), _FAR)) if math.isfinite(value) else _ABSENT
        row.length[0] = n + 1


@kernel
def _leaf_of(trees: Trees, model: int, tree: int, x: NDArray[np.float32]) -> int:
    leaf = 0
    for level in range(DEPTH):
        right = x[trees.split[model, tree, level]] >= trees.threshold[model, tree, level]
        leaf = 2 * leaf + (1 if right else 0)
    return leaf


@kernel
def score_trees(trees: Trees, row: TreeRow, k: int, score: NDArray[np.float64]) -> None:
    """Write the scores of the outputs by the current model, 0 without one."""
    model = trees.tally[Grown.MODEL]
    outputs, x = min(trees.outputs[model], k), row.x
    if outputs == 0:
        score[:k] = 0.0
        return
    x[: trees.columns[model]] = _ABSENT
    for i in range(row.length[0]):
        at = trees.place[model, row.input[i]]
        if at >= 0:
            x[at] = row.value[i]
    for c in range(k):
        score[c] = trees.base[model, c]
    for tree in range(ROUNDS):
        leaf = _leaf_of(trees, model, tree, x)
        for c in range(outputs):
            score[c] += trees.leaf[model, tree, leaf, c]


@kernel
def _spread(trees: Trees, model: int, row: int, x: NDArray[np.float32]) -> None:
    """Write the values of a kept row by column."""
    x[: trees.columns[model]] = _ABSENT
    for i in range(trees.length[row]):
        at = trees.place[model, trees.input[row, i]]
        if at >= 0:
            x[at] = trees.value[row, i]


@kernel
def _count(trees: Trees, fit: Fit, begin: int) -> float:
    """Fill the weight of rows by input and class, and which inputs are numbers; return that of all rows."""
    n, counts, first, all_rows = min(begin, ROWS), fit.counts, fit.first, 0.0
    counts[:] = 0.0
    first[:] = 0.0
    for event in range(begin - n, begin):
        row = event % len(trees.length)
        code, weight = trees.code[row], trees.weight[row]
        for i in range(trees.length[row]):
            at, value = trees.input[row, i], trees.value[row, i]
            if first[0, at] == 0.0:
                first[0, at], first[1, at] = 1.0, value
            if value != first[1, at]:
                first[2, at] = 1.0
            counts[at, code] += weight
        counts[len(counts) - 1, code] += weight
        all_rows += weight
    return all_rows


@kernel
def _choose_columns(trees: Trees, fit: Fit, model: int, all_rows: float) -> None:
    """Choose the numbers, and the words that differ most between classes, by chi-squared."""
    n_inputs, rank, counts = trees.place.shape[1], fit.rank, fit.counts
    k, of_all = trees.outputs[model], counts[n_inputs]
    for at in range(n_inputs):
        present, squares = 0.0, 0.0
        for c in range(k):
            present += counts[at, c]
        for c in range(k):
            expected = present * of_all[c] / all_rows
            if expected > 0.0:
                squares += (counts[at, c] - expected) * (counts[at, c] - expected) / expected
        absent = all_rows - present
        rank[at] = squares * all_rows / absent if absent > 0.0 else 0.0
        if fit.first[2, at] > 0.0:
            rank[at] = np.inf
        trees.place[model, at] = -1
    trees.columns[model] = 0
    while trees.columns[model] < COLUMNS:
        best = 0
        for at in range(n_inputs):
            if rank[at] > rank[best] * _CLEARLY:
                best = at
        if rank[best] <= _NONE:
            break
        rank[best] = 0.0
        trees.column[model, trees.columns[model]], trees.place[model, best] = best, trees.columns[model]
        trees.columns[model] += 1


@kernel
def _begin_fit(trees: Trees, fit: Fit, k: int) -> None:
    """Begin a model of `k` outputs from the rows so far."""
    model, begin = 1 - trees.tally[Grown.MODEL], trees.tally[Grown.EVENTS]
    trees.tally[Grown.BEGIN], trees.tally[Grown.TREES], trees.outputs[model] = begin, 0, k
    all_rows = _count(trees, fit, begin)
    _choose_columns(trees, fit, model, all_rows)
    for c in range(trees.base.shape[1]):
        of_class = fit.counts[len(fit.counts) - 1, c] if c < k else 0.0
        trees.base[model, c] = math.log((of_class + 0.5) / (all_rows + 0.5 * k))


@kernel
def _sort(values: NDArray[np.float32], n: int) -> None:
    gap = 1
    while gap < n:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            value, j = values[i], i
            while j >= gap and values[j - gap] > value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value
        gap //= 3


@kernel
def _cut(sample: NDArray[np.float32], n: int, cuts: NDArray[np.float32]) -> int:
    """Divide sorted values into bins, one a value or about as many in each; return the number of cuts."""
    different, n_cuts = 0, 0
    for i in range(1, n):
        different += 1 if sample[i] > sample[i - 1] else 0
    for i in range(1, n):
        enough = different < BINS or i * BINS >= n * (n_cuts + 1)
        if sample[i] > sample[i - 1] and enough and n_cuts < BINS - 1:
            cuts[n_cuts] = sample[i]
            n_cuts += 1
    return n_cuts


@kernel
def _add_tree(trees: Trees, fit: Fit, model: int, tree: int, n: int) -> None:
    """Add the values of a tree's leaves, to which `node` assigns the rows, to the scores of rows."""
    for r in range(n):
        leaf = fit.node[r]
        for c in range(trees.outputs[model]):
            fit.score[r, c] += trees.leaf[model, tree, leaf, c]


@kernel
def _prepare(trees: Trees, fit: Fit) -> None:
    """Fill the memory for the fit that has begun: bins of all rows, and their scores by the trees so far."""
    model, begin, x = 1 - trees.tally[Grown.MODEL], trees.tally[Grown.BEGIN], fit.x
    n, columns, n_rows = min(begin, ROWS), trees.columns[model], len(trees.length)
    n_sample = min(n, SAMPLE)
    for i in range(n_sample):
        _spread(trees, model, (begin - n + i * n // n_sample) % n_rows, x)
        for c in range(columns):
            fit.sample[c, i] = x[c]
    for c in range(columns):
        _sort(fit.sample[c], n_sample)
        fit.n_cuts[c] = _cut(fit.sample[c], n_sample, fit.cuts[c])
    for r in range(n):
        _spread(trees, model, (begin - n + r) % n_rows, x)
        for c in range(columns):
            low, high = 0, fit.n_cuts[c]
            while low < high:
                middle = (low + high) // 2
                if fit.cuts[c, middle] <= x[c]:
                    low = middle + 1
                else:
                    high = middle
            fit.bins[c, r] = low
        for c in range(trees.outputs[model]):
            fit.score[r, c] = trees.base[model, c]
    for tree in range(trees.tally[Grown.TREES]):
        for r in range(n):
            _spread(trees, model, (begin - n + r) % n_rows, x)
            fit.node[r] = _leaf_of(trees, model, tree, x)
        _add_tree(trees, fit, model, tree, n)
    fit.prepared[0] = begin


@kernel
def _gradients(trees: Trees, fit: Fit, model: int, tree: int, n: int) -> int:
    """Fill the probabilities and the gradients of the rows; return the number of sums of gradients."""
    k, begin, n_rows = trees.outputs[model], trees.tally[Grown.BEGIN], len(trees.length)
    n_sums = 1 if k == 2 else min(k, SKETCH)
    for r in range(n):
        row, score, chance, gradient = (begin - n + r) % n_rows, fit.score[r], fit.chance[r], fit.gradient[r]
        code, weight, highest, total, squares = trees.code[row], trees.weight[row], float(score[0]), 0.0, 0.0
        for c in range(1, k):
            highest = max(highest, float(score[c]))
        for c in range(k):
            chance[c] = math.exp(score[c] - highest)
            total += chance[c]
        gradient[:n_sums] = 0.0
        for c in range(k):
            chance[c] /= total
            squares += chance[c] * chance[c]
            part = weight * ((1.0 if c == code else 0.0) - chance[c])
            if k <= SKETCH:
                if k > 2 or c == 1:
                    gradient[c if k > 2 else 0] = part
            else:
                signs = _draw(begin, tree, COLUMNS + c)
                for s in range(n_sums):
                    gradient[s] += part if signs >> s & 1 else -part
        gradient[n_sums] = weight * (1.0 - squares) * (0.5 if k == 2 else 2.0 / k)
        if k > SKETCH:
            for s in range(n_sums):
                gradient[s] *= 0.5  # 1 / sqrt(SKETCH)
    return n_sums


@kernel
def _gains(fit: Fit, column: int, level: int, n: int, n_sums: int) -> None:
    """Write what the cuts of a column gain, summed over the nodes of a level."""
    width, n_bins, nodes = n_sums + 1, fit.n_cuts[column] + 1, 1 << level
    histogram, total, gain, bins = fit.histogram, fit.total, fit.gain, fit.bins[column]
    histogram[: nodes * BINS * width] = 0.0
    if width == 2:
        for r in range(n):
            at = (fit.node[r] * BINS + bins[r]) * 2
            histogram[at] += fit.gradient[r, 0]
            histogram[at + 1] += fit.gradient[r, 1]
    else:
        for r in range(n):
            at = (fit.node[r] * BINS + bins[r]) * width
            for s in range(width):
                short_loop()
                histogram[at + s] += fit.gradient[r, s]
    gain[:] = 0.0
    for node in range(nodes):
        whole = total[node]
        before = 0.0
        for s in range(n_sums):
            before += whole[s] * whole[s]
        before /= whole[n_sums] + _PENALTY
        left = fit.left
        left[:] = 0.0
        for b in range(n_bins - 1):
            at, low, high = (node * BINS + b) * width, 0.0, 0.0
            for s in range(width):
                short_loop()
                left[s] += histogram[at + s]
            for s in range(n_sums):
                short_loop()
                low += left[s] * left[s]
                high += (whole[s] - left[s]) * (whole[s] - left[s])
            gain[b] += low / (left[n_sums] + _PENALTY)
            gain[b] += high / (whole[n_sums] - left[n_sums] + _PENALTY) - before


@kernel
def _grow_tree(trees: Trees, fit: Fit) -> None:
    """Grow a tree of the next model."""
    model, begin, tree = 1 - trees.tally[Grown.MODEL], trees.tally[Grown.BEGIN], trees.tally[Grown.TREES]
    n, columns, total = min(begin, ROWS), trees.columns[model], fit.total
    n_sums = _gradients(trees, fit, model, tree, n)
    fit.node[:n] = 0
    for level in range(DEPTH):
        total[: 1 << level] = 0.0
        for r in range(n):
            for s in range(n_sums + 1):
                short_loop()
                total[fit.node[r], s] += fit.gradient[r, s]
        best, best_column, best_cut = _NONE, 0, -1
        for c in range(columns):
            if columns > 2 and _draw(begin, tree, c) & 1:
                continue
            _gains(fit, c, level, n, n_sums)
            for b in range(fit.n_cuts[c]):
                if fit.gain[b] > best * _CLEARLY:
                    best, best_column, best_cut = fit.gain[b], c, b
        trees.split[model, tree, level] = best_column
        trees.threshold[model, tree, level] = fit.cuts[best_column, best_cut] if best_cut >= 0 else np.inf
        for r in range(n):
            right = best_cut >= 0 and fit.bins[best_column, r] > best_cut
            fit.node[r] = 2 * fit.node[r] + (1 if right else 0)
    _fill_leaves(trees, fit, model, tree, n)
    _add_tree(trees, fit, model, tree, n)


@kernel
def _fill_leaves(trees: Trees, fit: Fit, model: int, tree: int, n: int) -> None:
    """Give each leaf a step of Newton's method for each output; of two outputs only the second moves."""
    k, sums, begin, n_rows = (
        trees.outputs[model],
        fit.sums,
        trees.tally[Grown.BEGIN],
        len(trees.length),
    )
    first = 1 if k == 2 else 0
    sums[:] = 0.0
    for r in range(n):
        row, leaf = (begin - n + r) % n_rows, fit.node[r]
        code, weight = trees.code[row], trees.weight[row]
        for c in range(first, k):
            chance = float(fit.chance[r, c])
            sums[0, leaf, c] += weight * ((1.0 if c == code else 0.0) - chance)
            sums[1, leaf, c] += weight * chance * (1.0 - chance)
    for leaf in range(LEAVES):
        for c in range(k):
            trees.leaf[model, tree, leaf, c] = _RATE * sums[0, leaf, c] / (sums[1, leaf, c] + _PENALTY)


@kernel
def learn_trees(trees: Trees, fit: Fit, row: TreeRow, code: int, weight: float, k: int) -> None:
    """Keep the row of an event with its class, and grow a tree if a model grows."""
    if len(trees.length) == 0:
        return
    tally, at, n = trees.tally, trees.tally[Grown.EVENTS] % len(trees.length), row.length[0]
    for i in range(n):
        trees.input[at, i], trees.value[at, i] = row.input[i], row.value[i]
    trees.length[at], trees.code[at], trees.weight[at] = n, code, weight
    tally[Grown.EVENTS] += 1
    if tally[Grown.EVENTS] == tally[Grown.FIT]:
        _begin_fit(trees, fit, k)
    if tally[Grown.TREES] < 0:
        return
    if fit.prepared[0] != tally[Grown.BEGIN]:
        _prepare(trees, fit)
    _grow_tree(trees, fit)
    tally[Grown.TREES] += 1
    if tally[Grown.TREES] == ROUNDS:
        tally[Grown.MODEL], tally[Grown.TREES] = 1 - tally[Grown.MODEL], -1
        tally[Grown.FIT] += min(tally[Grown.FIT] // 2, ROWS)
