"""``schedule``: ChaCha's Schedule, which decides on leases and on which configs are live."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from onlineauto.automl.decisions import Extend, Remove, Rotate
from onlineauto.automl.priorities import PRIORITIES
from onlineauto.automl.search import ConfigState, LiveConfig

if TYPE_CHECKING:
    from collections.abc import Container

    from onlineauto.automl.decisions import Decision, Statistics
    from onlineauto.automl.search import Search, SearchRules

Step = tuple["Search", tuple["Decision", ...]]


def has_waiting(search: Search) -> bool:
    """Return whether there is a config that could become live."""
    return any(map(search.waits, range(search.n_valid)))


def take_least_tried(rules: SearchRules, search: Search, statistics: Statistics) -> tuple[int | None, Search]:
    """Return the index of the next waiting candidate, or None, and the search."""
    waiting = list(filter(search.waits, range(search.n_valid)))
    if not waiting:
        return None, search
    lease = min(search.candidates[number].lease for number in waiting)
    priority = PRIORITIES[rules.priority]
    equals = [number for number in waiting if search.candidates[number].lease == lease]
    return max(
        equals, key=lambda number: (priority.of(search.candidates[number].config, statistics.count), number)
    ), search


def schedule(rules: SearchRules, search: Search, statistics: Statistics) -> Step:
    """Make waiting configs live while more can be live, and review each config whose lease has expired.

    Source: VW ``interaction_config_manager::schedule``; Wu et al., ChaCha for Online AutoML (2021).
    """
    decisions: list[Decision] = []
    for live in range(rules.max_live):
        all_decisions: tuple[Decision, ...] = ()
        if live == len(search.slots):
            search, all_decisions = _fill(rules, search, live, statistics)
        elif live < len(search.slots) and statistics.updates(live) >= search.lease(live):
            renewed = {decision.live for decision in decisions if isinstance(decision, Rotate)}
            search, all_decisions = _review(rules, search, live, statistics, renewed)
        decisions += all_decisions
    return search, tuple(decisions)


def _review(
    rules: SearchRules, search: Search, live: int, statistics: Statistics, renewed: Container[int]
) -> Step:
    """Decide on a live config whose lease has expired."""
    if _is_worse(rules, search, live, statistics):
        return remove(rules, search, live, statistics)
    if search.candidate(live).state is not ConfigState.LIVE:  # only in exact mode: the first champion
        return _fill(rules, search, live, statistics)
    search, extend = _extend(search, live)
    if rules.renews:
        stays = live == 0 or _is_promising(rules, search, live, statistics)
        if stays or not _waits_no_longer(search, live):
            return search, (extend,)
        search, rotated = _fill(rules, search, live, statistics)
        return search, rotated
    if not search.slots[live].gives_way:
        return search, (extend,)
    other = _replaceable_challenger(search, live, statistics, renewed)
    if other is not None:
        search = search.with_live(live, replace(search.slots[live], gives_way=False))
        search = search.with_live(other, replace(search.slots[other], gives_way=True))
        return search, (replace(extend, place_of=other),)
    search, rotated = _fill(rules, search, live, statistics)
    return search, rotated or (extend,)


def _extend(search: Search, live: int) -> tuple[Search, Extend]:
    """Double the lease, modulo 2^64 as in VW."""
    candidate = search.candidate(live)
    lease = candidate.lease * 2 % 2**64
    search = search.with_candidate(search.slots[live].index, replace(candidate, lease=lease))
    return search, Extend(live, lease)


def _is_promising(rules: SearchRules, search: Search, live: int, statistics: Statistics) -> bool:
    """Return whether a challenger is among the `n_priority` ones with the most evidence, which stay live."""
    ranked = sorted(range(1, len(search.slots)), key=statistics.promise, reverse=True)
    return live in ranked[: rules.n_priority]


def _waits_no_longer(search: Search, live: int) -> bool:
    """Return whether a config waits whose lease is no longer than this one's."""
    lease = search.lease(live)
    return any(search.waits(i) and search.candidates[i].lease <= lease for i in range(search.n_valid))


def _replaceable_challenger(
    search: Search, live: int, statistics: Statistics, renewed: Container[int]
) -> int | None:
    """Return the first priority challenger not just `renewed` that `live` is proved better than, or None."""
    for other, config in enumerate(search.slots):
        if other == 0 or config.gives_way or other in renewed:
            continue
        if statistics.lower(live) > statistics.upper(other):
            return other
    return None


def _fill(rules: SearchRules, search: Search, live: int, statistics: Statistics) -> Step:
    """Make the next waiting config live at index `live`, if there is one."""
    number, search = rules.control.take_next(rules, search, statistics)
    if number is None:
        return search, ()
    return make_live(rules, search, live, number)


def make_live(rules: SearchRules, search: Search, live: int, number: int, *, reason: str = "") -> Step:
    """Make candidate `number` live at index `live`."""
    gives_way = live > rules.n_priority
    if live < len(search.slots):
        leaving, gives_way = search.candidate(live), search.slots[live].gives_way
        if leaving.state is ConfigState.LIVE:
            leaving = replace(leaving, state=ConfigState.INACTIVE)
        search = search.with_candidate(search.slots[live].index, leaving)
    coming = replace(search.candidates[number], state=ConfigState.LIVE)
    search = search.with_candidate(number, coming).with_live(live, LiveConfig(number, gives_way))
    return search, (Rotate(live, number, coming.config, reason),)


def least_promising(search: Search, statistics: Statistics) -> int:
    """Return the challenger with the least evidence; of equals, the one that has run least."""
    challengers = range(1, len(search.slots))
    return min(challengers, key=lambda live: (statistics.promise(live), statistics.updates(live)))


def make_late_live(rules: SearchRules, search: Search, first_late: int, statistics: Statistics) -> Step:
    """Make the first proposal for late namespaces live at once, in place of the least promising challenger.

    Of equals, it replaces the one that has run least. The proposals are the candidates from `first_late` on.
    """
    if first_late == len(search.candidates) or rules.max_live == 1:
        return search, ()
    live = len(search.slots)
    if live == rules.max_live:
        live = least_promising(search, statistics)
    names = b", ".join(sorted(search.late)).decode("utf-8", "backslashreplace")
    return make_live(rules, search, live, first_late, reason=f"namespaces seen late: {names}")


def _is_worse(rules: SearchRules, search: Search, live: int, statistics: Statistics) -> bool:
    """Return whether a challenger is proved worse, and another waits; a paired test sends `ProvedWorse`."""
    if not rules.control.removes_worse or rules.paired or live == 0 or not has_waiting(search):
        return False
    return statistics.upper(live) < statistics.champion_lower(live)


def remove(rules: SearchRules, search: Search, live: int, statistics: Statistics) -> Step:
    """Remove a config until the champion changes, and make the next one live."""
    index = search.slots[live].index
    search = search.with_candidate(index, replace(search.candidates[index], state=ConfigState.REMOVED))
    search, rotated = _fill(rules, search, live, statistics)
    return search, (Remove(live, index), *rotated)
