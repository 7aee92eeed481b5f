"""Compute scores without a list of features: cross, look up and add, for four lanes at a time.

One hash and one cache line serve all lanes of a cell; `add_pairs` and `add_triples` serve eight lanes. Every
lane adds its terms in the order of the list, so its sum has the same bits as a separate sum. With fewer than
four lanes, the surplus sums are garbage and are ignored. The statistics follow the weights in memory, so no
load reads past the end of the table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.features.product_kernels import make_pair_loop, make_triple_loop
from onlineauto.jit import F32, Four, inline_kernel, short_loop
from onlineauto.jit.four import load, splat

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.records import Records


@inline_kernel
def add_term(weights: NDArray[np.float32], cell: int | np.uint64, lane: int, x: F32, total: Four) -> Four:
    """Return `total` plus w·x of one cell, for four lanes."""
    return total + load(weights, cell, lane) * splat(x)


@inline_kernel
def add_run(
    weights: NDArray[np.float32],
    features: Records,
    start: int,
    end: int,
    mask: np.uint64,
    lane: int,
    total: Four,
) -> Four:
    """Return `total` plus the terms of the features [start, end)."""
    for i in range(np.uint64(start), np.uint64(end)):
        short_loop()
        total = add_term(weights, np.uint64(features[i].hash) & mask, lane, features[i].value, total)
    return total


class WeightLanes(NamedTuple):
    """The lanes from `lane` on of a table of weights."""

    weights: NDArray[np.float32]
    lane: int


@inline_kernel
def _add_four(lanes: WeightLanes, cell: np.uint64, x: F32, total: Four) -> Four:
    """Return `total` plus the terms of a cell in four lanes."""
    return add_term(lanes.weights, cell, lanes.lane, x, total)


@inline_kernel
def _add_eight(lanes: WeightLanes, cell: np.uint64, x: F32, totals: tuple[Four, Four]) -> tuple[Four, Four]:
    """Return `totals` plus the terms of a cell in eight lanes."""
    return (
        add_term(lanes.weights, cell, lanes.lane, x, totals[0]),
        add_term(lanes.weights, cell, lanes.lane + 4, x, totals[1]),
    )


add_pair, add_pairs = make_pair_loop(_add_four), make_pair_loop(_add_eight)
add_triple, add_triples = make_triple_loop(_add_four), make_triple_loop(_add_eight)
"""Add the terms of products of runs: ``add_pair(lanes, features, mask, runs, same_run, total)``.

`add_pairs` and `add_triples` have two totals, for the lanes from `lane` on and for those from `lane` + 4 on.
"""


@inline_kernel
def add_listed(
    weights: NDArray[np.float32],
    cell: NDArray[np.uint32],
    value: NDArray[np.float32],
    n: int,
    lane: int,
    total: Four,
) -> Four:
    """Return `total` plus the terms of `n` listed features."""
    for i in range(n):
        total = add_term(weights, cell[i], lane, value[i], total)
    return total
