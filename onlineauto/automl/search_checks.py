"""Checks of a search that was read from a file, so that `decide` and the engine can continue it."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from onlineauto.automl.config import is_interaction
from onlineauto.automl.search import ConfigState
from onlineauto.options.tunable import OneOf

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.automl.config import Config
    from onlineauto.automl.search import Search, SearchRules

_LARGEST = 2**64
_LARGEST_SETTING = 1e30


def search_problem(rules: SearchRules, search: Search) -> str:
    """Return what makes a state of the search impossible under these rules; "" if it is possible."""
    numbers = (search.n_valid, search.n_switches, search.since, search.review, search.turn)
    known, live = len(search.candidates), [each.index for each in search.slots]
    leases = [candidate.lease for candidate in search.candidates]
    if not all(0 <= number < _LARGEST for number in (*numbers, search.random_state, *leases)):
        return "one of its numbers is negative or too large"
    if not 0 < search.n_valid <= known or (rules.control.forgets_left_over and search.n_valid != known):
        return f"{search.n_valid} of {known} candidates are under consideration"
    if not 0 < len(live) <= rules.max_live:
        return f"{len(live)} configs are live, and {rules.max_live} are allowed"
    if not all(0 <= number < known for number in (*live, *(number for _, number in search.queue))):
        return f"it names a candidate outside the {known} that it has"
    if rules.control.begins_at_once and any(
        search.candidates[number].state is ConfigState.NEW for number in live
    ):
        return "a config that is live was never tried"
    if not (_ascend(search.namespaces) and all(search.of_actions) and all(search.late)):
        return "its namespaces are not names in ascending order"
    problems = (config_problem(rules, candidate.config) for candidate in search.candidates)
    return next(filter(None, problems), "")


def config_problem(rules: SearchRules, config: Config) -> str:
    """Return the reason why a config is invalid under these rules, or "".

    A hyperparameter that is not searched can be fatal: ``--cb_type dr`` needs lanes that exist only if it is
    searched.
    """
    for interaction in config.elements:
        if not is_interaction(interaction) or (len(interaction) == 1 and "namespaces" not in rules.searched):
            return f"{interaction!r} is no interaction"
    for name, value in config.settings:
        tunable = rules.tunable.get(name)
        if name not in rules.searched or tunable is None:
            return f"{name} is not searched"
        if isinstance(tunable, OneOf):
            possible = value in tunable.values
        else:
            possible = not isinstance(value, str) and 0.0 <= value <= _LARGEST_SETTING
        if not possible:
            return f"{name} cannot be {value!r}"
    return ""


def _ascend(names: Sequence[bytes]) -> bool:
    """Return whether no name is empty, and all are in strictly ascending order."""
    return all(names) and all(one < other for one, other in pairwise(names))
