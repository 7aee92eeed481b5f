"""Random signals with random statistics."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement

from hypothesis import strategies as st

from onlineauto.automl.config import Config, Interaction
from onlineauto.automl.control import NATIVE
from onlineauto.automl.decide import decide, interactions_for, start
from onlineauto.automl.decisions import (
    BoundCrossed,
    Decision,
    LeaseDue,
    MemberTerms,
    NewNamespaces,
    ReviewDue,
    Signal,
)
from onlineauto.automl.oracles import ORACLES
from onlineauto.automl.priorities import PRIORITIES
from onlineauto.automl.search import Search, SearchRules
from onlineauto.exact.control import VW
from onlineauto.learners.options import UpdateOptions
from onlineauto.options import options_of

BOUNDS = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])
MOST_SLOTS = 5
INTERACTIONS, RATE = "interactions", "learning_rate"


@dataclass(frozen=True)
class Move:
    """A signal and what is known when it comes; slots and names that do not fit it are put right."""

    kind: str
    names: tuple[bytes, ...] = ()
    slot: int = 1
    counts: tuple[int, ...] = (1, 1, 1)
    updates: tuple[int, ...] = (0,) * MOST_SLOTS
    lower: tuple[float, ...] = (0.0,) * MOST_SLOTS
    upper: tuple[float, ...] = (1.0,) * MOST_SLOTS
    champion_lower: tuple[float, ...] = (0.0,) * MOST_SLOTS
    promise: tuple[float, ...] = (1.0,) * MOST_SLOTS
    gains: tuple[float, ...] = ()
    learnt: int = 0
    drift: bool = False

    def signal(self, search: Search) -> Signal | None:
        if self.kind == "meet":
            new = tuple(sorted(set(self.names) - set(search.namespaces)))
            return NewNamespaces(new) if new else None
        if self.kind == "due":
            return LeaseDue()
        if self.kind == "review":
            return ReviewDue(self.drift)
        if len(search.slots) < 2:
            return None
        slot = 1 + self.slot % (len(search.slots) - 1)
        return BoundCrossed(slot) if search.slots[slot].index else None


@dataclass
class Table:
    """Statistics in a table; nothing is known of slots that are not live."""

    move: Move = field(default_factory=lambda: Move("due"))
    counts: dict[bytes, int] = field(default_factory=dict)
    live: int = MOST_SLOTS
    waiting: dict[Config, float] = field(default_factory=dict)

    def count(self, namespace: bytes) -> int:
        return self.counts[namespace]

    def sizes(self, namespaces: Iterable[bytes]) -> dict[bytes, float]:
        return {namespace: float(len(namespace)) for namespace in namespaces}

    def n_actions(self) -> float:
        return 3.0

    def learnt(self) -> int:
        return self.move.learnt

    def gains(self) -> dict[Interaction, float]:
        pairs = combinations_with_replacement(sorted(self.counts), 2)
        return dict(zip(pairs, self.move.gains, strict=False))

    def members(self) -> dict[str, MemberTerms]:
        return {}

    def member_worths(self, resting: Collection[str]) -> dict[str, float]:
        return dict.fromkeys(resting, 0.0)

    def promise(self, slot: int) -> float:
        return self._of(self.move.promise, slot)

    def _of(self, column: Sequence[float], slot: int) -> float:
        assert 0 <= slot < self.live
        return column[slot]

    def updates(self, slot: int) -> int:
        return int(self._of(self.move.updates, slot))

    def lower(self, slot: int) -> float:
        return self._of(self.move.lower, slot)

    def upper(self, slot: int) -> float:
        return self._of(self.move.upper, slot)

    def waiting_lower(self, config: Config) -> float:
        return self.waiting.get(config, 0.0)

    def champion_lower(self, slot: int) -> float:
        return self._of(self.move.champion_lower, slot)

    def champion_upper(self, slot: int) -> float:
        raise AssertionError(f"no decision needs the champion's upper bound over slot {slot}")


def interactions(rules: SearchRules, search: Search, live: int) -> tuple[Interaction, ...]:
    """Return the interactions of live config `live`, in the order in which they are summed."""
    return interactions_for(rules, search.config(live), search.namespaces)


def make_rules(
    oracle: str = "one_diff",
    *,
    exact: bool,
    max_live: int = 3,
    lease: int = 10,
    interaction_type: str = "quadratic",
    priority: str = "none",
    n_priority: int | None = None,
) -> SearchRules:
    return SearchRules(
        max_live=max_live,
        lease=lease,
        oracle=oracle,
        interaction_type=interaction_type,
        priority=priority,
        n_priority=(max_live - 1) // 2 if n_priority is None else n_priority,
        control=VW if exact else NATIVE,
    )


def rules(*, exact: bool) -> st.SearchStrategy[SearchRules]:
    types = ["quadratic", "cubic"] if exact else ["quadratic", "cubic", "both"]
    oracles = [name for name, oracle in ORACLES.items() if oracle.in_vw or not exact]
    return st.builds(
        SearchRules,
        max_live=st.integers(1, MOST_SLOTS),
        lease=st.sampled_from([1, 3, 10] if not exact else [0, 1, 3, 10, 2**62]),
        oracle=st.sampled_from(oracles),
        interaction_type=st.sampled_from(types),
        priority=st.sampled_from(sorted(PRIORITIES)),
        n_priority=st.integers(0, 3),
        control=st.just(VW if exact else NATIVE),
        searched=st.sampled_from(
            [frozenset(names) for names in ({INTERACTIONS}, {INTERACTIONS, RATE}, {RATE})]
        ),
        tunable=st.just({"learning_rate": options_of(UpdateOptions)[0].tunable}),
        defaults=st.just({"learning_rate": 0.5}),
        on_drift=st.just("ignore") if exact else st.sampled_from(["ignore", "reopen", "reset_challengers"]),
    )


def moves(
    *, names: Sequence[bytes], max_size: int = 25, exact: bool = False
) -> st.SearchStrategy[list[Move]]:
    def column(values: st.SearchStrategy[float]) -> st.SearchStrategy[tuple[float, ...]]:
        return st.tuples(*[values] * MOST_SLOTS)

    count = st.one_of(st.integers(1, 9), st.integers(2**24 - 2, 2**24 + 9))
    update = st.one_of(st.sampled_from([0, 10, 10**6, 2**63]), st.integers(0, 50))
    move = st.builds(
        Move,
        kind=st.sampled_from(["meet", "due", "due", "due", "cross", *([] if exact else ["review"])]),
        names=st.lists(st.sampled_from(names), min_size=1, max_size=3).map(tuple),
        slot=st.integers(0, 9),
        counts=st.tuples(count, count, count),
        updates=column(update),
        lower=column(BOUNDS),
        upper=column(BOUNDS),
        champion_lower=column(BOUNDS),
        promise=column(st.sampled_from([1.0, 0.5, 2.0, 9.0])),
        gains=st.lists(st.sampled_from([-1.0, 0.0, 1.0, 2.0, 3.0]), max_size=10).map(tuple),
        learnt=st.integers(0, 40),
        drift=st.booleans(),
    )
    return st.lists(move, min_size=1, max_size=max_size)


@dataclass(frozen=True)
class Step:
    """One answered signal."""

    before: Search
    signal: Signal
    table: Table
    after: Search
    decisions: tuple[Decision, ...]


def play(rules: SearchRules, moves: Sequence[Move], *, seed: int = 5) -> Iterator[Step]:
    """Answer one signal after the other."""
    search = start(rules, random_seed=seed)
    counts: dict[bytes, int] = {}
    for move in moves:
        signal = move.signal(search)
        if signal is None:
            continue
        met = signal.names if isinstance(signal, NewNamespaces) else ()
        for place, name in enumerate(sorted({*counts, *met})):
            counts[name] = counts.get(name, 0) + move.counts[place % len(move.counts)]
        table = Table(move, dict(counts), len(search.slots))
        after, decisions = decide(rules, search, signal, table)
        yield Step(search, signal, table, after, decisions)
        search = after
