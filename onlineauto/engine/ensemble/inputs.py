"""The inputs that members share: their state before the first event, and their format in a model file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.engine.records.ensemble import (
    BINS,
    MOST_ACTIONS,
    MOST_FEATURES,
    MOST_NUMBERS,
    RING,
    WIDE,
    Inputs,
    Numbers,
)
from onlineauto.engine.records.task import Shape

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.records.task import Task
    from onlineauto.state.stored import Stored

INPUTS_VERSION = 1
"""Version of the section of inputs in a model file."""

_PLACES = 1024
_BOUNDED = {
    "tally": max(MOST_FEATURES, MOST_NUMBERS, MOST_ACTIONS) + 1,
    "input": MOST_FEATURES - 1,
    "number": MOST_NUMBERS - 1,
    "names": MOST_NUMBERS - 1,
    "of_number": MOST_FEATURES - 1,
    "bins": BINS,
    "of_bin": MOST_FEATURES - 1,
    "part": BINS - 1,
    "group": BINS - 1,
}
"""Arrays of indices and counts, and the maximum of each."""
_LEAST = {"number": -2, "names": -1}
_FREE = ("amount", "mean", "variance", "cut")
_SHARED = (*_BOUNDED, *_FREE, "named", "feature", "action", "seen", "wide")


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
    return Inputs(
        tally=np.zeros(4, np.int64),
        feature=np.zeros(places, np.uint64),
        input=np.zeros(places, np.int64),
        number=np.full(features, -1, np.int64),
        names=np.full(features, -1, np.int64),
        amount=np.zeros(features),
        divided=np.zeros(features, np.int64),
        wide=np.zeros(WIDE, np.int64),
        seen=np.zeros(actions + 1, np.int64),
        action=np.zeros(actions, np.uint64),
        numbers=Numbers(
            of_number=np.zeros(numbers, np.int64),
            named=np.zeros(numbers, np.bool_),
            mean=np.zeros(numbers),
            variance=np.zeros(numbers),
            latest=np.zeros((numbers, RING)),
            bins=np.zeros(numbers, np.int64),
            cut=np.zeros((numbers, BINS)),
            of_bin=np.zeros((numbers, BINS), np.int64),
            part=np.zeros((numbers, BINS), np.int64),
            group=np.zeros((numbers, BINS), np.int64),
            sorted=np.zeros(RING if on else 0),
        ),
    )


def inputs_to_predict(inputs: Inputs) -> Inputs:
    """Return inputs that share these arrays; arrays that only learning needs are empty."""
    return inputs._replace(numbers=inputs.numbers._replace(latest=np.zeros((0, 0)), sorted=np.zeros(0)))


def _array_of(inputs: Inputs, name: str) -> NDArray[Any]:
    array: NDArray[Any] = getattr(inputs.numbers if name in Numbers._fields else inputs, name)
    return array


def inputs_state(inputs: Inputs) -> dict[str, Any]:
    """Return the section of the inputs in a model file, for `restore_inputs`."""
    latest = ["latest"] * bool(len(inputs.numbers.latest))
    return {"version": INPUTS_VERSION} | {name: _array_of(inputs, name) for name in (*_SHARED, *latest)}


def restore_inputs(stored: Stored, inputs: Inputs) -> None:
    """Copy a stored section into these inputs."""
    for name, most in _BOUNDED.items():
        array = _array_of(inputs, name)
        array[...] = stored[name].array_between(array, _LEAST.get(name, 0), most)
    for name in (*_FREE, *["latest"] * bool(len(inputs.numbers.latest))):
        array = _array_of(inputs, name)
        array[...] = stored[name].finite(array.dtype, array.shape)
    inputs.seen[:] = stored["seen"].counts(inputs.seen.shape)
    inputs.wide[:] = 0
    if "wide" in stored:  # earlier files have fewer counts
        wide = stored["wide"].counts((-1,))
        inputs.wide[: len(wide)] = wide[:WIDE]
    for name in ("feature", "action", "named"):
        array = _array_of(inputs, name)
        array[...] = stored[name].array_like(array)
    if np.count_nonzero(inputs.feature) > MOST_FEATURES:
        raise stored["feature"].fail(f"at most {MOST_FEATURES} features")
