"""Create models, with their weights and sums before the first event, and copy them."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.features.options import FeatureOptions
from onlineauto.learners.cells import FIELDS, read_cells, write_cells
from onlineauto.learners.gradient_kernels import (
    CONTRACTION,
    GRADIENTS,
    MAX_LABEL,
    MIN_LABEL,
    NORM,
    ORIGIN,
    OUTLIERS,
    SHARED,
    SIZES,
    WEIGHT,
    A,
    Model,
    T,
    W,
)
from onlineauto.learners.options import LossOptions, UpdateOptions
from onlineauto.learners.rule import Hyperparameters, initial_t, make_rule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from onlineauto.learners.table import TableShape
    from onlineauto.options import Configuration

_WIDE = 50.0
"""Logistic and Poisson predictions are within [-50, 50] from the start."""
_LINE = 16  # float32 numbers in a cache line
_LARGE = 1 << 24
NOT_FIRST = 1 << 10
"""Number of learnt events that a model starts with if it takes over another model's typical sizes."""
_DENSE = 4  # copying the whole table is about as fast as copying 1/4 of its cells one by one


def initial_state(configuration: Configuration, *, training: bool) -> NDArray[np.float64]:
    """Return the initial state that all lanes share: float64[7], see `gradient_kernels`."""
    update, loss = configuration[UpdateOptions], configuration[LossOptions]
    state = np.zeros(SHARED)
    state[T] = initial_t(configuration)
    state[MIN_LABEL] = np.float32(update.min_prediction or 0)
    state[MAX_LABEL] = np.float32(update.max_prediction or 0)
    fixed = update.min_prediction is not None or update.max_prediction is not None
    if loss.loss_function in ("logistic", "poisson") and training and not fixed:
        state[MIN_LABEL], state[MAX_LABEL] = -_WIDE, _WIDE
    return state


def initial_lanes(configuration: Configuration, *, lanes: int) -> NDArray[np.float64]:
    """Return the initial state of each lane: float64[lanes, 4], see `gradient_kernels`."""
    state = np.zeros((lanes, 4))
    state[:, CONTRACTION] = 1.0
    state[0, [NORM, WEIGHT]] = np.float32(configuration[UpdateOptions].initial_t or 0)
    return state


def make_model(
    configuration: Configuration, table: NDArray[np.float32], shape: TableShape, *, training: bool
) -> Model:
    """Return a model before the first event, in the memory of an `initial_table` of this `shape`."""
    touched = np.zeros(shape.cells, bool)
    views = views_of(table, cells=shape.cells, lanes=shape.lanes)
    if constant := configuration[FeatureOptions].constant:
        cell, lane = shape.constant
        views.weights[cell, lane] = constant
        touched[cell] = True
    return Model(
        table=table,
        weights=views.weights,
        statistics=views.statistics,
        rows=views.rows,
        touched=touched,
        shared=initial_state(configuration, training=training),
        lanes=initial_lanes(configuration, lanes=shape.lanes),
        penalised=shape.penalised,
        sums=np.zeros((shape.configs, 2 * max(shape.policies, 1)), np.int64),
        settings=Hyperparameters(configuration).records(shape.lanes),
        sizes=np.zeros((SIZES, 4), np.uint8),
        outliers=np.zeros(OUTLIERS, np.int64),
    )


def begin_again(configuration: Configuration, model: Model, shape: TableShape, *, training: bool) -> None:
    """Reset a model to its initial state, except sizes of numbers, outlier counts and the origin."""
    touched = np.flatnonzero(model.touched)
    write_cells(model, touched, unlearnt_cell(configuration)[None, :, None])
    model.touched[:] = False
    if constant := configuration[FeatureOptions].constant:
        cell, lane = shape.constant
        model.weights[cell, lane], model.touched[cell] = constant, True
    origin = model.shared[ORIGIN]
    model.shared[:] = initial_state(configuration, training=training)
    model.shared[ORIGIN] = origin
    model.lanes[:] = initial_lanes(configuration, lanes=shape.lanes)
    model.sums[:] = 0


def adopt_sizes(model: Model, sources: Sequence[Model]) -> None:
    """Copy the typical sizes of numbers from other models, to compare the next numbers with them."""
    model.sizes[:, :2] = np.max([source.sizes[:, :2] for source in sources], axis=0)
    model.sizes[:, 2:] = 0
    model.outliers[:] = np.sum([source.outliers for source in sources], axis=0)
    model.outliers[0] = max(model.outliers[0], NOT_FIRST)


def copy_model(configuration: Configuration, model: Model) -> Model:
    """Return a copy that shares no memory with a model; its untouched cells take none."""
    cells, lanes = model.weights.shape
    learnt = np.flatnonzero(model.touched)
    few = len(learnt) * _DENSE < cells
    if few:
        table = initial_table(configuration, cells=cells, lanes=lanes)
    else:
        table = _zeros(len(model.table))
        table[:] = model.table
    names = [name for name in Model._fields if name not in ("table", *Views._fields)]
    copy = with_table(model, table)._replace(**{name: getattr(model, name).copy() for name in names})
    if few:
        write_cells(copy, learnt, read_cells(model, learnt))
    return copy


def initial_table(configuration: Configuration, *, cells: int, lanes: int) -> NDArray[np.float32]:
    """Return the memory of a model before the first event: float32[4 · cells · lanes], see `views_of`."""
    table, unlearnt = _zeros(FIELDS * cells * lanes), unlearnt_cell(configuration)
    views = views_of(table, cells=cells, lanes=lanes)
    if unlearnt[W]:
        views.weights[:] = unlearnt[W]
    if unlearnt[A]:
        views.statistics[:, GRADIENTS] = unlearnt[A]
    return table


def unlearnt_cell(configuration: Configuration) -> NDArray[np.float32]:
    """Return the numbers of a cell of any lane before the first event: float32[4]."""
    cell = np.zeros(FIELDS, np.float32)
    cell[W] = configuration[UpdateOptions].initial_weight
    if make_rule(configuration).adaptive and initial_t(configuration) > 0:
        cell[A] = initial_t(configuration)
    return cell


class Views(NamedTuple):
    """The arrays of `Model` that share the memory of its `table`."""

    weights: NDArray[np.float32]
    statistics: NDArray[np.float32]
    rows: NDArray[np.float32]


def views_of(table: NDArray[np.float32], *, cells: int, lanes: int) -> Views:
    """Return the arrays that share the memory of a model."""
    weights, statistics = table[: cells * lanes], table[cells * lanes :]
    return Views(
        weights=weights.reshape(cells, lanes),
        statistics=statistics.reshape(cells, FIELDS - 1, lanes),
        rows=statistics.reshape(cells, (FIELDS - 1) * lanes),
    )


def with_table(model: Model, table: NDArray[np.float32]) -> Model:
    """Return a model with its weights in the memory of `table`."""
    cells, lanes = len(model.touched), len(model.lanes)
    views = views_of(table, cells=cells, lanes=lanes)
    return model._replace(table=table, weights=views.weights, statistics=views.statistics, rows=views.rows)


def _zeros(n: int) -> NDArray[np.float32]:
    """Return `n` zeros aligned to a cache line; small pages leave untouched cells without memory."""
    if n > _LARGE and hasattr(mmap, "MADV_NOHUGEPAGE"):
        memory = mmap.mmap(-1, 4 * n)
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        return np.frombuffer(memory, np.float32)
    column = np.zeros(n + _LINE, np.float32)
    begin = -(column.ctypes.data // column.itemsize) % _LINE
    return column[begin : begin + n]
