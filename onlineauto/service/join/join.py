"""``Join``: which decision is learnt with which reward, as a function of the log alone.

A decision waits from its record on, until a record is `reward_wait` seconds later. Time is what the records
say, and never runs back. So a log has one join, however often and in whatever pieces it is read.

============ =====================================================================================
a decision   becomes
============ =====================================================================================
open         joined at its first reward, with the aggregation ``first``; else when it has waited
open         defaulted when it has waited without a reward: it is learnt with the default reward
deferred     open once it is activated; inactive when it has waited without that, and is not learnt
============ =====================================================================================

A reward that comes before its decision waits for it as long. One that comes behind the end of its decision is
late: it is counted, and not learnt. A repetition of a reward, known by its key, is counted and changes
nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from onlineauto.errors import InputError
from onlineauto.service.join.aggregation import aggregated, combined

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onlineauto.service.log.record import Record

__all__ = ["Counts", "Decision", "Ended", "Join", "JoinSettings"]


class JoinSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rules by which decisions wait for their rewards and end.

    Attributes
    ----------
    reward_wait : float
        Seconds for which a decision waits.
    default_reward : float
        The reward of a decision that got none.
    aggregation : str
        One of `onlineauto.service.join.aggregation.AGGREGATIONS`.
    mode : {"online", "apprentice", "logging-only"}
        Who decides, and whether what is joined is learnt.
    options : str
        Options of the model, as on a command line.
    """

    reward_wait: float = 600.0
    default_reward: float = 0.0
    aggregation: str = "first"
    mode: str = "online"
    options: str = ""


class Decision(msgspec.Struct, array_like=True, gc=False):
    """A decision of the table: where its record is, and what it has got so far.

    There are many, and no cycle leads through one, so the garbage collector need not visit them.
    """

    position: int
    size: int
    deadline: float
    active: bool
    ended: bool = False
    count: int = 0
    value: float = 0.0
    keys: dict[str, float] | None = None


