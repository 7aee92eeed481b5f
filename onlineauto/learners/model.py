"""Create models, copy them, and convert them to their part of a model file and back."""

from __future__ import annotations

import mmap
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlineauto.features.options import FeatureOptions
from onlineauto.features.records import CONSTANT_HASH
from onlineauto.learners.gradient_kernels import (
    CONTRACTION,
    FACTOR,
    GRADIENTS,
    GRAVITY,
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
from onlineauto.state.schema import Sparse, add, counts, declare, field, keep, read, save
from onlineauto.state.stored import Stored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from onlineauto.options import Configuration

    Rows = NDArray[np.int64] | NDArray[np.uint32] | slice
    Doubles = NDArray[np.float64]
    Sizes = NDArray[np.uint8]

_WIDE = 50.0
"""Logistic and Poisson predictions are within [-50, 50] from the start."""
_LINE = 16  # float32 numbers in a cache line
_MEDIUM, _LARGE = 1 << 20, 1 << 24
"""Numbers of a table from which it begins with small pages, and up to which it may have large ones."""
_SAMPLE, _CELLS_OF_PAGE = 1 << 14, 64
_COLLAPSE = 25  # MADV_COLLAPSE of Linux 6.1, which Python does not name
NOT_FIRST = 1 << 10
"""Number of learnt events that a model starts with if it takes over another model's typical sizes."""
_DENSE = 4  # copying the whole table is about as fast as copying 1/4 of its cells one by one
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


class TableShape(NamedTuple):
    """The position of each live config's weights in the table."""

    configs: int  # live configs
    policies: int  # policies of each live config; 0 if the explorer has none
    parts: int  # lanes of a live config
    cells: int
    lanes: int
    config_step: int  # lanes between two live configs
    part_step: int  # lanes between two parts of a live config
    penalised: NDArray[np.int64]  # [lanes]: the row that holds a lane's penalties
    constant: tuple[int, int]  # cell and lane that ``--constant`` initialises
    hash_mask: int  # bits of a hash that ``--cb N`` keeps when it numbers the actions

    def lane(self, part: int, live: int = 0) -> int:
        """Return the lane of a part of a live config, by default of the champion."""
        return part * self.part_step + live * self.config_step


def lanes_side_by_side(bits: int, *, configs: int, parts: int, policies: int) -> TableShape:
    """Return the table of native mode: each live config has one or more lanes of every cell.

    The more parts a live config has, the fewer cells the table has. Kernels process four lanes at a time, so
    with several live configs the number of lanes is a multiple of four.
    """
    lanes = configs * parts
    if configs > 1:
        lanes = -(-lanes // 4) * 4
    cells = max(1, 2**bits >> (parts - 1).bit_length())
    lane, together = np.arange(lanes), configs * max(parts // max(policies, 1), 1)
    return TableShape(
        configs=configs,
        policies=policies,
        parts=parts,
        cells=cells,
        lanes=lanes,
        config_step=1,
        part_step=configs,
        penalised=lane // together * together + lane % configs,
        constant=(int(CONSTANT_HASH) % cells, 0),
        hash_mask=2**32 - 1,
    )


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


def copy_model(configuration: Configuration, model: Model, *, fields: int = FIELDS) -> Model:
    """Return a copy of a model with the first `fields` numbers of each cell, without shared memory."""
    cells, lanes = model.weights.shape
    learnt = np.flatnonzero(model.touched)
    few = len(learnt) * _DENSE < cells
    if few:
        table = initial_table(configuration, cells=cells, lanes=lanes)
    else:
        table = _zeros(len(model.table))
        table[: fields * cells * lanes] = model.table[: fields * cells * lanes]
    names = [name for name in Model._fields if name not in ("table", *Views._fields)]
    copy = with_table(model, table)._replace(**{name: getattr(model, name).copy() for name in names})
    if few:
        write_cells(copy, learnt, read_cells(model, learnt, fields=fields))
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


class _Memory(mmap.mmap):
    """Memory of a table, and whether large pages were asked for."""

    asked = False


def use_large_pages(model: Model) -> None:
    """Give a table pages of 2 MB, which are faster, if most of its small pages are in use anyway."""
    memory, sample = getattr(model.table.base, "obj", None), model.touched[:_SAMPLE]
    if not isinstance(memory, _Memory) or memory.asked or len(model.table) > _LARGE:
        return
    if _CELLS_OF_PAGE * np.count_nonzero(sample) > len(sample):
        memory.asked = True
        with suppress(OSError):  # the system has no such pages, or none for this process
            memory.madvise(mmap.MADV_HUGEPAGE)
            memory.madvise(_COLLAPSE)


def _zeros(n: int) -> NDArray[np.float32]:
    """Return `n` zeros aligned to a cache line; small pages leave untouched cells without memory."""
    if n > _MEDIUM and hasattr(mmap, "MADV_NOHUGEPAGE"):
        memory = _Memory(-1, 4 * n, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)  # not shared with forks
        with suppress(OSError):  # the system has no large pages
            memory.madvise(mmap.MADV_NOHUGEPAGE)
        return np.frombuffer(memory, np.float32)
    column = np.zeros(n + _LINE, np.float32)
    begin = -(column.ctypes.data // column.itemsize) % _LINE
    return column[begin : begin + n]


_LARGEST = float(np.finfo(np.float32).max)
_LARGEST_SIZES = np.array([138, 16, 17, 255])
_CELLS, _KINDS = Sparse("cells"), Sparse("kinds")


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
    """Return a model as the tree that `restore_model` reads; of its cells, the learnt ones."""
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
        if not predicts:
            stored["statistics"].finite(np.float32, (-1, -1, -1))  # from NaN, learning would make `lanes` NaN
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
