"""The decisions of a search: configs under consideration, live configs, and the changes of both.

No weight is visible here. The state of the search is passed in, its lists are changed, and the changes of the
models are returned.

- New namespaces: the first ones determine the first champion. Later ones make a challenger that is tried at
  once, in place of the least promising one.
- A lease ends, or an index is free: the lease of the config is doubled, or the waiting config with the
  shortest lease replaces it.
- A challenger is better: it and the champion swap. All other challengers remain and are tested again, against
  the new champion; waiting configs are dropped.
  With `keep_configs`, waiting configs remain too, each with a first lease.
- A waiting config, with `waiting_overtakes`: at a review without drift, it becomes the champion if what it
  earned while it was live is more, by the bounds, than what the champion earned. The least promising
  challenger waits instead.
- A challenger is worse: it is not tried again under this champion.
- A review: proposals that were never live are dropped, and the oracle is asked again. If the champion
  predicts worse than before, all configs may be tried again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from tests.naive.native_search import oracle
from tests.naive.native_search.configs import Config, Space

if TYPE_CHECKING:
    from tests.naive.native_search.configs import Interaction
    from tests.naive.native_search.events import Event
    from tests.naive.native_search.options import Options

MOST_BETWEEN_REVIEWS = 2048


@dataclass(eq=False)
class Candidate:
    """A config under consideration, and the number of events of its lease."""

    config: Config
    lease: int
    state: Literal["new", "live", "waiting", "removed"] = "new"


@dataclass(frozen=True)
class Widen:
    """Add new namespaces to all live configs."""

    names: tuple[bytes, ...]


@dataclass(frozen=True)
class Rotate:
    """Make a config live at an index, which another had or which is new."""

    place: int
    number: int
    config: Config
    why: str = ""


@dataclass(frozen=True)
class Extend:
    """Extend the lease of the config at an index."""

    place: int
    lease: int


@dataclass(frozen=True)
class Swap:
    """Swap the champion and the challenger at an index."""

    place: int
    config: Config
    by: str


@dataclass(frozen=True)
class Remove:
    """Reject the config at an index for this champion."""

    place: int
    number: int


@dataclass(frozen=True)
class Reopen:
    """Restart all tests, and perhaps learning."""

    what: str
    numbers: tuple[int, ...]


Decision = Widen | Rotate | Extend | Swap | Remove | Reopen


@dataclass(frozen=True)
class Known:
    """The state at the moment of a decision."""

    learnt: int
    updates: Sequence[int]
    """Number of events of the test of each live config."""
    promises: Sequence[float]
    """Evidence that each live config is better than the champion; 1 is none."""
    gains: Mapping[Interaction, float]
    sizes: Mapping[bytes, float]
    n_actions: float
    champion_upper: float = 1.0
    """Upper bound of the champion's mean reward since it became the champion."""
    waiting_lower: Mapping[Config, float] = field(default_factory=dict)
    """Lower bound of the mean reward of each waiting config that is remembered, while it was live."""


