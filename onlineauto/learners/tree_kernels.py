"""Boosted trees over the last events: of classes, or of the costs of logged actions.

The rows of the last events are kept. When a fit is due, each of the next events grows one tree of
the next model from the same rows, and then that model replaces the current one. So no event takes long, and
all depends on the number of learnt events only, not on the clock. Fits are due after 256, 384, 576 and so on
events for classes, and after 512, 1,024, 2,048 and so on for costs.

A tree is symmetric: all nodes of a level test the same column. Its leaves have a value for each output: a
class, or an action. For classes, the tests of a tree are chosen by the gradients of at most `SKETCH` random
sums of outputs, so that many outputs take little longer than few. An event with a cost has a gradient for
the logged action only; see `cost_tree_kernels`. The columns are the inputs that differ most among the rows,
numbers first; each is divided into at most `BINS` bins, and an absent input is below all values.

Sources: Friedman, *Greedy function approximation*, 2001; Prokhorenkova and others, *CatBoost*, 2018; Iosipoi
and Vakhrushev, *SketchBoost*, 2022.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.features.hash_constants import GOLDEN
from onlineauto.jit import kernel
from onlineauto.learners.tree_records import (
    ABSENT,
    BINS,
    CLEARLY,
    COLUMNS,
    DEPTH,
    FAR,
    LEAVES,
    MOST_OF_COSTS,
    NONE,
    PENALTY,
    RATE,
    ROWS,
    SAMPLE,
    SKETCH,
    WIDTH,
    Grown,
)
from onlineauto.learners.tree_split_kernels import (
    divide,
    gains_of,
    gains_of_one_cut,
    list_present,
    note_leaves,
    sort_by_group,
    sort_rows,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.learners.tree_records import Fit, LoggedOutput, TreeRow, Trees

_RATE = 0.3
SHRUNK = 10.0
"""The mean cost of an action counts like this weight of events of the mean cost of all actions."""
_CUTS, _FEWEST = 256, 16
"""All columns have together at most the first number of bins, but each up to the second."""


@kernel
def bins_of(columns: int) -> int:
    """Return the maximum number of bins of a column."""
    return int(min(max(_CUTS // max(columns, 1), _FEWEST), BINS))


@kernel
def is_left_out(drawn: int, level: int, columns: int, by_cost: bool) -> bool:
    """Return whether a level does not test a column; `drawn` are 32 random bits of the tree and the column.

    For classes, all levels leave out the same half of the columns. For costs, each level tests a quarter
    of the columns, half of at most eight, and all of at most four.
    """
    if not by_cost:
        return columns > 2 and drawn & 1 != 0
    of_four = drawn >> 2 * level & 3
    return columns > 4 and (of_four != 0 if columns > 8 else of_four > 1)


@kernel
def fill_base(trees: Trees, fit: Fit, model: int) -> None:
    """Fill the mean cost of each output, drawn to the mean of all; that of all for newer outputs."""
    k, begin, n_rows = trees.outputs[model], trees.tally[Grown.BEGIN], len(trees.length)
    n_inputs, total, weight = trees.place.shape[1], 0.0, 0.0
    counts, sums = fit.columns.counts[:, n_inputs], fit.columns.costs[:, n_inputs]
    fit.columns.costs[:k] = 0.0
    for event in range(begin - min(begin, ROWS), begin):
        row = event % n_rows
        sums[trees.code[row]] += trees.weight[row] * trees.cost[row]
    for c in range(k):
        total += sums[c]
        weight += counts[c]
    mean = total / weight if weight > 0.0 else 0.0
    for c in range(trees.base.shape[1]):
        trees.base[model, c] = (sums[c] + SHRUNK * mean) / (counts[c] + SHRUNK) if c < k else mean


@kernel
def rank_by_cost(trees: Trees, fit: Fit, model: int) -> None:
    """Rank the inputs by the variance of costs that their presence explains."""
    k, begin, n_rows, n_inputs = (
        trees.outputs[model],
        trees.tally[Grown.BEGIN],
        len(trees.length),
        trees.place.shape[1],
    )
    counts, costs, squares, weights = fit.columns.counts, fit.columns.costs, 0.0, 0.0
    costs[:k, n_inputs] = 0.0
    for event in range(begin - min(begin, ROWS), begin):
        row = event % n_rows
        code, weight = trees.code[row], trees.weight[row]
        beyond = weight * (float(trees.cost[row]) - float(trees.base[model, code]))
        for i in range(trees.length[row]):
            costs[code, trees.input[row, i]] += beyond
        costs[code, n_inputs] += beyond
        squares += beyond * (float(trees.cost[row]) - float(trees.base[model, code]))
        weights += weight
    for at in range(n_inputs):
        gain = 0.0
        for c in range(k):
            rest, absent = costs[c, n_inputs] - costs[c, at], counts[c, n_inputs] - counts[c, at]
            gain += costs[c, at] * costs[c, at] / (counts[c, at] + PENALTY)
            gain += rest * rest / (max(absent, 0.0) + PENALTY)
            gain -= costs[c, n_inputs] * costs[c, n_inputs] / (counts[c, n_inputs] + PENALTY)
        fit.columns.rank[at] = gain * weights / squares if squares > 0.0 else 0.0


@kernel
def fill_residuals(trees: Trees, fit: Fit, n: int) -> float:
    """Fill the weighted residuals of the rows, and the weights; return the weighted sum of squares."""
    n_rows, squares = len(trees.length), 0.0
    first = (trees.tally[Grown.BEGIN] - n) % n_rows
    for r in range(n):
        row = first + r if first + r < n_rows else first + r - n_rows
        residual, weight = float(trees.cost[row]) - float(fit.rows.score[r, 0]), float(trees.weight[row])
        fit.rows.gradient[r, 0], fit.rows.gradient[r, 1] = weight * residual, weight
        squares += weight * residual * residual
    return squares


@kernel
def add_to_logged(trees: Trees, fit: Fit, model: int, tree: int, n: int) -> None:
    """Add the values of a tree's leaves to the scores of the logged outputs."""
    n_rows = len(trees.length)
    first, k = (trees.tally[Grown.BEGIN] - n) % n_rows, trees.outputs[model]
    leaf = trees.leaf[model, tree * LEAVES * k : (tree + 1) * LEAVES * k]
    for r in range(n):
        row = first + r if first + r < n_rows else first + r - n_rows
        fit.rows.score[r, 0] += leaf[fit.rows.node[r] * k + trees.code[row]]