class _Early(msgspec.Struct, array_like=True):
    """Rewards and an activation of a decision that is not there yet."""

    deadline: float
    active: bool
    rewards: list[tuple[str, float]]


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
    decisions: list[tuple[str, Decision]]  # in order, which the maps of a model file do not keep
    early: list[tuple[str, _Early]]
    counts: Counts
    sources: dict[str, int]


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
        The time of the latest record.
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
        self._decisions: OrderedDict[str, Decision] = OrderedDict()
        self._early: OrderedDict[str, _Early] = OrderedDict()
        self.sources: dict[str, int] = {}
        self._open = 0

    def __len__(self) -> int:
        """Count the decisions in the table, those that have ended included."""
        return len(self._decisions)

    @property
    def waiting(self) -> int:
        """The number of decisions that have not ended."""
        return self._open

    @property
    def early(self) -> int:
        """The number of ids whose rewards wait for a decision."""
        return len(self._early)

    @property
    def oldest(self) -> int | None:
        """The position of the oldest decision of the table; None if there is none."""
        return next((each.position for each in self._decisions.values()), None)

    def find(self, event_id: str, time: float) -> Decision | None:
        """Return the decision of an id, if its id is not free again at a time."""
        found = self._decisions.get(event_id)
        return None if found is None or found.deadline <= time else found

    def key_of(self, event_id: str, key: str) -> float | None:
        """Return the reward that had a key for a decision, or waits for one; None if there was none."""
        found = self._decisions.get(event_id)
        if found is not None:
            return (found.keys or {}).get(key)
        early = self._early.get(event_id)
        return None if early is None else dict(early.rewards).get(key)

    def parts_of(self, event_id: str, *, keyed: bool) -> int:
        """Return how many rewards of a decision take memory, if one more does: it is early, or has a key."""
        found = self._decisions.get(event_id)
        if found is not None:
            return len(found.keys or ()) if keyed else -1
        early = self._early.get(event_id)
        return 0 if early is None else 1 + len(early.rewards)

    @property
    def next_end(self) -> float:
        """The time at which the oldest decision has waited, or what waits for a decision has."""
        ends = [each.deadline for each in (*self._first(self._decisions), *self._first(self._early))]
        return min(ends, default=self.now)

    def is_due(self, time: float) -> bool:
        """Return whether something ends if nothing but the time changes."""
        return (len(self._decisions) + len(self._early) > 0) and self.next_end <= time

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
            It has settings of a later program.
        """
        now = (record.taken or record.time).timestamp() if at is None else at
        if now > self.now:
            self.now = now
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
        elif record.kind == "settings":
            try:
                self.settings = msgspec.convert(record.settings, JoinSettings)
            except msgspec.ValidationError as error:
                raise InputError(f"the log has settings that this program does not know: {error}") from None
        return ended

    def state(self) -> dict[str, Any]:
        """Return the table as values that a model file can hold."""
        kept = _State(
            self.settings,
            self.now,
            list(self._decisions.items()),
            list(self._early.items()),
            self.counts,
            self.sources,
        )
        found: dict[str, Any] = msgspec.to_builtins(kept)
        return found

    @classmethod
    def of(cls, state: dict[str, Any]) -> Join:
        """Return the table of a `state`.

        Raises
        ------
        ValidationError
            It is no such state.
        """
        kept = msgspec.convert(state, _State)
        made = cls(kept.settings)
        made.now, made.counts, made.sources = kept.now, kept.counts, kept.sources
        made._decisions.update(kept.decisions)
        made._early.update(kept.early)
        made._open = sum(not each.ended for _, each in kept.decisions)
        return made

    def _first(self, table: OrderedDict[str, Any]) -> Iterator[Any]:
        if table:
            yield next(iter(table.values()))

    def _expire(self, ended: list[Ended]) -> None:
        """End the decisions that have waited, the oldest first, and forget what is over."""
        while self._decisions:
            event_id, found = next(iter(self._decisions.items()))
            if found.deadline > self.now:
                break
            if not found.ended:
                self._end(found, ended)
            del self._decisions[event_id]
        while self._early:
            event_id, early = next(iter(self._early.items()))
            if early.deadline > self.now:
                break
            self.counts.dangling += len(early.rewards)
            del self._early[event_id]

    def _rank(self, record: Record, position: int, size: int, ended: list[Ended]) -> None:
        if record.event_id in self._decisions:
            self.counts.repeated += 1
            return
        self.counts.ranked += 1
        self._open += 1
        before = next(reversed(self._decisions.values())).deadline if self._decisions else self.now
        deadline = max(self.now + self.settings.reward_wait, before)  # they end in the order of the log
        self._decisions[record.event_id] = Decision(position, size, deadline, not record.deferred)
        early = self._early.pop(record.event_id, None)
        if early is not None:
            if early.active:
                self._activate(record.event_id, ended)
            for key, reward in early.rewards:
                self._reward(record.event_id, key, reward, ended)

    def _reward(self, event_id: str, key: str, reward: float, ended: list[Ended]) -> None:
        found = self._decisions.get(event_id)
        if found is None:
            early = self._waits(event_id)
            if key and any(key == known for known, _ in early.rewards):
                self.counts.duplicate += 1
            else:
                early.rewards.append((key, reward))
            return
        if key and found.keys is not None and key in found.keys:
            self.counts.duplicate += 1
            return
        if key:
            found.keys = {**(found.keys or {}), key: reward}
        if found.ended:
            self.counts.late += 1
            return
        found.value = combined(self.settings.aggregation, found.count, found.value, reward)
        found.count += 1
        if found.active and self.settings.aggregation == "first":
            self._end(found, ended)

    def _activate(self, event_id: str, ended: list[Ended]) -> None:
        found = self._decisions.get(event_id)
        if found is None:
            self._waits(event_id).active = True
            return
        found.active = True
        if found.count and not found.ended and self.settings.aggregation == "first":
            self._end(found, ended)

    def _waits(self, event_id: str) -> _Early:
        """Return what waits for the decision of an id, from now on if nothing has so far."""
        if event_id not in self._early:
            self._early[event_id] = _Early(self.now + self.settings.reward_wait, active=False, rewards=[])
        return self._early[event_id]

    def _end(self, found: Decision, ended: list[Ended]) -> None:
        """End a decision, and add it to `ended` if it is to be learnt."""
        found.ended = True
        self._open -= 1
        if not found.active:
            self.counts.inactive += 1
            return
        how, waited = self.settings, self.now - (found.deadline - self.settings.reward_wait)
        if found.count:
            self.counts.joined += 1
            reward = aggregated(how.aggregation, found.count, found.value)
        else:
            self.counts.defaulted += 1
            reward = how.default_reward
        ended.append(Ended(found.position, found.size, reward, found.count > 0, waited))
