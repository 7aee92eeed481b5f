"""Lanes: the weights of live configs in the table, moved with a config, and stored while it waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlineauto.estimators.robust_kernels import LOWER, T
from onlineauto.jit import prepare
from onlineauto.learners.gradient_kernels import CONTRACTION, W, materialize
from onlineauto.learners.lane_kernels import copy_lane, put_lane, swap_lanes, take_lanes
from onlineauto.learners.model import FIELDS
from onlineauto.state.schema import read_entries
from onlineauto.state.stored import Stored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from onlineauto.automl.control import Control
    from onlineauto.engine.records.search import Live
    from onlineauto.engine.records.task import Decay
    from onlineauto.learners.gradient_kernels import Model
    from onlineauto.learners.model import TableShape


class WaitingConfig(NamedTuple):
    """The weights of a waiting config, and the evidence on it."""

    weights: NDArray[np.float32]  # [cells, 4, lanes]
    cells: NDArray[np.int64]  # numbers of the cells in the table
    lanes: NDArray[np.float64]  # state of its lanes
    sums: NDArray[np.int64]
    began: NDArray[np.int64]  # see `events_before`
    # The entries of `Live` that wait; the champion's sums in `policies` are those over the same events
    evidence: dict[str, NDArray[Any]]


def stored_waiting(stored: Stored, model: Model, width: int, live: Live, decay: Decay) -> WaitingConfig:
    """Return a config of `width` lanes from its section of a model file."""
    cells = stored["cells"].counts((-1,), most=len(model.weights) - 1)
    weights = stored["weights"].array(np.float32, (len(cells), FIELDS, width))
    Stored(weights[:, W], "weights").finite(np.float32, (len(cells), width))
    return WaitingConfig(
        weights=np.require(weights, requirements=["C", "W"]),  # the layout that `put_lane` needs
        cells=np.require(cells, requirements=["C", "W"]),
        lanes=stored["lanes"].finite(np.float64, (width, model.lanes.shape[1])),
        sums=stored["sums"].counts(model.sums.shape[1:]),
        began=stored["began"].array(np.int64, (max(len(decay.place), 1),)),
        evidence=read_entries(stored["evidence"], live, "waits", slots=[0]),
    )


def events_before(decay: Decay, learnt: int) -> NDArray[np.int64]:
    """Return the number of events, of `learnt` ones, before each model of ``--epsilon_decay`` began.

    The result is int64[models], in the order of their lanes; without ``--epsilon_decay`` a single 0.
    """
    models = len(decay.place)
    result = np.zeros(max(models, 1), np.int64)
    indices = np.arange(models)
    result[decay.place] = learnt - decay.evidence[indices, indices, LOWER, T].astype(np.int64)
    return result


def prepare_waiting(model: Model, unlearnt: NDArray[np.float32]) -> None:
    """Compile or load the machine code that copies configs out of a model and back."""
    cells, numbers = _cell_arrays(1)
    prepare(take_lanes, model, cells, np.zeros(1, np.int64), unlearnt, cells, numbers)
    prepare(put_lane, model, cells, 0, unlearnt, cells, numbers, 0)


def _cell_arrays(lanes: int, *, cells: int = 0) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return arrays for the indices of cells, and for the contents of `lanes` lanes of these cells."""
    return np.empty(cells, np.int64), np.empty((cells, FIELDS, lanes), np.float32)


def learnt_cells(
    model: Model, lanes: Sequence[int], unlearnt: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the cells in which lanes differ from the state before the first event, and their contents.

    Other lanes may have learnt many more cells. The second array is float32[cells, 4, lanes].
    """
    touched = np.flatnonzero(model.touched)
    cells, weights = _cell_arrays(len(lanes), cells=len(touched))
    n = take_lanes(model, touched, np.array(lanes, np.int64), unlearnt, cells, weights)
    return cells[:n].copy(), weights[:n].copy()


def unlearn(model: Model, lanes: Sequence[int], unlearnt: NDArray[np.float32]) -> None:
    """Reset lanes to the state before the first event."""
    touched, (cells, numbers) = np.flatnonzero(model.touched), _cell_arrays(1)
    for lane in lanes:
        put_lane(model, touched, lane, unlearnt, cells, numbers, 0)
        model.lanes[lane] = 0.0
        model.lanes[lane, CONTRACTION] = 1.0


def put_back(
    parked: WaitingConfig,
    model: Model,
    live: int,
    *,
    lanes: Sequence[int],
    same: NDArray[np.bool_],
    unlearnt: NDArray[np.float32],
) -> None:
    """Write the weights of a waiting config into live config `live`, whose lanes are `lanes`.

    `same`, bool[models], is true for models that have not been reset since; lanes of others do not change.
    """
    same_lanes = np.repeat(same, len(lanes) // len(same))
    touched = np.flatnonzero(model.touched)
    for part, lane in enumerate(lanes):
        if same_lanes[part]:
            put_lane(model, touched, lane, unlearnt, parked.cells, parked.weights, part)
            model.lanes[lane] = parked.lanes[part]
    summed = np.repeat(same, model.sums.shape[1] // len(same))
    model.sums[live, summed] = parked.sums[summed]


class Lanes:
    """Moves the weights of live configs, and the sums that belong to them."""

    def __init__(self, control: Control, shape: TableShape, *, max_live: int) -> None:
        self._control, self._shape, self._max_live = control, shape, max_live

    def prepare(self, model: Model) -> None:
        """Compile or load the machine code that moves weights and penalties."""
        touched = np.zeros(0, np.int64)
        prepare(copy_lane, model, touched, 0, 0)
        prepare(swap_lanes, model, touched, 0, 0)
        if self._control.moves_sums:
            prepare(materialize, model, 0)

    def lanes_of(self, live: int, model: Model) -> list[int]:
        """Return the lanes that move together with a live config."""
        parts = len(model.lanes) // self._max_live if self._control.moves_whole_table else self._shape.parts
        return [part * self._max_live + live for part in range(parts)]

    def swap(self, live: int, model: Model) -> None:
        """Swap the weights of the champion and of challenger `live`."""
        touched = np.flatnonzero(model.touched)
        for one, other in zip(self.lanes_of(0, model), self.lanes_of(live, model), strict=True):
            swap_lanes(model, touched, one, other)
            if self._control.moves_sums:
                model.lanes[[one, other]] = model.lanes[[other, one]]
        if self._control.moves_sums:
            model.sums[[0, live]] = model.sums[[live, 0]]

    def copy(self, source: int, target: int, model: Model) -> None:
        """Copy the weights of live config `source` to live config `target`."""
        touched = np.flatnonzero(model.touched)
        for one, other in zip(self.lanes_of(source, model), self.lanes_of(target, model), strict=True):
            copy_lane(model, touched, one, other)
            if self._control.moves_sums:
                model.lanes[other] = model.lanes[one]
        if self._control.moves_sums:
            model.sums[target] = model.sums[source]
            for lane in self.lanes_of(target, model):
                materialize(model, lane)  # the target may learn with other penalties
