"""``Front``: decides, takes rewards, and keeps all of it in a log; what it decides with is published to it.

The table of decisions that a rank or a reward looks into is the join of the log, which takes each record as
it is submitted.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from onlineauto.errors import InputError
from onlineauto.service.log.group_commit import GroupCommit
from onlineauto.service.log.record import Record, read_record, sealed, stamp
from onlineauto.service.ranking.answer import Ranked, answer_of, line_of, read_answer
from onlineauto.service.ranking.choice import choose, only, seed_of
from onlineauto.service.ranking.question import Limits, Question, context_of
from onlineauto.service.refused import RefusedError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Sequence

    from onlineauto.service.join.join import Join
    from onlineauto.service.learning.learner import Published
    from onlineauto.service.log.group_commit import Done
    from onlineauto.service.log.segment_log import SegmentLog

__all__ = ["Front", "nobody"]


class Front:
    """Ranks, rewards and activates by one log. Any number of threads may call its methods.

    Parameters
    ----------
    folder : path
        The folder of the service.
    log : SegmentLog
        Its log.
    join : Join
        The decisions of the log up to its end.
    published : Published
        The model that ranks; it may be replaced at any time.
    limits : Limits
        How much is taken.
    app : str
        Names the service; with the id of an event it gives the number from which its action is drawn.
    namespaces : iterable of str
        Names of namespaces that are known already.
    clock : callable
        Returns the time in seconds.
    deliver : callable
        As for `GroupCommit`.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        log: SegmentLog,
        join: Join,
        published: Published,
        *,
        limits: Limits,
        app: str,
        namespaces: Iterable[str],
        clock: Callable[[], float],
        deliver: Callable[[Sequence[Done], Exception | None], object],
    ) -> None:
        self.folder, self.log, self.join, self.published = Path(folder), log, join, published
        self.limits, self.app, self.clock = limits, app, clock
        self._namespaces = set(namespaces if limits.only is None else limits.only)
        self._lock = threading.Lock()
        self._commit = GroupCommit(log, deliver=deliver)

    def rank(self, question: Question, done: Done) -> Ranked:
        """Decide, and return the answer; it may be given away once `done` is called.

        Raises
        ------
        RefusedError
            The question is malformed or too large, too much waits, or the id is that of another question.
        """
        context = context_of(question, self.limits, self._namespaces)
        mode, published = self.join.settings.mode, self.published
        seed = seed_of(self.app, question.event_id)
        try:
            pmf = published.predictor.predict(b'{"c":%b}\n' % context)
        except InputError as error:
            raise RefusedError(f"the features cannot be read: {error}") from None
        count = len(question.ids)
        out = [index for index, name in enumerate(question.ids) if name in question.excluded]
        if len(pmf) != count:
            raise RefusedError(f"the features make {len(pmf)} actions, and there are {count}")
        if mode == "online":
            choice = choose(pmf.tolist(), out, seed)
        else:
            choice = only(next(index for index in range(count) if index not in out), count)
        answer = answer_of(choice, question.ids, event_id=question.event_id, model=published.name)
        with self._lock:
            now = self._now()
            before = self.join.find(question.event_id, now)
            if before is not None:
                return self._again(before.position, before.size, context, done)
            self._check_room(len(self.join), now)
            line = line_of(answer, context, time=now, seed=seed, mode=mode, deferred=question.deferred)
            self._submit(line, done)
        return answer

    def reward(self, event_id: str, value: float, done: Done, *, key: str = "") -> None:
        """Take a reward of a decision, which may have been made or not; it counts once `done` is called.

        Raises
        ------
        RefusedError
            The id is too long, the key belongs to another reward, or too much waits.
        """
        self._check_id(event_id)
        if len(key.encode()) > self.limits.name_bytes:
            raise RefusedError(f"the key of a reward has at most {self.limits.name_bytes} bytes")
        if not abs(value) < 3e38:
            raise RefusedError(f"the reward {value} is not a finite number that single precision has")
        with self._lock:
            known = self.join.key_of(event_id, key) if key else None
            if known is not None and known != value:
                raise RefusedError(f"key {key!r} belongs to a reward of {known} already", status=422)
            self._check_parts(event_id, bool(key))
            members = {"RewardId": key} if key else {}
            self._append("reward", done, EventId=event_id, RewardValue=value, **members)

    def activate(self, event_id: str, done: Done) -> None:
        """Let a deferred decision be learnt; it counts once `done` is called.

        Raises
        ------
        RefusedError
            The id is too long, or too much waits.
        """
        self._check_id(event_id)
        with self._lock:
            self._check_parts(event_id, keyed=False)
            self._append("activate", done, EventId=event_id)

    def tick(self) -> None:
        """Let the time pass in the log, if decisions have waited for long enough and nothing else happens."""
        with self._lock:
            if self._commit.failed is None and self.join.is_due(self._now()):
                self._append("tick", nobody)

    @property
    def writable(self) -> bool:
        """True unless the log cannot be written any more."""
        return self._commit.failed is None

    @property
    def queued(self) -> int:
        """The number of records that wait to be written."""
        return len(self._commit)

    @property
    def unwritten(self) -> int:
        """The number of bytes of records that the disk does not have yet."""
        return self._commit.position - self.log.durable

    @property
    def groups(self) -> int:
        """The number of groups that were written."""
        return self._commit.groups

    def _now(self) -> float:
        """Return the time as the next record has it: it never runs back."""
        return max(self.clock(), self.join.now)

    def _again(self, position: int, size: int, context: bytes, done: Done) -> Ranked:
        """Return the answer that a decision was given before.

        Raises
        ------
        RefusedError
            It is being written, or something else was asked.
        """
        if position + size > self.log.durable:
            raise RefusedError("this event is being ranked by another request", status=409, retry_after=0.1)
        answer, asked = read_answer(self.log.line_at(position, size))
        if asked != context:
            raise RefusedError(
                f"event {answer.event_id!r} was ranked with other features: each decision needs its own id",
                status=409,
            )
        done(None)
        return answer

    def _check_id(self, event_id: str) -> None:
        if not event_id or len(event_id.encode()) > self.limits.name_bytes:
            raise RefusedError(f"the event id has 1 to {self.limits.name_bytes} bytes")

    def _check_parts(self, event_id: str, keyed: bool) -> None:
        """Refuse what would take memory without end."""
        parts = self.join.parts_of(event_id, keyed=keyed)
        if parts >= self.limits.parts:
            raise RefusedError(f"event {event_id!r} has {parts} rewards already", status=429)
        self._check_room(0 if parts else self.join.early, self._now())

    def _check_room(self, pending: int, now: float) -> None:
        """Refuse a record if too much waits."""
        if pending >= self.limits.pending:
            raise RefusedError(
                f"{pending} decisions wait for their rewards; no more are taken",
                status=429,
                retry_after=min(max(self.join.next_end - now, 1.0), 60.0),
            )
        if self.queued >= self.limits.queue:
            raise RefusedError(f"{self.queued} records wait to be written", status=429, retry_after=1.0)

    def _append(self, kind: str, done: Done, **members: Any) -> None:
        record = {"Type": kind, "Timestamp": stamp(self._now()), **members}
        self._submit(sealed(msgspec.json.encode(record)), done)

    def _submit(self, line: bytes, done: Done) -> None:
        """Let a line be written, and take it into the table.

        Raises
        ------
        RefusedError
            The log cannot be written.
        """
        try:
            position = self._commit.submit(line, done)
        except InputError as error:
            raise RefusedError(str(error), status=503) from None
        record: Record = read_record(line)
        self.join.take(record, position, len(line))


def nobody(error: Exception | None) -> None:
    """Let nobody wait for a record; if it cannot be written, the next one says so."""
    del error
