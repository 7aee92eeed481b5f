"""``schedule``: ChaCha's Schedule, which decides on leases and on which configs are live."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from onlineauto.automl.decisions import Extend, Remove, Rotate
from onlineauto.automl.queue import any_waits
from onlineauto.automl.search import Slot, State

if TYPE_CHECKING:
    from collections.abc import Container

    from onlineauto.automl.decisions import Decision, Statistics
    from onlineauto.automl.search import Rules, Search

__all__ = ["remove", "schedule", "seat_late"]

Step = tuple["Search", tuple["Decision", ...]]


def schedule(rules: Rules, search: Search, statistics: Statistics) -> Step:
    """Make waiting configs live as long as more can be, and review each config whose lease is over.

    Source: VW ``interaction_config_manager::schedule``; Wu et al., ChaCha for Online AutoML (2021).
    """
    decisions: list[Decision] = []
    for place in range(rules.n_slots):
        made: tuple[Decision, ...] = ()
        if place == len(search.slots):
            search, made = _fill(rules, search, place, statistics)
        elif place < len(search.slots) and statistics.updates(place) >= search.lease(place):
            renewed = {each.slot for each in decisions if isinstance(each, Rotate)}
            search, made = _review(rules, search, place, statistics, renewed)
        decisions += made
    return search, tuple(decisions)


def _review(
    rules: Rules, search: Search, place: int, statistics: Statistics, renewed: Container[int]
) -> Step:
    """Decide about a live config whose lease is over."""
    if _is_worse(rules, search, place, statistics):
        return remove(rules, search, place, statistics)
    if search.candidate(place).state is not State.LIVE:  # VW's champion until the first namespace
        return _fill(rules, search, place, statistics)
    search, extend = _extend(search, place)
    if rules.renews:
        stays = place == 0 or _is_promising(rules, search, place, statistics)
        if stays or not _waits_no_longer(search, place):
            return search, (extend,)
        search, rotated = _fill(rules, search, place, statistics)
        return search, rotated
    if not search.slots[place].gives_way:
        return search, (extend,)
    other = _place_to_take(search, place, statistics, renewed)
    if other is not None:
        search = search.with_slot(place, replace(search.slots[place], gives_way=False))
        search = search.with_slot(other, replace(search.slots[other], gives_way=True))
        return search, (replace(extend, place_of=other),)
    search, rotated = _fill(rules, search, place, statistics)
    return search, rotated or (extend,)


def _extend(search: Search, place: int) -> tuple[Search, Extend]:
    """Double the lease, modulo 2^64 as in VW."""
    candidate = search.candidate(place)
    lease = candidate.lease * 2 % 2**64
    search = search.with_candidate(search.slots[place].index, replace(candidate, lease=lease))
    return search, Extend(place, lease)


def _is_promising(rules: Rules, search: Search, place: int, statistics: Statistics) -> bool:
    """Return whether a challenger is among the `n_priority` ones with the most evidence, which stay live."""
    ranked = sorted(range(1, len(search.slots)), key=statistics.promise, reverse=True)
    return place in ranked[: rules.n_priority]


def _waits_no_longer(search: Search, place: int) -> bool:
    """Return whether a config waits whose lease is no longer than this one's."""
    lease = search.lease(place)
    return any(search.waits(i) and search.candidates[i].lease <= lease for i in range(search.n_valid))


def _place_to_take(search: Search, place: int, statistics: Statistics, renewed: Container[int]) -> int | None:
    """Return the first priority challenger that this one is proved better than, None if there is none.

    Those in `renewed` became live in this pass, so they have no evidence yet.
    """
    for other, slot in enumerate(search.slots):
        if other == 0 or slot.gives_way or other in renewed:
            continue
        if statistics.lower(place) > statistics.upper(other):
            return other
    return None


def _fill(rules: Rules, search: Search, place: int, statistics: Statistics) -> Step:
    """Make the next waiting config live at index `place`, if there is one."""
    number, search = rules.control.take_next(rules, search, statistics)
    if number is None:
        return search, ()
    return _seat(rules, search, place, number)


def _seat(rules: Rules, search: Search, place: int, number: int, *, why: str = "") -> Step:
    """Make candidate `number` live at index `place`."""
    gives_way = place > rules.n_priority
    if place < len(search.slots):
        leaving, gives_way = search.candidate(place), search.slots[place].gives_way
        if leaving.state is State.LIVE:
            leaving = replace(leaving, state=State.INACTIVE)
        search = search.with_candidate(search.slots[place].index, leaving)
    coming = replace(search.candidates[number], state=State.LIVE)
    search = search.with_candidate(number, coming).with_slot(place, Slot(number, gives_way))
    return search, (Rotate(place, number, coming.config, why),)


def seat_late(rules: Rules, search: Search, known: int, statistics: Statistics) -> Step:
    """Make the first proposal for late namespaces live at once, instead of the least promising challenger.

    Among equally promising ones that is the one that has run least, such as one made for late namespaces just
    before. Candidates from number `known` on are the proposals.
    """
    if known == len(search.candidates) or rules.n_slots == 1:
        return search, ()
    place = len(search.slots)
    if place == rules.n_slots:
        place = min(range(1, place), key=lambda each: (statistics.promise(each), statistics.updates(each)))
    names = b", ".join(sorted(search.late)).decode("utf-8", "backslashreplace")
    return _seat(rules, search, place, known, why=f"namespaces met late: {names}")


def _is_worse(rules: Rules, search: Search, place: int, statistics: Statistics) -> bool:
    """Return whether a challenger is proved worse than the champion, and another config waits.

    The paired test sends `ProvedWorse` by itself.
    """
    if not rules.control.proves_worse or rules.paired or place == 0 or not any_waits(search):
        return False
    return statistics.upper(place) < statistics.champion_lower(place)


def remove(rules: Rules, search: Search, place: int, statistics: Statistics) -> Step:
    """Remove a config until the champion changes, and make the next one live."""
    index = search.slots[place].index
    search = search.with_candidate(index, replace(search.candidates[index], state=State.REMOVED))
    search, rotated = _fill(rules, search, place, statistics)
    return search, (Remove(place, index), *rotated)
