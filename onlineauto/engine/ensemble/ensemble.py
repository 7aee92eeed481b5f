"""The state of the ensemble, and how changes of live configs change it."""

from __future__ import annotations

import math
import warnings
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.engine.ensemble.calibration import PRICES
from onlineauto.engine.ensemble.combiner_kernels import LINE_VARIANCE, NEW_VARIANCE, PRIOR_VARIANCE
from onlineauto.engine.ensemble.inputs import INPUTS_VERSION, make_inputs, read_inputs
from onlineauto.engine.ensemble.member import LEARNT, Needs, Sizes, Work
from onlineauto.engine.ensemble.states import MemberStates, constant_of, needs_of, states_of
from onlineauto.engine.records.ensemble import (
    MOST_ACTIONS,
    CostSoFar,
    Ensemble,
    InputKind,
    InVectors,
    Known,
    Members,
)
from onlineauto.state import schema

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from onlineauto.engine.ensemble.member import Member
    from onlineauto.engine.records.ensemble import Inputs
    from onlineauto.options import Configuration
    from onlineauto.state.stored import Stored

VERSION = 2
"""Version of the ensemble's section in a model file."""

NO_SHRINKAGE = [1.0, 1e-4, 0.0, 1e-4, 1e-4, 0.0, 1e-18]
"""The sums of `Ensemble.shrinkage` by which scores stay as they are until events have changed the sums."""

_FEW_CHALLENGERS = 3
"""Number of challengers from which on the sum of the first variances of their weights is the same."""


def make_ensemble(
    live_configs: int,
    *,
    on: bool,
    simple: bool,
    members: Sequence[Member],
    cells: int,
    configuration: Configuration,
) -> Ensemble:
    """Return the ensemble of `live_configs` and members before the first event; it learns if it is `on`."""
    members = [each for each in members if on and (each.on_lines if simple else each.on_actions)]
    needs = _needs_of(members)
    others = live_configs + len(needs) if on else 0
    n_levels = 0 if simple else others
    inputs = others + 1 + n_levels
    sizes = Sizes(configuration, cells)
    ensemble = schema.make(
        Ensemble,
        {"inputs": inputs},
        on=on,
        serves=False,
        n_levels=n_levels,
        means=_means_of(members),
        members=Members(
            inputs=make_inputs(on=bool(members)),
            rests=np.zeros(len(needs), np.bool_),
            needs=needs,
            begins=np.cumsum([0, *(len(member.names) for member in members)], dtype=np.int64),
            states=MemberStates(members, (member.make_state(sizes) for member in members)).array,
        ),
    )
    begin(ensemble)
    return ensemble


def _means_of(members: Sequence[Member]) -> int:
    """Return the index of the score of the member `means`, -1 if there is none."""
    names = [name for member in members for name in member.names]
    return names.index("means") if "means" in names else -1


def _needs_of(members: Sequence[Member]) -> NDArray[np.int64]:
    """Return the needs of each score as an array for kernels."""
    names = [name for member in members for name in member.names]
    rows = [
        (*needs[:-2], names.index(needs.upon) if needs.upon else -1, needs.inputs)
        for member in members
        for needs in member.needs
    ]
    return np.array(rows, np.int64).reshape(len(names), len(Needs._fields))


def names_of(ensemble: Ensemble) -> tuple[str, ...]:
    """Return the names of the scores of its members, in the order of their weights."""
    return tuple(name for name, _ in needs_of(states_of(ensemble).members))


def weight_of(ensemble: Ensemble, score: str) -> int:
    """Return the index of the weight of a member's score."""
    return _first_weight(ensemble) + names_of(ensemble).index(score)


def able_scores(ensemble: Ensemble) -> dict[str, bool]:
    """Return, by name, whether each score has all inputs that it needs; resting scores are included."""
    _, numbers, actions, widest = ensemble.members.inputs.tally.tolist()
    learnt, can_work = int(ensemble.members.inputs.seen[-1]), dict[str, bool]()
    in_vectors = int(ensemble.members.inputs.vectors.vectors[InVectors.NUMBERS])
    for name, needs in needs_of(states_of(ensemble).members):
        can_work[name] = (
            needs.least_actions <= actions <= needs.most_actions
            and (not needs.numbers or numbers > 0 or actions > MOST_ACTIONS)
            and learnt >= needs.events
            and widest <= needs.width
            and (not needs.vectors or in_vectors > 0)
            and can_work.get(needs.upon, True)
        )
    return can_work


