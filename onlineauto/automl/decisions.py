"""Signals, which the loop sends to `decide`, and decisions, which `decide` returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from onlineauto.automl.config import Config, Interaction

ENSEMBLE = -1
"""The ensemble, where a method of `Statistics` takes the index of a live config."""


@dataclass(frozen=True, slots=True)
class NewNamespaces:
    """An event has namespaces never seen before; it is not predicted yet.

    Attributes
    ----------
    names : tuple of bytes
        The new namespaces, in ascending order.
    of_actions : frozenset of bytes
        Namespaces of the event that are on lines of actions.
    """

    names: tuple[bytes, ...]
    of_actions: frozenset[bytes] = frozenset()


@dataclass(frozen=True, slots=True)
class LeaseDue:
    """An event is about to be learnt, and a lease is over or another config can be live."""


@dataclass(frozen=True, slots=True)
class BoundCrossed:
    """An event was learnt, and a challenger is proved better than the champion.

    Attributes
    ----------
    live : int
        Index of the live config; the last one, if several are proved better.
    by : {"reward", "loss"}
        The test that proved it.
    """

    live: int
    by: str = "reward"


@dataclass(frozen=True, slots=True)
class ReviewDue:
    """An event is about to be learnt, and the oracle is due to be asked again.

    Attributes
    ----------
    drift : bool
        True if the champion predicts worse than it did.
    of_actions : frozenset of bytes
        Namespaces of the event that are known to be on lines of actions.
    """

    drift: bool = False
    of_actions: frozenset[bytes] = frozenset()


@dataclass(frozen=True, slots=True)
class ProvedWorse:
    """An event was learnt, and a challenger is proved worse than the champion, while others wait.

    Attributes
    ----------
    live : int
        Index of the live config; the first one, if several are proved worse.
    """

    live: int


@dataclass(frozen=True, slots=True)
class EnsembleCrossed:
    """An event was learnt, and the ensemble is proved better than the champion; or worse, if it predicts.

    Attributes
    ----------
    better : bool
        True if it is better.
    by : {"reward", "loss"}
        The test that proved it.
    """

    better: bool
    by: str = "reward"


Signal = NewNamespaces | ReviewDue | LeaseDue | BoundCrossed | ProvedWorse | EnsembleCrossed
"""The reason why the loop stopped."""


@dataclass(frozen=True)
class MemberTerms:
    """Price and conditions by which a score of a member works or rests, besides what it is worth.

    Attributes
    ----------
    price : float
        What it costs, in multiples of one config.
    least_worth : float
        What it must be worth, so as not to rest.
    upon : str
        Another score, which it is computed from; "" if there is none.
    """

    price: float
    least_worth: float
    upon: str = ""


class Statistics(Protocol):
    """Figures about the live configs that `decide` may ask for; a bound is computed when it is asked for."""

    def count(self, namespace: bytes) -> int:
        """Return how many actions of events so far have features in this namespace."""

    def size(self, namespace: bytes) -> float:
        """Return how many features an action has in this namespace, on average so far."""

    def n_actions(self) -> float:
        """Return how many actions an event has, on average so far."""

    def learnt(self) -> int:
        """Return how many events are learnt so far."""

    def gains(self) -> Mapping[Interaction, float]:
        """Return the gain of each screened interaction, see `onlineauto.automl.oracles.oracle.Space`."""

    def promise(self, live: int) -> float:
        """Return the evidence that live config `live` is better than the champion; 1 is no evidence."""

    def updates(self, live: int) -> int:
        """Return how many events the estimators of live config `live` rest on."""

    def members(self) -> Mapping[str, MemberTerms]:
        """Return what decides on each score of an extra member that can be computed, by its name."""

    def member_worths(self, resting: Collection[str]) -> Mapping[str, float]:
        """Return the worth of each extra member of the ensemble, once those that are `resting` are left out.

        It is the squared error that the latest events would have without it, less the one that they have, in
        multiples of that of one event; about 1 for a member that is worth nothing.
        """

    def lower(self, live: int) -> float:
        """Return a lower bound on the reward of live config `live`."""

    def upper(self, live: int) -> float:
        """Return an upper bound on the reward of live config `live`."""

    def champion_lower(self, live: int) -> float:
        """Return a lower bound on the champion's reward, over the events of live config `live`."""

    def champion_upper(self, live: int) -> float:
        """Return an upper bound on the champion's reward, over the events of live config `live`."""


@dataclass(frozen=True, slots=True)
class Widen:
    """Add new namespaces to all live configs.

    Attributes
    ----------
    names : tuple of bytes
        The new namespaces, in ascending order.
    """

    names: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Rotate:
    """Make a config live: its estimators are fresh, its weights a copy of the champion's.

    In native mode a config that was live before, under the same champion, goes on from where it left off.

    Attributes
    ----------
    live : int
        Index among the live configs, that of the one it replaces or a new one.
    index : int
        Number of the config among those under consideration.
    config : Config
        The config itself.
    why : str
        The reason in words, if it is not the oracle's order.
    """

    live: int
    index: int
    config: Config
    why: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Extend:
    """Give a live config a longer lease.

    Attributes
    ----------
    live : int
        Index of the live config.
    lease : int
        Its new lease, in learnt events.
    place_of : int or None
        Index of the live config whose priority it took over.
    """

    live: int
    lease: int
    place_of: int | None = None


@dataclass(frozen=True, slots=True)
class Swap:
    """Make a challenger the champion, and the champion a challenger.

    Attributes
    ----------
    live : int
        Index of the challenger.
    config : Config
        Config of the new champion.
    by : {"reward", "loss"}
        The test that proved it better.
    keeps : bool
        True if the old champion gets index `live` and the other challengers go on, against the new champion.
        Otherwise the old champion gets index 1, and all others stop.
    """

    live: int
    config: Config
    by: str = "reward"
    keeps: bool = False


@dataclass(frozen=True, slots=True)
class Remove:
    """Do not try this config again, since it is worse than the champion.

    Attributes
    ----------
    live : int
        Index of the live config.
    index : int
        Number of the config among those under consideration.
    """

    live: int
    index: int


@dataclass(frozen=True, slots=True)
class Reopen:
    """Start all tests afresh, since the champion predicts worse than it did.

    Attributes
    ----------
    what : {"reopen", "reset_challengers", "reset_model"}
        Keep everything learnt; or copy the champion's weights to the challengers; or reset all weights.
    indices : tuple of int
        Numbers of the live configs among those under consideration from here on.
    """

    what: str
    indices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PredictWith:
    """Predict with the ensemble, or with its fallback, from the next event on.

    Attributes
    ----------
    who : {"ensemble", "champion"}
        What predicts. On single lines "champion" stands for the mix of all live configs.
    by : {"reward", "loss"}
        The test that proved it better.
    """

    who: Literal["ensemble", "champion"]
    by: str = "reward"


@dataclass(frozen=True, slots=True)
class RestMembers:
    """Let these members of the ensemble rest from the next event on, and all others work.

    Attributes
    ----------
    members : tuple of str
        Their names.
    """

    members: tuple[str, ...]


Decision = Widen | Rotate | Extend | Swap | Remove | Reopen | PredictWith | RestMembers
"""A change for the engine to apply; without a decision it goes on as before."""
