"""Records and sizes of boosted trees; see `tree_kernels`."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.state.schema import declare, field, jointly, record

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROWS, WIDTH = 8192, 64
"""Maximum numbers of rows of a fit, and of inputs of a row: numbers first."""
COLUMNS, BINS = 64, 64
FEW = 8
"""Columns of one cut are added up row by row if a row is above the cut of at most one in so many of them."""
ROUNDS, ROUNDS_OF_COSTS, DEPTH = 64, 32, 6
LEAVES = 1 << DEPTH
SKETCH = 4
FIRST, FIRST_OF_COSTS, MOST_OF_COSTS = 256, 512, 2 * ROWS
"""Learnt events before the first fit: of classes, and of costs. The next fit follows after half as many again
for classes, at most `ROWS`, and as many again for costs, at most `MOST_OF_COSTS`."""
RATE, PENALTY = 0.2, 1.0
SAMPLE = 1024
"""Maximum number of rows whose values determine the bins of a column."""
ABSENT, FAR = np.float32(-1e30), 1e29
CLEARLY, NONE = 1.0 + 1e-9, 1e-9
"""A test or an input replaces another one, or none, only if it is better by more than rounding."""


class Grown(IntEnum):
    """Entries of `Trees.tally`."""

    EVENTS = 0
    FIT = 1  # number of events at which the next fit begins
    MODEL = 2  # index of the current model
    TREES = 3  # number of trees of the model that grows; -1 if none grows
    BEGIN = 4  # number of events when its growth began


@record
class Trees(NamedTuple):
    """Kept rows, and two models: the current one, and the one that grows. K is the capacity for outputs."""

    # Inputs of the last events and their values; event n is in row n modulo the number of rows.
    input: NDArray[np.uint16] = field("rows", "width", merge=jointly)
    value: NDArray[np.float32] = field("rows", "width", merge=jointly)
    # The number of inputs, the class or the logged action, and the weight of each row.
    length: NDArray[np.int64] = field("rows", merge=jointly)
    code: NDArray[np.int64] = field("rows", merge=jointly)
    weight: NDArray[np.float32] = field("rows", merge=jointly)
    # The cost of each row; empty if outputs are classes.
    cost: NDArray[np.float32] = field("costs", merge=jointly)
    tally: NDArray[np.int64] = field(len(Grown), merge=jointly, predicts=True)
    # The number of outputs and of columns of each model.
    outputs: NDArray[np.int64] = field(2, merge=jointly, predicts=True)
    columns: NDArray[np.int64] = field(2, merge=jointly, predicts=True)
    # The input of each column, and the column of each input, -1 without.
    column: NDArray[np.int64] = field(2, COLUMNS, merge=jointly, predicts=True)
    place: NDArray[np.int64] = field(2, "inputs", merge=jointly, predicts=True, initial=-1)
    # The column that a level tests, and the least value that goes to the right.
    split: NDArray[np.int64] = field(2, "rounds", DEPTH, merge=jointly, predicts=True)
    threshold: NDArray[np.float32] = field(2, "rounds", DEPTH, merge=jointly, predicts=True)
    # Values of leaves, [rounds, LEAVES, outputs of the model] in the first part of a row, so that few outputs
    # take little memory; and the scores before the first tree, also of outputs newer than the model.
    leaf: NDArray[np.float32] = field(2, "leaves", merge=jointly, predicts=True)
    base: NDArray[np.float32] = field(2, "bases", merge=jointly, predicts=True)


declare(
    Trees,
    used=lambda trees: {
        "width": int(trees.length.max(initial=0)),
        "leaves": trees.split.shape[1] * LEAVES * int(trees.outputs.max()),
    },
)


class TreeRow(NamedTuple):
    """The event that is scored or learnt: scratch memory of a caller."""

    # int64[WIDTH], float32[WIDTH], int64[1]: its inputs, their values and their number.
    input: NDArray[np.int64]
    value: NDArray[np.float32]
    length: NDArray[np.int64]
    x: NDArray[np.float32]  # float32[COLUMNS]: the values by column.


class LoggedOutput(NamedTuple):
    """The output of a row: a class or a logged action, its weight, and the cost of an action."""

    code: int
    weight: float
    cost: float


class FitColumns(NamedTuple):
    """The columns of a fit: memory."""

    bins: NDArray[np.uint8]  # uint8[COLUMNS, ROWS]: the bin of each row.
    # float32[COLUMNS, BINS], int64[COLUMNS]: the least value of each bin but the first.
    cuts: NDArray[np.float32]
    n_cuts: NDArray[np.int64]
    sample: NDArray[np.float32]  # float32[COLUMNS, SAMPLE]: values that determine the bins.
    # float64[n_inputs], float64[3, n_inputs]: how much an input matters; whether it was seen, its first
    # value, and whether there are others.
    rank: NDArray[np.float64]
    first: NDArray[np.float64]
    # float64[K, n_inputs + 1]: the weight of rows by output and input, and the sum of their costs beyond
    # those expected.
    counts: NDArray[np.float64]
    costs: NDArray[np.float64]
    # uint8[ROWS * COLUMNS // FEW], int32[ROWS + 1]: the columns of one cut whose value is above it, row by
    # row, and where each row begins.
    present: NDArray[np.uint8]
    begin: NDArray[np.int32]
    tested: NDArray[np.int64]  # int64[COLUMNS]: the columns that a level may test.


class FitRows(NamedTuple):
    """The rows of a fit: memory."""

    x: NDArray[np.float32]  # float32[COLUMNS]: the values of a row by column.
    # float32[ROWS, K], float32[ROWS, K]: scores of the trees so far, and the probabilities from these. For
    # costs, there is one score: that of the logged action.
    score: NDArray[np.float32]
    chance: NDArray[np.float32]
    # float64[ROWS, SKETCH + 1], each: random sums of the gradients of outputs, or the weighted residual, and
    # then the second derivative; these sorted by group; and memory to divide a group.
    gradient: NDArray[np.float64]
    sorted: NDArray[np.float64]
    above: NDArray[np.float64]
    node: NDArray[np.uint8]  # uint8[ROWS]: the leaf of each row.
    # uint16[ROWS], each: the rows sorted by group, the same before the first test, and memory to divide a
    # group.
    order: NDArray[np.uint16]
    order_first: NDArray[np.uint16]
    next: NDArray[np.uint16]
    # int64[LEAVES * K + 1], int64[K + 1]: where each group begins in these two orders.
    begin: NDArray[np.int64]
    begin_first: NDArray[np.int64]


class Fit(NamedTuple):
    """Memory for a fit."""

    # int64[2]: the number of events of the fit for which it is filled, and whether `FitColumns.present` is
    # used.
    prepared: NDArray[np.int64]
    columns: FitColumns
    rows: FitRows
    # float64[max(BINS, COLUMNS) * (SKETCH + 1)]: sums of gradients of a group, by bin or by column.
    histogram: NDArray[np.float64]
    # float64[LEAVES * K, SKETCH + 1], float64[SKETCH + 1, BINS]: the sums of gradients of each group, and of
    # the rows of a group that are below each cut.
    total: NDArray[np.float64]
    left: NDArray[np.float64]
    # float64[BINS], float64[COLUMNS]: what the cuts of a column gain, and what the cut of each column of one
    # cut gains.
    gain: NDArray[np.float64]
    gain_of: NDArray[np.float64]
    # float64[2, LEAVES, K]: sums of gradients and of second derivatives in leaves, of classes.
    sums: NDArray[np.float64]


declare(Fit, prepared=field(2, saved=False, predicts=True))  # all else is filled from the rows
