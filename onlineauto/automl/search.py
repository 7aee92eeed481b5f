"""``Search``: the state of the control plane, a plain value without weights."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING

from onlineauto.automl.config import Config, is_interaction
from onlineauto.automl.oracles import ORACLES
from onlineauto.options.registry import OneOf

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onlineauto.automl.control import Control
    from onlineauto.automl.options import AutomlOptions
    from onlineauto.options import Tunable

REVIEW = 2048
"""Maximum number of learnt events between two reviews."""

PATIENCE = 6144
"""Number of learnt events after which a worthless member rests, and length of its first pause."""


class ConfigState(Enum):
    """The state of a config."""

    NEW = "new"
    LIVE = "live"
    INACTIVE = "inactive"
    REMOVED = "removed"


_WAITING = ConfigState.NEW, ConfigState.INACTIVE


@dataclass(frozen=True, slots=True)
class Candidate:
    """A config under consideration."""

    config: Config
    lease: int  # Number of learnt events until the config is reviewed.
    state: ConfigState = ConfigState.NEW  # New, live, inactive or removed.


@dataclass(frozen=True, slots=True)
class LiveConfig:
    """A live config; the first one is the champion."""

    index: int  # Index of its candidate.
    # True if another config may replace it when its lease expires; false for the champion and for priority
    # challengers.
    gives_way: bool = False


@dataclass(frozen=True, slots=True)
class MemberStatus:
    """An extra member of the ensemble, which either works or rests."""

    name: str
    since: int  # Number of learnt events when it began to work, or to rest.
    works: bool = True  # True if it works.
    last: int = 0  # Number of learnt events when its worth last reached the minimum.
    pause: int = PATIENCE  # Number of learnt events of its next pause.
    # Its worth for its price when the budget last made it rest; -1 if that never happened.
    worth: float = -1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRules:
    """Everything that does not change during a run."""

    max_live: int  # Maximum number of live configs, including the champion.
    lease: int  # First lease of a config, in learnt events.
    oracle: str  # Names of the choices on the command line.
    interaction_type: str
    priority: str
    # Number of challengers that stay live after their lease: the first ones or, if the oracle renews its
    # proposals, those with the most evidence.
    n_priority: int
    control: Control  # The choices in which native mode and VW differ.
    # Compare challenger and champion event by event, not by a bound on the reward of each.
    paired: bool = False
    # Names of what is searched: ``interactions`` and hyperparameters.
    searched: frozenset[str] = frozenset({"interactions"})
    # The search space of each hyperparameter, in the order in which they are tried.
    tunable: Mapping[str, Tunable] = field(default_factory=dict)
    defaults: Mapping[str, float | str] = field(default_factory=dict)  # Hyperparameters on the command line.
    on_drift: str = "ignore"  # What to do when the champion's loss rises.
    keeps_configs: bool = False  # A change of champion drops no config but those that are proved worse.
    waiting_overtakes: bool = False  # A waiting config may become the champion at a review.
    # Namespaces by which VW distinguishes the slots of an event, the one of the slot's number last; no config
    # leaves them out.
    slot_namespaces: tuple[bytes, ...] = ()
    # Maximum total price of the extra members of the ensemble that work at the same time, as a multiple of
    # one config's; 0 without extra members.
    member_budget: float = 0.0

    @staticmethod
    def of(
        options: AutomlOptions,
        *,
        control: Control,
        tunable: Mapping[str, Tunable] | None = None,
        defaults: Mapping[str, float | str] | None = None,
        slot_namespaces: tuple[bytes, ...] = (),
        members: bool = False,
    ) -> SearchRules:
        """Return the rules; `members` is true if the ensemble has extra members."""
        max_live, oracle, lease = (
            options.automl or 1,
            options.oracle_type or control.oracle,
            options.default_lease,
        )
        n_priority = options.priority_challengers
        half = min(max_live // 2, max(max_live - 2, 0)) if ORACLES[oracle].renews else (max_live - 1) // 2
        return SearchRules(
            max_live=max_live,
            lease=control.lease if lease is None else lease,
            oracle=oracle,
            interaction_type=options.interaction_type,
            priority=options.priority_type,
            n_priority=n_priority if n_priority >= 0 else half,
            control=control,
            paired=options.is_paired(control.paired),
            searched=options.searched(),
            tunable=tunable or {},
            defaults=defaults or {},
            on_drift=options.on_drift if control.follows_drift else "ignore",
            keeps_configs=options.keep_configs,
            waiting_overtakes=options.waiting_overtakes,
            slot_namespaces=slot_namespaces,
            member_budget=options.member_budget if members else 0.0,
        )

    @property
    def first_review(self) -> int:
        """Number of learnt events until the oracle is called for the second time, when the search begins."""
        return self.lease // 8

    @property
    def renews(self) -> bool:
        """True if the oracle is called again as evidence grows."""
        return ORACLES[self.oracle].renews


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The state of the search."""

    # Configs under consideration. Those from `n_valid` on remain from earlier champions and will be
    # overwritten; only VW has these.
    candidates: tuple[Candidate, ...]
    n_valid: int = 1  # Number of configs under consideration.
    # Priorities and indices of the waiting candidates in VW's order, descending; the first one is next. Only
    # VW has a queue.
    queue: tuple[tuple[float, int], ...] = ()
    # The live configs, the champion first. Model files use this name.
    slots: tuple[LiveConfig, ...] = (LiveConfig(0),)
    namespaces: tuple[bytes, ...] = ()  # Namespaces seen so far, in ascending order.
    of_actions: frozenset[bytes] = frozenset()  # The namespaces that were seen on lines of actions.
    vectors: frozenset[bytes] = frozenset()  # The namespaces that were seen as long vectors.
    # The namespaces first seen after the search had begun, and since the last review.
    late: frozenset[bytes] = frozenset()
    n_switches: int = 0  # Number of changes of champion.
    since: int = 0  # Number of events learnt when the champion became champion.
    review: int = 2**62  # Number of learnt events at which the oracle is called again.
    turn: int = 0  # Number of reviews.
    random_state: int = 0  # State (uint64) of the random oracles.
    # Extra members of the ensemble that can work; none before the first review.
    members: tuple[MemberStatus, ...] = ()

    @property
    def champion(self) -> Config:
        """The config of the champion."""
        return self.candidates[self.slots[0].index].config

    def config(self, live: int) -> Config:
        """Return the config of live config `live`."""
        return self.candidates[self.slots[live].index].config

    def lease(self, live: int) -> int:
        """Return the lease of live config `live`, in learnt events."""
        return self.candidates[self.slots[live].index].lease

    def candidate(self, live: int) -> Candidate:
        """Return the candidate of live config `live`."""
        return self.candidates[self.slots[live].index]

    def with_candidate(self, index: int, candidate: Candidate) -> Search:
        """Return this search with another candidate at `index`."""
        return replace(self, candidates=(*self.candidates[:index], candidate, *self.candidates[index + 1 :]))

    def with_live(self, live: int, config: LiveConfig) -> Search:
        """Return this search with another live config at index `live`, which may be the next free one."""
        return replace(self, slots=(*self.slots[:live], config, *self.slots[live + 1 :]))

    def waits(self, index: int) -> bool:
        """Return whether a candidate could become live."""
        return self.candidates[index].state in _WAITING


