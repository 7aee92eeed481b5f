"""The part of a model file that a learner keeps: weights, sums, and everything else that learning changes."""

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
    """Return a model as the tree that `restore_model` takes.

    It has the first `fields` of each cell; 1 is enough to predict. The cells are those ever learnt, each with
    its number, or all cells, with one bit for each that says whether it was learnt: whichever is smaller. The
    settings of live configs are not part of it, since they follow from the configs.
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
    """Return weights, float32[cells, lanes], with the penalties of their lanes applied."""
    gravity = penalties[:, GRAVITY].astype(np.float32)
    sizes = np.maximum(np.abs(weights) - gravity, np.float32(0))
    scaled: NDArray[np.float32] = np.copysign(sizes, weights) * penalties[:, CONTRACTION].astype(np.float32)
    return scaled
