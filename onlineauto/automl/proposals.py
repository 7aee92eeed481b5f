"""``propose``: call the oracle, and add its proposals to the search."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from onlineauto.automl.oracles import ORACLES
from onlineauto.automl.oracles.oracle import SearchSpace
from onlineauto.automl.search import REVIEW, Candidate, ConfigState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.automl.config import Config
    from onlineauto.automl.decisions import Statistics
    from onlineauto.automl.search import Search, SearchRules


def propose(
    rules: SearchRules, search: Search, statistics: Statistics, *, new: frozenset[bytes] = frozenset()
) -> Search:
    """Add the oracle's new challengers of the champion; with `new` namespaces, only those that use one."""
    oracle = ORACLES[rules.oracle]
    if oracle.once and len(search.candidates) > 1:
        return search
    draw = rules.control.draw(search.random_state)
    space = space_of(rules, search, statistics, new=new)
    configs = oracle.propose(search.champion, space=space, draw=draw)
    if draw.state != search.random_state:
        search = replace(search, random_state=draw.state)
    return rules.control.take_in(rules, search, configs, statistics, bool(new))


def renew(rules: SearchRules, search: Search, statistics: Statistics) -> Search:
    """Drop the candidates that were never tried, and call the oracle again."""
    new = ConfigState.NEW
    retained = [number for number, candidate in enumerate(search.candidates) if candidate.state is not new]
    renumbered = {number: position for position, number in enumerate(retained)}
    search = replace(
        search,
        candidates=tuple(search.candidates[number] for number in retained),
        n_valid=len(retained),
        slots=tuple(
            slot if slot.index == renumbered[slot.index] else replace(slot, index=renumbered[slot.index])
            for slot in search.slots
        ),
    )
    return propose(rules, search, statistics)


def with_next_review(rules: SearchRules, search: Search, statistics: Statistics) -> Search:
    """Return the search with the time of its next review. The delay grows while nothing changes.

    The interval is an eighth, later a quarter, of a first lease. After that, it is a sixteenth of the number
    of learnt events since the last change of champion or drift.
    """
    learnt = statistics.learnt()
    unchanged = learnt - search.since
    wait = max(rules.first_review, min(unchanged, rules.lease // 4), unchanged // 16, 1)
    return replace(search, review=learnt + min(wait, REVIEW), turn=search.turn + 1)


def space_of(
    rules: SearchRules, search: Search, statistics: Statistics, *, new: frozenset[bytes] = frozenset()
) -> SearchSpace:
    """Return the components that are now available to configs."""
    if not rules.renews:
        return SearchSpace(
            search.namespaces,
            rules.interaction_type,
            new,
            search.of_actions,
            slot_namespaces=rules.slot_namespaces,
        )
    return SearchSpace(
        search.namespaces,
        rules.interaction_type,
        new,
        search.of_actions,
        search.vectors,
        gains=statistics.gains(),
        sizes=statistics.sizes(search.namespaces),
        n_actions=statistics.n_actions(),
        mature=statistics.learnt() - search.since >= rules.lease,
        searched=rules.searched,
        tunable=rules.tunable,
        defaults=rules.defaults,
        grows=rules.max_live > 1 and "interactions" in rules.searched,
    )


def take_in_new(
    rules: SearchRules, search: Search, configs: Sequence[Config], statistics: Statistics, late: bool
) -> Search:
    """Return the search with new proposals appended; all of them if they are `late` or the only ones."""
    del statistics
    oracle, added = ORACLES[rules.oracle], list(configs)
    if not oracle.once:
        tried = set() if late else {candidate.config for candidate in search.candidates}
        added = [config for config in dict.fromkeys(configs) if config not in tried]
    if oracle.renews:
        added.reverse()  # among equals, the last one is tried first
    candidates = (*search.candidates, *(Candidate(config, rules.lease) for config in added))
    return replace(search, candidates=candidates, n_valid=len(candidates))
