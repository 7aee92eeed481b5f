"""``Join``: which decision is learnt with which reward, as a function of the log alone.

A decision waits from its record on, and keeps the settings that were in force then: its wait, its
aggregation, its default reward and its range of rewards. The time of the join is the time of the records,
with two exceptions: it never runs back, and it stops where the clock jumps. So a log has one join, however
often and in whatever pieces it is read.

============ =====================================================================================
a decision   becomes
============ =====================================================================================
open         joined at the end of its wait, if it has a reward
open         defaulted at the end of its wait without a reward: it is learnt with the default reward
deferred     open once it is activated; inactive at the end of its wait without that, and is not learnt
============ =====================================================================================

So the time at which a decision is learnt does not depend on its outcome: decisions are learnt in the order
of the ends of their waits. A reward is never final before that, because "no reward" is not known earlier.
With ``learn_at="reward"`` and the aggregation ``first``, an open decision is joined at its first reward.
Where some decisions get no reward, these are then learnt later than the others.

A reward that arrives before its decision waits for the decision equally long. A decision that has ended
before its wait is remembered until its wait is over; at most `max_finished` decisions are remembered. A
reward of a remembered decision, or a second one with the aggregation ``first``, is late: it is counted, and
not learnt. A later reward waits for a decision that never arrives, and is counted as dangling. A repeated
reward, recognised by its key, is counted and changes nothing.
"""

from __future__ import annotations

from hashlib import blake2b
from math import copysign, frexp, inf, ldexp
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import astuple

from onlineauto.errors import InputError, OptionError
from onlineauto.formats.decisions.waiting import Timed, WaitingDecisions
from onlineauto.service.join.pacing import Pacing
from onlineauto.service.join.settings import (
    MOST_WAIT,
    JoinRules,
    JoinSettings,
    RuleBook,
    add_reward,
    check_settings,
    final_reward,
    read_settings,
)
from onlineauto.service.log.segment_log import read_record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from onlineauto.formats.decisions.dsjson import LogRecord
    from onlineauto.service.log.segment_log import SegmentLog

__all__ = ["MOST_SOURCES", "Counts", "EndedDecision", "Join", "JoinDecision", "JoinSettings"]

MOST_SOURCES: Final = 256
"""Maximum number of rank servers with known positions; the longest silent one is replaced by a new one."""
_DAY: Final = 86400.0
_JITTER: Final = 60.0
"""Seconds by which a record may precede the one before it without counting as a clock that was set back."""

_AT_FIRST: Final = 100.0
"""The bound before any magnitude is supported."""
_ALWAYS: Final = 1.0
"""Rewards up to this are never limited."""
_SUPPORT: Final = 3
_EARLY: Final = 32
_ROOM_EARLY: Final = 3
_ROOM: Final = 1

BYTES_PER_DECISION: Final = 350
"""Memory in bytes of a decision in a table, with an id of 32 characters; 212 to 335 bytes were measured."""
_PLAIN: Final = Struct("<qIddH?")
_REWARDED: Final = Struct("<qIddH?Id")
_TIMES: Final = Struct("<12xdd")
_KEY: Final = Struct("<8sd")


class JoinDecision(msgspec.Struct, gc=False):
    """A decision of the table: the position of its record, and its rewards so far."""

    position: int  # The position and length of its record in the log.
    size: int
    made: float  # The time of the decision on the clock of the join, and the seconds for which it waits.
    wait: float
    rules: int  # The number of the rules that were in force at the time.
    active: bool  # False for a deferred decision that is not activated yet.
    rewards: int = 0  # The number of rewards so far, and their running value.
    value: float = 0.0
    # A hash of the key of each reward and value of a metric, and the number, 16 bytes each.
    keys: bytes = b""

    @property
    def deadline(self) -> float:
        """The time at which its wait is over."""
        return self.made + self.wait

    def remember(self, key_hash: bytes, reward: float) -> JoinDecision:
        """Remember the reward of a key, given the hash of that key, and return the decision."""
        self.keys += _KEY.pack(key_hash, reward)
        return self


