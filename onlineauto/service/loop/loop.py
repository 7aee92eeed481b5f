"""``Loop``: decides, keeps what it decided in a log, and learns from that log, in one folder.

Whatever is answered is in the log before. Ranks ask an immutable predictor; one thread takes the records of
the log, learns, and publishes the next predictor in its place. The table of decisions that a rank or a
reward looks into is the same join as the learner's, only further on: it takes each record as it is submitted.
"""

from __future__ import annotations

import io
import logging
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from onlineauto.errors import InputError, OnlineautoError, OptionError
from onlineauto.service.join.aggregation import AGGREGATIONS
from onlineauto.service.join.join import Join, JoinSettings
from onlineauto.service.learning.learner import Learner
from onlineauto.service.log.group_commit import GroupCommit, call_all
from onlineauto.service.log.record import Record, read_record, sealed, stamp
from onlineauto.service.log.segment_log import SegmentLog
from onlineauto.service.loop.board import board_of
from onlineauto.service.loop.folder_lock import FolderLock
from onlineauto.service.ranking.answer import Ranked, answer_of, line_of, read_answer
from onlineauto.service.ranking.choice import choose, only, seed_of
from onlineauto.service.ranking.question import Limits, Question, context_of
from onlineauto.service.refused import RefusedError
from onlineauto.workspace.options import REGISTRY

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

    from onlineauto.options import Configuration
    from onlineauto.service.log.group_commit import Done

__all__ = ["MODES", "Every", "Loop"]

MODES = ("online", "apprentice", "logging-only")
"""The model decides; the baseline decides and the model learns; the baseline decides, and nobody learns."""

_LOG = logging.getLogger("onlineauto.service")


class Every(msgspec.Struct, frozen=True):
    """Seconds between two publications, two snapshots, and two models of the history."""

    publish: float = 0.5
    snapshot: float = 30.0
    keep: float = 3600.0


