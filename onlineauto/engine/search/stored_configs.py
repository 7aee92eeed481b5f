"""Live and waiting configs as a model file stores them, checked before use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.search.waiting_configs import WaitingConfig
from onlineauto.learners.cells import FIELDS
from onlineauto.learners.gradient_kernels import W
from onlineauto.state.stored import MOST, Stored

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.records.task import Decay
    from onlineauto.learners.gradient_kernels import Model


def stored_counts(stored: Stored) -> dict[bytes, tuple[int, int]]:
    """Return the number of actions and of features of each namespace that was seen."""
    counts = stored.convert(list[tuple[bytes, int, int]])
    if not all(name and 0 <= count <= MOST and 0 <= size <= MOST for name, count, size in counts):
        raise stored.fail("counts of namespaces")
    return {name: (count, size) for name, count, size in counts}


def stored_waiting(
    stored: Stored, model: Model, width: int, states: tuple[NDArray[np.float64], ...], decay: Decay
) -> WaitingConfig:
    """Return a waiting config's weights and evidence from a model file.

    Parameters
    ----------
    stored : Stored
        The section of this config.
    model : Model
        The model in which the config will continue.
    width : int
        Number of lanes of the model that a live config uses.
    states : tuple of float64[...]
        Evidence of one live config, which determines the shapes.
    decay : Decay
        The models of ``--epsilon_decay``.
    """
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
        compared=stored["compared" if "compared" in stored else "updates"].count(),
        level=stored["level"].number(),
        began=stored["began"].array(np.int64, (max(len(decay.place), 1),)),
    )
