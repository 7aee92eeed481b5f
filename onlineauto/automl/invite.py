"""``invite``: make a config from outside the search a challenger."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from onlineauto.automl.decisions import Widen
from onlineauto.automl.schedule import make_live
from onlineauto.automl.search import Candidate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from onlineauto.automl.config import Config
    from onlineauto.automl.decisions import Decision, Statistics
    from onlineauto.automl.search import Search, SearchRules

_UNTIL_DECIDED = 2**62
"""A lease that never ends: the config stays live until it is proved better or worse."""


def invite(
    rules: SearchRules,
    search: Search,
    config: Config,
    statistics: Statistics,
    *,
    names: Iterable[bytes],
    why: str,
) -> tuple[Search, tuple[Decision, ...]]:
    """Return the search with a config as a challenger, and the decisions to apply.

    The config replaces a challenger with the same config or, if no more configs can be live, the least
    promising one. It stays live until the champion changes, or until it is proved worse.
    """
    new = tuple(sorted(set(names) - set(search.namespaces)))
    decisions: tuple[Decision, ...] = (Widen(new),) if new else ()
    search = replace(search, namespaces=tuple(sorted({*search.namespaces, *new})))
    live = _live_index(rules, search, config, statistics)
    number = len(search.candidates)
    search = replace(
        search, candidates=(*search.candidates, Candidate(config, _UNTIL_DECIDED)), n_valid=number + 1
    )
    search, decisions_of_start = make_live(rules, search, live, number, reason=why)
    return search, (*decisions, *decisions_of_start)


def _live_index(rules: SearchRules, search: Search, config: Config, statistics: Statistics) -> int:
    """Return the index among the live configs for a config from outside."""
    challengers = range(1, len(search.slots))
    same = [live for live in challengers if search.config(live) == config]
    if same or len(search.slots) < rules.max_live:
        return same[0] if same else len(search.slots)
    return min(challengers, key=lambda live: (statistics.promise(live), statistics.updates(live)))
