"""Copy lanes, swap them, extract them from a model and restore them, cell by cell.

Only touched cells can differ from their initial values; callers list the touched cells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.jit import entry_kernel, inline_kernel
from onlineauto.learners.gradient_kernels import W

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from onlineauto.learners.gradient_kernels import Model


@entry_kernel
def copy_lane(model: Model, touched: NDArray[np.int64], source: int, target: int) -> None:
    """Copy the touched cells of lane `source` to lane `target`.

    0.0 and -0.0 count as equal, as in VW.
    """
    weights, statistics = model.weights, model.statistics
    for cell in touched:
        if weights[cell, target] != weights[cell, source]:
            weights[cell, target] = weights[cell, source]
        for field in range(statistics.shape[1]):
            if statistics[cell, field, target] != statistics[cell, field, source]:
                statistics[cell, field, target] = statistics[cell, field, source]


@entry_kernel
def swap_lanes(model: Model, touched: NDArray[np.int64], one: int, other: int) -> None:
    """Swap the touched cells of two lanes; 0.0 and -0.0 count as equal."""
    weights, statistics = model.weights, model.statistics
    for cell in touched:
        if weights[cell, one] != weights[cell, other]:
            saved = weights[cell, one]
            weights[cell, one] = weights[cell, other]
            weights[cell, other] = saved
        for field in range(statistics.shape[1]):
            if statistics[cell, field, one] != statistics[cell, field, other]:
                saved = statistics[cell, field, one]
                statistics[cell, field, one] = statistics[cell, field, other]
                statistics[cell, field, other] = saved


@inline_kernel
def _is_learnt(model: Model, cell: int, lane: int, unlearnt: NDArray[np.float32]) -> bool:
    """Return whether a lane of a cell differs from the initial cell `unlearnt`."""
    learnt = model.weights[cell, lane] != unlearnt[W]
    for field in range(model.statistics.shape[1]):
        learnt = learnt or model.statistics[cell, field, lane] != unlearnt[1 + field]
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
    """Copy the cells in which lanes differ from the initial cell; return the number of these cells.

    `cells` receives the indices of the cells, and `numbers`[cell, 4, lanes] their contents.
    """
    n = 0
    for cell in touched:
        learnt = False
        for lane in lanes:
            learnt = learnt or _is_learnt(model, cell, lane, unlearnt)
        if not learnt:
            continue
        cells[n] = cell
        for part in range(len(lanes)):
            numbers[n, W, part] = model.weights[cell, lanes[part]]
            for field in range(model.statistics.shape[1]):
                numbers[n, 1 + field, part] = model.statistics[cell, field, lanes[part]]
        n += 1
    return n


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
    for cell in touched:
        model.weights[cell, lane] = unlearnt[W]
        for field in range(model.statistics.shape[1]):
            model.statistics[cell, field, lane] = unlearnt[1 + field]
    for i in range(len(cells)):
        model.weights[cells[i], lane] = numbers[i, W, part]
        for field in range(model.statistics.shape[1]):
            model.statistics[cells[i], field, lane] = numbers[i, 1 + field, part]
