"""Waiting configs: the weights and the evidence of a config until it is live again."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.estimators.robust_kernels import LOWER, T
from onlineauto.jit import prepare
from onlineauto.learners.gradient_kernels import CONTRACTION, W
from onlineauto.learners.lane_kernels import put_lane, take_lanes
from onlineauto.learners.model import FIELDS
from onlineauto.state.stored import Stored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from onlineauto.engine.records.task import Decay
    from onlineauto.learners.gradient_kernels import Model


class WaitingConfig(NamedTuple):
    """The weights of a waiting config, and the evidence on it."""

    weights: NDArray[np.float32]  # [cells, 4, lanes]
    cells: NDArray[np.int64]  # numbers of the cells in the table
    lanes: NDArray[np.float64]  # state of its lanes
    sums: NDArray[np.int64]
    evidence: tuple[NDArray[np.float64], ...]
    champion: NDArray[np.float64]  # sums of the champion's reward over the same events
    updates: int
    compared: int
    level: float
    began: NDArray[np.int64] = np.zeros(1, np.int64)  # see `events_before`


def stored_waiting(
    stored: Stored, model: Model, width: int, states: tuple[NDArray[np.float64], ...], decay: Decay
) -> WaitingConfig:
    """Return a config from its section of a model file; `states` is the evidence on one live config."""
    cells = stored["cells"].counts((-1,), most=len(model.weights) - 1)
    weights = stored["weights"].array(np.float32, (len(cells), FIELDS, width))
    Stored(weights[:, W], "weights").finite(np.float32, (len(cells), width))
    evidence = stored["evidence"].items()
    if len(evidence) != len(states):
        raise stored["evidence"].fail(f"{len(states)} arrays")
    return WaitingConfig(
        weights=np.require(weights, requirements=["C", "W"]),  # the layout that `put_lane` needs
        cells=np.require(cells, requirements=["C", "W"]),
        lanes=stored["lanes"].finite(np.float64, (width, model.lanes.shape[1])),
        sums=stored["sums"].counts(model.sums.shape[1:]),
        evidence=tuple(each.array_like(state) for each, state in zip(evidence, states, strict=True)),
        champion=stored["champion"].array_like(states[-3][0]),
        updates=stored["updates"].count(),
        compared=stored["compared"].count(),
        level=stored["level"].number(),
        began=stored["began"].array(np.int64, (max(len(decay.place), 1),)),
    )


def events_before(decay: Decay, learnt: int) -> NDArray[np.int64]:
    """Return the number of events learnt before each model of ``--epsilon_decay`` began.

    `learnt` is the number of events learnt so far.

    Returns
    -------
    int64[models]
        In the order of their lanes. A single 0 without ``--epsilon_decay``.
    """
    models = len(decay.place)
    result = np.zeros(max(models, 1), np.int64)
    each = np.arange(models)
    result[decay.place] = learnt - decay.evidence[each, each, LOWER, T].astype(np.int64)
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

    Parameters
    ----------
    same : bool[models]
        True for the models that have not been reset since. Lanes of other models are not changed.
    unlearnt : float32[4]
        A cell of the weight table before the first event.
    """
    same_lanes = np.repeat(same, len(lanes) // len(same))
    touched = np.flatnonzero(model.touched)
    for part, lane in enumerate(lanes):
        if same_lanes[part]:
            put_lane(model, touched, lane, unlearnt, parked.cells, parked.weights, part)
            model.lanes[lane] = parked.lanes[part]
    summed = np.repeat(same, model.sums.shape[1] // len(same))
    model.sums[live, summed] = parked.sums[summed]
