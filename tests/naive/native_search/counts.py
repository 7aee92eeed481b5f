"""Counts of events, actions and features: how large namespaces are, and which have been met."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tests.naive.native_search.events import TOLD

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.naive.native_search.events import Event


class Counts:
    """Counts so far; a shared feature counts once for every action."""

    def __init__(self) -> None:
        self.events = self.actions = 0
        self.met: set[bytes] = set()
        self.features: Counter[bytes] = Counter()

    def count(self, event: Event) -> tuple[bytes, ...]:
        """Count an event; return the namespaces that were not met before, in ascending order."""
        shared = event.shared or {}
        self.events += 1
        self.actions += len(event.actions)
        for name, features in shared.items():
            if name != TOLD:
                self.features[name] += len(event.actions) * len(features)
        for action in event.actions:
            for name, features in action.items():
                self.features[name] += 0 if name in shared else len(features)
        new = event.names - self.met
        self.met |= new
        return tuple(sorted(new))

    def sizes(self, names: Iterable[bytes]) -> dict[bytes, float]:
        """Features that an action has in each namespace, on average."""
        return {name: self.features[name] / max(self.actions, 1) for name in names}

    @property
    def actions_of_event(self) -> float:
        """Actions of an event, on average."""
        return self.actions / max(self.events, 1)
