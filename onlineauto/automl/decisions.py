"""Signals, which the loop sends to `decide`, and decisions, which `decide` returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from onlineauto.automl.config import Config, Interaction

ENSEMBLE = -1
"""The ensemble, in methods of `Statistics` that take the index of a live config."""


@dataclass(frozen=True, slots=True)
class NewNamespaces:
    """An event has namespaces never seen before; it is not predicted yet."""

    names: tuple[bytes, ...]  # The new namespaces, in ascending order.
    of_actions: frozenset[bytes] = frozenset()  # Namespaces of the event that are on lines of actions.
    vectors: frozenset[bytes] = frozenset()  # Namespaces of the event that are long vectors.


@dataclass(frozen=True, slots=True)
class LeaseDue:
    """An event is about to be learnt, and a lease has expired or another config can become live."""


@dataclass(frozen=True, slots=True)
class BoundCrossed:
    """An event was learnt, and a challenger is proved better than the champion."""

    live: int  # Index of the live config; the last one if several are proved better.
    by: str = "reward"  # The test that proved it.


@dataclass(frozen=True, slots=True)
class ReviewDue:
    """An event is about to be learnt, and the next call of the oracle is due."""

    drift: bool = False  # True if the champion predicts worse than before.
    # Namespaces of the event that are known to be on lines of actions.
    of_actions: frozenset[bytes] = frozenset()
    vectors: frozenset[bytes] = frozenset()  # Namespaces of the event that are long vectors.


@dataclass(frozen=True, slots=True)
class ProvedWorse:
    """After an event a challenger is proved worse than the champion, and queued configs can replace it."""

    live: int  # Index of the live config; the first one if several are proved worse.


@dataclass(frozen=True, slots=True)
class EnsembleCrossed:
    """An event was learnt, and the ensemble is proved better than the champion or, if it predicts, worse."""

    better: bool  # True if it is better.
    by: str = "reward"  # The test that proved it.


Signal = NewNamespaces | ReviewDue | LeaseDue | BoundCrossed | ProvedWorse | EnsembleCrossed
"""The reason why the loop stopped."""


class MemberTerms(NamedTuple):
    """The price and conditions of a score of a member, which decide whether it works or rests."""

    price: float  # The score's processor time, as calibrated, in multiples of one config's.
    least_worth: float  # Minimum worth of a score that does not rest.
    upon: str = ""  # Another score from which this one is computed; "" if there is none.


class Statistics(Protocol):
    """Figures about the live configs for `decide`; bounds are computed on demand."""

    def count(self, namespace: bytes) -> int:
        """Return the number of actions so far that have features in this namespace."""

    def sizes(self, namespaces: Iterable[bytes]) -> dict[bytes, float]:
        """Return the mean number of features of an action in each namespace, so far."""

    def n_actions(self) -> float:
        """Return the mean number of actions of an event, so far."""

    def learnt(self) -> int:
        """Return the number of events learnt so far."""

    def gains(self) -> Mapping[Interaction, float]:
        """Return the gain of each screened interaction; see `onlineauto.automl.oracles.oracle`."""

    def promise(self, live: int) -> float:
        """Return the evidence that live config `live` is better than the champion; 1 means no evidence."""

    def updates(self, live: int) -> int:
        """Return the number of events that the estimators of live config `live` have observed."""

    def members(self) -> Mapping[str, MemberTerms]:
        """Return, by name, the terms of each score of an extra member that can be computed."""

    def member_worths(self, resting: Collection[str]) -> Mapping[str, float]:
        """Return the F-statistic of the weight of each member that is not `resting`, about 1 if useless."""

    def lower(self, live: int) -> float:
        """Return a lower bound on the reward of live config `live`."""

    def upper(self, live: int) -> float:
        """Return an upper bound on the reward of live config `live`."""

    def waiting_lower(self, config: Config) -> float:
        """Return a lower bound on the reward of a waiting config, over the events while it was live."""

    def champion_lower(self, live: int) -> float:
        """Return a lower bound on the champion's reward, over the events of live config `live`."""

    def champion_upper(self, live: int) -> float:
        """Return an upper bound on the champion's reward, over the events of live config `live`."""


@dataclass(frozen=True, slots=True)
class Widen:
    """Add new namespaces to all live configs."""

    names: tuple[bytes, ...]  # The new namespaces, in ascending order.


@dataclass(frozen=True, slots=True)
class Rotate:
    """Make a config live, with new estimators and its own former weights, or a copy of the champion's."""

    live: int  # Index among the live configs: of the config to replace, or the next free index.
    index: int  # Index of the config among the candidates.
    config: Config  # The config itself.
    why: str = field(default="", compare=False)  # The reason in words, unless it is the oracle's order.


@dataclass(frozen=True, slots=True)
class Extend:
    """Give a live config a longer lease."""

    live: int  # Index of the live config.
    lease: int  # The new lease, in learnt events.
    place_of: int | None = None  # Index of the live config whose priority the config took over.


@dataclass(frozen=True, slots=True)
class Swap:
    """Exchange the roles of a challenger and the champion."""

    live: int  # Index of the challenger.
    config: Config  # Config of the new champion.
    by: str = "reward"  # The test that proved it better.
    # True if the old champion gets index `live` and the other challengers continue against the new champion.
    # Otherwise the old champion gets index 1, and all others stop.
    keeps: bool = False


@dataclass(frozen=True, slots=True)
class Remove:
    """Do not try a config again, because it is worse than the champion."""

    live: int  # Index of the live config.
    index: int  # Index of the config among the candidates.


@dataclass(frozen=True, slots=True)
class Reopen:
    """Restart all tests, because the champion predicts worse than before."""

    what: str  # Keep all weights; or copy the champion's weights to the challengers; or reset all weights.
    indices: tuple[int, ...]  # New indices of the live configs among the candidates.


@dataclass(frozen=True, slots=True)
class PredictWith:
    """Predict with the ensemble, or with its fallback, from the next event on."""

    # The predictor. On single lines "champion" means the mix of all live configs.
    who: Literal["ensemble", "champion"]
    by: str = "reward"  # The test that proved the predictor better.


@dataclass(frozen=True, slots=True)
class RestMembers:
    """Some members of the ensemble rest from the next event on; all others work."""

    members: tuple[str, ...]  # Names of the members that rest.


Decision = Widen | Rotate | Extend | Swap | Remove | Reopen | PredictWith | RestMembers
"""A change for the engine to apply. Without a decision the engine continues unchanged."""
