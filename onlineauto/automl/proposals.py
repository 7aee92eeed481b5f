"""``propose``: ask the oracle, and add its proposals to the search."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from onlineauto.automl.oracles import ORACLES
from onlineauto.automl.oracles.oracle import Space
from onlineauto.automl.queue import enqueue
from onlineauto.automl.random_draw import FairDraw, VwDraw
from onlineauto.automl.search import REVIEW, Candidate, State

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from onlineauto.automl.config import Config, Interaction
    from onlineauto.automl.decisions import Statistics
    from onlineauto.automl.search import Rules, Search

__all__ = ["propose", "renew", "reviewed", "space_of"]


def propose(
    rules: Rules, search: Search, statistics: Statistics, *, new: frozenset[bytes] = frozenset()
) -> Search:
    """Ask the oracle for challengers of the champion, and add those that are new to the candidates.

    With `new` namespaces, ask only for challengers that have one of them.
    """
    oracle = ORACLES[rules.oracle]
    if oracle.once and len(search.candidates) > 1:
        return search
    draw = (VwDraw if rules.exact else FairDraw)(search.random_state)
    space = space_of(rules, search, statistics, new=new)
    configs = oracle.propose(search.champion, space=space, draw=draw)
    search = replace(search, random_state=draw.state)
    if oracle.once:
        return _append(rules, search, configs, statistics)
    if rules.exact:
        return _overwrite(rules, search, configs, statistics)
    known = set() if new else {candidate.config for candidate in search.candidates}
    added = [each for each in dict.fromkeys(configs) if each not in known]
    if oracle.renews:
        added.reverse()  # among equals, the last one is tried first
    return _append(rules, search, added, statistics)


def renew(rules: Rules, search: Search, statistics: Statistics) -> Search:
    """Drop the candidates that were never tried, and ask the oracle again."""
    kept = [number for number, each in enumerate(search.candidates) if each.state is not State.NEW]
    place = {number: position for position, number in enumerate(kept)}
    search = replace(
        search,
        candidates=tuple(search.candidates[number] for number in kept),
        n_valid=len(kept),
        slots=tuple(replace(slot, index=place[slot.index]) for slot in search.slots),
    )
    return propose(rules, search, statistics)


def reviewed(rules: Rules, search: Search, statistics: Statistics) -> Search:
    """Return the search with the time of its next review: an eighth, later a quarter, of a first lease on."""
    learnt = statistics.learnt()
    wait = min(max(rules.first_review, min(learnt - search.since, rules.lease // 4), 1), REVIEW)
    return replace(search, review=learnt + wait, turn=search.turn + 1)


def space_of(
    rules: Rules, search: Search, statistics: Statistics, *, new: frozenset[bytes] = frozenset()
) -> Space:
    """Return what configs can be made of now."""
    if not rules.renews:
        return Space(search.namespaces, rules.interaction_type, new, search.of_actions, telling=rules.telling)
    return Space(
        search.namespaces,
        rules.interaction_type,
        new,
        search.of_actions,
        gains=statistics.gains(),
        sizes={name: statistics.size(name) for name in search.namespaces},
        n_actions=statistics.n_actions(),
        mature=statistics.learnt() - search.since >= rules.lease,
        searched=rules.searched,
        tunable=rules.tunable,
        defaults=rules.defaults,
    )


def _append(rules: Rules, search: Search, configs: Iterable[Config], statistics: Statistics) -> Search:
    candidates = (*search.candidates, *(Candidate(config, rules.lease) for config in configs))
    added = list(range(len(search.candidates), len(candidates)))
    search = replace(search, candidates=candidates, n_valid=len(candidates))
    return enqueue(rules, search, added, statistics) if rules.exact else search


def _overwrite(rules: Rules, search: Search, configs: Sequence[Config], statistics: Statistics) -> Search:
    """Add configs as VW does: over the candidates that an earlier champion has left."""
    places = _Places(search.candidates, search.n_valid, rules.lease)
    if ORACLES[rules.oracle].hides_champion:
        places.empty(0)
    for config in configs:
        places.add(config)
    candidates = (search.candidates[0], *places.candidates[1:])
    added = list(range(search.n_valid, places.n_valid))
    search = replace(search, candidates=candidates, n_valid=places.n_valid)
    return enqueue(rules, search, added, statistics)


class _Places:
    """VW's vector of configs while proposals are added.

    Source: VW ``config_oracle::insert_config``.
    """

    def __init__(self, candidates: Sequence[Candidate], n_valid: int, lease: int) -> None:
        self.candidates = list(candidates)
        self.n_valid = n_valid
        self._lease = lease
        self._holding: dict[tuple[Interaction, ...], set[int]] = {}
        for place, candidate in enumerate(candidates):
            self._holding.setdefault(candidate.config.elements, set()).add(place)

    def add(self, config: Config) -> None:
        """Add a config, unless a valid entry has the same elements.

        If an entry left from earlier has the same elements, they are moved from there. If that is the very
        entry that the config is written to, they are lost: VW moves a set to itself, which empties it.
        """
        found = min(self._holding.get(config.elements, ()), default=None)
        if found is not None and found < self.n_valid:
            return
        if found is not None:
            self.empty(found)
            if found == self.n_valid:
                config = replace(config, elements=())
        self._put(self.n_valid, Candidate(config, self._lease))
        self.n_valid += 1

    def empty(self, place: int) -> None:
        """Move the elements away from an entry."""
        candidate = self.candidates[place]
        self._put(place, replace(candidate, config=replace(candidate.config, elements=())))

    def _put(self, place: int, candidate: Candidate) -> None:
        if place < len(self.candidates):
            self._holding[self.candidates[place].config.elements].discard(place)
            self.candidates[place] = candidate
        else:
            self.candidates.append(candidate)
        self._holding.setdefault(candidate.config.elements, set()).add(place)
