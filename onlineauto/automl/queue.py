"""``take_next``: choose the next of the waiting configs.

Native mode takes the one with the shortest lease, since it has run least. Among equals the priority decides,
by the present counts. So no config runs again while one waits that has run less.

Exact mode has VW's queue. Whenever it is empty it is filled with all waiting configs, so configs that are
live at that time miss a round. Priorities are those at the time of filling.
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
    """Return whether there is a config that could become live."""
    return any(map(search.waits, range(search.n_valid)))


def take_next(rules: Rules, search: Search, statistics: Statistics) -> tuple[int | None, Search]:
    """Return the number of the next waiting candidate, None if there is none, and the search without it."""
    take = _take_queued if rules.exact else _take_least_tried
    return take(rules, search, statistics)


def enqueue(rules: Rules, search: Search, numbers: list[int], statistics: Statistics) -> Search:
    """Return the search with candidates added to the queue, each with its priority."""
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
