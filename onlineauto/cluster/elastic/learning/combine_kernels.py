"""Combine the cells of the parts of a tick.

Each part has learned its events one after the other, beginning with the weights of the last tick. If one part
has changed a cell, its values are the result. If several parts have changed a cell, evidence is added, the
largest scale is used, and weights are averaged in proportion to the evidence:

    w = w₀ + Σ sₚ (wₚ - w₀) with sₚ = Δaₚ / Σ Δa

Sums are in the order of the parts, so rounding does not depend on which worker has computed which part.

Source: Agarwal et al., *A Reliable Effective Terascale Linear Learning System*, 2014, section 3.1, which
averages once a pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.jit import F32, entry_kernel, inline_kernel, short_loop

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ZERO = np.float32(0)
_ONE = np.float32(1)

FIELDS = 3
"""Numbers of a cell for each lane: weight, evidence, scale. The last rate is scratch and is not stored."""


class BlockCells(NamedTuple):
    """The cells of a block: their values, and which of them have been learnt."""

    value: NDArray[np.float32]  # [cells, FIELDS · lanes]: weights, then evidence, then scales
    touched: NDArray[np.bool_]  # [cells]


class Arrivals(NamedTuple):
    """The cells of the parts of a tick after learning."""

    cell: NDArray[np.uint32]  # [n]: cell of the block
    value: NDArray[np.float32]  # [n, FIELDS · lanes]
    order: NDArray[np.int64]  # [n]: by cell, then by part


class Undo(NamedTuple):
    """The previous values of the cells that a tick has changed, in ascending order."""

    cell: NDArray[np.uint32]  # [n]
    value: NDArray[np.float32]  # [n, FIELDS · lanes]


@inline_kernel
def _rescale_weight(weight: F32, scale: F32, largest: F32) -> F32:
    """Return a weight for a larger scale of its feature, rescaled like in the update rule."""
    return weight * (scale / largest) if _ZERO < scale < largest else weight


@inline_kernel
def _combine_lane(
    rows: BlockCells, arrivals: Arrivals, begin: int, end: int, lane: int, lanes: int, rescales: bool
) -> None:
    """Combine one lane of a cell that several parts have changed."""
    cell = arrivals.cell[arrivals.order[begin]]
    at_a, at_n = lanes + lane, 2 * lanes + lane
    before, evidence, scale = rows.value[cell, lane], rows.value[cell, at_a], rows.value[cell, at_n]
    largest, gained = scale, _ZERO
    for k in range(begin, end):
        short_loop()
        part = arrivals.order[k]
        gained += arrivals.value[part, at_a] - evidence
        largest = max(largest, arrivals.value[part, at_n])
    base = _rescale_weight(before, scale, largest) if rescales else before
    equal = _ONE / np.float32(end - begin)
    moved = _ZERO
    for k in range(begin, end):
        short_loop()
        part = arrivals.order[k]
        share = (arrivals.value[part, at_a] - evidence) / gained if gained > _ZERO else equal
        weight = arrivals.value[part, lane]
        if rescales:
            weight = _rescale_weight(weight, arrivals.value[part, at_n], largest)
        moved += share * (weight - base)
    rows.value[cell, lane] = base + moved
    rows.value[cell, at_a] = evidence + gained
    rows.value[cell, at_n] = largest


@entry_kernel
def combine(rows: BlockCells, arrivals: Arrivals, undo: Undo, lanes: int, rescales: bool) -> int:
    """Apply the arrivals of a tick to a block; fill `undo`, and return the number of changed cells."""
    n, begin, total = 0, 0, len(arrivals.order)
    while begin < total:
        short_loop()
        part = arrivals.order[begin]
        cell = arrivals.cell[part]
        end = begin + 1
        while end < total and arrivals.cell[arrivals.order[end]] == cell:
            short_loop()
            end += 1
        undo.cell[n] = cell
        for column in range(FIELDS * lanes):
            short_loop()
            undo.value[n, column] = rows.value[cell, column]
        rows.touched[cell] = True
        if end == begin + 1:
            for column in range(FIELDS * lanes):
                short_loop()
                rows.value[cell, column] = arrivals.value[part, column]
        else:
            for lane in range(lanes):
                short_loop()
                _combine_lane(rows, arrivals, begin, end, lane, lanes, rescales)
        n += 1
        begin = end
    return n
