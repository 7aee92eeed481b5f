"""``take_least_tried``: choose the next of the waiting configs.

The next config is the one with the shortest lease, because it has run least. Among equals the priority
decides, by the present counts. So no config runs again while a config waits that has run less.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.automl.priorities import PRIORITIES

if TYPE_CHECKING:
    from onlineauto.automl.decisions import Statistics
    from onlineauto.automl.search import Search, SearchRules


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
