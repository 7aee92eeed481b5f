"""What a model file keeps of a learner: weights, sums, and whatever else learning changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.learners._kernels import CONTRACTION, GRAVITY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from onlineauto.learners._kernels import Model

__all__ = ["materialised", "model_state", "restore_model"]


def model_state(model: Model, *, fields: int = 4) -> dict[str, Any]:
    """What `restore_model` takes.

    Of each cell the first `fields`: 1 is what it takes to predict. Of the cells those that were ever learnt,
    each with its number, or all, and a bit for each that says so: whatever is smaller. The settings of the
    slots follow from their configs.
    """
    cells = np.flatnonzero(model.touched).astype(np.uint32)
    row = model.table.itemsize * model.table.shape[1] // model.weights.shape[1] * fields
    weights: dict[str, Any]
    if len(cells) * (cells.itemsize + row) < len(model.table) * row + len(model.table) // 8:
        weights = {"cell": cells, "row": model.weights[cells, :fields]}
    else:
        weights = {"learnt": np.packbits(model.touched), "row": model.weights[:, :fields]}
    return {
        "shape": model.weights.shape,
        "weights": weights,
        "shared": model.shared,
        "lanes": model.lanes,
        "sums": model.sums,
    }


def restore_model(model: Model, state: Mapping[str, Any]) -> None:
    """Go on where another left off, of the same options.

    Raises
    ------
    ValueError
        The weights are of another shape.
    """
    if tuple(state["shape"]) != model.weights.shape:
        raise ValueError(f"weights are of shape {tuple(state['shape'])}, and not {model.weights.shape}")
    cells, rows = state["weights"].get("cell", slice(None)), state["weights"]["row"]
    model.weights[cells, : rows.shape[1]] = rows
    if isinstance(cells, slice):
        model.touched[:] = np.unpackbits(state["weights"]["learnt"], count=len(model.touched)).view(bool)
    else:
        model.touched[:] = False
        model.touched[cells] = True
    model.shared[:], model.lanes[:], model.sums[:] = state["shared"], state["lanes"], state["sums"]


def materialised(weights: NDArray[np.float32], penalties: NDArray[np.float64]) -> NDArray[np.float32]:
    """Weights, float32[cells, lanes], as they predict: with the penalties of their lanes."""
    gravity = penalties[:, GRAVITY].astype(np.float32)
    sizes = np.maximum(np.abs(weights) - gravity, np.float32(0))
    scaled: NDArray[np.float32] = np.copysign(sizes, weights) * penalties[:, CONTRACTION].astype(np.float32)
    return scaled
