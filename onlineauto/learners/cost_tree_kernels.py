"""Boosted trees of costs: the parts of `tree_kernels` for events whose cost is known for one output only.

The output is the logged action. The loss is the squared error of its score, so that the gradient is the
residual, and the second derivative the weight of the event. Tests of a tree are chosen for all actions
together, by the gain of each action in each node; the leaves have the mean residual of each action.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.jit import kernel
from onlineauto.learners.tree_records import BINS, LEAVES, PENALTY, ROWS, Grown

if TYPE_CHECKING:
    from onlineauto.learners.tree_records import Fit, Trees

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

    For classes, all levels of a tree leave out the same half of the columns. For costs, each level tests a
    quarter of the columns, half of at most eight, and all of at most four.
    """
    if not by_cost:
        return columns > 2 and drawn & 1 != 0
    of_four = drawn >> 2 * level & 3
    return columns > 4 and (of_four != 0 if columns > 8 else of_four > 1)


@kernel
def fill_base(trees: Trees, fit: Fit, model: int) -> None:
    """Fill the mean cost of each output, drawn to the mean of all; that of all for newer outputs."""
    k, begin, n_rows = trees.outputs[model], trees.tally[Grown.BEGIN], len(trees.length)
    counts, sums, total, weight = (
        fit.columns.counts[len(fit.columns.counts) - 1],
        fit.columns.costs[len(fit.columns.costs) - 1],
        0.0,
        0.0,
    )
    fit.columns.costs[:] = 0.0
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
    costs[n_inputs, :] = 0.0
    for event in range(begin - min(begin, ROWS), begin):
        row = event % n_rows
        code, weight = trees.code[row], trees.weight[row]
        beyond = weight * (float(trees.cost[row]) - float(trees.base[model, code]))
        for i in range(trees.length[row]):
            costs[trees.input[row, i], code] += beyond
        costs[n_inputs, code] += beyond
        squares += beyond * (float(trees.cost[row]) - float(trees.base[model, code]))
        weights += weight
    for at in range(n_inputs):
        gain = 0.0
        for c in range(k):
            rest, absent = costs[n_inputs, c] - costs[at, c], counts[n_inputs, c] - counts[at, c]
            gain += costs[at, c] * costs[at, c] / (counts[at, c] + PENALTY)
            gain += rest * rest / (max(absent, 0.0) + PENALTY)
            gain -= costs[n_inputs, c] * costs[n_inputs, c] / (counts[n_inputs, c] + PENALTY)
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
    first, leaf = (trees.tally[Grown.BEGIN] - n) % n_rows, trees.leaf[model, tree]
    for r in range(n):
        row = first + r if first + r < n_rows else first + r - n_rows
        fit.rows.score[r, 0] += leaf[fit.rows.node[r], trees.code[row]]


@kernel
def fill_means(trees: Trees, fit: Fit, model: int, tree: int) -> None:
    """Give each leaf a step towards the mean residual of each output, from the sums of their groups."""
    for c in range(trees.outputs[model]):
        for leaf in range(LEAVES):
            own, weight = fit.total[c * LEAVES + leaf, 0], fit.total[c * LEAVES + leaf, 1]
            trees.leaf[model, tree, leaf, c] = _RATE * own / (weight + PENALTY)
