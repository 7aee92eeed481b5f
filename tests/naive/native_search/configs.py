"""A config of a live config, and the namespaces of which configs are made."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tests.naive.native_search.events import TOLD

Interaction = tuple[bytes, ...]
"""Names of the namespaces that are crossed, in ascending order; one name alone is the namespace itself."""


@dataclass(frozen=True)
class Config:
    """Interactions, and the learning rate if it is not that of the command line."""

    interactions: tuple[Interaction, ...] = ()
    learning_rate: float | None = None

    def crossing(self, interactions: Iterable[Interaction]) -> Config:
        """Return a copy with other interactions."""
        return replace(self, interactions=tuple(sorted(set(interactions))))

    def in_order(self, told: Sequence[bytes] | None = None) -> list[Interaction]:
        """Return the interactions as they are summed, shorter ones first.

        In CCB every interaction, and every namespace of those that are `told`, is there once more, crossed
        with what tells slots from one another.
        """
        found = set(self.interactions)
        if told is not None:
            found |= {(*names, TOLD) for names in (*self.interactions, *((name,) for name in told))}
        return sorted(found, key=lambda names: (len(names), names))


@dataclass(frozen=True, kw_only=True)
class Space:
    """The statistics of namespaces at one moment."""

    names: tuple[bytes, ...]
    """Namespaces seen so far, in ascending order."""
    of_actions: frozenset[bytes]
    """Namespaces of lines of actions; the others are the context."""
    vectors: frozenset[bytes]
    """Namespaces that are long vectors."""
    late: frozenset[bytes]
    """Namespaces first seen since the last review; proposals are for them if there are any."""
    gains: Mapping[Interaction, float]
    """Estimated gains of screened interactions."""
    sizes: Mapping[bytes, float]
    """Features of an action in each namespace, on average."""
    n_actions: float
    """Actions of an event, on average."""
    mature: bool
    """Whether the champion has been one for the length of a first lease."""
    searched: frozenset[str]
    learning_rate: float
    grows: bool
    """Whether challengers may have interactions that the first champion lacks."""

    @property
    def contexts(self) -> tuple[bytes, ...]:
        """Namespaces that are not the actions'."""
        return tuple(name for name in self.names if name not in self.of_actions)

    @property
    def actions(self) -> tuple[bytes, ...]:
        """Namespaces of actions."""
        return tuple(sorted(self.of_actions))

    def may_cross(self, names: Interaction) -> bool:
        """Return whether an interaction may be proposed: a long vector with one other namespace."""
        others = [name for name in names if name not in self.vectors]
        return len(others) == len(names) or (len(names) <= 2 and len(others) == len(names) - 1)

    def size(self, names: Interaction) -> float:
        """Features of an interaction in an event; those that are the same for all actions count once."""
        size = math.prod((self.sizes.get(name, 1.0) for name in names), start=1.0)
        return size * self.n_actions if self.of_actions.intersection(names) else size

    def terms(self, interactions: Iterable[Interaction]) -> float:
        """Features of several interactions in an event."""
        return sum(map(self.size, interactions))
