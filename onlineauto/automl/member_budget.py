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
from onlineauto.automl.search import PATIENCE, MemberStatus

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
    """Return the search with the members that work from now on, and a decision if that has changed."""
    if not rules.member_budget:
        return search, ()
    terms, now = statistics.members(), statistics.learnt()
    status = {state.name: state for state in search.members}
    before = [state.name for state in search.members if not state.works]
    new = MemberStatus("", now if status else 0, pause=PATIENCE)
    states = [status[name] if name in status else replace(new, name=name) for name in terms]
    states, worths = _rest_worthless(states, terms, statistics, now)
    rates = {
        state.name: worths.get(state.name, 0.0) / terms[state.name].price for state in states if state.works
    }
    chosen = _select_within_budget(states, terms, rates, budget=rules.member_budget, now=now)
    members = tuple(_next_status(state, state.name in chosen, rates, now) for state in states)
    after = [state.name for state in members if not state.works]
    return replace(search, members=members), (RestMembers(tuple(after)),) if after != before else ()


def has_new_members(search: Search, now: int) -> bool:
    """Return whether a member began to work so lately that it may soon rest, even if it has worth now."""
    return any(state.works and now - state.since < 2 * PATIENCE for state in search.members)


def _rest_worthless(
    states: list[MemberStatus], terms: Mapping[str, MemberTerms], statistics: Statistics, now: int
) -> tuple[list[MemberStatus], Mapping[str, float]]:
    """Rest the members that were worthless for a long time; return also the worths of the others."""
    lately = any(state.last > max(now - PATIENCE, 0) for state in states)
    while True:
        worths = statistics.member_worths({state.name for state in states if not state.works})
        worthy = {name for name, worth in worths.items() if worth >= terms[name].least_worth}
        states = [
            replace(state, last=now) if state.name in worthy and state.last != now else state
            for state in states
        ]
        lately = lately or bool(worthy)
        patience = PATIENCE if lately else TRIAL
        judged = [state for state in states if state.works and now - max(state.since, state.last) >= patience]
        if not judged:
            return states, worths
        least = min(judged, key=lambda state: worths.get(state.name, 0.0))
        rests = MemberStatus(least.name, now, works=False, last=least.last, pause=least.pause)
        states = [rests if state is least else state for state in states]


def _select_within_budget(
    states: list[MemberStatus],
    terms: Mapping[str, MemberTerms],
    rates: Mapping[str, float],
    *,
    budget: float,
    now: int,
) -> set[str]:
    """Return the members that work: in their order of precedence, while the budget allows their price."""
    chosen: set[str] = set()
    turns = {name: (turn, value) for turn, value, name in _order_of_precedence(states, terms, rates, now)}
    turns = {name: max(turn, turns.get(terms[name].upon, turn)) for name, turn in turns.items()}
    paths = {name: f"{terms[name].upon}/{name}" if terms[name].upon else name for name in turns}
    for name in sorted(turns, key=lambda name: (turns[name], paths[name])):
        if terms[name].price <= budget and (not terms[name].upon or terms[name].upon in chosen):
            chosen.add(name)
            budget -= terms[name].price
    return chosen


def _order_of_precedence(
    states: list[MemberStatus], terms: Mapping[str, MemberTerms], rates: Mapping[str, float], now: int
) -> Iterator[tuple[int, float, str]]:
    """Yield the members that may work: on trial, to be tried, then by their worth for their price."""
    for state in states:
        price = terms[state.name].price
        if state.works and now - state.since < TRIAL:
            yield 0, price, state.name
        elif state.works:
            yield 2, -rates[state.name], state.name
        elif state.worth >= 0:
            yield 2, -state.worth, state.name
        elif now - state.since >= state.pause:
            yield 1, price, state.name


def _next_status(state: MemberStatus, works: bool, rates: Mapping[str, float], now: int) -> MemberStatus:
    """Return a member's state after the decision whether the member works."""
    if state.works == works:
        return state
    if works and state.worth >= 0:
        return replace(state, works=True, since=now, worth=-1.0)
    if works:
        return replace(
            state, works=True, since=now, pause=min(max(2 * state.pause, PATIENCE), _LONGEST_PAUSE)
        )
    if now - state.since < TRIAL:
        return replace(state, works=False, since=now, pause=0)
    return replace(state, works=False, since=now, worth=rates[state.name])
