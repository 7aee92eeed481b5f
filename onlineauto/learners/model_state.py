"""Convert the model of a learner to its part of a model file and back: weights, sums, typical sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.learners.cells import FIELDS
from onlineauto.learners.gradient_kernels import (
    CONTRACTION,
    FACTOR,
    GRAVITY,
    MAX_LABEL,
    MIN_LABEL,
    SHARED,
    Model,
)
from onlineauto.state.schema import Sparse, add, counts, declare, field, keep, read, save
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


def _stored_sizes(stored: Stored, array: Sizes) -> Sizes:
    """Return stored typical sizes, whose states are valid."""
    sizes = stored.array_like(array)
    if (sizes.max(axis=0, initial=0) > _LARGEST_SIZES).any():
        raise stored.fail("states of typical sizes")
    return sizes


_CELLS, _KINDS = Sparse("cells"), Sparse("kinds")

declare(
    Model,
    weights=field(_CELLS, "lanes", predicts=True),
    statistics=field(_CELLS, FIELDS - 1, "lanes"),
    shared=field(SHARED, merge=_merge_shared, predicts=True),
    lanes=field("lanes", 4, merge=_merge_lanes, predicts=True),
    sums=field("slots", "policies", read=counts(), merge=add, predicts=True),
    settings=field("slots", merge=keep, saved=False),
    sizes=field(_KINDS, 4, read=_stored_sizes, merge=_merge_sizes, predicts=True),
    outliers=field("outliers", read=counts(), merge=add, predicts=True),
)
"""Weights and their statistics merge cell by cell. The settings of live configs follow from the configs."""


def model_state(model: Model, *, fields: int = FIELDS) -> dict[str, Any]:
    """Return a model as the tree that `restore_model` reads; of its cells, the learnt ones.

    The tree has the first `fields` numbers of each cell: all, or only the first, which is enough to predict.
    """
    used: dict[str, Any] = {_CELLS: np.flatnonzero(model.touched), _KINDS: np.flatnonzero(model.sizes[:, 0])}
    n_cells, lanes = model.weights.shape
    return {"shape": (n_cells, FIELDS, lanes)} | save(model, used, predicts=fields < FIELDS)


def restore_model(model: Model, stored: Stored, *, finite: bool) -> int:
    """Restore a model that was stored with the same options; return the stored number of fields of a cell."""
    n_cells, lanes = model.weights.shape
    if stored["shape"].convert(list[int]) != [n_cells, FIELDS, lanes]:
        raise stored["shape"].fail(f"the shape {[n_cells, FIELDS, lanes]}")
    predicts = "statistics" not in stored
    read(stored, model, predicts=predicts)
    model.touched[:] = False
    model.touched[stored[_CELLS].indices(n_cells)] = True
    if finite:
        stored["weights"].finite(np.float32, (-1, -1))
        stored["lanes"].finite(np.float64, model.lanes.shape)
        # The next update replaces the factor.
        Stored(np.delete(model.shared, FACTOR), "shared").finite(np.float64, (SHARED - 1,))
    single = np.concatenate([model.shared[MIN_LABEL:], *model.lanes[:, [GRAVITY, CONTRACTION]]])
    if (np.abs(single[np.isfinite(single)]) > _LARGEST).any():
        raise stored["shared"].fail("numbers that single precision has, as those of `lanes`")
    return 1 if predicts else FIELDS


def apply_penalties(weights: NDArray[np.float32], penalties: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return weights, float32[cells, lanes], after the L1 and L2 penalties of their lanes."""
    gravity = penalties[:, GRAVITY].astype(np.float32)
    sizes = np.maximum(np.abs(weights) - gravity, np.float32(0))
    scaled: NDArray[np.float32] = np.copysign(sizes, weights) * penalties[:, CONTRACTION].astype(np.float32)
    return scaled
