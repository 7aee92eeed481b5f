"""The state of the members before the first event, and as a model file keeps it."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.engine.event.state import (
    ACTIONS,
    BINS,
    CB,
    FEATURES,
    LATE,
    MEMBERS,
    MOST_ACTIONS,
    MOST_CROSSED,
    MOST_FEATURES,
    MOST_NUMBERS,
    NUMBERS,
    ORDERS,
    RING,
    WAITING,
    WAVES,
    WIDEST,
    Crosses,
    Members,
    Regression,
)
from onlineauto.engine.stack.least_squares_kernels import Observed
from onlineauto.engine.stack.member_input_kernels import LAYER_AFTER
from onlineauto.engine.stack.member_kernels import EACH, WAVY_SPREAD
from onlineauto.engine.stack.number_bin_kernels import LINEAR_SPREAD

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from onlineauto.engine.event.state import Task
    from onlineauto.features.stored import Stored

__all__ = [
    "NAMES",
    "able_members",
    "can_have_members",
    "make_members",
    "members_state",
    "members_to_predict",
    "restore_members",
    "sections_of_v0_1",
]

_PLACES, _FEWEST_CELLS, _MOST_CELLS = 1024, 1 << 14, 1 << 20
_SEED = 20_261_122
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
"""Arrays of indices and counts, and the largest that each may have."""
_LEAST = {"number": -2, "names": -1}
_FREE = ("amount", "mean", "variance", "cut")
_SHARED = (*_BOUNDED, *_FREE, "named", "feature", "action", "seen")


def can_have_members(task: Task) -> bool:
    """Return whether a task can have members: not with slots, nor with more numbered actions than they know.

    Actions of ``--cb N`` have no features by which one regression could tell them apart.
    """
    return not task.slots and (task.shape != CB or task.n_actions <= MOST_ACTIONS)


def make_members(which: frozenset[str], *, cells: int) -> Members:
    """Return the members before the first event: some of "features", "waves", "crosses", "layer", or none.

    Products of those that cross have so many cells, a power of two; but never so few that those of one event
    share cells all the time, of which their weights would grow without bound.
    """
    on = bool(which)
    actions, features = (MOST_ACTIONS, MOST_FEATURES) if on else (0, 0)
    numbers, waves, places = (MOST_NUMBERS, WAVES, _PLACES) if on else (0, 0, 0)
    draw = np.random.Generator(np.random.PCG64(_SEED))
    return Members(
        on=on,
        features="features" in which,
        waving="waves" in which,
        crossing="crosses" in which,
        layering="layer" in which,
        rests=np.zeros(MEMBERS, np.bool_),
        tally=np.zeros(4, np.int64),
        feature=np.zeros(places, np.uint64),
        input=np.zeros(places, np.int64),
        number=np.full(features, -1, np.int64),
        names=np.full(features, -1, np.int64),
        amount=np.zeros(features),
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
        seen=np.zeros(actions + 1, np.int64),
        action=np.zeros(actions, np.uint64),
        frequency=draw.standard_normal(numbers * waves),
        phase=draw.uniform(0.0, 2.0 * np.pi, waves),
        linear=_make_regression(actions, features),
        waves=_make_regression(actions, waves),
        layer=_make_regression(actions, waves),
        measure=np.zeros((3, actions)),
        crosses=_make_crosses(min(max(cells, _FEWEST_CELLS), _MOST_CELLS) if "crosses" in which else 0),
        gains=np.zeros((WAITING, max(features, waves))),
    )


def _make_regression(actions: int, inputs: int) -> Regression:
    return Regression(
        weights=np.zeros((actions, inputs)),
        spread=np.zeros((actions, inputs, inputs)),
        late=np.zeros((actions, LATE, inputs)),
        n_late=np.zeros(actions, np.int64),
        scale=np.ones(actions),
        waiting=np.zeros((actions, WAITING, inputs)),
        observed=np.zeros((actions, WAITING, len(Observed._fields) - 1)),
        n_waiting=np.zeros(actions, np.int64),
    )


def _make_crosses(cells: int) -> Crosses:
    return Crosses(
        weights=np.zeros((cells, ORDERS), np.float32),
        spread=np.zeros((cells, ORDERS), np.float32),
        mean=np.zeros(1),
    )


NAMES = "features", "waves", "crosses one by one", "crosses in pairs", "crosses in triples", "layer"
"""Names of the members, in the order of their weights."""


def able_members(members: Members) -> dict[str, bool]:
    """Return whether each member has scores unless it rests, by its name."""
    known, numbers = int(members.tally[ACTIONS]), int(members.tally[NUMBERS])
    widest = int(members.tally[WIDEST])
    features = members.features and members.tally[FEATURES] <= MOST_FEATURES
    layering = members.layering and 1 < known <= MOST_ACTIONS and members.seen[MOST_ACTIONS] >= LAYER_AFTER
    able = (
        features,
        members.waving and numbers <= MOST_NUMBERS and (numbers > 0 or known > MOST_ACTIONS),
        *(members.crossing and widest <= most for most in MOST_CROSSED),
        features and layering,
    )
    return {name: bool(each and known > 0) for name, each in zip(NAMES, able, strict=True)}


def members_to_predict(members: Members) -> Members:
    """Return members that share these arrays, but for those that only learning needs: they are empty."""
    return members._replace(
        latest=np.zeros((0, 0)),
        linear=_to_predict(members.linear),
        waves=_to_predict(members.waves),
        layer=_to_predict(members.layer),
        crosses=members.crosses._replace(spread=np.zeros((0, ORDERS), np.float32)),
    )


def _to_predict(regression: Regression) -> Regression:
    """Return a regression that shares the weights, and has nothing else."""
    nothing = np.zeros((0, 0, 0))
    return regression._replace(spread=nothing, late=nothing, waiting=nothing, observed=nothing)


def members_state(members: Members) -> dict[str, Any]:
    """Return what the members share, and a section for each of them, as `restore_members` takes it.

    Only what is in use is in them; of members that cannot learn, nothing of one that rests.
    """
    known, able = int(members.tally[ACTIONS]), able_members(members)
    actions = 1 if known > MOST_ACTIONS else known
    learns = _can_learn(members)
    works = dict(zip(NAMES, ~members.rests | learns, strict=True))
    sizes = {"features": int(members.tally[FEATURES]), "waves": WAVES, "layer": WAVES}

    def regression(name: str, found: Regression) -> dict[str, Any]:
        inputs = sizes[name] * able[name]
        if learns:
            return {"version": 1} | _regression_state(found, actions, inputs)
        return {"version": 1, "weights": found.weights[:actions, : inputs * works[name]].copy()}

    sections = {
        "features": members.features and (lambda: regression("features", members.linear)),
        "waves": members.waving and (lambda: regression("waves", members.waves)),
        "crosses": members.crossing and (lambda: {"version": 1} | _crosses(members, works)),
        "layer": members.layering
        and (lambda: regression("layer", members.layer) | {"measure": members.measure}),
    }
    return {
        "inputs": {"version": 1}
        | {name: getattr(members, name) for name in (*_SHARED, *["latest"] * learns)},
        "members": {name: section() for name, section in sections.items() if section},
    }


def _crosses(members: Members, works: Mapping[str, bool]) -> dict[str, Any]:
    if _can_learn(members):
        return _crosses_state(members.crosses)
    return _crosses_to_predict(members.crosses, [works[name] for name in NAMES[2:5]])


def _can_learn(members: Members) -> bool:
    """Return whether members have what only learning needs; see `members_to_predict`."""
    return len(members.latest) > 0


def _crosses_to_predict(crosses: Crosses, working: Sequence[bool]) -> dict[str, Any]:
    """Return the cells in which one of the members that work has a weight."""
    weights = np.where(working, crosses.weights, np.float32(0))
    cells = np.flatnonzero(weights.any(axis=1))
    return {"cells": cells.astype(np.uint32), "weights": weights[cells], "mean": crosses.mean}


def _crosses_state(crosses: Crosses) -> dict[str, Any]:
    """Return the cells that were learnt."""
    cells = np.flatnonzero(crosses.spread.any(axis=1))
    return {
        "cells": cells,
        "weights": crosses.weights[cells],
        "spread": crosses.spread[cells],
        "mean": crosses.mean,
    }


def _regression_state(regression: Regression, actions: int, inputs: int) -> dict[str, Any]:
    """Return what is in use; a covariance is symmetric, so half of it is enough."""
    row, column = np.tril_indices(inputs)
    late = int(regression.n_late[:actions].max(initial=0))
    waits = int(regression.n_waiting[:actions].max(initial=0))
    wait = (
        np.arange(waits) < regression.n_waiting[:actions, None]
    )  # other rows are of events that were learnt
    return {
        "weights": regression.weights[:actions, :inputs].copy(),
        "spread": regression.spread[:actions, row, column],
        "late": regression.late[:actions, :late, :inputs].copy(),
        "n_late": regression.n_late[:actions].copy(),
        "scale": regression.scale[:actions].copy(),
        "waiting": np.where(wait[..., None], regression.waiting[:actions, :waits, :inputs], 0.0),
        "observed": np.where(wait[..., None], regression.observed[:actions, :waits], 0.0),
        "n_waiting": regression.n_waiting[:actions].copy(),
    }


def restore_members(stored: Stored, members: Members) -> list[str]:
    """Put a stored state into these members; return the names of those that begin from nothing.

    These are the members whose section is missing, or of a version that this program does not know. Members
    that cannot learn take what predictions need.

    Raises
    ------
    ValueError
        It is not the state of members; or a member that cannot learn would have to begin from nothing.
    """
    learns = _can_learn(members)
    if not _is_known(stored, "inputs"):
        cold = [name for name, (is_on, _) in _RESTORE.items() if is_on(members)]
        return _begin_from_nothing(cold, learns=learns)
    _restore_inputs(stored["inputs"], members, learns=learns)
    cold = []
    for name, (is_on, restore) in _RESTORE.items():
        if not is_on(members):
            continue
        if _is_known(stored["members"], name):
            restore(stored["members"][name], members, learns=learns)
        else:
            cold.append(name)
            if learns:
                _begin(name, members)
    return _begin_from_nothing(cold, learns=learns)


def _is_known(stored: Stored, section: str) -> bool:
    """Return whether there is a section, of a version that this program knows."""
    return section in stored and stored[section]["version"].count() == 1


def _begin_from_nothing(cold: list[str], *, learns: bool) -> list[str]:
    """Return the members that begin from nothing, which only those can that learn."""
    if cold and not learns:
        raise ValueError(
            f"its members {', '.join(cold)} are of a version that this program does not know, and cannot "
            "learn: save it to predict only once more, from the model that learns"
        )
    return cold


def _begin(name: str, members: Members) -> None:
    """Let the regressions of a member be as before the first event, for all actions that are known."""
    regressions = {"features": (members.linear, LINEAR_SPREAD), "waves": (members.waves, WAVY_SPREAD)}
    regressions["layer"] = members.layer, WAVY_SPREAD
    if name in regressions:
        regression, unsure = regressions[name]
        regression.spread[: members.tally[ACTIONS]] = np.eye(regression.weights.shape[1]) * unsure


def _restore_inputs(stored: Stored, members: Members, *, learns: bool) -> None:
    """Put back what the members share: known features, numbers and actions."""
    for name, most in _BOUNDED.items():
        array = getattr(members, name)
        array[...] = stored[name].within(array, _LEAST.get(name, 0), most)
    for name in (*_FREE, *["latest"] * learns):
        array = getattr(members, name)
        array[...] = stored[name].finite(array.dtype, array.shape)
    members.seen[:] = stored["seen"].counts(members.seen.shape)
    for name in ("feature", "action", "named"):
        array = getattr(members, name)
        array[...] = stored[name].like(array)
    if np.count_nonzero(members.feature) > MOST_FEATURES:
        raise stored["feature"].fail(f"at most {MOST_FEATURES} features")


def _restore_features(stored: Stored, members: Members, *, learns: bool) -> None:
    _restore_regression(stored, members.linear, LINEAR_SPREAD, learns=learns)


def _restore_waves(stored: Stored, members: Members, *, learns: bool) -> None:
    _restore_regression(stored, members.waves, WAVY_SPREAD, learns=learns)


def _restore_layer(stored: Stored, members: Members, *, learns: bool) -> None:
    _restore_regression(stored, members.layer, WAVY_SPREAD, learns=learns)
    members.measure[:] = stored["measure"].finite(members.measure.dtype, members.measure.shape)


def _restore_of_crosses(stored: Stored, members: Members, *, learns: bool) -> None:
    _restore_crosses(stored, members.crosses, learns=learns)


_RESTORE: dict[str, tuple[Callable[[Members], bool], Callable[..., None]]] = {
    "features": (attrgetter("features"), _restore_features),
    "waves": (attrgetter("waving"), _restore_waves),
    "crosses": (attrgetter("crossing"), _restore_of_crosses),
    "layer": (attrgetter("layering"), _restore_layer),
}
"""Sections of members: whether these have the member, and what restores it."""


def sections_of_v0_1(members: dict[str, Any]) -> dict[str, Any]:
    """Return the sections of members that release 0.1 wrote: all in one map, without versions."""
    layer = {**members["layer"], "measure": members["measure"]}
    parts = {
        "features": members["linear"],
        "waves": members["waves"],
        "crosses": members["crosses"],
        "layer": layer,
    }
    shared = {name: members[name] for name in (*_SHARED, "latest") if name in members}
    return {
        "inputs": {"version": 1} | shared,
        "members": {name: {"version": 1} | part for name, part in parts.items()},
    }


def _restore_crosses(stored: Stored, crosses: Crosses, *, learns: bool) -> None:
    """Put the stored cells into these; the others were never learnt."""
    cells = stored["cells"].array(np.int64 if learns else np.uint32, (-1,))
    if len(cells) and not (
        cells[0] >= 0 and cells[-1] < len(crosses.weights) and (cells[1:] > cells[:-1]).all()
    ):
        raise stored["cells"].fail("cells in ascending order")
    crosses.weights[:] = crosses.spread[:] = 0.0
    crosses.weights[cells] = stored["weights"].finite(np.float32, (len(cells), ORDERS))
    if learns:
        crosses.spread[cells] = stored["spread"].within(np.zeros((len(cells), ORDERS), np.float32), 0.0, 1.0)
    crosses.mean[:] = stored["mean"].finite(np.float64, (1,))


def _restore_regression(stored: Stored, regression: Regression, unsure: float, *, learns: bool) -> None:
    """Put the stored regressions of known actions into these; inputs that they have not are `unsure`.

    Those of other actions begin when these are met.
    """
    weights = stored["weights"].finite(np.float64, (-1, -1))
    actions, inputs = weights.shape
    if actions > len(regression.weights) or inputs > regression.weights.shape[1]:
        raise stored["weights"].fail("weights of members")
    regression.weights[:actions] = 0.0
    regression.weights[:actions, :inputs] = weights
    if not learns:
        return
    row, column = np.tril_indices(inputs)
    spread = stored["spread"].finite(np.float64, (actions, len(row)))
    regression.spread[:actions] = np.eye(regression.weights.shape[1]) * unsure
    regression.spread[:actions, row, column] = spread
    regression.spread[:actions, column, row] = spread
    regression.late[:], regression.n_late[:], regression.scale[:] = 0.0, 0, 1.0
    late = stored["late"].finite(np.float64, (actions, -1, inputs))
    if late.shape[1] > LATE:
        raise stored["late"].fail(f"at most {LATE} events")
    regression.late[:actions, : late.shape[1], :inputs] = late
    counts = regression.n_late[:actions]
    counts[:] = stored["n_late"].within(counts, 0, LATE)
    scale = regression.scale[:actions]
    scale[:] = stored["scale"].within(scale, 1.0, 2.0)
    _restore_waiting(stored, regression, actions, inputs)


def _restore_waiting(stored: Stored, regression: Regression, actions: int, inputs: int) -> None:
    """Put the stored events that wait to be learnt into the regressions of so many actions."""
    regression.waiting[:], regression.observed[:], regression.n_waiting[:] = 0.0, 0.0, 0
    waiting = stored["waiting"].finite(np.float64, (actions, -1, inputs))
    waits = waiting.shape[1]
    observed = stored["observed"].finite(np.float64, (actions, waits, regression.observed.shape[2]))
    if waits >= WAITING or ((observed[..., -1] < 0) | (observed[..., -1] > EACH)).any():
        raise stored["observed"].fail(f"fewer than {WAITING} events, each to be taken for at most {EACH}")
    regression.waiting[:actions, :waits, :inputs] = waiting
    regression.observed[:actions, :waits] = observed
    counts = regression.n_waiting[:actions]
    counts[:] = stored["n_waiting"].within(counts, 0, waits)
