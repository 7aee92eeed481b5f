"""Compute scores without a list of features: cross, look up and add, for four lanes at a time.

One hash and one cache line serve all lanes of a cell; `add_pairs` and `add_triples` serve eight lanes. Every
lane adds its terms in the order of the list, so its sum has the same bits as a separate sum. With fewer than
four lanes, the surplus sums are garbage and are ignored. The statistics follow the weights in memory, so no
load reads past the end of the table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.jit import F32, Four, inline_kernel, short_loop
from onlineauto.jit.four import load, splat

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.records import Records


_FNV = np.uint64(16777619)


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


@inline_kernel
def add_pair(
    weights: NDArray[np.float32],
    features: Records,
    mask: np.uint64,
    runs: tuple[tuple[int, int], tuple[int, int]],
    same_run: bool,
    lane: int,
    total: Four,
) -> Four:
    """Return `total` plus the terms of the product of two runs; with `same_run`, each pair counts once."""
    first, second = runs
    begin = np.uint64(second[0])
    for i in range(np.uint64(first[0]), np.uint64(first[1])):
        short_loop()
        half = _FNV * np.uint64(features[i].hash)
        x = features[i].value
        for j in range(i if same_run else begin, np.uint64(second[1])):
            short_loop()
            cell = (half ^ np.uint64(features[j].hash)) & mask
            total = add_term(weights, cell, lane, x * features[j].value, total)
    return total


@inline_kernel
def add_pairs(
    weights: NDArray[np.float32],
    features: Records,
    mask: np.uint64,
    runs: tuple[tuple[int, int], tuple[int, int]],
    same_run: bool,
    lane: int,
    total: Four,
    next_total: Four,
) -> tuple[Four, Four]:
    """Return the results of `add_pair` for the lanes from `lane` on and for those from `lane` + 4 on."""
    first, second = runs
    begin = np.uint64(second[0])
    for i in range(np.uint64(first[0]), np.uint64(first[1])):
        short_loop()
        half = _FNV * np.uint64(features[i].hash)
        x = features[i].value
        for j in range(i if same_run else begin, np.uint64(second[1])):
            short_loop()
            cell = (half ^ np.uint64(features[j].hash)) & mask
            xy = x * features[j].value
            total = add_term(weights, cell, lane, xy, total)
            next_total = add_term(weights, cell, lane + 4, xy, next_total)
    return total, next_total


@inline_kernel
def add_triple(
    weights: NDArray[np.float32],
    features: Records,
    mask: np.uint64,
    runs: tuple[tuple[int, int], tuple[int, int], tuple[int, int]],
    same_run: tuple[bool, bool],
    lane: int,
    total: Four,
) -> Four:
    """Return `total` plus the terms of the products of three runs; `same_run` tells repeated runs."""
    first, second, third = runs
    for i in range(np.uint64(first[0]), np.uint64(first[1])):
        short_loop()
        chain = _FNV * np.uint64(features[i].hash)
        x = features[i].value
        for j in range(i if same_run[0] else np.uint64(second[0]), np.uint64(second[1])):
            short_loop()
            half = _FNV * (chain ^ np.uint64(features[j].hash))
            xy = x * features[j].value
            for k in range(j if same_run[1] else np.uint64(third[0]), np.uint64(third[1])):
                short_loop()
                cell = (half ^ np.uint64(features[k].hash)) & mask
                total = add_term(weights, cell, lane, xy * features[k].value, total)
    return total


@inline_kernel
def add_triples(
    weights: NDArray[np.float32],
    features: Records,
    mask: np.uint64,
    runs: tuple[tuple[int, int], tuple[int, int], tuple[int, int]],
    same_run: tuple[bool, bool],
    lane: int,
    total: Four,
    next_total: Four,
) -> tuple[Four, Four]:
    """Return the results of `add_triple` for the lanes from `lane` on and for those from `lane` + 4 on."""
    first, second, third = runs
    for i in range(np.uint64(first[0]), np.uint64(first[1])):
        short_loop()
        chain = _FNV * np.uint64(features[i].hash)
        x = features[i].value
        for j in range(i if same_run[0] else np.uint64(second[0]), np.uint64(second[1])):
            short_loop()
            half = _FNV * (chain ^ np.uint64(features[j].hash))
            xy = x * features[j].value
            for k in range(j if same_run[1] else np.uint64(third[0]), np.uint64(third[1])):
                short_loop()
                cell = (half ^ np.uint64(features[k].hash)) & mask
                xyz = xy * features[k].value
                total = add_term(weights, cell, lane, xyz, total)
                next_total = add_term(weights, cell, lane + 4, xyz, next_total)
    return total, next_total


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
