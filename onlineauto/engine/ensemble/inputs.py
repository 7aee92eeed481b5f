"""The inputs that members share before the first event."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.records.ensemble import (
    MOST_ACTIONS,
    MOST_FEATURES,
    MOST_IN_VECTORS,
    MOST_NUMBERS,
    MOST_VECTORS,
    PROJECTED,
    RING,
    Inputs,
    InVectors,
    Known,
)
from onlineauto.engine.records.task import Shape
from onlineauto.state.schema import make, read

if TYPE_CHECKING:
    from onlineauto.engine.records.task import Task
    from onlineauto.state.stored import Stored

INPUTS_VERSION = 2
"""Version of the section of inputs in a model file."""

_PLACES, _WAITING = 1024, 512


def can_have_members(task: Task) -> bool:
    """Return whether a task can have members.

    Events with slots cannot, nor can more than `MOST_ACTIONS` actions of ``--cb N``. These have no features
    by which one regression could distinguish them.
    """
    return not task.slots and (task.shape != Shape.CB or task.n_actions <= MOST_ACTIONS)


def make_inputs(*, on: bool) -> Inputs:
    """Return the inputs before the first event; their arrays are empty unless members are `on`."""
    actions, features, numbers, places = (
        (MOST_ACTIONS, MOST_FEATURES, MOST_NUMBERS, _PLACES) if on else (0,) * 4
    )
    sizes = {"actions": actions, "seen": actions + 1, "inputs": features, "table": places}
    in_vectors, projected = (MOST_IN_VECTORS, PROJECTED) if on else (0, 0)
    sizes |= {"in_vectors": in_vectors, "summed": in_vectors, "projected": projected}
    return make(Inputs, sizes | {"numbers": numbers, "ring": RING * on, "waiting": _WAITING * on})


def read_inputs(stored: Stored, inputs: Inputs) -> None:
    """Copy the stored section of inputs into inputs before the first event.

    Files of earlier versions count one more than the limit where features, numbers or actions were too many.
    """
    if "vectors" in stored:
        counts = stored["vectors"].counts(inputs.vectors.vectors.shape)
        if counts[InVectors.NUMBERS] > MOST_IN_VECTORS or counts[InVectors.VECTORS] > MOST_VECTORS:
            raise stored["vectors"].fail(f"at most {MOST_VECTORS} vectors of {MOST_IN_VECTORS} numbers")
        if counts[InVectors.PROJECTED] not in (0, PROJECTED):
            raise stored["vectors"].fail(f"0 or {PROJECTED} projections")
        inputs.vectors.vectors[:] = counts  # reading other arrays depends on them
    read(stored, inputs)
    if (np.diff(inputs.vectors.starts[: inputs.vectors.vectors[InVectors.VECTORS] + 1]) < 0).any():
        raise stored["starts"].fail("the indices of vectors, in ascending order")
    tally = inputs.tally
    tally[Known.FEATURES] = min(tally[Known.FEATURES], MOST_FEATURES)
    tally[Known.NUMBERS] = min(tally[Known.NUMBERS], MOST_NUMBERS)
    if tally[Known.ACTIONS] > len(stored["action"].array(np.uint64, (-1,))):
        tally[Known.ACTIONS] = MOST_ACTIONS + 1
