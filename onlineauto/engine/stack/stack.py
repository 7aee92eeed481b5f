"""Stacking: the state of the stack, and how changes of live configs change it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.engine.event.state import MEMBERS, Stack
from onlineauto.engine.stack.members import (
    NAMES,
    able_members,
    make_members,
    members_state,
    members_to_predict,
    restore_members,
)
from onlineauto.engine.stack.stack_kernels import UNSURE
from onlineauto.estimators.difference_kernels import SPREAD_SIZE
from onlineauto.estimators.interval_kernels import POLICY_SIZE
from onlineauto.estimators.paired_kernels import SIZE as PAIR_SIZE

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from onlineauto.features.stored import Stored

__all__ = [
    "begin",
    "begin_again",
    "exchange",
    "join",
    "make_stack",
    "promote",
    "rest",
    "restore_stack",
    "stack_state",
    "test_anew",
    "to_predict",
    "worths",
]

_PREDICTS = ("weights", "range")
_LEARNS = ("spread", "pair", "loss", "fair", "loss_spread", "policies", "level", "updates", "error")
"""Arrays that a model file keeps: those that predictions need, and those that learning needs as well."""


def make_stack(live_configs: int, *, on: bool, members: frozenset[str], cells: int) -> Stack:
    """Return the stack of so many live configs before the first event; it learns if it is `on`.

    `cells` is how many cells a table of weights has.
    """
    inputs = live_configs + MEMBERS + 1 if on else 1
    stack = Stack(
        on=on,
        serves=False,
        weights=np.zeros(inputs),
        spread=np.zeros((inputs, inputs)),
        range=np.zeros(2),
        pair=np.zeros(PAIR_SIZE),
        loss=np.zeros(PAIR_SIZE),
        fair=np.zeros(2),
        loss_spread=np.zeros(SPREAD_SIZE),
        policies=np.zeros((2, POLICY_SIZE)),
        level=np.zeros(1),
        updates=np.zeros(1, np.int64),
        error=np.zeros(2),
        scratch=np.zeros((2, inputs)),
        members=make_members(members if on else frozenset(), cells=cells),
    )
    begin(stack)
    return stack


def begin(stack: Stack) -> None:
    """Give all weight to the champion, and make every weight unsure."""
    stack.weights[:] = 0.0
    stack.weights[0] = 1.0
    stack.spread[:] = np.eye(len(stack.weights)) * UNSURE


def begin_again(stack: Stack, fresh: Stack) -> None:
    """Let the stack and its members be as in a `fresh` stack; the level of its tests stays as it is."""
    level = stack.level.copy()
    _copy(fresh, stack)
    stack.level[:] = level


def _copy(source: tuple[Any, ...], target: tuple[Any, ...]) -> None:
    """Copy the arrays of a record into those of another one, and of the records in it."""
    for theirs, mine in zip(source, target, strict=True):
        if isinstance(mine, np.ndarray):
            mine[...] = theirs
        elif isinstance(mine, tuple):
            _copy(theirs, mine)


def join(stack: Stack, live: int) -> None:
    """Take in a new live config: it has no weight yet; that of the config before it goes to the champion."""
    if not stack.on or live == 0:
        return
    stack.weights[0] += stack.weights[live]
    stack.weights[live] = 0.0
    stack.spread[live] = stack.spread[:, live] = 0.0
    stack.spread[live, live] = UNSURE


def exchange(stack: Stack, live: int, other: int = 0) -> None:
    """Let the weights of live config `live` and of an `other` one, the champion by default, change places."""
    if stack.on:
        for array in (stack.weights, stack.spread, stack.spread.T):
            array[[other, live]] = array[[live, other]]


def promote(stack: Stack, live: int, n: int) -> None:
    """Let the weights follow challenger `live`, now the champion, and the former champion, now challenger 1.

    The other ones of `n` live configs are dropped: their weights go to the champion.
    """
    exchange(stack, live)
    exchange(stack, live, 1)
    for dropped in range(2, n):
        join(stack, dropped)


def rest(stack: Stack, names: Collection[str]) -> None:
    """Let these members rest and all others work; the weights become those that they would have been without.

    One that works again has no weight at first.
    """
    rests, names = stack.members.rests, _with_layer(names)
    for at, name in enumerate(NAMES, len(stack.weights) - 1 - MEMBERS):
        if name in names and not rests[at - len(stack.weights) + 1 + MEMBERS]:
            _leave_out(stack.weights, stack.spread, at)
    rests[:] = [name in names for name in NAMES]


def _with_layer(resting: Collection[str]) -> Collection[str]:
    """Return who rests if these do: without features there is no layer upon them."""
    return {*resting, "layer"} if "features" in resting else resting


def _leave_out(weights: NDArray[np.float64], spread: NDArray[np.float64], at: int) -> None:
    """Let a weight be 0: the others become those of least squares without its input.

    The covariance has to stay symmetric to the last bit: see `least_squares_kernels`.
    """
    root = math.sqrt(spread[at, at])
    others = spread[at] / root
    weights -= weights[at] / root * others
    spread -= np.outer(others, others)
    weights[at] = 0.0
    spread[at] = spread[:, at] = 0.0
    spread[at, at] = UNSURE


def worths(stack: Stack, resting: Collection[str]) -> dict[str, float]:
    """Return what each member is worth that can have scores and does not rest; see `Statistics`.

    Features are worth no less than the layer upon them.
    """
    resting = _with_layer(resting)
    weights, spread = stack.weights.copy(), stack.spread.copy()
    places = dict(zip(NAMES, range(len(weights) - 1 - MEMBERS, len(weights) - 1), strict=True))
    for name in resting:
        _leave_out(weights, spread, places[name])
    able, error = able_members(stack.members), float(stack.error[0])
    found = {
        name: float(weights[at] ** 2 / (spread[at, at] * error)) if error > 0 else 0.0
        for name, at in places.items()
        if able[name] and name not in resting
    }
    if "features" in found:
        found["features"] = max(found["features"], found.get("layer", 0.0))
    return found


def test_anew(stack: Stack, level: float) -> None:
    """Start both tests of the stack anew, with a probability of error of `level`."""
    for array in (stack.pair, stack.loss, stack.fair, stack.loss_spread, stack.policies, stack.updates):
        array[...] = 0
    stack.level[0] = level


def to_predict(stack: Stack, live: Sequence[int]) -> Stack:
    """Return the stack of some of the live configs, which shares arrays and cannot learn.

    What only learning needs is empty.
    """
    learning = {name: getattr(stack, name) for name in (*_LEARNS, "scratch")}
    empty: Any = {name: np.zeros((0,) * array.ndim, array.dtype) for name, array in learning.items()}
    beside = range(len(stack.weights) - 1 - MEMBERS, len(stack.weights))
    return stack._replace(
        **empty,
        weights=stack.weights[[*live, *beside]] if stack.on else stack.weights,
        members=members_to_predict(stack.members),
    )


def _kept(stack: Stack) -> tuple[str, ...]:
    """Return the names of the arrays that a model file keeps of a stack."""
    return (*_PREDICTS, *_LEARNS) if len(stack.spread) else _PREDICTS


def stack_state(stack: Stack, *, tests: int) -> dict[str, Any]:
    """Return the state of the stack, as `restore_stack` takes it, and how many tests of it there were."""
    state = {"serves": stack.serves, "tests": tests} | {name: getattr(stack, name) for name in _kept(stack)}
    return state | ({"members": members_state(stack.members)} if stack.members.on else {})


def restore_stack(stored: Stored, stack: Stack) -> Stack:
    """Return the stack as it was stored, in the arrays of one of the same options.

    One that cannot learn takes what predictions need.

    Raises
    ------
    ValueError
        The state is of other options, or of an earlier version, or is not that of a stack.
    """
    kept = _kept(stack)
    if len(stored["weights"].array(np.float64, (-1,))) < len(stack.weights):  # It had fewer members.
        raise ValueError(
            "its stack is one of an earlier version of onlineauto, which had other members: let it learn its "
            "stream anew with this version"
        )
    for name in kept:
        array = getattr(stack, name)
        part = stored[name]
        if name == "updates":
            array[...] = part.counts(array.shape)
        elif name in ("weights", "spread", "range", "error"):
            array[...] = part.finite(np.float64, array.shape)
            if name == "spread" and not (np.array_equal(array, array.T) and (array.diagonal() > 0.0).all()):
                raise part.fail("a covariance, which is symmetric and has variances above 0")
        elif name == "level":
            array[...] = part.within(array, 0.0, 1.0)
        else:
            array[...] = part.like(array)
    if stack.members.on:
        restore_members(stored["members"], stack.members)
    return stack._replace(serves=stored["serves"].truth())
