"""The model before the first event: the weights and sums that learning changes."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.features.options import FeatureOptions
from onlineauto.learners._kernels import (
    CONTRACTION,
    MAX_LABEL,
    MIN_LABEL,
    NORM,
    WEIGHT,
    A,
    Model,
    T,
    W,
)
from onlineauto.learners.hyperparameters import Hyperparameters
from onlineauto.learners.options import LossOptions, UpdateOptions
from onlineauto.learners.rule import initial_t, make_rule

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.learners.table import TableShape
    from onlineauto.options import Configuration

__all__ = ["copied_model", "initial_lanes", "initial_state", "initial_weights", "make_model"]

_WIDE = 50.0
"""Logistic and Poisson predictions are within [-50, 50] from the start."""
_LINE = 16  # float32 numbers in a cache line
_LARGE = 1 << 24
_DENSE = 4  # a whole table is copied about as fast as a quarter of its cells, one by one


def initial_state(configuration: Configuration, *, training: bool) -> NDArray[np.float64]:
    """Return the state that all lanes share at the start: float64[6], see `onlineauto.learners._kernels`."""
    update, loss = configuration[UpdateOptions], configuration[LossOptions]
    state = np.zeros(6)
    state[T] = initial_t(configuration)
    state[MIN_LABEL] = np.float32(update.min_prediction or 0)
    state[MAX_LABEL] = np.float32(update.max_prediction or 0)
    fixed = update.min_prediction is not None or update.max_prediction is not None
    if loss.loss_function in ("logistic", "poisson") and training and not fixed:
        state[MIN_LABEL], state[MAX_LABEL] = -_WIDE, _WIDE
    return state


def initial_lanes(configuration: Configuration, *, lanes: int) -> NDArray[np.float64]:
    """Return every lane's state at the start: float64[lanes, 4], see `onlineauto.learners._kernels`."""
    state = np.zeros((lanes, 4))
    state[:, CONTRACTION] = 1.0
    state[0, [NORM, WEIGHT]] = np.float32(configuration[UpdateOptions].initial_t or 0)
    return state


def make_model(
    configuration: Configuration, weights: NDArray[np.float32], shape: TableShape, *, training: bool
) -> Model:
    """Return a model before the first event, with these `weights`, which have this `shape`."""
    touched = np.zeros(shape.cells, bool)
    if constant := configuration[FeatureOptions].constant:
        cell, lane = shape.constant
        weights[cell, W, lane] = constant
        touched[cell] = True
    return Model(
        weights=weights,
        table=weights.reshape(shape.cells, -1),
        touched=touched,
        shared=initial_state(configuration, training=training),
        lanes=initial_lanes(configuration, lanes=shape.lanes),
        penalised=shape.penalised,
        sums=np.zeros((shape.configs, 2 * max(shape.policies, 1)), np.int64),
        settings=Hyperparameters(configuration).records(shape.lanes),
    )


def copied_model(configuration: Configuration, model: Model) -> Model:
    """Return a copy of a model that shares no memory with it.

    Only the cells that were learnt are copied, if they are few: the others of a large table take no memory.
    """
    cells, _, lanes = model.weights.shape
    learnt = np.flatnonzero(model.touched)
    if len(learnt) * _DENSE < cells:
        weights = initial_weights(configuration, cells=cells, lanes=lanes)
        weights[learnt] = model.weights[learnt]
    else:
        weights = _zeros(cells * 4 * lanes).reshape(model.weights.shape)
        weights[:] = model.weights
    arrays = {name: getattr(model, name).copy() for name in Model._fields if name not in ("weights", "table")}
    return Model(weights=weights, table=weights.reshape(cells, -1), **arrays)


def initial_weights(configuration: Configuration, *, cells: int, lanes: int) -> NDArray[np.float32]:
    """Return the weight table before the first event: float32[cells, 4, lanes]."""
    update = configuration[UpdateOptions]
    weights = _zeros(cells * 4 * lanes).reshape(cells, 4, lanes)
    if update.initial_weight:
        weights[:, W] = update.initial_weight
    if make_rule(configuration).adaptive and initial_t(configuration) > 0:
        weights[:, A] = initial_t(configuration)
    return weights


def _zeros(n: int) -> NDArray[np.float32]:
    """Return `n` zeros that begin at a cache line, so that a cell of four lanes is one line.

    A large table uses small pages: most of its cells are never touched, and then take no memory.
    """
    if n > _LARGE and hasattr(mmap, "MADV_NOHUGEPAGE"):
        memory = mmap.mmap(-1, 4 * n)
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        return np.frombuffer(memory, np.float32)
    column = np.zeros(n + _LINE, np.float32)
    begin = -(column.ctypes.data // column.itemsize) % _LINE
    return column[begin : begin + n]