@kernel
def fill_means(trees: Trees, fit: Fit, model: int, tree: int) -> None:
    """Give each leaf a step towards the mean residual of each output, from the sums of their groups."""
    k = trees.outputs[model]
    for c in range(k):
        for leaf in range(LEAVES):
            own, weight = fit.total[c * LEAVES + leaf, 0], fit.total[c * LEAVES + leaf, 1]
            trees.leaf[model, (tree * LEAVES + leaf) * k + c] = _RATE * own / (weight + PENALTY)


_GOLDEN = np.uint64(GOLDEN)


@kernel
def _draw(begin: int, tree: int, at: int) -> int:
    """Return a random number from 0 to 2^32 - 1."""
    mixed = (np.uint64(begin) * _GOLDEN + np.uint64(tree)) * _GOLDEN + np.uint64(at)
    mixed = (mixed ^ (mixed >> np.uint64(31))) * _GOLDEN
    return int((mixed ^ (mixed >> np.uint64(29))) * _GOLDEN >> np.uint64(32))


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
        row.value[n] = np.float32(min(max(value, -FAR), FAR)) if math.isfinite(value) else ABSENT
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
    stride, x = trees.outputs[model], row.x
    outputs = min(stride, k)
    if outputs == 0:
        score[:k] = 0.0
        return
    x[: trees.columns[model]] = ABSENT
    for i in range(row.length[0]):
        at = trees.place[model, row.input[i]]
        if at >= 0:
            x[at] = row.value[i]
    for c in range(k):
        score[c] = trees.base[model, c]
    for tree in range(trees.split.shape[1]):
        begin = (tree * LEAVES + _leaf_of(trees, model, tree, x)) * stride
        for c in range(outputs):
            score[c] += trees.leaf[model, begin + c]