_LARGEST = 2**64
_LARGEST_SETTING = 1e30


def search_problem(rules: SearchRules, search: Search) -> str:
    """Return what makes a state of the search impossible under these rules; "" if it is possible."""
    numbers = (search.n_valid, search.n_switches, search.since, search.review, search.turn)
    n_candidates, live = len(search.candidates), [slot.index for slot in search.slots]
    leases = [candidate.lease for candidate in search.candidates]
    if not all(0 <= number < _LARGEST for number in (*numbers, search.random_state, *leases)):
        return "one of its numbers is negative or too large"
    if not 0 < search.n_valid <= n_candidates or (
        rules.control.forgets_left_over and search.n_valid != n_candidates
    ):
        return f"{search.n_valid} of {n_candidates} candidates are under consideration"
    if not 0 < len(live) <= rules.max_live:
        return f"{len(live)} configs are live, and {rules.max_live} are allowed"
    if not all(0 <= number < n_candidates for number in (*live, *(number for _, number in search.queue))):
        return f"it names a candidate outside the {n_candidates} that it has"
    if rules.control.begins_at_once and any(
        search.candidates[number].state is ConfigState.NEW for number in live
    ):
        return "a config that is live was never tried"
    ascending = all(one < other for one, other in pairwise((b"", *search.namespaces)))
    if not (ascending and all(search.of_actions) and all(search.late)):
        return "its namespaces are not names in ascending order"
    problems = (config_problem(rules, candidate.config) for candidate in search.candidates)
    return next(filter(None, problems), "")


def config_problem(rules: SearchRules, config: Config) -> str:
    """Return why a config is invalid under these rules, or ""; ``--cb_type dr`` needs lanes of a search."""
    for interaction in config.elements:
        if not is_interaction(interaction) or (len(interaction) == 1 and "namespaces" not in rules.searched):
            return f"{interaction!r} is no interaction"
    for name, value in config.settings:
        tunable = rules.tunable.get(name)
        if name not in rules.searched or tunable is None:
            return f"{name} is not searched"
        if isinstance(tunable, OneOf):
            possible = value in tunable.values
        else:
            possible = not isinstance(value, str) and 0.0 <= value <= _LARGEST_SETTING
        if not possible:
            return f"{name} cannot be {value!r}"
    return ""
