"""Copy lanes, swap them, extract them from a model and restore them, cell by cell.

Only touched cells can differ from their initial values; callers list the touched cells. These are up to all
cells of the table, which is larger than the processor's cache, so each pass fetches cells ahead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.jit import F32, entry_kernel, inline_kernel
from onlineauto.jit.four import prefetch
from onlineauto.learners.gradient_kernels import W

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from onlineauto.learners.gradient_kernels import Model


_AHEAD = 24
"""Number of touched cells by which a pass fetches ahead."""


@inline_kernel
def _fetch(model: Model, touched: NDArray[np.int64], i: int) -> None:
    """Fetch the cell that comes `_AHEAD` after the one at index `i`."""
    later = touched[min(i + _AHEAD, len(touched) - 1)]
    prefetch(model.weights, later, 0)
    prefetch(model.rows, later, 0)
    prefetch(model.rows, later, model.rows.shape[1] - 4)


@inline_kernel
def _unless_equal(new: F32, old: F32) -> F32:
    """Return `new`, but `old` if both are equal, without a branch that the processor cannot predict."""
    return new if new != old else old


@entry_kernel
def copy_lane(model: Model, touched: NDArray[np.int64], source: int, target: int) -> None:
    """Copy the touched cells of lane `source` to lane `target`; 0.0 and -0.0 count as equal, as in VW."""
    weights, statistics = model.weights, model.statistics
    for i in range(len(touched)):
        _fetch(model, touched, i)
        cell = touched[i]
        weights[cell, target] = _unless_equal(weights[cell, source], weights[cell, target])
        for field in range(statistics.shape[1]):
            numbers = statistics[cell, field]
            numbers[target] = _unless_equal(numbers[source], numbers[target])


@entry_kernel
def swap_lanes(model: Model, touched: NDArray[np.int64], one: int, other: int) -> None:
    """Swap the touched cells of two lanes; 0.0 and -0.0 count as equal."""
    weights, statistics = model.weights, model.statistics
    for i in range(len(touched)):
        _fetch(model, touched, i)
        cell = touched[i]
        a, b = weights[cell, one], weights[cell, other]
        weights[cell, one], weights[cell, other] = _unless_equal(b, a), _unless_equal(a, b)
        for field in range(statistics.shape[1]):
            a, b = statistics[cell, field, one], statistics[cell, field, other]
            statistics[cell, field, one] = _unless_equal(b, a)
            statistics[cell, field, other] = _unless_equal(a, b)


@inline_kernel
def _is_learnt(model: Model, cell: int, lane: int, unlearnt: NDArray[np.float32]) -> bool:
    """Return whether a lane of a cell differs from the initial cell `unlearnt`."""
    learnt = model.weights[cell, lane] != unlearnt[W]
    for field in range(model.statistics.shape[1]):
        learnt |= model.statistics[cell, field, lane] != unlearnt[1 + field]
    return bool(learnt)


@entry_kernel
def take_lanes(
    model: Model,
    touched: NDArray[np.int64],
    lanes: NDArray[np.int64],
    unlearnt: NDArray[np.float32],
    cells: NDArray[np.int64],
    numbers: NDArray[np.float32],
) -> int:
    """Copy the changed cells of lanes to `cells` (indices) and `numbers`[cell, 4, lanes]; return how many."""
    n = 0
    for i in range(len(touched)):
        _fetch(model, touched, i)
        cell, learnt = touched[i], False
        for lane in lanes:
            learnt |= _is_learnt(model, cell, lane, unlearnt)
        cells[n] = cell  # and its contents, which the next cell overwrites if they are not learnt
        for part in range(len(lanes)):
            numbers[n, W, part] = model.weights[cell, lanes[part]]
            for field in range(model.statistics.shape[1]):
                numbers[n, 1 + field, part] = model.statistics[cell, field, lanes[part]]
        n += 1 if learnt else 0
    return n


@inline_kernel
def _put(
    model: Model, lane: int, cells: NDArray[np.int64], numbers: NDArray[np.float32], i: int, part: int
) -> None:
    """Write numbers[i, 4, `part`] into cell `cells[i]` of a lane."""
    model.weights[cells[i], lane] = numbers[i, W, part]
    for field in range(model.statistics.shape[1]):
        model.statistics[cells[i], field, lane] = numbers[i, 1 + field, part]


@entry_kernel
def put_lane(
    model: Model,
    touched: NDArray[np.int64],
    lane: int,
    unlearnt: NDArray[np.float32],
    cells: NDArray[np.int64],
    numbers: NDArray[np.float32],
    part: int,
) -> None:
    """Write numbers[cell, 4, `part`] into `cells` of a lane, and reset all other cells of the lane."""
    n = 0
    for i in range(len(touched)):
        _fetch(model, touched, i)
        cell = touched[i]
        model.weights[cell, lane] = unlearnt[W]
        for field in range(model.statistics.shape[1]):
            model.statistics[cell, field, lane] = unlearnt[1 + field]
        while n < len(cells) and cells[n] <= cell:
            _put(model, lane, cells, numbers, n, part)
            n += 1
    for i in range(n, len(cells)):
        _put(model, lane, cells, numbers, i, part)
