"""Scores without a list of features: cross, look up and add, for four lanes at a time.

One hash and one cache line serve all lanes of a cell. Every lane adds its own terms in the order of the list,
so that its sum has the bits it has alone. Where there are less than four, the sums of what lies behind them
mean nothing and are left aside; a row of the table is four fields long, so none reaches past its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.jit import F32, Four, inline_kernel
from onlineauto.jit.four import flags, load, pick, splat

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.records import Records, Scratch


_FNV = np.uint64(16777619)


@inline_kernel
def add_term(table: NDArray[np.float32], cell: int | np.uint64, lane: int, x: F32, total: Four) -> Four:
    """Add w·x of one cell to the sums of four lanes."""
    return total + load(table, cell, lane) * splat(x)


@inline_kernel
def add_run(
    table: NDArray[np.float32],
    features: Records,
    start: int,
    end: int,
    mask: np.uint64,
    lane: int,
    total: Four,
) -> Four:
    """Add the features [start, end) themselves."""
    for i in range(start, end):
        total = add_term(table, np.uint64(features[i].hash) & mask, lane, features[i].value, total)
    return total


@inline_kernel
def add_pair(table: NDArray[np.float32], scratch: Scratch, mask: np.uint64, lane: int, total: Four) -> Four:
    """Add the product of the two factors that were looked up."""
    features, factors = scratch.features, scratch.factors
    first, second = factors[0].start, factors[1].start
    repeats = factors[1].repeats
    for i in range(first, factors[0].end):
        half = _FNV * np.uint64(features[i].hash)
        x = features[i].value
        for j in range(second + (i - first) if repeats else second, factors[1].end):
            cell = (half ^ np.uint64(features[j].hash)) & mask
            total = add_term(table, cell, lane, x * features[j].value, total)
    return total


@inline_kernel
def add_listed(
    table: NDArray[np.float32],
    cell: NDArray[np.uint32],
    value: NDArray[np.float32],
    n: int,
    lane: int,
    total: Four,
) -> Four:
    """Add `n` listed features."""
    for i in range(n):
        total = add_term(table, cell[i], lane, value[i], total)
    return total


@inline_kernel
def choose(held: NDArray[np.bool_], slot: int, after: Four, before: Four) -> Four:
    """Take the new sum in lanes whose slot holds the product, the old one in the others."""
    return pick(flags(held[slot], held[slot + 1], held[slot + 2], held[slot + 3]), after, before)
