"""What passes between the loop and `decide`: signals one way, decisions the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from onlineauto.automl.config import Config

__all__ = [
    "BoundCrossed",
    "Decision",
    "Extend",
    "LeaseDue",
    "NewNamespaces",
    "ProvedWorse",
    "Remove",
    "Rotate",
    "Signal",
    "Statistics",
    "Swap",
    "Widen",
]


@dataclass(frozen=True, slots=True)
class NewNamespaces:
    """An event has namespaces that were never met before; it is not predicted yet.

    Attributes
    ----------
    names : tuple of bytes
        The new ones, in ascending order.
    of_actions : frozenset of bytes
        Those of the event that are on lines of actions.
    """

    names: tuple[bytes, ...]
    of_actions: frozenset[bytes] = frozenset()


@dataclass(frozen=True, slots=True)
class LeaseDue:
    """An event is about to be learnt, and a lease is over or a live place is empty."""


@dataclass(frozen=True, slots=True)
class BoundCrossed:
    """An event was learnt, and a challenger proved to be better than the champion.

    Attributes
    ----------
    slot : int
        Live slot of the challenger; the last one, if several did.
    """

    slot: int


@dataclass(frozen=True, slots=True)
class ProvedWorse:
    """An event was learnt, and a challenger proved to be worse than the champion, while others wait.

    Attributes
    ----------
    slot : int
        Live slot of the challenger; the last one, if several did.
    """

    slot: int


Signal = NewNamespaces | LeaseDue | BoundCrossed | ProvedWorse
"""Why the loop stopped."""


class Statistics(Protocol):
    """What `decide` may ask about the live slots; a bound is computed when it is asked for."""

    def count(self, namespace: bytes) -> int:
        """Actions of events, so far, that have features in this namespace."""

    def updates(self, slot: int) -> int:
        """Events on which the slot's estimators rest."""

    def lower(self, slot: int) -> float:
        """Lower bound on the reward of the config in `slot`."""

    def upper(self, slot: int) -> float:
        """Upper bound on the reward of the config in `slot`."""

    def champion_lower(self, slot: int) -> float:
        """Lower bound on the reward of the champion, over the examples of `slot`."""

    def champion_upper(self, slot: int) -> float:
        """Upper bound on the reward of the champion, over the examples of `slot`."""


@dataclass(frozen=True, slots=True)
class Widen:
    """Let all live configs take in new namespaces.

    Attributes
    ----------
    names : tuple of bytes
        The new ones, in ascending order.
    """

    names: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Rotate:
    """Put a config into a live slot: estimators start anew, weights are a copy of the champion's.

    Attributes
    ----------
    slot : int
        The live slot, emptied or new.
    index : int
        Number of the config among those under consideration.
    config : Config
        The config itself.
    """

    slot: int
    index: int
    config: Config


@dataclass(frozen=True, slots=True)
class Extend:
    """Let the config in a live slot run on, with a longer lease.

    Attributes
    ----------
    slot : int
        The live slot.
    lease : int
        Its new lease, in learnt events.
    place_of : int or None
        The slot whose priority it took over.
    """

    slot: int
    lease: int
    place_of: int | None = None


@dataclass(frozen=True, slots=True)
class Swap:
    """Make the challenger in a live slot the champion, and the champion the challenger in slot 1.

    Attributes
    ----------
    slot : int
        Where the challenger was.
    config : Config
        The new champion's.
    """

    slot: int
    config: Config


@dataclass(frozen=True, slots=True)
class Remove:
    """Never try the config of this slot again, since it is worse than the champion.

    Attributes
    ----------
    slot : int
        Where the config was live.
    index : int
        Number of the config among those under consideration.
    """

    slot: int
    index: int


Decision = Widen | Rotate | Extend | Swap | Remove
"""What the engine is to do; no decision means to go on as before."""
