"""``Join``: which decision is learnt with which reward, as a function of the log alone.

A decision waits from its record on, for the `reward_wait` that was in force then. Time is what the records
say, with two exceptions: it does not run back, and it stands still where the clock jumps. So a log has one
join, however often and in whatever pieces it is read.

============ =====================================================================================
a decision   becomes
============ =====================================================================================
open         joined at its first reward, with the aggregation ``first``; else when it has waited
open         defaulted when it has waited without a reward: it is learnt with the default reward
deferred     open once it is activated; inactive when it has waited without that, and is not learnt
============ =====================================================================================

A reward that comes before its decision waits for it as long. A decision that has ended is remembered until
its wait is over, but no more than `max_finished` of them are. A reward of a remembered decision is late: it
is counted, and not learnt; a later one waits for a decision in vain, which is dangling. A repetition of a
reward, known by its key, is counted and changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from onlineauto.service.join.aggregation import aggregated, combined
from onlineauto.service.join.decision import (
    Decision,
    DecisionTable,
    deadline_of,
    entries_of,
    hash_of,
    is_plain,
    keyed,
    n_keys,
    packed_decision,
    read_decision,
    reward_of,
    table_of,
)
from onlineauto.service.join.scale import RewardScale
from onlineauto.service.join.settings import JoinSettings, read_settings
from onlineauto.service.join.timed import Finished, Timed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.service.log.record import Record

__all__ = ["Counts", "Decision", "Ended", "Join", "JoinSettings"]

_DAY: Final = 86400.0
_JITTER: Final = 60.0
"""Seconds by which a record may be earlier than the one before it without its clock having been set back."""


class _Early(msgspec.Struct, array_like=True):
    """Rewards and an activation of a decision that is not there yet."""

    deadline: float
    active: bool
    rewards: list[tuple[str, float]]
    wait: float = 0.0


class Counts(msgspec.Struct):
    """Numbers of records by what became of them.

    Attributes
    ----------
    ranked, repeated : int
        Decisions; and decisions whose id another one had at the time, or records that a rank server sent
        twice, which are left out.
    rewarded, late, duplicate, dangling : int
        Rewards; and those that came behind the end of their decision, repeated another, or waited in vain
        for a decision.
    joined, defaulted, inactive : int
        Decisions that ended with a reward, without one, or without having been activated.
    clipped : int
        Rewards beyond the range that is declared or learnt, which count as its bound.
    forgotten : int
        Finished decisions that were forgotten before their wait was over, to make room for others.
    clock_jumps : int
        Records whose time is implausibly far from the one before: the time of the join stood still.
    """

    ranked: int = 0
    repeated: int = 0
    rewarded: int = 0
    late: int = 0
    duplicate: int = 0
    dangling: int = 0
    joined: int = 0
    defaulted: int = 0
    inactive: int = 0
    clipped: int = 0
    forgotten: int = 0
    clock_jumps: int = 0


class Ended(NamedTuple):
    """A decision that is to be learnt: where its record is, its reward, and how long it has waited."""

    position: int
    size: int
    reward: float
    rewarded: bool
    waited: float


class _State(msgspec.Struct):
    settings: JoinSettings
    now: float
    early: list[tuple[str, _Early]]
    counts: Counts
    sources: dict[str, int]
    waiting: DecisionTable | None = None
    finished: list[DecisionTable] = []
    clock: float | None = None
    set_back: tuple[float, float] | None = None
    scale: tuple[dict[int, int], float] | None = None
    decisions: list[tuple[str, list[Any]]] = []  # as the first version wrote them


class Join:
    """The decisions that wait, and those that ended not long ago, by their ids.

    Parameters
    ----------
    settings : JoinSettings
        How to join, until a record of the log has other settings.

    Attributes
    ----------
    settings : JoinSettings
        How it joins now.
    now : float
        The time of the join, which the records let pass.
    counts : Counts
        What has become of the records so far.
    sources : dict of str to int
        The position up to which the log of each rank server is taken over.

    Examples
    --------
    >>> from onlineauto.service.log.record import read_record, sealed
    >>> join = Join(JoinSettings(reward_wait=60.0))
    >>> rank = sealed(b'{"Type":"rank","EventId":"e","Timestamp":"2026-01-01T00:00:00Z"}')
    >>> late = sealed(b'{"Type":"tick","Timestamp":"2026-01-01T00:01:00Z"}')
    >>> join.take(read_record(rank), 0, len(rank)), join.take(read_record(late), len(rank), len(late))
    ([], [Ended(position=0, size=82, reward=0.0, rewarded=False, waited=60.0)])
    """

    def __init__(self, settings: JoinSettings) -> None:
        self.settings, self.now, self.counts = settings, 0.0, Counts()
        self.sources: dict[str, int] = {}
        self._clock: float | None = None  # the time of the latest record, as its clock had it
        self._set_back: tuple[float, float] | None = None  # that before it was set back, and `now` then
        self._waiting: Timed[bytes] = Timed(deadline_of)
        self._finished: Finished[bytes] = Finished()
        self._early: Timed[_Early] = Timed(lambda early: early.deadline)
        self._scale = RewardScale()

    def __len__(self) -> int:
        """Count the decisions that wait."""
        return len(self._waiting)

    @property
    def waiting(self) -> int:
        """The number of decisions that have not ended."""
        return len(self._waiting)

    @property
    def finished(self) -> int:
        """The number of decisions that have ended and are remembered."""
        return len(self._finished)

    @property
    def early(self) -> int:
        """The number of ids whose rewards wait for a decision."""
        return len(self._early)

    @property
    def oldest(self) -> int | None:
        """The position of the oldest decision that waits; None if there is none."""
        return min((read_decision(each).position for each in self._waiting.first_entries()), default=None)

    def find(self, event_id: str, time: float) -> Decision | None:
        """Return the decision of an id, if its id is not free again at a time of the clock."""
        found = self._packed_of(event_id)
        return None if found is None or deadline_of(found) <= self.time_at(time) else read_decision(found)

    def key_of(self, event_id: str, key: str) -> float | None:
        """Return the reward that had a key for a decision, or waits for one; None if there was none."""
        found = self._packed_of(event_id)
        if found is not None:
            return reward_of(read_decision(found).keys, hash_of(key))
        early = self._early.get(event_id)
        return None if early is None else dict(early.rewards).get(key)

    def parts_of(self, event_id: str, *, keyed: bool) -> int:
        """Return the number of rewards of a decision that take memory; -1 if one more takes none."""
        found = self._packed_of(event_id)
        if found is not None:
            return n_keys(read_decision(found)) if keyed else -1
        early = self._early.get(event_id)
        return 0 if early is None else 1 + len(early.rewards)

    def is_known(self, event_id: str) -> bool:
        """Return whether there is a decision of an id, or something that waits for it."""
        return self._packed_of(event_id) is not None or self._early.get(event_id) is not None

    @property
    def next_end(self) -> float:
        """The time at which the next decision has waited, or the next reward that waits for a decision."""
        end = min(self._waiting.next_deadline, self._early.next_deadline)
        return end if end < float("inf") else self.now

    def is_due(self, time: float) -> bool:
        """Return whether something ends if nothing but the time of the clock changes."""
        return (len(self._waiting) + len(self._early) > 0) and self.next_end <= self.time_at(time)

    def jump_at(self, time: float) -> float:
        """Return by how many seconds the clock has jumped since the latest record; 0 if it has not.

        No clock of a service goes on for longer than a decision waits without a record, but while the
        service is stopped: a day more than that is a jump. A step back by more than a minute is one, and so
        is the step with which a clock that was set back is right again.
        """
        if self._clock is None:
            return 0.0
        step = time - self._clock
        if self._set_back is None and 0.0 <= step <= _DAY:
            return 0.0
        most = _DAY + max(self.settings.reward_wait, self._waiting.longest_wait)
        return step if step > most or step < -_JITTER or self._is_right_again(time) else 0.0

    def time_at(self, time: float) -> float:
        """Return the time of the join if a record had a time of the clock."""
        if self._clock is None:
            return max(time, self.now)
        if self._is_right_again(time):
            clock, now = self._set_back  # type: ignore[misc] # it is not None then
            return max(self.now, now + time - clock)
        return self.now if self.jump_at(time) else self.now + max(time - self._clock, 0.0)

    def _is_right_again(self, time: float) -> bool:
        """Return whether a clock that was set back has reached the time that it had before, and not more."""
        if self._set_back is None or self._clock is None:
            return False
        step = time - self._set_back[0]
        return step >= 0.0 and time - self._clock > max(2 * step, _JITTER) and step < _DAY

    def take(self, record: Record, position: int, size: int, *, at: float | None = None) -> list[Ended]:
        """Take the next record of the log, and return the decisions that it ends, in order.

        Parameters
        ----------
        record : Record
            The record.
        position, size : int
            Where its line is.
        at : float, optional
            Its time in seconds; by default the record has it.

        Raises
        ------
        InputError
            It has settings of a later program; nothing has changed.
        """
        settings = read_settings(record.settings) if record.kind == "settings" else None
        self._let_pass((record.taken or record.time).timestamp() if at is None else at)
        ended: list[Ended] = []
        self._expire(ended)
        if record.source:
            if record.behind <= self.sources.get(record.source, 0):
                self.counts.repeated += 1
                return ended
            self.sources[record.source] = record.behind
        if record.kind == "rank":
            self._rank(record, position, size, ended)
        elif record.kind == "reward":
            self.counts.rewarded += 1
            self._reward(record.event_id, record.key, record.reward, ended)
        elif record.kind == "activate":
            self._activate(record.event_id, ended)
        elif settings is not None:
            self.settings = settings
        return ended

    def state(self) -> dict[str, Any]:
        """Return the table as values that a model file can hold."""
        finished = self._finished
        kept = _State(
            self.settings,
            self.now,
            self._early.items(),
            self.counts,
            self.sources,
            table_of(*self._waiting.columns()),
            [
                table_of(list(finished.old), list(finished.old.values()), finished.old_until),
                table_of(list(finished.young), list(finished.young.values()), finished.young_until),
            ],
            self._clock,
            self._set_back,
            (self._scale.counts, self._scale.limit),
        )
        found: dict[str, Any] = msgspec.to_builtins(kept, builtin_types=(bytes,), str_keys=True)
        return found

    @classmethod
    def of(cls, state: dict[str, Any]) -> Join:
        """Return the table of a `state`.

        Raises
        ------
        ValidationError
            It is no such state.
        """
        kept = msgspec.convert(state, _State, strict=False)
        made = cls(kept.settings)
        made.now, made.counts, made.sources = kept.now, kept.counts, kept.sources
        made._clock = kept.now if kept.clock is None and kept.now else kept.clock
        made._set_back = kept.set_back
        made._scale = RewardScale(*(kept.scale or ()))
        for event_id, early in kept.early:
            early.wait = early.wait or kept.settings.reward_wait
            early.deadline = min(early.deadline, kept.now + early.wait)
            made._early.add(event_id, early, wait=early.wait)
        for event_id, packed in () if kept.waiting is None else entries_of(kept.waiting):
            made._waiting.add(event_id, packed, wait=read_decision(packed).wait)
        finished = made._finished
        if kept.finished:
            old, young = kept.finished
            finished.old, finished.old_until = dict(entries_of(old)), old.until
            finished.young, finished.young_until = dict(entries_of(young)), young.until
        for event_id, values in kept.decisions:
            made._take_over(event_id, values)
        return made

    def _take_over(self, event_id: str, values: Sequence[Any]) -> None:
        """Take a decision of a state of the first version, whose deadline a longer wait may have moved."""
        position, size, deadline, active, ended, rewards, value, keys = values
        wait = self.settings.reward_wait
        made = min(deadline - wait, self.now)
        decision = Decision(position, size, made, wait, active, rewards, value)
        for key, reward in (keys or {}).items():
            decision = keyed(decision, hash_of(key), reward)
        packed = packed_decision(decision)
        if ended:
            self._remember(event_id, packed)
        else:
            self._waiting.add(event_id, packed, wait=wait)

    def _packed_of(self, event_id: str) -> bytes | None:
        found = self._waiting.get(event_id)
        if found is None:
            found = self._finished.get(event_id)
            if found is not None and deadline_of(found) <= self.now:
                return None
        return found

    def _let_pass(self, time: float) -> None:
        """Let the time of the join pass, as far as a record's time is plausible."""
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

    def _expire(self, ended: list[Ended]) -> None:
        """End the decisions that have waited, the oldest first, and forget what is over."""
        if self._waiting.earliest <= self.now:
            for _, packed in self._waiting.pop_due(self.now):
                self._end(read_decision(packed), ended)
        if self._early.earliest <= self.now:
            for _, early in self._early.pop_due(self.now):
                self.counts.dangling += len(early.rewards)
        if self._finished.old_until <= self.now:
            self._finished.expire(self.now)

    def _rank(self, record: Record, position: int, size: int, ended: list[Ended]) -> None:
        event_id, wait = record.event_id, self.settings.reward_wait
        if self._packed_of(event_id) is not None:
            self.counts.repeated += 1
            return
        self._finished.discard(event_id)
        self.counts.ranked += 1
        packed = packed_decision(Decision(position, size, self.now, wait, not record.deferred))
        self._waiting.add(event_id, packed, wait=wait)
        early = self._early.pop(event_id)
        if early is not None:
            if early.active:
                self._activate(event_id, ended)
            for key, reward in early.rewards:
                self._reward(event_id, key, reward, ended)

    def _reward(self, event_id: str, key: str, reward: float, ended: list[Ended]) -> None:
        packed = self._packed_of(event_id)
        if packed is None:
            early = self._waits(event_id)
            if key and any(key == known for known, _ in early.rewards):
                self.counts.duplicate += 1
            else:
                early.rewards.append((key, reward))
            return
        waits = self._waiting.get(event_id) is not None
        if waits and not key and self.settings.aggregation == "first" and is_plain(packed):  # as most are
            self._waiting.pop(event_id)
            found = read_decision(packed)._replace(rewards=1, value=self._bounded(reward))
            self._end(found, ended)
            self._remember(event_id, packed)
            return
        found, hashed = read_decision(packed), hash_of(key) if key else b""
        if key and reward_of(found.keys, hashed) is not None:
            self.counts.duplicate += 1
            return
        if key:
            found = keyed(found, hashed, reward)
        if not waits:
            self.counts.late += 1
            self._finished.replace(event_id, packed_decision(found))
            return
        value = combined(self.settings.aggregation, found.rewards, found.value, self._bounded(reward))
        found = found._replace(rewards=found.rewards + 1, value=value)
        if found.active and self.settings.aggregation == "first":
            self._end_now(event_id, found, ended)
        else:
            self._waiting.replace(event_id, packed_decision(found))

    def _bounded(self, reward: float) -> float:
        """Return a reward within the range that is declared or learnt."""
        if self.settings.reward_range is None:
            bounded = self._scale.bounded(reward)
        else:
            low, high = self.settings.reward_range
            bounded = min(max(reward, low), high)
        self.counts.clipped += bounded != reward
        return bounded

    def _activate(self, event_id: str, ended: list[Ended]) -> None:
        packed = self._packed_of(event_id)
        if packed is None:
            self._waits(event_id).active = True
            return
        if self._waiting.get(event_id) is None:
            return
        found = read_decision(packed)._replace(active=True)
        if found.rewards and self.settings.aggregation == "first":
            self._end_now(event_id, found, ended)
        else:
            self._waiting.replace(event_id, packed_decision(found))

    def _waits(self, event_id: str) -> _Early:
        """Return what waits for the decision of an id, from now on if nothing has so far."""
        found = self._early.get(event_id)
        if found is None:
            wait = self.settings.reward_wait
            found = _Early(self.now + wait, active=False, rewards=[], wait=wait)
            self._early.add(event_id, found, wait=wait)
        return found

    def _end_now(self, event_id: str, found: Decision, ended: list[Ended]) -> None:
        """End a decision before its wait is over, and remember it until then."""
        self._waiting.pop(event_id)
        self._end(found, ended)
        self._remember(event_id, packed_decision(found._replace(rewards=0, value=0.0)))

    def _remember(self, event_id: str, packed: bytes) -> None:
        most = self.settings.max_finished
        self.counts.forgotten += self._finished.add(event_id, packed, deadline=deadline_of(packed), most=most)

    def _end(self, found: Decision, ended: list[Ended]) -> None:
        """Count the end of a decision, and add it to `ended` if it is to be learnt."""
        if not found.active:
            self.counts.inactive += 1
            return
        how, waited = self.settings, max(self.now - found.made, 0.0)
        if found.rewards:
            self.counts.joined += 1
            reward = aggregated(how.aggregation, found.rewards, found.value)
        else:
            self.counts.defaulted += 1
            reward = how.default_reward
        ended.append(Ended(found.position, found.size, reward, found.rewards > 0, waited))
