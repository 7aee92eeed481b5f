"""What passes between the loop and `decide`: signals one way, decisions the other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onlineauto.automl.config import Config, Interaction

__all__ = [
    "BoundCrossed",
    "Decision",
    "Extend",
    "LeaseDue",
    "NewNamespaces",
    "ProvedWorse",
    "Remove",
    "Reopen",
    "ReviewDue",
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
    by : {"reward", "loss"}
        What proved it.
    """

    slot: int
    by: str = "reward"


@dataclass(frozen=True, slots=True)
class ReviewDue:
    """An event is about to be learnt, and the oracle is to be asked again.

    Attributes
    ----------
    drift : bool
        Whether the champion predicts worse than it did.
    of_actions : frozenset of bytes
        Namespaces of the event that are on lines of actions, as far as it can tell.
    """

    drift: bool = False
    of_actions: frozenset[bytes] = frozenset()


@dataclass(frozen=True, slots=True)
class ProvedWorse:
    """An event was learnt, and a challenger proved to be worse than the champion, while others wait.

    Attributes
    ----------
    slot : int
        Live slot of the challenger; the last one, if several did.
    """

    slot: int


Signal = NewNamespaces | ReviewDue | LeaseDue | BoundCrossed | ProvedWorse
"""Why the loop stopped."""


class Statistics(Protocol):
    """What `decide` may ask about the live slots; a bound is computed when it is asked for."""

    def count(self, namespace: bytes) -> int:
        """Actions of events, so far, that have features in this namespace."""

    def size(self, namespace: bytes) -> float:
        """Features that an action has in this namespace, on average so far."""

    def n_actions(self) -> float:
        """Actions of an event, on average so far."""

    def learnt(self) -> int:
        """Events learnt so far."""

    def gains(self) -> Mapping[Interaction, float]:
        """What screened interactions seem to gain, see `onlineauto.automl.oracles.oracle.Space`."""

    def promise(self, slot: int) -> float:
        """Evidence that the config in `slot` is better than the champion; 1 is none."""

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

    In native mode a config that was live before, under the same champion, goes on from where it left off.

    Attributes
    ----------
    slot : int
        The live slot, emptied or new.
    index : int
        Number of the config among those under consideration.
    config : Config
        The config itself.
    why : str
        Why, in words, where that is not the oracle's order.
    """

    slot: int
    index: int
    config: Config
    why: str = field(default="", compare=False)


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
    """Make the challenger in a live slot the champion, and the champion a challenger.

    Attributes
    ----------
    slot : int
        Where the challenger was.
    config : Config
        The new champion's.
    by : {"reward", "loss"}
        What proved that it is better.
    keeps : bool
        Whether the old champion goes to `slot`, and the other challengers go on, against the new one;
        otherwise it goes to slot 1, and the places behind fall empty.
    """

    slot: int
    config: Config
    by: str = "reward"
    keeps: bool = False


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


@dataclass(frozen=True, slots=True)
class Reopen:
    """Begin all tests anew, since the champion predicts worse than it did.

    Attributes
    ----------
    what : {"reopen", "reset_challengers", "reset_model"}
        Keep what was learnt; let the challengers begin from the champion's weights again; or all from none.
    indices : tuple of int
        Numbers of the configs that are live, among those under consideration from here on.
    """

    what: str
    indices: tuple[int, ...]


Decision = Widen | Rotate | Extend | Swap | Remove | Reopen
"""What the engine is to do; no decision means to go on as before."""
