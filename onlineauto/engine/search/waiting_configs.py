"""Waiting configs: the weights and the evidence that a config keeps until it is live again."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.estimators.robust_kernels import LOWER, T
from onlineauto.learners._kernels import CONTRACTION
from onlineauto.learners.cells import read_cells, write_cells

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from onlineauto.engine.event.state import Decay
    from onlineauto.learners._kernels import Model

__all__ = ["WaitingConfig", "began", "learnt_cells", "put_back", "unlearn"]


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
    began: NDArray[np.int64] = np.zeros(1, np.int64)  # see the function `began`


def began(decay: Decay, learnt: int) -> NDArray[np.int64]:
    """Return the number of events learnt before each model of ``--epsilon_decay`` began, of `learnt` so far.

    Returns
    -------
    int64[models]
        In the order of their lanes. A single 0 without ``--epsilon_decay``.
    """
    models = len(decay.place)
    found = np.zeros(max(models, 1), np.int64)
    each = np.arange(models)
    found[decay.place] = learnt - decay.evidence[each, each, LOWER, T].astype(np.int64)
    return found


def learnt_cells(
    model: Model, lanes: Sequence[int], unlearnt: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the cells in which lanes differ from a cell before the first event, and what they have there.

    Other lanes may have learnt many more. The second array is float32[cells, 4, lanes].
    """
    cells = np.flatnonzero(model.touched)
    weights = read_cells(model, cells, lanes=lanes)
    differs = np.zeros(len(cells), np.bool_)
    for field, number in enumerate(unlearnt):
        for part in range(len(lanes)):
            differs |= weights[:, field, part] != number
    return cells[differs], weights[differs]


def unlearn(model: Model, lanes: Sequence[int], unlearnt: NDArray[np.float32]) -> None:
    """Reset lanes to the state before the first event."""
    cells = np.flatnonzero(model.touched)
    for lane in lanes:
        write_cells(model, cells, unlearnt[None, :, None], lanes=[lane])
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
    """Write the weights of a waiting config into live config `live`, which has these `lanes`.

    Parameters
    ----------
    same : bool[models]
        True for the models that have not begun anew in the meantime. Lanes of the others stay as they are.
    unlearnt : float32[4]
        A cell of the weight table before the first event.
    """
    kept = np.repeat(same, len(lanes) // len(same))
    kept_lanes = [(part, lane) for part, lane in enumerate(lanes) if kept[part]]
    unlearn(model, [lane for _, lane in kept_lanes], unlearnt)
    for part, lane in kept_lanes:
        write_cells(model, parked.cells, parked.weights[..., [part]], lanes=[lane])
        model.lanes[lane] = parked.lanes[part]
    summed = np.repeat(same, model.sums.shape[1] // len(same))
    model.sums[live, summed] = parked.sums[summed]