def new_variance(ensemble: Ensemble) -> float:
    """Return the variance of a weight that begins at 0."""
    return NEW_VARIANCE if ensemble.n_levels else LINE_VARIANCE


def most_variance(ensemble: Ensemble) -> float:
    """Return the maximum variance of a weight."""
    return PRIOR_VARIANCE if ensemble.n_levels else LINE_VARIANCE


def _challenger_variance(ensemble: Ensemble) -> float:
    """Return the first variance of a challenger's weight, which is smaller if a bandit has many of them."""
    share = _FEW_CHALLENGERS / max(_first_weight(ensemble) - 1, 1) if ensemble.n_levels else 1.0
    return new_variance(ensemble) * min(share, 1.0)


def begin(ensemble: Ensemble) -> None:
    """Give members their first weights, and the champion the rest; make every weight uncertain."""
    ensemble.weights[:] = 0.0
    for member in states_of(ensemble).members:
        ensemble.weights[weight_of(ensemble, member.names[0])] = member.first_weight
    ensemble.weights[0] = 1.0 - ensemble.weights.sum()
    variances = np.where(ensemble.weights > 0.0, most_variance(ensemble), new_variance(ensemble))
    for live in range(1, _first_weight(ensemble)):
        variances[_indices(ensemble, live)] = _challenger_variance(ensemble)
    variances[constant_of(ensemble)] = most_variance(ensemble)
    ensemble.spread[:] = np.diag(variances)


def forget(ensemble: Ensemble) -> None:
    """Let members forget what a drift has made worthless."""
    states = states_of(ensemble)
    for member, state in zip(states.members, states.records, strict=True):
        member.forget(state)


def begin_again(ensemble: Ensemble, fresh: Ensemble) -> None:
    """Reset the ensemble and its members to a `fresh` one, except for the level and which members rest."""
    schema.copy(fresh, ensemble, forgets=True)
    schema.copy(fresh.members.inputs, ensemble.members.inputs)
    for initial, state in zip(states_of(fresh).records, states_of(ensemble).records, strict=True):
        schema.copy(initial, state)


def join(ensemble: Ensemble, live: int) -> None:
    """Reset the weights of a new live config to 0; those of its predecessor go to the champion."""
    if not ensemble.on or live == 0:
        return
    for champion, at in zip(_indices(ensemble, 0), _indices(ensemble, live), strict=True):
        ensemble.weights[champion] += ensemble.weights[at]
        ensemble.weights[at] = 0.0
        ensemble.spread[at] = ensemble.spread[:, at] = 0.0
        ensemble.spread[at, at] = _challenger_variance(ensemble)


def _indices(ensemble: Ensemble, at: int) -> list[int]:
    """Return the indices of the weights of live config or score `at`: its own, and that of its level."""
    return [at, constant_of(ensemble) + 1 + at] if ensemble.n_levels else [at]


def exchange(ensemble: Ensemble, live: int, other: int = 0) -> None:
    """Exchange the weights of live config `live` and of an `other` one, by default the champion.

    A new champion of bandits has at least the weight of the former one, since with many actions weights are
    learnt so slowly that a proven config would hardly count.
    """
    if not ensemble.on:
        return
    one, two = _indices(ensemble, live), _indices(ensemble, other)
    if not ensemble.n_levels and 0 in (live, other):
        _complete_champion(ensemble)
    weights = ensemble.weights
    if not (ensemble.n_levels and other == 0 and weights[live] < weights[0]):
        weights[two + one] = weights[one + two]
    for array in (ensemble.spread, ensemble.spread.T):
        array[two + one] = array[one + two]
    _reduce_champion(ensemble)


def _complete_champion(ensemble: Ensemble) -> None:
    """Fill the covariance of the champion of single lines, whose weight is what the others leave of 1.

    Weights that were not learnt yet are 0 for certain, whatever the variance with which they will begin.
    """
    spread, last = ensemble.spread, constant_of(ensemble)
    learnt = [at for at in range(1, last) if np.count_nonzero(spread[at]) > 1]
    spread[0] = -spread[learnt].sum(axis=0)
    spread[:, 0] = spread[0]
    spread[0, 0] = -spread[0, learnt].sum()