@kernel
def forget_inputs(trees: Trees, fit: Fit, renewed: NDArray[np.int64], now: int) -> None:
    """Take the inputs out of rows and models that are now others: those `renewed` after event `now`."""
    n_renewed = 0
    for at in range(len(renewed)):
        n_renewed += 1 if 0 < renewed[at] == now else 0
    if n_renewed == 0:
        return
    for row in range(len(trees.length)):
        kept = 0
        for i in range(trees.length[row]):
            if renewed[trees.input[row, i]] != now:
                trees.input[row, kept], trees.value[row, kept] = trees.input[row, i], trees.value[row, i]
                kept += 1
        trees.length[row] = kept
    for model in range(2):
        for at in range(len(renewed)):
            if renewed[at] == now and trees.place[model, at] >= 0:
                trees.column[model, trees.place[model, at]] = 0  # no row has this input
                trees.place[model, at] = -1
    fit.prepared[0] = -1


@kernel
def _spread(trees: Trees, model: int, row: int, x: NDArray[np.float32]) -> None:
    """Write the values of a kept row by column."""
    x[: trees.columns[model]] = ABSENT
    for i in range(trees.length[row]):
        at = trees.place[model, trees.input[row, i]]
        if at >= 0:
            x[at] = trees.value[row, i]


@kernel
def _count(trees: Trees, fit: Fit, begin: int, k: int) -> float:
    """Fill the weight of rows by input and class, and which inputs are numbers; return that of all rows."""
    n, counts, first, all_rows = min(begin, ROWS), fit.columns.counts, fit.columns.first, 0.0
    counts[:k] = 0.0
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
            counts[code, at] += weight
        counts[code, counts.shape[1] - 1] += weight
        all_rows += weight
    return all_rows


@kernel
def _rank_by_class(trees: Trees, fit: Fit, model: int, all_rows: float) -> None:
    """Rank the inputs by how much their presence differs between classes, by chi-squared."""
    n_inputs, rank, counts = trees.place.shape[1], fit.columns.rank, fit.columns.counts
    k, of_all = trees.outputs[model], counts[:, n_inputs]
    for at in range(n_inputs):
        present, squares = 0.0, 0.0
        for c in range(k):
            present += counts[c, at]
        for c in range(k):
            expected = present * of_all[c] / all_rows
            if expected > 0.0:
                squares += (counts[c, at] - expected) * (counts[c, at] - expected) / expected
        absent = all_rows - present
        rank[at] = squares * all_rows / absent if absent > 0.0 else 0.0


@kernel
def _choose_columns(trees: Trees, fit: Fit, model: int) -> None:
    """Choose the numbers, and then the words of the highest ranks."""
    n_inputs, rank = trees.place.shape[1], fit.columns.rank
    for at in range(n_inputs):
        if fit.columns.first[2, at] > 0.0:
            rank[at] = np.inf
        trees.place[model, at] = -1
    trees.columns[model] = 0
    while trees.columns[model] < COLUMNS:
        best = 0
        for at in range(n_inputs):
            if rank[at] > rank[best] * CLEARLY:
                best = at
        if rank[best] <= NONE:
            break
        rank[best] = 0.0
        trees.column[model, trees.columns[model]], trees.place[model, best] = best, trees.columns[model]
        trees.columns[model] += 1


@kernel
def _begin_fit(trees: Trees, fit: Fit, k: int) -> None:
    """Begin a model of `k` outputs from the rows so far."""
    model, begin = 1 - trees.tally[Grown.MODEL], trees.tally[Grown.EVENTS]
    trees.tally[Grown.BEGIN], trees.tally[Grown.TREES], trees.outputs[model] = begin, 0, k
    all_rows = _count(trees, fit, begin, k)
    if len(trees.cost) > 0:
        fill_base(trees, fit, model)
        rank_by_cost(trees, fit, model)
    else:
        for c in range(trees.base.shape[1]):
            of_class = fit.columns.counts[c, trees.place.shape[1]] if c < k else 0.0
            trees.base[model, c] = math.log((of_class + 0.5) / (all_rows + 0.5 * k))
        _rank_by_class(trees, fit, model, all_rows)
    _choose_columns(trees, fit, model)


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
def _cut(sample: NDArray[np.float32], n: int, n_bins: int, cuts: NDArray[np.float32]) -> int:
    """Divide sorted values into `n_bins`, one a value or about as many in each; return the number of cuts."""
    different, n_cuts = 0, 0
    for i in range(1, n):
        different += 1 if sample[i] > sample[i - 1] else 0
    for i in range(1, n):
        enough = different < n_bins or i * n_bins >= n * (n_cuts + 1)
        if sample[i] > sample[i - 1] and enough and n_cuts < n_bins - 1:
            cuts[n_cuts] = sample[i]
            n_cuts += 1
    return n_cuts


