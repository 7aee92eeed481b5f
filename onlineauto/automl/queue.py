"""Which of the configs that wait is next.

Native mode: the one with the shortest lease, since it has been given the least; the priority decides among
equals, by the counts of the moment. So none gets another turn while one waits that has been given less.

Exact mode: VW's queue. It is filled with all that wait whenever it has run empty, so that what is live at
that time misses a round, and priorities are those of the moment of filling.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from onlineauto.automl.priorities import PRIORITIES

if TYPE_CHECKING:
    from onlineauto.automl.decisions import Statistics
    from onlineauto.automl.search import Rules, Search

__all__ = ["any_waits", "enqueue", "take_next"]


def any_waits(search: Search) -> bool:
    """Whether there is a config that could be put into a live slot."""
    return any(map(search.waits, range(search.n_valid)))


def take_next(rules: Rules, search: Search, statistics: Statistics) -> tuple[int | None, Search]:
    """Take the number of the next candidate out of those that wait; None if none does."""
    take = _take_queued if rules.exact else _take_least_tried
    return take(rules, search, statistics)


def enqueue(rules: Rules, search: Search, numbers: list[int], statistics: Statistics) -> Search:
    """Add candidates to the queue, each with its priority."""
    priority = PRIORITIES[rules.priority]
    added = [
        (priority.in_vw(search.candidates[number].config, statistics.count), number) for number in numbers
    ]
    return replace(search, queue=tuple(sorted((*search.queue, *added), reverse=True)))


def _take_queued(rules: Rules, search: Search, statistics: Statistics) -> tuple[int | None, Search]:
    if not search.queue:
        waiting = list(filter(search.waits, range(search.n_valid)))
        search = enqueue(rules, search, waiting, statistics)
    if not search.queue:
        return None, search
    return search.queue[0][1], replace(search, queue=search.queue[1:])


def _take_least_tried(rules: Rules, search: Search, statistics: Statistics) -> tuple[int | None, Search]:
    waiting = list(filter(search.waits, range(search.n_valid)))
    if not waiting:
        return None, search
    lease = min(search.candidates[number].lease for number in waiting)
    priority = PRIORITIES[rules.priority]
    equals = [number for number in waiting if search.candidates[number].lease == lease]
    return max(
        equals, key=lambda number: (priority.of(search.candidates[number].config, statistics.count), number)
    ), search