def _reduce_champion(ensemble: Ensemble) -> None:
    """Give the champion of single lines the rest of 1 as its weight, without a covariance."""
    if not ensemble.n_levels:
        ensemble.weights[0] = 1.0
        for at in range(1, constant_of(ensemble)):  # in the order of `trust_champion`, for the same last bits
            ensemble.weights[0] -= ensemble.weights[at]
        if _learns(ensemble):
            ensemble.spread[0] = ensemble.spread[:, 0] = 0.0
            ensemble.spread[0, 0] = LINE_VARIANCE


def promote(ensemble: Ensemble, live: int, n: int) -> None:
    """Exchange weights after a promotion: `live` is now champion, the former champion is challenger 1."""
    exchange(ensemble, live)
    exchange(ensemble, live, 1)
    for dropped in range(2, n):
        join(ensemble, dropped)


def rest(ensemble: Ensemble, names: Collection[str]) -> None:
    """Make the scores in `names` rest and all others active; remove resting scores from the weights.

    A score that works again begins with weight 0.
    """
    names, variance = _add_dependents(ensemble, names), new_variance(ensemble)
    for at, name in enumerate(names_of(ensemble)):
        if name in names and not ensemble.members.rests[at]:
            _leave_out(
                ensemble.weights, ensemble.spread, variance, *_indices(ensemble, _first_weight(ensemble) + at)
            )
        ensemble.members.rests[at] = name in names
    _reduce_champion(ensemble)


def _first_weight(ensemble: Ensemble) -> int:
    """Return the index of the first weight of a member."""
    return constant_of(ensemble) - len(ensemble.members.rests)


def _add_dependents(ensemble: Ensemble, resting: Collection[str]) -> Collection[str]:
    """Return `resting` and the names of the scores that are computed from these."""
    return {
        *resting,
        *(name for name, needs in needs_of(states_of(ensemble).members) if needs.upon in resting),
    }


def _leave_out(
    weights: NDArray[np.float64], spread: NDArray[np.float64], variance: float, *indices: int
) -> None:
    """Remove weights like `leave_out`, uncompiled; the covariance must stay symmetric to the last bit."""
    for at in indices:
        root = math.sqrt(spread[at, at])
        others = spread[at] / root
        weights -= weights[at] / root * others
        spread -= np.outer(others, others)
        weights[at] = 0.0
        spread[at] = spread[:, at] = 0.0
        spread[at, at] = variance


def drop_stopped(ensemble: Ensemble, inputs: Inputs) -> Ensemble:
    """Return an ensemble with copied weights, without those of scores that cannot work with `inputs`."""
    copy = ensemble._replace(weights=ensemble.weights.copy(), spread=ensemble.spread.copy())
    can_work = able_scores(ensemble._replace(members=ensemble.members._replace(inputs=inputs)))
    for at, name in enumerate(names_of(ensemble), _first_weight(ensemble)):
        if not can_work[name] and np.count_nonzero(copy.spread[at]) > 1:  # else it has not worked yet
            _leave_out(copy.weights, copy.spread, new_variance(ensemble), *_indices(ensemble, at))
    _reduce_champion(copy)
    return copy


def worths(ensemble: Ensemble, resting: Collection[str]) -> dict[str, float]:
    """Return the worth of each score that does not rest, at least that of every score computed from it."""
    resting, weights, spread = _add_dependents(ensemble, resting), ensemble.weights, ensemble.spread
    indices = {name: at for at, name in enumerate(names_of(ensemble), _first_weight(ensemble))}
    if resting:
        weights, spread = weights.copy(), spread.copy()
    for name, at in indices.items() if resting else ():  # the last bits depend on this order
        if name in resting:
            left = [each for each in _indices(ensemble, at) if np.count_nonzero(spread[each]) > 1]
            _leave_out(weights, spread, new_variance(ensemble), *left)  # one that rests is left out already
    # The noise of bandits is in units of the variance of costs, and so is the covariance, but not on lines.
    can_work, error = able_scores(ensemble), float(max(ensemble.error[0], ensemble.costs[CostSoFar.VARIANCE]))
    error = error if ensemble.n_levels else float(error > 0)
    result = {
        name: float(weights[at] ** 2 / (spread[at, at] * error)) if error > 0 else 0.0
        for name, at in indices.items()
        if can_work[name] and name not in resting
    }
    for name, needs in needs_of(states_of(ensemble).members):
        if name in result and needs.upon in result:
            result[needs.upon] = max(result[needs.upon], result[name])
    return result


