"""Convert the model of a learner to its part of a model file and back: weights, sums, typical sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.learners.cells import FIELDS, read_cells, write_cells
from onlineauto.learners.gradient_kernels import (
    CONTRACTION,
    FACTOR,
    GRAVITY,
    MAX_LABEL,
    MIN_LABEL,
    ORIGIN,
    SHARED,
    Model,
    W,
)
from onlineauto.learners.model import NOT_FIRST
from onlineauto.state.schema import add, declare, field, keep
from onlineauto.state.stored import Stored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Doubles = NDArray[np.float64]
    Sizes = NDArray[np.uint8]

_LARGEST = float(np.finfo(np.float32).max)
_LARGEST_SIZES = np.array([138, 16, 17, 255])


def _merge_shared(base: Doubles, ends: Sequence[Doubles], context: Any) -> Doubles:
    """Return sums over all events, the range of their labels, and the factor and the origin of the base."""
    shared: Doubles = add(base, ends, context)
    shared[MIN_LABEL] = min(end[MIN_LABEL] for end in ends)
    shared[MAX_LABEL] = max(end[MAX_LABEL] for end in ends)
    shared[MAX_LABEL + 1 :] = base[MAX_LABEL + 1 :]
    return shared


def _merge_lanes(base: Doubles, ends: Sequence[Doubles], context: Any) -> Doubles:
    """Return sums over all events; contractions multiply."""
    lanes: Doubles = add(base, ends, context)
    before = base[:, CONTRACTION]
    shrunk = np.where(before > 0, before, 1.0)
    lanes[:, CONTRACTION] = before * np.prod([end[:, CONTRACTION] / shrunk for end in ends], axis=0)
    return lanes


def _merge_sizes(base: Sizes, ends: Sequence[Sizes], context: Any) -> Sizes:
    """Return each typical size of the branch that has seen the most numbers of its kind."""
    del context
    sizes = base.copy()
    for end in ends:
        grown = (end[:, 1] > sizes[:, 1]) | ((end != base).any(axis=1) & (end[:, 1] == sizes[:, 1]))
        sizes[grown] = end[grown]
    return sizes


declare(
    Model,
    shared=field(SHARED, merge=_merge_shared),
    lanes=field("lanes", 4, merge=_merge_lanes),
    sums=field("slots", "policies", merge=add),
    settings=field("slots", merge=keep),
    sizes=field("sizes", 4, merge=_merge_sizes),
    outliers=field("outliers", merge=add),
)
"""The small arrays; cells are read, written and merged row by row."""


def model_state(model: Model, *, fields: int = 4) -> dict[str, Any]:
    """Return a model as the tree that `restore_model` reads.

    The tree has the first `fields` numbers of each cell; 1 is enough to predict. It lists either the learnt
    cells with their indices, or all cells with one bit each for "learnt", whichever is smaller. The settings
    of live configs are not included, since they follow from the configs.
    """
    cells = np.flatnonzero(model.touched).astype(np.uint32)
    n_cells, lanes = model.weights.shape
    row = model.weights.itemsize * lanes * fields
    weights: dict[str, Any]
    if len(cells) * (cells.itemsize + row) < n_cells * row + n_cells // 8:
        weights = {"cell": cells, "row": read_cells(model, cells, fields=fields)}
    else:
        weights = {"learnt": np.packbits(model.touched), "row": read_cells(model, fields=fields)}
    return {
        "shape": (n_cells, FIELDS, lanes),
        "weights": weights,
        "shared": model.shared,
        "lanes": model.lanes,
        "sums": model.sums,
        "sizes": {
            "at": (at := np.flatnonzero(model.sizes[:, 0]).astype(np.uint32)),
            "state": model.sizes[at],
        },
        "outliers": model.outliers,
    }


def restore_model(model: Model, stored: Stored, *, finite: bool) -> int:
    """Restore a model that was stored with the same options; return the stored number of fields of a cell."""
    n_cells, lanes = model.weights.shape
    if stored["shape"].convert(list[int]) != [n_cells, FIELDS, lanes]:
        raise stored["shape"].fail(f"the shape {[n_cells, FIELDS, lanes]}")
    weights, n_rows = stored["weights"], n_cells
    cells: NDArray[np.uint32] | slice = slice(None)
    if "cell" in weights:
        cells = _ascending(weights["cell"], n_cells)
        model.touched[:] = False
        model.touched[cells], n_rows = True, len(cells)
    else:
        learnt = weights["learnt"].array(np.uint8, (-(-n_cells // 8),))
        model.touched[:] = np.unpackbits(learnt, count=n_cells).view(bool)
    row = weights["row"].array(np.float32, (n_rows, FIELDS, lanes), (n_rows, 1, lanes))
    if finite:
        Stored(row[:, W], "weights").finite(np.float32, (n_rows, lanes))
    n_fields: int = row.shape[1]
    write_cells(model, cells, row)
    shared = stored["shared"].array(np.float64, (SHARED,), (ORIGIN,))  # earlier versions have no origin
    model.shared[ORIGIN] = 0.0
    model.shared[: len(shared)] = shared
    model.lanes[:] = stored["lanes"].array_like(model.lanes)
    if finite:  # except the factor, which the next update replaces
        Stored(np.delete(model.shared, FACTOR), "shared").finite(np.float64, (SHARED - 1,))
        Stored(model.lanes, "lanes").finite(np.float64, model.lanes.shape)
    single = np.concatenate([model.shared[MIN_LABEL:], *model.lanes[:, [GRAVITY, CONTRACTION]]])
    if (np.abs(single[np.isfinite(single)]) > _LARGEST).any():
        raise stored["shared"].fail("numbers that single precision has, as those of `lanes`")
    model.sums[:] = stored["sums"].counts(model.sums.shape)
    _restore_sizes(model, stored)
    return n_fields


def _restore_sizes(model: Model, stored: Stored) -> None:
    """Restore the typical sizes, which files of earlier versions do not have."""
    model.sizes[:] = 0
    model.outliers[:] = 0
    if "sizes" not in stored:
        model.outliers[0] = NOT_FIRST
        return
    at = _ascending(stored["sizes"]["at"], len(model.sizes))
    state = stored["sizes"]["state"].array(np.uint8, (len(at), model.sizes.shape[1]))
    if (state.max(axis=0, initial=0) > _LARGEST_SIZES).any():
        raise stored["sizes"]["state"].fail("states of typical sizes")
    model.sizes[at] = state
    model.outliers[:] = stored["outliers"].counts(model.outliers.shape)


def _ascending(stored: Stored, n_cells: int) -> NDArray[np.uint32]:
    """Return the stored indices of cells, which must be strictly ascending."""
    cells = stored.array(np.uint32, (-1,))
    if len(cells) and not (cells[-1] < n_cells and (cells[1:] > cells[:-1]).all()):
        raise stored.fail(f"numbers of {n_cells} cells in ascending order")
    return cells


def apply_penalties(weights: NDArray[np.float32], penalties: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return weights, float32[cells, lanes], after the L1 and L2 penalties of their lanes."""
    gravity = penalties[:, GRAVITY].astype(np.float32)
    sizes = np.maximum(np.abs(weights) - gravity, np.float32(0))
    scaled: NDArray[np.float32] = np.copysign(sizes, weights) * penalties[:, CONTRACTION].astype(np.float32)
    return scaled
