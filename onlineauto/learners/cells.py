"""Read and write cells of a model in the order of model files: all numbers of a cell together.

In a model's memory the weights and the other numbers are separate arrays; see
`onlineauto.learners.gradient_kernels`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.learners.gradient_kernels import W

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from onlineauto.learners.gradient_kernels import Model

    Rows = NDArray[np.int64] | NDArray[np.uint32] | slice

FIELDS = 4
"""Number of fields of a cell, for each lane: `W`, `A`, `N` and `RATE`."""

_ALL = slice(None)


def read_cells(
    model: Model, rows: Rows = _ALL, *, lanes: Sequence[int] | None = None, fields: int = FIELDS
) -> NDArray[np.float32]:
    """Return a copy of the first `fields` numbers of cells: float32[rows, fields, lanes]."""
    n = len(model.touched[rows])
    cells = np.empty((n, fields, model.weights.shape[1] if lanes is None else len(lanes)), np.float32)
    if lanes is None:
        cells[:, W], cells[:, 1:] = model.weights[rows], model.statistics[rows, : fields - 1]
    for index, lane in enumerate(lanes or ()):
        cells[:, W, index] = model.weights[rows, lane]
        cells[:, 1:, index] = model.statistics[rows, : fields - 1, lane]
    return cells


def write_cells(
    model: Model, rows: Rows, cells: NDArray[np.float32], *, lanes: Sequence[int] | None = None
) -> None:
    """Write the first numbers of cells: float32[rows, fields, lanes]; a single row is repeated."""
    fields = cells.shape[1]
    if lanes is None:
        model.weights[rows], model.statistics[rows, : fields - 1] = cells[:, W], cells[:, 1:]
    for index, lane in enumerate(lanes or ()):
        model.weights[rows, lane] = cells[:, W, index]
        model.statistics[rows, : fields - 1, lane] = cells[:, 1:, index]