def work_of(ensemble: Ensemble, *, features: float, n_actions: float) -> Work:
    """Return the sizes on which prices depend; `features` are those of an action and of the context."""
    inputs, tally = ensemble.members.inputs, ensemble.members.inputs.tally
    known = int(tally[Known.FEATURES])
    return Work(
        inputs=known,
        unbinned=int(np.count_nonzero(inputs.number[:known] != InputKind.BIN)),
        widest=int(tally[Known.WIDEST]),
        features=features,
        n_actions=n_actions,
        visits=n_actions + LEARNT,
        joined=bool(tally[Known.ACTIONS] > MOST_ACTIONS),
        in_vectors=int(inputs.vectors.vectors[InVectors.NUMBERS]),
    )


def prices(ensemble: Ensemble, work: Work, can_work: Mapping[str, bool]) -> dict[str, float]:
    """Return, by name, the price of each score that can be computed, in the unit of `price_of_config`."""
    result = {}
    for member in states_of(ensemble).members:
        for name, counted in zip(member.names, member.prices(work), strict=True):
            if can_work[name]:
                factor, constant = PRICES.get(name, (1.0, 0.0))
                result[name] = factor * (constant + float(counted))
    return result


@lru_cache(maxsize=16)  # like `needs_of`
def terms_of(members: tuple[Member, ...]) -> dict[str, tuple[float, str]]:
    """Return, by name, the minimum worth of each score and the score that it is computed from, or ""."""
    return {
        name: (member.least_worth, needs.upon)
        for member in members
        for name, needs in zip(member.names, member.needs, strict=True)
    }


def test_anew(ensemble: Ensemble, level: float) -> None:
    """Restart both tests of the ensemble, with a probability of error of `level`; a lead stays."""
    for name, array in ensemble.test._asdict().items():
        if name != "leads" and (name != "fair" or ensemble.n_levels):
            array[...] = 0
    ensemble.test.level[0] = level


def predicts(ensemble: Ensemble) -> bool:
    """Return whether predictions are the ensemble's: it is proved, or leads. Kernels have their own copy."""
    return ensemble.serves or int(ensemble.test.leads[0]) > 0


def to_predict(ensemble: Ensemble, live: Sequence[int]) -> Ensemble:
    """Return an ensemble of the live configs `live` that shares arrays and can only predict."""
    constant, states = constant_of(ensemble), states_of(ensemble)
    retained = [*live, *range(_first_weight(ensemble), constant)]
    levels = [constant + 1 + at for at in retained] if ensemble.n_levels else []
    small = [member.to_predict(state) for member, state in zip(states.members, states.records, strict=True)]
    reduced = schema.to_predict(ensemble)
    return reduced._replace(
        serves=predicts(ensemble),
        n_levels=len(levels),
        weights=ensemble.weights[[*retained, constant, *levels]] if ensemble.on else ensemble.weights,
        test=reduced.test._replace(leads=np.zeros(1, np.int64)),
        members=ensemble.members._replace(
            inputs=schema.to_predict(ensemble.members.inputs),
            states=MemberStates(states.members, small).array,
        ),
    )


def _learns(ensemble: Ensemble) -> bool:
    """Return whether an ensemble can learn, and not only predict."""
    return len(ensemble.spread) > 0


def ensemble_state(ensemble: Ensemble, *, tests: int) -> dict[str, Any]:
    """Return the state of the ensemble and its number of tests, for `restore_ensemble`."""
    state: dict[str, Any] = {"version": VERSION, "serves": ensemble.serves, "tests": tests}
    state |= schema.save(ensemble, predicts=not _learns(ensemble)) | {"scores": list(names_of(ensemble))}
    if len(ensemble.members.rests):
        inputs = {"version": INPUTS_VERSION} | schema.save(ensemble.members.inputs)
        state |= {"rests": ensemble.members.rests, "inputs": inputs}
        state["members"] = dict(_sections(ensemble))
    return state


