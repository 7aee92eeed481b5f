"""Lines of the journal: each decision, and the statistics of its live configs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.naive.native_search.decisions import Extend, Remove, Reopen, Rotate, Swap, Widen

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.naive.native_search.configs import Config
    from tests.naive.native_search.decisions import Decision

    Bounds = Callable[[int], dict[str, float]]

Line = dict[str, Any]


def line_of(decision: Decision, events: int, updates: list[int], bounds: Bounds) -> Line:
    """Return the line of a decision before it is applied, after `n` events."""
    if isinstance(decision, Widen):
        return {"decision": "widen", "events": events, "names": [name.decode() for name in decision.names]}
    if isinstance(decision, Reopen):
        return {
            "decision": "reopen",
            "events": events,
            "what": decision.what,
            "indices": list(decision.numbers),
        }
    place = decision.place
    if isinstance(decision, Rotate):
        made_room = bounds(place) if place < len(updates) and updates[place] > 0 else None
        line = {"decision": "rotate", "events": events, "slot": place, "index": decision.number}
        return line | _config(decision.config) | {"bounds": made_room, "why": decision.why}
    if isinstance(decision, Swap):
        line = {"decision": "swap", "events": events, "slot": place, "by": decision.by, "keeps": True}
        return line | _config(decision.config) | {"bounds": bounds(place)}
    if isinstance(decision, Extend):
        line = {"decision": "extend", "events": events, "slot": place, "lease": decision.lease}
        return line | {"place_of": None, "bounds": bounds(place)}
    assert isinstance(decision, Remove)
    line = {"decision": "remove", "events": events, "slot": place, "index": decision.number}
    return line | {"bounds": bounds(place)}


def _config(config: Config) -> Line:
    rate = config.learning_rate
    return {
        "kind": "inclusion",
        "elements": [[name.decode() for name in names] for names in config.interactions],
        "settings": {} if rate is None else {"learning_rate": rate},
    }