class Search:
    """Configs under consideration, and live configs, the champion first."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.first_lease = options.default_lease
        champion = Candidate(Config(), self.first_lease, "live")
        self.candidates = [champion]
        self.live = [champion]
        self.names: set[bytes] = set()
        self.of_actions: frozenset[bytes] = frozenset()
        self.vectors: frozenset[bytes] = frozenset()
        self.late: frozenset[bytes] = frozenset()
        self.n_switches = 0
        self.since = 0
        """Events learnt when the champion became one, or everything was tried anew."""
        self.next_review = 2**62
        self.n_reviews = 0

    @property
    def champion(self) -> Config:
        return self.live[0].config

    @property
    def waiting(self) -> list[Candidate]:
        """Return the configs that could become live."""
        return [each for each in self.candidates if each.state in ("new", "waiting")]

    @property
    def has_empty_place(self) -> bool:
        return len(self.live) < self.options.automl

    def space(self, known: Known, *, late: frozenset[bytes] = frozenset()) -> Space:
        """Return the space of configs; with late namespaces, the space of proposals for these."""
        return Space(
            names=tuple(sorted(self.names)),
            of_actions=self.of_actions,
            vectors=self.vectors,
            late=late,
            gains=known.gains,
            sizes=known.sizes,
            n_actions=known.n_actions,
            mature=known.learnt - self.since >= self.first_lease,
            searched=self.options.searched,
            learning_rate=float(np.float32(self.options.learning_rate)),
            grows=self.options.automl > 1 and "interactions" in self.options.searched,
        )

    # -- what happens ----------------------------------------------------------------------------------

    def meet(self, names: Sequence[bytes], event: Event, known: Known) -> list[Decision]:
        """Namespaces were met that are new."""
        begins = not self.names or (self.n_switches == 0 and known.learnt < self.first_lease // 8)
        self.names |= set(names)
        self.of_actions |= event.of_actions
        self.vectors |= event.vectors
        self.late = frozenset() if begins else self.late | set(names)
        if not begins:
            return [Widen(tuple(names)), *self._try_late(known)]
        config = oracle.first(self.space(known))
        self.live[0].config = config
        self._propose(known)
        self._set_review(known)
        told = _text(self.of_actions) or "none"
        return [
            Widen(tuple(names)),
            Rotate(0, 0, config, f"where the search begins; namespaces of actions: {told}"),
        ]

    def lease_due(self, known: Known) -> list[Decision]:
        """Return the decisions when leases have ended, or indices are free."""
        decisions: list[Decision] = []
        for place in range(self.options.automl):
            if place == len(self.live):
                decisions += self._fill(place)
            elif place < len(self.live) and known.updates[place] >= self.live[place].lease:
                decisions += self._extend_or_replace(place, known)
        return decisions

    def proved_better(self, place: int, by: str, known: Known) -> list[Decision]:
        """Return the decisions when a challenger is better than the champion."""
        kept = self.waiting if self.options.keep_configs else []
        self.live[0], self.live[place] = self.live[place], self.live[0]
        self.candidates = list(self.live) + kept
        for each in self.candidates:
            each.lease = self.first_lease
        self.n_switches += 1
        self.since = known.learnt
        self._propose(known)
        self._set_review(known)
        return [Swap(place, self.champion, by)]

    def proved_worse(self, place: int) -> list[Decision]:
        """Return the decisions when a challenger is worse than the champion, and configs are waiting."""
        self.live[place].state = "removed"
        removal = Remove(place, self._number(self.live[place]))
        return [removal, *self._fill(place)]

    def review_due(self, drifted: bool, event: Event, known: Known) -> list[Decision]:
        """It is time to ask the oracle again."""
        self.of_actions |= event.of_actions
        self.vectors |= event.vectors
        self.late = frozenset()
        if drifted:
            self.since = known.learnt
            for each in self.candidates:
                each.lease = self.first_lease
                each.state = "waiting" if each.state == "removed" else each.state
        elif overtaking := self._overtaking(known):
            return overtaking
        self.candidates = [each for each in self.candidates if each.state != "new"]
        self._propose(known)
        self._set_review(known)
        if not drifted:
            return []
        return [Reopen(self.options.on_drift, tuple(map(self._number, self.live)))]

    def _overtaking(self, known: Known) -> list[Decision]:
        """A waiting config may be better than the champion, by what both have earned."""
        best, most = None, known.champion_upper
        for each in self.candidates:
            if each.state == "waiting" and known.waiting_lower.get(each.config, -1e300) > most:
                best, most = each, known.waiting_lower[each.config]
        if not self.options.waiting_overtakes or best is None or len(self.live) < 2:
            return []
        place = min(range(1, len(self.live)), key=lambda each: (known.promises[each], known.updates[each]))
        rotation = self._seat(place, best, "overtakes the champion while it waits")
        return [*rotation, *self.proved_better(place, "reward", known)]

    # -- how it is done --------------------------------------------------------------------------------

    def _number(self, candidate: Candidate) -> int:
        return self.candidates.index(candidate)

    def _propose(self, known: Known) -> None:
        """Put what the oracle proposes under consideration: the best last, as of equals the last is next."""
        held = {each.config for each in self.candidates}
        added = [each for each in oracle.propose(self.champion, self.space(known)) if each not in held]
        self.candidates += [Candidate(config, self.first_lease) for config in reversed(added)]

    def _set_review(self, known: Known) -> None:
        """Review often at first, then every quarter of a first lease, then rarely while nothing changes."""
        unchanged = known.learnt - self.since
        wait = max(self.first_lease // 8, min(unchanged, self.first_lease // 4), unchanged // 16, 1)
        self.next_review = known.learnt + min(wait, MOST_BETWEEN_REVIEWS)
        self.n_reviews += 1

    def _try_late(self, known: Known) -> list[Decision]:
        """Try at once what crosses the late namespaces."""
        proposals = oracle.propose(self.champion, self.space(known, late=self.late))
        late = [Candidate(config, self.first_lease) for config in reversed(proposals)]
        self.candidates += late
        if not late or self.options.automl == 1:
            return []
        place = len(self.live)
        if not self.has_empty_place:
            place = min(range(1, place), key=lambda each: (known.promises[each], known.updates[each]))
        return self._seat(place, late[0], f"namespaces seen late: {_text(self.late)}")

    def _extend_or_replace(self, place: int, known: Known) -> list[Decision]:
        """Double a lease; unless the config is the champion or promising, what had less goes first."""
        candidate = self.live[place]
        candidate.lease *= 2
        promising = sorted(range(1, len(self.live)), key=lambda each: -known.promises[each])
        stays = place == 0 or place in promising[: self.options.n_that_stay]
        if not stays and any(each.lease <= candidate.lease for each in self.waiting):
            return self._fill(place)
        return [Extend(place, candidate.lease)]

    def _fill(self, place: int) -> list[Decision]:
        """Put in what waits with the shortest lease; of equals, what was proposed last."""
        waiting = self.waiting
        if not waiting:
            return []
        coming = min(waiting, key=lambda each: (each.lease, -self._number(each)))
        return self._seat(place, coming)

    def _seat(self, place: int, coming: Candidate, why: str = "") -> list[Decision]:
        if place < len(self.live) and self.live[place].state == "live":
            self.live[place].state = "waiting"
        self.live[place:] = [coming, *self.live[place + 1 :]]
        coming.state = "live"
        return [Rotate(place, self._number(coming), coming.config, why)]


def _text(names: frozenset[bytes]) -> str:
    return b", ".join(sorted(names)).decode("utf-8", "backslashreplace")
