"""``DecisionCosts``: the costs of actions, the price of a decision, and what a reported cost replaces."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

import msgspec

from onlineauto.errors import InputError
from onlineauto.service.log.segment_log import read_record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.formats.decisions.dsjson import LogRecord
    from onlineauto.service.join.join import Join
    from onlineauto.service.log.segment_log import SegmentLog
    from onlineauto.service.loop.front import Ranking

_LOG = logging.getLogger("onlineauto.service")
_SEVERAL: Final = 4
"""Number of costs far beyond all others of which a warning is logged; some answers are longer than others."""


class DecisionCosts:
    """Prices decisions, and finds what they cost; `note` and `assumed` are called with the front's lock."""

    def __init__(self, log: SegmentLog, join: Join) -> None:
        self._log, self._join = log, join
        self._warned = False  # of a budget below the cheapest action
        self._clipped = 0  # costs far beyond all others, when last logged
        self._unwritten: dict[str, tuple[int, dict[str, Any]]] = {}  # with the end of the decision's line

    def price(self, budget: float, price: float, one: Ranking) -> None:
        """Complete the costs of the actions; if the model decides, note the price and the cheapest action."""
        request, pacing = one.request, self._join.pacing
        self._warn_of_clipped()
        declared = one.costs or [None] * len(request.ids)
        one.costs = costs = [
            pacing.mean_of(name, budget) if cost is None else cost
            for name, cost in zip(request.ids, declared, strict=True)
        ]
        if one.mode != "online":
            return
        one.price = price
        left = [number for number, name in enumerate(request.ids) if name not in request.excluded]
        cheapest = min(left, key=costs.__getitem__)
        if None in declared or costs[cheapest] <= budget:  # a mean that is wrong has to be corrected
            return
        one.certain = cheapest
        if not self._warned:
            self._warned = True
            _LOG.warning(
                "the budget of %g is below the cheapest action, %r, which costs %g",
                budget,
                request.ids[cheapest],
                costs[cheapest],
                extra={"event": "over_budget", "event_id": request.event_id},
            )

    def _warn_of_clipped(self) -> None:
        """Log that several costs were far beyond all others, each time that their number has doubled."""
        clipped = self._join.pacing.clipped
        if clipped >= max(2 * self._clipped, _SEVERAL):
            self._clipped = clipped
            _LOG.warning(
                "costs far beyond all others: %d; the means that set the price took less of them",
                clipped,
                extra={"event": "costs_clipped", "clipped": clipped},
            )

    def note(self, known: LogRecord, one: Ranking, *, end: int) -> LogRecord:
        """Return the record of a decision with its costs, given the position behind its line."""
        unwritten, action = self._unwritten, one.answer.actions[0]
        while unwritten and next(iter(unwritten.values()))[0] <= self._log.durable:
            del unwritten[next(iter(unwritten))]
        unwritten[known.event_id] = end, _assumed(one.request.ids, action, one.costs, one.price)
        return msgspec.structs.replace(
            known,
            ranked=[action + 1],
            excluded=[number + 1 for number in one.out],
            costs=list(one.costs),
            price=one.price,
            over_budget=one.certain >= 0,
        )

    def assumed(self, event_id: str, now: float) -> dict[str, Any]:
        """Return the members of a report of a cost that depend on its decision; none if it is unknown."""
        found = self._join.find(event_id, now)
        if found is None:
            return {}
        if event_id in self._unwritten:
            return self._unwritten[event_id][1]
        try:
            record = read_record(self._log.line_at(found.position, found.size))
            return _assumed(record.tags, record.ranked[0] - 1, record.costs, record.price)
        except (OSError, LookupError, ValueError, InputError):  # its segment is removed or damaged
            return {}


def _assumed(
    ids: Sequence[str], action: int, costs: Sequence[float | None], price: float | None
) -> dict[str, Any]:
    """Return the action of a decision, the cost that it counted with, and its price."""
    members: dict[str, Any] = {"Action": ids[action]}
    if costs and costs[action] is not None:
        members["Assumed"] = costs[action]
    return members if price is None else members | {"Price": price}