@kernel
def _add_tree(trees: Trees, fit: Fit, model: int, tree: int, n: int) -> None:
    """Add the values of a tree's leaves, to which `node` assigns the rows, to the scores of rows."""
    if len(trees.cost) > 0:
        add_to_logged(trees, fit, model, tree, n)
        return
    k = trees.outputs[model]
    for r in range(n):
        begin = (tree * LEAVES + fit.rows.node[r]) * k
        for c in range(k):
            fit.rows.score[r, c] += trees.leaf[model, begin + c]


@kernel
def _bin_of(cuts: NDArray[np.float32], n_cuts: int, value: float) -> int:
    """Return the number of cuts (infinite behind the last) that a value reaches, counted without branches."""
    if n_cuts == 1:
        return 1 if cuts[0] <= value else 0
    reached = np.int32(0)
    for begin in range(0, n_cuts, 16):
        for i in range(16):
            reached += np.int32(1) if cuts[begin + i] <= value else np.int32(0)
    return int(reached)


@kernel
def _prepare(trees: Trees, fit: Fit) -> None:
    """Fill the memory for the fit that has begun: bins of all rows, and their scores by the trees so far."""
    model, begin, x = 1 - trees.tally[Grown.MODEL], trees.tally[Grown.BEGIN], fit.rows.x
    n, columns, n_rows = min(begin, ROWS), trees.columns[model], len(trees.length)
    n_sample, n_bins = min(n, SAMPLE), bins_of(columns) if len(trees.cost) > 0 else BINS
    for i in range(n_sample):
        _spread(trees, model, (begin - n + i * n // n_sample) % n_rows, x)
        for c in range(columns):
            fit.columns.sample[c, i] = x[c]
    for c in range(columns):
        _sort(fit.columns.sample[c], n_sample)
        fit.columns.n_cuts[c] = _cut(fit.columns.sample[c], n_sample, n_bins, fit.columns.cuts[c])
    for c in range(columns):
        fit.columns.cuts[c, fit.columns.n_cuts[c] :] = np.inf
    for r in range(n):
        _spread(trees, model, (begin - n + r) % n_rows, x)
        for c in range(columns):
            fit.columns.bins[c, r] = _bin_of(fit.columns.cuts[c], fit.columns.n_cuts[c], x[c])
        if len(trees.cost) > 0:
            fit.rows.score[r, 0] = trees.base[model, trees.code[(begin - n + r) % n_rows]]
        else:
            for c in range(trees.outputs[model]):
                fit.rows.score[r, c] = trees.base[model, c]
    list_present(fit, columns, n)
    sort_by_group(trees, fit, n)
    for tree in range(trees.tally[Grown.TREES]):
        for r in range(n):
            _spread(trees, model, (begin - n + r) % n_rows, x)
            fit.rows.node[r] = _leaf_of(trees, model, tree, x)
        _add_tree(trees, fit, model, tree, n)
    fit.prepared[0] = begin


@kernel
def _gradients(trees: Trees, fit: Fit, model: int, tree: int, n: int) -> int:
    """Fill the probabilities and the gradients of the rows; return the number of sums of gradients."""
    k, begin, n_rows = trees.outputs[model], trees.tally[Grown.BEGIN], len(trees.length)
    n_sums = 1 if k == 2 else min(k, SKETCH)
    for r in range(n):
        row, score, chance, gradient = (
            (begin - n + r) % n_rows,
            fit.rows.score[r],
            fit.rows.chance[r],
            fit.rows.gradient[r],
        )
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
def _grow_tree(trees: Trees, fit: Fit) -> None:
    """Grow a tree of the next model."""
    model, begin, tree = 1 - trees.tally[Grown.MODEL], trees.tally[Grown.BEGIN], trees.tally[Grown.TREES]
    n, columns, least, n_sums, by_cost = min(begin, ROWS), trees.columns[model], NONE, 1, len(trees.cost) > 0
    if by_cost:
        least *= fill_residuals(trees, fit, n)
    else:
        n_sums = _gradients(trees, fit, model, tree, n)
    n_groups = sort_rows(trees, fit, n, n_sums)
    for level in range(DEPTH):
        best, best_column, best_cut = least, 0, -1
        n_tested = 0
        for c in range(columns):
            if not is_left_out(_draw(begin, tree, c), level, columns, by_cost):
                fit.columns.tested[n_tested] = c
                n_tested += 1
        if fit.prepared[1] != 0:
            gains_of_one_cut(fit, columns, n_tested, n_groups, n_sums)
        for at in range(n_tested):
            c = fit.columns.tested[at]
            if fit.prepared[1] != 0 and fit.columns.n_cuts[c] == 1:
                if fit.gain_of[c] > best * CLEARLY:
                    best, best_column, best_cut = fit.gain_of[c], c, 0
                continue
            gains_of(fit, c, n_groups, n_sums)
            for b in range(fit.columns.n_cuts[c]):
                if fit.gain[b] > best * CLEARLY:
                    best, best_column, best_cut = fit.gain[b], c, b
        trees.split[model, tree, level] = best_column
        trees.threshold[model, tree, level] = (
            fit.columns.cuts[best_column, best_cut] if best_cut >= 0 else -ABSENT
        )
        divide(fit, best_column, best_cut, n_groups, n_sums)
        n_groups *= 2
    note_leaves(fit, n_groups)
    if by_cost:
        fill_means(trees, fit, model, tree)
    else:
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
        row, leaf = (begin - n + r) % n_rows, fit.rows.node[r]
        code, weight = trees.code[row], trees.weight[row]
        for c in range(first, k):
            chance = float(fit.rows.chance[r, c])
            sums[0, leaf, c] += weight * ((1.0 if c == code else 0.0) - chance)
            sums[1, leaf, c] += weight * chance * (1.0 - chance)
    for leaf in range(LEAVES):
        for c in range(k):
            value = RATE * sums[0, leaf, c] / (sums[1, leaf, c] + PENALTY)
            trees.leaf[model, (tree * LEAVES + leaf) * k + c] = value


@kernel
def learn_trees(trees: Trees, fit: Fit, row: TreeRow, k: int, logged: LoggedOutput) -> None:
    """Keep the row of an event with its output, and grow a tree if a model grows."""
    if len(trees.length) == 0:
        return
    tally, at, n = trees.tally, trees.tally[Grown.EVENTS] % len(trees.length), row.length[0]
    for i in range(n):
        trees.input[at, i], trees.value[at, i] = row.input[i], row.value[i]
    trees.length[at], trees.code[at], trees.weight[at] = n, logged.code, logged.weight
    if len(trees.cost) > 0:
        trees.cost[at] = logged.cost
    tally[Grown.EVENTS] += 1
    if tally[Grown.EVENTS] == tally[Grown.FIT]:
        _begin_fit(trees, fit, k)
    if tally[Grown.TREES] < 0:
        return
    if fit.prepared[0] != tally[Grown.BEGIN]:
        _prepare(trees, fit)
    _grow_tree(trees, fit)
    tally[Grown.TREES] += 1
    if tally[Grown.TREES] == trees.split.shape[1]:
        tally[Grown.MODEL], tally[Grown.TREES] = 1 - tally[Grown.MODEL], -1
        if len(trees.cost) > 0:
            tally[Grown.FIT] += min(tally[Grown.FIT], MOST_OF_COSTS)
        else:
            tally[Grown.FIT] += min(tally[Grown.FIT] // 2, ROWS)