class Loop:
    r"""A bandit with its log, its table of decisions and its model, in a folder.

    Any number of threads may call its methods; one thread calls `learn`.

    Parameters
    ----------
    folder : path
        The folder; it is made if it is not there. One process uses it at a time.
    configuration : Configuration
        Options of the model, of ``--cb_explore_adf``.
    settings : mapping, optional
        Entries of `JoinSettings` to change; all others are as the log has them, or the default.
    limits : Limits
        How much is taken.
    every : Every
        How often `learn` publishes and saves.
    app : str
        Names the service; with the id of an event it gives the number from which its action is drawn.
    keep : int
        Number of models in the history.
    keep_log : float, optional
        Seconds for which a segment of the log is kept behind its last record; by default all are.
    segment_bytes : int
        Size of a segment of the log.
    clock : callable
        Returns the time in seconds.
    deliver : callable
        As for `GroupCommit`.

    Raises
    ------
    InputError
        The folder cannot be used, or what is in it is damaged.
    OptionError
        The options are not of a bandit with actions, or those of another model.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     loop = Loop(folder, REGISTRY.parse("--cb_explore_adf"))
    ...     actions = [[{"topic": msgspec.Raw(b'"art"')}], [{"topic": msgspec.Raw(b'"sports"')}]]
    ...     answer = loop.rank(Question("e1", [{}], ["a", "b"], actions), lambda error: None)
    ...     loop.reward("e1", 1.0, lambda error: None)
    ...     loop.close()
    >>> answer.ids, answer.probabilities
    (['a', 'b'], [0.5, 0.5])
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        configuration: Configuration,
        *,
        settings: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        every: Every | None = None,
        app: str = "default",
        keep: int = 10,
        keep_log: float | None = None,
        segment_bytes: int = 64 << 20,
        clock: Callable[[], float] = time.time,
        deliver: Callable[[Sequence[Done], Exception | None], object] = call_all,
    ) -> None:
        configuration = _checked(configuration)
        self.folder, self.limits, self.every = Path(folder), limits or Limits(), every or Every()
        self.app, self.clock, self.keep_log = app, clock, keep_log
        self.failed: Exception | None = None
        self._closing = False
        self._held = FolderLock(folder)
        try:
            self.log = SegmentLog(self.folder / "log", segment_bytes=segment_bytes)
            self.learner = Learner(self.folder, self.log, configuration, keep=keep)
        except OnlineautoError:
            self._held.release()
            raise
        self.join = Join.of(self.learner.join.state())
        for position, line in self.log.lines(self.learner.position):
            self.join.take(read_record(line), position, len(line))
        self._namespaces = {each.decode("utf-8", "replace") for each in self.learner.workspace.layout.keys()}  # noqa: SIM118 - no mapping
        self.published, self.board = self.learner.publish(), board_of(self.learner)
        self._lock, self._learning = threading.Lock(), threading.RLock()
        self._done_at = {"learn": clock(), "publish": 0.0, "snapshot": clock(), "keep": clock()}
        self._commit = GroupCommit(self.log, deliver=deliver)
        options = {"options": configuration.command(kept=True)}
        changed = msgspec.structs.replace(self.join.settings, **options, **_settings(settings or {}))
        if changed != self.join.settings or not self.log.end:
            self._append("settings", _nobody, Settings=msgspec.to_builtins(changed))

    # -- what is asked ---------------------------------------------------------------------------------

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

    def change(self, settings: Mapping[str, Any], done: Done) -> JoinSettings:
        """Change how decisions are joined and who decides, from here on in the log; return what holds then.

        Raises
        ------
        OptionError
            A setting is unknown or out of range.
        """
        with self._lock:
            changed = msgspec.structs.replace(self.join.settings, **_settings(settings))
            self._append("settings", done, Settings=msgspec.to_builtins(changed))
        return changed

    def use_model(self, name: str, done: Done) -> None:
        """Let a model of the history learn and decide, from here on in the log.

        Raises
        ------
        InputError
            There is no such model.
        """
        self.learner.models.path(name)
        with self._lock:
            self._append("model", done, Model=name)

    def put_model(self, name: str, content: bytes, done: Done) -> None:
        """Take the bytes of a model into the history, and let it learn and decide.

        Raises
        ------
        InputError
            It is no model of these options.
        """
        self.learner.check(content)
        with self._learning:
            self.learner.models.put(name, content)
        self.use_model(name, done)

    def tick(self) -> None:
        """Let the time pass in the log, if decisions have waited for long enough and nothing else happens."""
        with self._lock:
            if self._commit.failed is None and self.join.is_due(self._now()):
                self._append("tick", _nobody)

    # -- what learns -----------------------------------------------------------------------------------

    def learn(self) -> int:
        """Take some records of the log and learn; publish and save what is due. Return the number of records.

        Raises
        ------
        OnlineautoError, OSError
            It cannot go on. Ranks are still answered, by the model that was published last.
        """
        with self._learning:
            if self.failed is not None:
                return 0
            try:
                taken = self.learner.step()
                if self.learner.position >= self.log.durable:
                    self._done_at["learn"] = self.clock()
                self._publish_and_save()
            except Exception as error:
                self.failed = error
                _LOG.exception("learning stopped", extra={"event": "learning_stopped"})
                raise
            return taken

    def keep_model(self) -> str:
        """Write the model as it is now into the history, and return its name.

        Raises
        ------
        OSError
            It cannot be written.
        """
        with self._learning:
            return self.learner.keep()

    def model(self) -> tuple[str, bytes]:
        """Return the name and the bytes of the champion alone, which others can rank with."""
        with self._learning:
            file = io.BytesIO()
            self.learner.workspace.save(file, predict_only=True)
            return self.learner.name, file.getvalue()

    def lag_seconds(self) -> float:
        """Return for how long there have been records that were not taken; 0 if there are none."""
        if self.learner.position >= self.log.durable:
            return 0.0
        return max(self.clock() - self._done_at["learn"], 0.0)

    @property
    def writable(self) -> bool:
        """True unless the log cannot be written any more."""
        return self._commit.failed is None

    @property
    def queued(self) -> int:
        """The number of records that wait to be written."""
        return len(self._commit)

    @property
    def groups(self) -> int:
        """The number of groups that were written."""
        return self._commit.groups

    def close(self) -> None:
        """Write what is waiting, learn it, and write a snapshot, unless learning has failed."""
        self._closing = True
        self._commit.close()
        with self._learning:
            while self.failed is None and self.learn():
                pass
            self.learner.close(snapshot=self.failed is None)
            self.log.close()
        self._held.release()

    # ---------------------------------------------------------------------------------------------------

    def _publish_and_save(self) -> None:
        now, every = self.clock(), self.every
        if self.learner.name != self.published.name and now - self._done_at["publish"] >= every.publish:
            self.published, self.board = self.learner.publish(), board_of(self.learner)
            self._done_at["publish"] = now
        if now - self._done_at["snapshot"] >= every.snapshot:
            self.learner.snapshot()
            self._done_at["snapshot"] = now
            if self.keep_log is not None:
                self._forget(now - self.keep_log)
        if now - self._done_at["keep"] >= every.keep:
            self.learner.keep()
            self._done_at["keep"] = now

    def _forget(self, before: float) -> None:
        """Remove the segments of the log that nobody needs and that were last written before a time."""
        positions = (self.learner.position, self.learner.join.oldest, self.join.oldest)
        needed = min(each for each in positions if each is not None)
        old = self.log.old_segments(needed, written_before=before)
        if not old or self._closing:
            return
        with self._lock:  # what is left says how to join
            self._append("settings", _nobody, Settings=msgspec.to_builtins(self.join.settings))
        self.log.remove_first(old)

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


def _nobody(error: Exception | None) -> None:
    """Let nobody wait for a record; if it cannot be written, the next one says so."""
    del error


def _checked(configuration: Configuration) -> Configuration:
    """Return the options of a model that a service can use: of decisions with actions, read as dsjson.

    Raises
    ------
    OptionError
        They are of something else.
    """
    if not configuration.get("cb_explore_adf"):
        raise OptionError("a service decides among actions that have features: give --cb_explore_adf")
    given = {
        option.name: configuration.get(option.name)
        for option in REGISTRY.options
        if option.name in configuration.supplied
    }
    return REGISTRY.from_keywords(**{**given, "dsjson": True})


def _settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings that are within range.

    Raises
    ------
    OptionError
        One is not.
    """
    try:
        found = msgspec.convert({**msgspec.to_builtins(JoinSettings()), **given}, JoinSettings)
    except msgspec.ValidationError as error:
        raise OptionError(f"settings: {error}") from None
    if found.aggregation not in AGGREGATIONS:
        raise OptionError(
            f"reward_aggregation takes one of {', '.join(AGGREGATIONS)}, not {found.aggregation}"
        )
    if found.mode not in MODES:
        raise OptionError(f"mode takes one of {', '.join(MODES)}, not {found.mode}")
    if not 0 < found.reward_wait <= 30 * 86400 or not abs(found.default_reward) < 3e38:
        raise OptionError(
            f"reward_wait is {found.reward_wait} and default_reward {found.default_reward}; the first is "
            "above 0 and at most 30 days in seconds, the second finite"
        )
    return {name: getattr(found, name) for name in given}