def pack_decision(decision: JoinDecision) -> bytes:
    """Return a decision as bytes; millions wait, and a Python object would take several times the memory."""
    if not decision.rewards and not decision.keys:
        return _PLAIN.pack(
            decision.position, decision.size, decision.made, decision.wait, decision.rules, decision.active
        )
    return _REWARDED.pack(*astuple(decision)[:8]) + decision.keys


def read_decision(packed: bytes) -> JoinDecision:
    """Return the decision that bytes encode."""
    if len(packed) == _PLAIN.size:
        return JoinDecision(*_PLAIN.unpack(packed))
    return JoinDecision(*(*_REWARDED.unpack_from(packed), packed[_REWARDED.size :]))


def deadline_of(packed: bytes) -> float:
    """Return the time at which the wait of a packed decision is over."""
    made, wait = _TIMES.unpack_from(packed)
    return float(made + wait)


def hash_of(key: str, metric: str = "") -> bytes:
    """Return the hash of the key of a reward, or of a value of a metric; the first bit tells which."""
    digest = blake2b((f"{metric}\n{key}" if metric else key).encode(), digest_size=8).digest()
    return bytes([digest[0] & 127 | 128 * bool(metric)]) + digest[1:]


_COST: Final = hash_of("", "cost")
"""The hash under which a decision remembers its reported cost."""


class DecisionTable(msgspec.Struct):
    """Decisions in order: their ids, their concatenated packed bytes, and the sizes of these."""

    ids: list[str]
    sizes: bytes
    entries: bytes
    until: float = 0.0


def n_keys(decision: JoinDecision, *, metrics: bool = False) -> int:
    """Return the number of keys of rewards that a decision remembers, or of metrics."""
    return sum((known[0] > 127) == metrics for known, _ in _KEY.iter_unpack(decision.keys))


def reward_of(keys: bytes, key_hash: bytes) -> float | None:
    """Return the reward stored under the hash `key_hash` of a key; None if there is none."""
    return next((reward for known, reward in _KEY.iter_unpack(keys) if known == key_hash), None)


def table_of(ids: list[str], entries: list[bytes], until: float = 0.0) -> DecisionTable:
    """Return a table of packed decisions."""
    sizes = np.fromiter(map(len, entries), "<u4", len(entries)).tobytes()
    return DecisionTable(ids, sizes, b"".join(entries), max(until, -1e300))


def decisions_of(table: DecisionTable) -> Iterator[tuple[str, bytes]]:
    """Yield the ids and the packed decisions of a table; raise an error if it is damaged."""
    sizes = np.frombuffer(table.sizes, "<u4")
    ends = np.cumsum(sizes, dtype=np.int64)
    if len(sizes) != len(table.ids) or int(sizes.sum()) != len(table.entries):
        raise ValueError("the table of decisions is damaged")
    for event_id, begin, end in zip(table.ids, (ends - sizes).tolist(), ends.tolist(), strict=True):
        known_keys, rest = divmod(end - begin - _REWARDED.size, _KEY.size)
        if end - begin != _PLAIN.size and (known_keys < 0 or rest):
            raise InputError(f"{event_id!r} has {end - begin} bytes, as no decision has")
        yield event_id, table.entries[begin:end]


