"""Extra members of the ensemble: which of them work, by their worth and within a budget for their price.

A member rests if its worth was below `least_worth` at each review of the last `PATIENCE` events. It is tried
again after a pause, which doubles each time. Members are judged one by one, the smallest worth first. Of two
members with the same scores neither has worth while the other works, so only one of them rests.

If no member reached its least worth in that time, a trial of `TRIAL` events is enough. On streams where
members help, the first one helps within a thousand events, and others may follow later. On other streams all
members only cost time.

If the remaining members cost more than the budget, members with the least worth for their price rest. A
member on trial continues. A member that was never tried has precedence over members that were tried; among
these, the cheapest is first. A member that is computed from the scores of another works only if that one
works.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from onlineauto.automl.decisions import RestMembers
from onlineauto.automl.search import PATIENCE, MemberSeat

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from onlineauto.automl.decisions import Decision, MemberTerms, Statistics
    from onlineauto.automl.search import Search, SearchRules

LEAST_WORTH = 6.0
"""Default minimum worth. One in seventy useless members exceeds it by chance."""

TRIAL = 2048
"""Number of learnt events of a trial, during which the budget cannot make a member rest."""

_LONGEST_PAUSE = 2**40


def rest_members(
    rules: SearchRules, search: Search, statistics: Statistics
) -> tuple[Search, tuple[Decision, ...]]:
    """Return the search with the members that work from now on, and a decision if that has changed.

    Parameters
    ----------
    rules : Rules
        The budget.
    search : Search
        The members so far; it is not changed.
    statistics : Statistics
        The prices and worths of members.
    """
    if not rules.member_budget:
        return search, ()
    terms, now = statistics.members(), statistics.learnt()
    known = {seat.name: seat for seat in search.members}
    before = [seat.name for seat in search.members if not seat.works]
    new = MemberSeat("", now if known else 0, pause=PATIENCE)
    seats = [known.get(name, replace(new, name=name)) for name in terms]
    seats, worths = _without_worthless(seats, terms, statistics, now)
    rates = {seat.name: worths.get(seat.name, 0.0) / terms[seat.name].price for seat in seats if seat.works}
    chosen = _within_budget(seats, terms, rates, budget=rules.member_budget, now=now)
    members = tuple(_updated_seat(seat, seat.name in chosen, rates, now) for seat in seats)
    after = [seat.name for seat in members if not seat.works]
    return replace(search, members=members), (RestMembers(tuple(after)),) if after != before else ()


def _without_worthless(
    seats: list[MemberSeat], terms: Mapping[str, MemberTerms], statistics: Statistics, now: int
) -> tuple[list[MemberSeat], Mapping[str, float]]:
    """Let members rest that were worthless for a long time; return also the worths of the others."""
    lately = any(seat.last > max(now - PATIENCE, 0) for seat in seats)
    while True:
        worths = statistics.member_worths({seat.name for seat in seats if not seat.works})
        worthy = {name for name, worth in worths.items() if worth >= terms[name].least_worth}
        seats = [replace(seat, last=now) if seat.name in worthy else seat for seat in seats]
        lately = lately or bool(worthy)
        patience = PATIENCE if lately else TRIAL
        judged = [seat for seat in seats if seat.works and now - max(seat.since, seat.last) >= patience]
        if not judged:
            return seats, worths
        least = min(judged, key=lambda seat: worths.get(seat.name, 0.0))
        rests = MemberSeat(least.name, now, works=False, last=least.last, pause=least.pause)
        seats = [rests if seat is least else seat for seat in seats]


def _within_budget(
    seats: list[MemberSeat],
    terms: Mapping[str, MemberTerms],
    rates: Mapping[str, float],
    *,
    budget: float,
    now: int,
) -> set[str]:
    """Return the members that work: in their order of precedence, while the budget allows their price."""
    chosen: set[str] = set()
    turns = {name: (turn, value) for turn, value, name in _in_precedence(seats, terms, rates, now)}
    turns = {name: max(turn, turns.get(terms[name].upon, turn)) for name, turn in turns.items()}
    paths = {name: f"{terms[name].upon}/{name}" if terms[name].upon else name for name in turns}
    for name in sorted(turns, key=lambda name: (turns[name], paths[name])):
        if terms[name].price <= budget and (not terms[name].upon or terms[name].upon in chosen):
            chosen.add(name)
            budget -= terms[name].price
    return chosen


def _in_precedence(
    seats: list[MemberSeat], terms: Mapping[str, MemberTerms], rates: Mapping[str, float], now: int
) -> Iterator[tuple[int, float, str]]:
    """Yield the members that may work: on trial, to be tried, then by their worth for their price."""
    for seat in seats:
        price = terms[seat.name].price
        if seat.works and now - seat.since < TRIAL:
            yield 0, price, seat.name
        elif seat.works:
            yield 2, -rates[seat.name], seat.name
        elif seat.worth >= 0:
            yield 2, -seat.worth, seat.name
        elif now - seat.since >= seat.pause:
            yield 1, price, seat.name


def _updated_seat(seat: MemberSeat, works: bool, rates: Mapping[str, float], now: int) -> MemberSeat:
    """Return a member's seat after the decision whether the member works."""
    if seat.works == works:
        return seat
    if works and seat.worth >= 0:
        return replace(seat, works=True, since=now, worth=-1.0)
    if works:
        return replace(seat, works=True, since=now, pause=min(max(2 * seat.pause, PATIENCE), _LONGEST_PAUSE))
    if now - seat.since < TRIAL:
        return replace(seat, works=False, since=now, pause=0)
    return replace(seat, works=False, since=now, worth=rates[seat.name])
