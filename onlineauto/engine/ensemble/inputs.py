"""The inputs that members share before the first event."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.engine.records.ensemble import (
    MOST_ACTIONS,
    MOST_FEATURES,
    MOST_NUMBERS,
    RING,
    Inputs,
)
from onlineauto.engine.records.task import Shape
from onlineauto.state.schema import make

if TYPE_CHECKING:
    from onlineauto.engine.records.task import Task

INPUTS_VERSION = 1
"""Version of the section of inputs in a model file."""

_PLACES = 1024


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
    return make(Inputs, sizes | {"numbers": numbers, "ring": RING if on else 0})