class RewardScale:
    """Bounds rewards by the magnitude of the others, so that one absurd reward does not ruin sums.

    The magnitude of a reward is the next power of two. A magnitude is supported once three rewards, and one
    in a thousand of the nonzero rewards, have it or a larger one. The bound is twice the largest supported
    magnitude, or eight times while there are fewer than 32 rewards. A larger reward is replaced by the bound.
    So rewards of a new size are limited until their magnitude is supported, and then count in full.

    Examples
    --------
    >>> scale = RewardScale()
    >>> [scale.bound_reward(reward) for reward in (1.0, 0.0, 1.0, 1.0, -1e25, -12.0)]
    [1.0, 0.0, 1.0, 1.0, -16.0, -12.0]
    """

    def __init__(self, counts: dict[int, int] | None = None, limit: float = _AT_FIRST) -> None:
        self.counts: dict[int, int] = dict(counts or {})
        self._total = sum(self.counts.values())
        self.limit = limit

    def bound_reward(self, reward: float) -> float:
        """Return a reward limited to the bound, and count its magnitude."""
        if reward == 0.0:
            return reward
        power = frexp(reward)[1]
        self.counts[power] = self.counts.get(power, 0) + 1
        self._total += 1
        if abs(reward) > self.limit or self._total % _EARLY == 0 or self._total < _EARLY:
            self.limit = self._current_bound()
        return reward if abs(reward) <= self.limit else copysign(self.limit, reward)

    def _current_bound(self) -> float:
        wanted, count = max(_SUPPORT, self._total // 1000), 0
        room = _ROOM_EARLY if self._total < _EARLY else _ROOM
        for power in sorted(self.counts, reverse=True):
            count += self.counts[power]
            if count >= wanted:
                return max(ldexp(1.0, min(power + room, 1023)), _ALWAYS)
        return _AT_FIRST


class Counts(msgspec.Struct):
    """Numbers of records by outcome."""

    # Decisions; and ignored decisions, whose id was in use at the time, or which a rank server sent twice.
    ranked: int = 0
    repeated: int = 0
    # Rewards; and those that arrived after the end of their decision or, with the aggregation ``first``,
    # after another one, that repeated another, or whose decision never arrived or could not be waited for
    # within the limits.
    rewarded: int = 0
    late: int = 0
    duplicate: int = 0
    dangling: int = 0
    joined: int = 0  # Decisions that ended with a reward, without one, or without having been activated.
    defaulted: int = 0
    inactive: int = 0
    # Rewards beyond the declared or learnt range, and sums beyond the declared range. Each is replaced by the
    # bound.
    clipped: int = 0
    # Finished decisions that were dropped before their wait was over, because the table was full.
    forgotten: int = 0
    # Records whose time is implausibly far from the record before: the join did not follow their clock.
    clock_jumps: int = 0


class EndedDecision(msgspec.Struct, frozen=True, gc=False):
    """A decision to be learnt: the position of its record, its reward, and the seconds that it has waited."""

    position: int
    size: int
    reward: float
    rewarded: bool
    waited: float


class Join:
    """The decisions that wait, and those that ended recently, by id.

    Examples
    --------
    >>> from onlineauto.service.log.segment_log import read_record, sealed
    >>> join = Join(JoinSettings(reward_wait=60.0))
    >>> rank = sealed(b'{"Type":"rank","EventId":"e","Timestamp":"2026-01-01T00:00:00Z"}')
    >>> late = sealed(b'{"Type":"tick","Timestamp":"2026-01-01T00:01:00Z"}')
    >>> join.take(read_record(rank), 0, len(rank)), join.take(read_record(late), len(rank), len(late))
    ([], [EndedDecision(position=0, size=82, reward=0.0, rewarded=False, waited=60.0)])
    """

    def __init__(self, settings: JoinSettings) -> None:
        self.settings, self.now, self.counts = settings, 0.0, Counts()
        self.sources: dict[str, int] = {}
        self.heard: dict[str, float] = {}
        self.retired, self.is_repeated = 0.0, False
        self._book = RuleBook(settings)
        self._clock: float | None = None  # the time of the latest record on its own clock
        self._set_back: tuple[float, float] | None = None  # that time before it was set back, and `now` then
        self._waiting: WaitingDecisions[bytes, bytes] = WaitingDecisions(deadline_of)
        self._early: Timed[Early] = Timed(lambda early: early.deadline)
        self._scale = RewardScale()
        self.pacing = Pacing()

    @property
    def waiting(self) -> int:
        """The number of decisions that have not ended."""
        return len(self._waiting)

    @property
    def finished(self) -> int:
        """The number of decisions that have ended and are remembered."""
        return len(self._waiting.ended)

    @property
    def early(self) -> int:
        """The number of ids whose rewards wait for a decision."""
        return len(self._early)

    @property
    def oldest(self) -> int | None:
        """The position of the oldest decision that waits; None if no decision waits."""
        return min((read_decision(entry).position for entry in self._waiting.first_entries()), default=None)

    def find(self, event_id: str, time: float) -> JoinDecision | None:
        """Return the decision of an id, unless the id is free again at a time of the clock."""
        packed = self._packed_of(event_id)
        return None if packed is None or deadline_of(packed) <= self.time_at(time) else read_decision(packed)

    def waits(self, event_id: str) -> bool:
        """Return whether the decision of an id has not ended."""
        return self._waiting.get(event_id) is not None

    def deferred(self) -> Iterator[str]:
        """Yield the ids of the decisions that wait for their activation."""
        for event_id, packed in zip(*self._waiting.columns(), strict=True):
            if not read_decision(packed).active:
                yield event_id

    def key_of(self, event_id: str, key: str, metric: str = "") -> float | None:
        """Return the reward that has a key, for a decision or waiting for one; None if there is none."""
        packed = self._packed_of(event_id)
        if packed is not None:
            return reward_of(read_decision(packed).keys, hash_of(key, metric))
        early = self._early.get(event_id)
        return None if early is None or metric else dict(early.rewards).get(key)

    def parts_of(self, event_id: str, *, keyed: bool) -> int:
        """Return the number of rewards of a decision that take memory; -1 if one more would take none."""
        packed = self._packed_of(event_id)
        if packed is not None:
            return n_keys(read_decision(packed)) if keyed else -1
        early = self._early.get(event_id)
        return 0 if early is None else 1 + len(early.rewards)

    def n_metrics(self, event_id: str) -> int:
        """Return the number of values of metrics whose keys a decision remembers."""
        packed = self._packed_of(event_id)
        return 0 if packed is None else n_keys(read_decision(packed), metrics=True)

    def range_of(self, event_id: str) -> tuple[float, float] | None:
        """Return the range of rewards of a decision, or of a new one; None if the range is learnt."""
        packed = self._waiting.get(event_id)
        return (
            self.settings.reward_range
            if packed is None
            else self._book.rules[read_decision(packed).rules].reward_range
        )

    def is_known(self, event_id: str) -> bool:
        """Return whether a decision of an id is known, or a reward or activation waits for it."""
        return self._packed_of(event_id) is not None or self._early.get(event_id) is not None

    @property
    def next_end(self) -> float:
        """The time at which the next wait ends, of a decision or of a reward without one."""
        end = min(self._waiting.next_deadline, self._early.next_deadline)
        return end if end < inf else self.now

    def is_due(self, time: float) -> bool:
        """Return whether a wait has ended at a time of the clock."""
        return (len(self._waiting) + len(self._early) > 0) and self.next_end <= self.time_at(time)

    def jump_at(self, time: float) -> float:
        """Return the number of seconds by which the clock has jumped since the latest record, or 0.

        A process records the seconds for which it had no record (`LogRecord.passed`). Without that, an
        advance of a day more than a decision waits is a jump. A step back by more than a minute is a jump,
        and so is the step with which a clock that was set back is corrected.
        """
        if self._clock is None:
            return 0.0
        step = time - self._clock
        if self._set_back is None and 0.0 <= step <= _DAY:
            return 0.0
        most = _DAY + max(self.settings.reward_wait, self._waiting.longest_wait)
        return step if step > most or step < -_JITTER or self._is_right_again(time) else 0.0

    def time_at(self, time: float) -> float:
        """Return the time of the join for a record at a time of the clock."""
        if self._clock is None:
            return max(time, self.now)
        if self._is_right_again(time):
            clock, now = self._set_back  # type: ignore[misc] # `_is_right_again` has checked for None
            return max(self.now, now + time - clock)
        return self.now if self.jump_at(time) else self.now + max(time - self._clock, 0.0)

    def _is_right_again(self, time: float) -> bool:
        """Return whether a clock that was set back has again reached about the time that it had before."""
        if self._set_back is None or self._clock is None:
            return False
        step = time - self._set_back[0]
        return step >= 0.0 and time - self._clock > max(2 * step, _JITTER) and step < _DAY

    def take(
        self, record: LogRecord, position: int, size: int, *, at: float | None = None
    ) -> list[EndedDecision]:
        """Take the next record of the log, and return the decisions that it ends, in order."""
        changes = record.kind == "settings" and not record.source  # a rank server's settings apply only there
        settings = read_settings(record.settings) if changes else None
        at = (record.taken or record.time).timestamp() if at is None else at
        if settings is not None:
            self._book.change(settings, self.now)
            if settings.budget != self.settings.budget:
                self.pacing.begin()
        self._let_pass(at, record.passed)
        ended: list[EndedDecision] = []
        waiting, now = self._waiting, self.now
        if waiting.earliest <= now or self._early.earliest <= now or waiting.ended.old_until <= now:
            self._expire(ended)
        self.is_repeated = False
        if record.source:
            if record.behind <= self.sources.get(record.source, 0):
                self.is_repeated = True
                self.counts.repeated += 1
                return ended
            self._note_source(record.source, record.behind, at)
        if record.kind == "rank":
            self._rank(record, position, size, ended)
        elif record.kind == "reward":
            self.counts.rewarded += 1
            if record.no_room:
                self.counts.dangling += 1
            else:
                self._reward(record.event_id, record.key, record.reward, ended)
        elif record.kind == "activate":
            if not record.no_room:
                self._activate(record.event_id, ended)
        elif record.kind == "metric" and record.key:
            self._metric(record)
        elif record.kind == "cost":
            self._cost(record)
        elif settings is not None:
            self.settings = settings
        return ended

    def state(self) -> dict[str, Any]:
        """Return the table as values that a model file can store."""
        finished = self._waiting.ended
        state = JoinState(
            self.settings,
            self.now,
            self._early.items(),
            self.counts,
            self.sources,
            table_of(*self._waiting.columns()),
            (
                table_of(list(finished.old), list(finished.old.values()), finished.old_until),
                table_of(list(finished.young), list(finished.young.values()), finished.young_until),
            ),
            self._clock,
            self._set_back,
            (self._scale.counts, self._scale.limit),
            self._book.state(),
            self.heard,
            self.retired,
            self.pacing,
        )
        values: dict[str, Any] = msgspec.to_builtins(state, builtin_types=(bytes,), str_keys=True)
        return values

    @classmethod
    def of(cls, state: dict[str, Any]) -> Join:
        """Return the join of a `state`."""
        stored = msgspec.convert(state, JoinState, strict=False)
        check_state(stored)
        join = cls(stored.settings)
        join.heard, join.retired = stored.heard, stored.retired
        join._book = RuleBook.of(stored.settings, stored.rules)
        join.now, join.counts, join.sources = stored.now, stored.counts, stored.sources
        join._clock, join._set_back = stored.clock, stored.set_back
        join._scale = RewardScale(*stored.scale)
        join.pacing = stored.pacing
        for event_id, early in stored.early:
            early.deadline = min(early.deadline, stored.now + early.wait)
            join._early.add(event_id, early, wait=early.wait)
        for event_id, packed in decisions_of(stored.waiting):
            join._waiting.add(event_id, packed, wait=checked_wait(read_decision(packed), join._book.rules))
        finished, (old, young) = join._waiting.ended, stored.finished
        finished.old, finished.old_until = dict(decisions_of(old)), old.until
        finished.young, finished.young_until = dict(decisions_of(young)), young.until
        return join

    def _note_source(self, source: str, behind: int, at: float) -> None:
        """Record that the log of a rank server is known up to a position, at a time of the clock."""
        if source not in self.sources and len(self.sources) >= MOST_SOURCES:
            gone = min(self.heard, key=self.heard.__getitem__)
            self.retired = max(self.retired, self.heard.pop(gone))
            del self.sources[gone]
        self.sources[source], self.heard[source] = behind, at

    def _packed_of(self, event_id: str) -> bytes | None:
        packed = self._waiting.get(event_id)
        if packed is None:
            packed = self._waiting.ended.get(event_id)
            if packed is not None and deadline_of(packed) <= self.now:
                return None
        return packed

    def _let_pass(self, time: float, passed: float) -> None:
        """Advance the time of the join by `passed` seconds, or else to `time` as far as that is plausible."""
        if passed:
            self.now += passed
            self._clock = time
            return
        if self._set_back is None and self._clock is not None and 0.0 <= time - self._clock <= _DAY:
            self.now += time - self._clock
            self._clock = time
            return
        jump, now = self.jump_at(time), self.time_at(time)
        if jump:
            self.counts.clock_jumps += 1
            if jump < 0.0 and self._clock is not None:
                self._set_back = (self._clock, self.now)
            elif jump > 0.0:
                self._set_back = None
            self._clock = time
        else:
            self._clock = time if self._clock is None else max(time, self._clock)
            if self._set_back is not None and self._clock >= self._set_back[0]:
                self._set_back = None
        self.now = now

    def _expire(self, ended: list[EndedDecision]) -> None:
        """End the decisions whose wait is over, the oldest first, and forget expired ones."""
        if self._waiting.earliest <= self.now:
            for _, packed in self._waiting.pop_due(self.now):
                self._end(read_decision(packed), ended)
        if self._early.earliest <= self.now:
            for _, early in self._early.pop_due(self.now):
                self.counts.dangling += len(early.rewards)
        self._waiting.ended.expire(self.now)

    def _rank(self, record: LogRecord, position: int, size: int, ended: list[EndedDecision]) -> None:
        event_id, wait = record.event_id, self.settings.reward_wait
        if self._packed_of(event_id) is not None:
            self.counts.repeated += 1
            return
        self.counts.ranked += 1
        if record.costs:
            self._pay(record)
        rules = self._book.current
        packed = _PLAIN.pack(position, size, self.now, wait, rules, not record.deferred)
        self._waiting.begin(event_id, packed, wait=wait)
        early = self._early.pop(event_id)
        if early is not None:
            if early.active:
                self._activate(event_id, ended)
            for key, reward in early.rewards:
                self._reward(event_id, key, reward, ended)

    def _reward(self, event_id: str, key: str, reward: float, ended: list[EndedDecision]) -> None:
        waiting = self._waiting.get(event_id)
        packed = self._packed_of(event_id) if waiting is None else waiting
        if packed is None:
            early = self._waits(event_id)
            if key and any(key == known for known, _ in early.rewards):
                self.counts.duplicate += 1
            else:
                early.rewards.append((key, reward))
            return
        decision = read_decision(packed)
        if key:
            hashed = hash_of(key)
            if reward_of(decision.keys, hashed) is not None:
                self.counts.duplicate += 1
                return
            decision.remember(hashed, reward)
        rules = None if waiting is None else self._book.rules[decision.rules]
        if rules is None or (decision.rewards and rules.aggregation == "first"):
            self.counts.late += 1
            self._replace(event_id, decision)
            return
        bounded = self._bound_reward(reward, rules)
        self.pacing.reward(bounded)
        decision.value = add_reward(rules.aggregation, decision.rewards, decision.value, bounded)
        decision.rewards += 1
        self._replace_or_end(event_id, decision, ended)

    def _pay(self, record: LogRecord) -> None:
        """Count the cost of a decision; the price follows it, unless another process made the decision."""
        cost, budget = record.costs[record.ranked[0] - 1], self.settings.budget
        self.pacing.over_budget += record.over_budget
        if cost is not None:
            self.pacing.pay(cost)
            if record.price is not None and budget is not None and not record.source:
                out = set(record.excluded)
                costs = [each for number, each in enumerate(record.costs, 1) if number not in out]
                known = [each for each in costs if each is not None]
                self.pacing.follow(cost, spread=max(known) - min(known), budget=budget)

    def _cost(self, record: LogRecord) -> None:
        """Count the first cost that is reported for a decision."""
        packed, pacing = self._packed_of(record.event_id), self.pacing
        if packed is None or not record.action:
            pacing.unmatched += 1
            return
        decision = read_decision(packed)
        if reward_of(decision.keys, _COST) is not None:
            self.counts.duplicate += 1
            return
        self._replace(record.event_id, decision.remember(_COST, record.cost))
        priced = record.price is not None and not record.source
        budget = self.settings.budget if priced else None
        pacing.report(record.action, record.cost, record.assumed, budget=budget)

    def _metric(self, record: LogRecord) -> None:
        """Remember the key of a value of a metric for as long as its decision is known."""
        packed, hashed = self._packed_of(record.event_id), hash_of(record.key, record.metric)
        if packed is not None:
            decision = read_decision(packed)
            self.is_repeated = reward_of(decision.keys, hashed) is not None
            if not self.is_repeated and not record.no_room:
                self._replace(record.event_id, decision.remember(hashed, record.value))

    def _bound_reward(self, reward: float, rules: JoinRules) -> float:
        """Return a reward limited to the range declared for its decision, or to the learnt range."""
        if rules.reward_range is None:
            bounded = self._scale.bound_reward(reward)
        else:
            bounded = _within(rules.reward_range, reward)
        self.counts.clipped += bounded != reward
        return bounded

    def _activate(self, event_id: str, ended: list[EndedDecision]) -> None:
        packed = self._packed_of(event_id)
        if packed is None:
            self._waits(event_id).active = True
            return
        if self.waits(event_id):
            decision = read_decision(packed)
            decision.active = True
            self._replace_or_end(event_id, decision, ended)

    def _waits(self, event_id: str) -> Early:
        """Return the entry for what waits for the decision of an id; add one if there is none."""
        early = self._early.get(event_id)
        if early is None:
            wait = self.settings.reward_wait
            early = Early(self.now + wait, active=False, rewards=[], wait=wait)
            self._early.add(event_id, early, wait=wait)
        return early

    def _replace(self, event_id: str, decision: JoinDecision) -> None:
        """Replace a decision that waits, or one that has ended."""
        table = self._waiting if self.waits(event_id) else self._waiting.ended
        table.replace(event_id, pack_decision(decision))

    def _replace_or_end(self, event_id: str, decision: JoinDecision, ended: list[EndedDecision]) -> None:
        """Replace a decision that waits, or end it if its first reward ends it."""
        if not (decision.active and decision.rewards and self._book.rules[decision.rules].at_once):
            self._waiting.replace(event_id, pack_decision(decision))
            return
        self._end(decision, ended)
        decision.rewards, decision.value = 0, 0.0
        self.counts.forgotten += self._waiting.end(
            event_id,
            pack_decision(decision),
            deadline=decision.deadline,
            most=self.settings.max_finished,
        )

    def _end(self, decision: JoinDecision, ended: list[EndedDecision]) -> None:
        """Count the end of a decision, and add it to `ended` if it is to be learnt."""
        if not decision.active:
            self.counts.inactive += 1
            return
        rules, waited = self._book.rules[decision.rules], max(self.now - decision.made, 0.0)
        if decision.rewards:
            self.counts.joined += 1
            joined = final_reward(rules.aggregation, decision.rewards, decision.value)
            reward = joined if rules.reward_range is None else _within(rules.reward_range, joined)
            self.counts.clipped += (
                rules.aggregation == "sum" and reward != joined
            )  # a mean differs by rounding
        else:
            self.counts.defaulted += 1
            reward = rules.default_reward
        ended.append(EndedDecision(decision.position, decision.size, reward, decision.rewards > 0, waited))


def _within(bounds: tuple[float, float], reward: float) -> float:
    """Return a reward, or the bound that it exceeds."""
    return min(max(reward, bounds[0]), bounds[1])


_END: Final = 1e12
"""Upper bound of all times of a table, in seconds since 1970."""


class Early(msgspec.Struct, array_like=True):
    """Rewards and an activation of a decision that has not arrived yet."""

    deadline: float
    active: bool
    rewards: list[tuple[str, float]]
    wait: float


class JoinState(msgspec.Struct):
    """The state of a join in a snapshot."""

    settings: JoinSettings
    now: float
    early: list[tuple[str, Early]]
    counts: Counts
    sources: dict[str, int]
    waiting: DecisionTable
    finished: tuple[DecisionTable, DecisionTable]
    clock: float | None
    set_back: tuple[float, float] | None
    scale: tuple[dict[int, int], float]
    rules: tuple[int, list[tuple[int, float, JoinRules]]]
    heard: dict[str, float]
    retired: float
    pacing: Pacing = msgspec.field(default_factory=Pacing)


def checked_wait(decision: JoinDecision, known: Mapping[int, JoinRules]) -> float:
    """Return the seconds for which a decision of a state waits."""
    if not 0 < decision.wait <= MOST_WAIT or not abs(decision.made) < _END or decision.rules not in known:
        raise InputError(f"the decision at {decision.position} has a time that is out of range, or no rules")
    return decision.wait


def check_state(state: JoinState) -> None:
    """Check that the settings, times and bounds of a state are within their ranges."""
    try:
        check_settings(state.settings)
        for _, _, rules in state.rules[1]:
            check_settings(msgspec.structs.replace(state.settings, **msgspec.structs.asdict(rules)))
    except OptionError as error:
        raise InputError(f"the settings are out of range: {error}") from None
    times = [state.now, state.clock or 0.0, state.retired, *(state.set_back or ()), *state.heard.values()]
    times += [time for _, early in state.early for time in (early.deadline, early.wait)]
    if not all(abs(time) < _END for time in times):
        raise InputError("a time is out of range")
    if not 0 < state.scale[1] < inf:
        raise InputError(f"the bound of rewards is {state.scale[1]}")


class Skipped(NamedTuple):
    """A record that could not be applied: its position, its segment, the byte in it, and the reason."""

    position: int
    segment: str
    offset: int
    reason: str

    def __str__(self) -> str:
        """Return a sentence for a log or a status."""
        return f"the record at byte {self.offset} of {self.segment} was skipped: {self.reason}"


class Replayed(NamedTuple):
    """A record of the log: its line, its content, the mode at the time, and the decisions that it ends."""

    position: int
    line: bytes
    record: LogRecord | None
    mode: str
    ended: list[EndedDecision]
    skipped: Skipped | None


def replay(join: Join, log: SegmentLog, position: int) -> Iterator[Replayed]:
    """Let a join take the records of a log from a position on, and yield each of them."""
    for offset, line in log.lines(position):
        mode = join.settings.mode
        try:
            record = read_record(line)
            ended = join.take(record, offset, len(line))
        except Exception as error:  # a record may be damaged in any way; those behind it must be applied
            yield Replayed(offset, line, None, mode, [], skipped_at(log, offset, error))
        else:
            yield Replayed(offset, line, record, mode, ended, None)


def skipped_at(log: SegmentLog, position: int, error: Exception | str) -> Skipped:
    """Return the description of a record that could not be applied."""
    reason = " ".join(str(error).split())[:300] or type(error).__name__
    return Skipped(position, *log.place_of(position), reason)