def _sections(ensemble: Ensemble) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the section of each member."""
    can_work, learns, states = able_scores(ensemble), len(ensemble.spread) > 0, states_of(ensemble)
    rests = dict(zip(names_of(ensemble), ensemble.members.rests.tolist(), strict=True))
    for member, state in zip(states.members, states.records, strict=True):
        working = [can_work[name] and (learns or not rests[name]) for name in member.names]
        yield (
            member.name,
            {"version": member.version} | member.state(state, ensemble.members.inputs, working=working),
        )


def restore_ensemble(stored: Stored, ensemble: Ensemble) -> Ensemble:
    """Return a stored ensemble, in the arrays of an `ensemble` with the same options."""
    if stored["version"].count() > VERSION:
        raise stored["version"].fail(f"at most {VERSION}: load the model with a later onlineauto")
    names = stored["scores"].convert(list[str])
    schema.read(stored, ensemble, predicts=not _learns(ensemble))
    if "shrinkage" not in stored:
        ensemble.shrinkage[:] = NO_SHRINKAGE
    _restore_weights(stored, ensemble, names)
    if len(ensemble.members.rests):
        _restore_sections(stored, ensemble, names)
    return ensemble._replace(serves=stored["serves"].truth())


def _restore_weights(stored: Stored, ensemble: Ensemble, names: list[str]) -> None:
    """Put the stored weights into the ensemble; a score or a level that was not stored has weight 0."""
    live, score_names, learns = _first_weight(ensemble), names_of(ensemble), len(ensemble.spread) > 0
    last, constant = live + len(names), constant_of(ensemble)
    n = last + 1 + (last if ensemble.n_levels else 0)
    variance = new_variance(ensemble)
    weights, spread = stored["weights"].finite(np.float64, (n,)).copy(), np.eye(n) * variance
    if learns:
        spread = stored["spread"].finite(np.float64, (n, n)).copy()
        if not (np.array_equal(spread, spread.T) and (spread.diagonal() > 0.0).all()):
            raise stored["spread"].fail("a covariance, which is symmetric and has variances above 0")
    pairs = [(at, at) for at in range(live)]
    for at, name in enumerate(names, live):
        if name in score_names:
            pairs.append((at, live + score_names.index(name)))
        else:
            _leave_out(weights, spread, variance, *([at, last + 1 + at] if ensemble.n_levels else [at]))
            weights[0] += 0.0 if ensemble.n_levels else 1.0 - weights[:last].sum()
    pairs += [(last + 1 + at, constant + 1 + to) for at, to in pairs] if ensemble.n_levels else []
    stored_indices, indices = map(list, zip((last, constant), *pairs, strict=True))
    ensemble.weights[:] = 0.0
    ensemble.weights[indices] = weights[stored_indices]
    if learns:
        ensemble.spread[:] = np.eye(len(ensemble.weights)) * variance
        ensemble.spread[np.ix_(indices, indices)] = spread[np.ix_(stored_indices, stored_indices)]


def _restore_sections(stored: Stored, ensemble: Ensemble, names: list[str]) -> None:
    """Restore the members, and warn of unreadable sections, whose members begin from scratch."""
    rests = stored["rests"].array(np.bool_, (len(names),)) if "rests" in stored else np.zeros(0, np.bool_)
    resting = {name for name, rest in zip(names, rests, strict=False) if rest}
    ensemble.members.rests[:] = [name in resting for name in names_of(ensemble)]
    states, cold, variance = states_of(ensemble), [], new_variance(ensemble)
    has_inputs = _is_known(stored, "inputs", INPUTS_VERSION)
    if has_inputs:
        read_inputs(stored["inputs"], ensemble.members.inputs)
    for member, state in zip(states.members, states.records, strict=True):
        if has_inputs and _is_known(stored["members"], member.name, member.version):
            member.restore(stored["members"][member.name], state, ensemble.members.inputs)
            continue
        is_new = not set(member.names) & set(names)
        if len(ensemble.spread) == 0 and is_new:
            ensemble.members.rests[[name in member.names for name in names_of(ensemble)]] = True
            continue
        if len(ensemble.spread) == 0:
            raise ValueError(
                f"its member {member.name} is of a version that this program does not know and "
                "cannot learn: save a predict-only model again, from the model that learns"
            )
        member.begin(state, ensemble.members.inputs)
        for at, name in enumerate(names_of(ensemble), _first_weight(ensemble)):
            if name in member.names:
                _leave_out(ensemble.weights, ensemble.spread, variance, *_indices(ensemble, at))
                _reduce_champion(ensemble)
        if not is_new:
            cold.append(member.name)
    if cold:
        warnings.warn(
            f"the model's members {', '.join(cold)} are of a version that this program does not know; they "
            "start from scratch, and everything else continues",
            UserWarning,
            stacklevel=2,
        )


def _is_known(stored: Stored, section: str, version: int) -> bool:
    """Return whether a section exists and has a known version."""
    return section in stored and stored[section]["version"].count() <= version
