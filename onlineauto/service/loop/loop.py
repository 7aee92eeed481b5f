"""``Loop``: decides, logs its decisions, and learns from the log, in one folder.

Every answer is in the log before it is sent. Ranks use an immutable predictor; one thread takes the records
of the log, learns, and publishes the next predictor.
"""

from __future__ import annotations

import io
import logging
import threading
import time
from contextlib import ExitStack, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from onlineauto.api.champion import champion_of
from onlineauto.automl.config import namespace_text
from onlineauto.errors import InputError, OnlineautoError, OptionError
from onlineauto.formats.decisions.dsjson import stamp
from onlineauto.formats.lines.diagnostics import ProblemCode
from onlineauto.service.join.join import MOST_SOURCES, Join, replay
from onlineauto.service.join.settings import JoinSettings, check_settings, seconds_of
from onlineauto.service.learning.experiment import CANARY, LEAST_SHARE, can_compare
from onlineauto.service.learning.learner import LogLearner
from onlineauto.service.learning.segments import SegmentSummary
from onlineauto.service.learning.values import Agreement, Point, Value
from onlineauto.service.log.segment_log import SegmentLog, call_all, read_record, sealed, taken_over
from onlineauto.service.loop.folder import claim_folder
from onlineauto.service.loop.front import WAITING, Front, SteadyClock, ignore_completion
from onlineauto.service.loop.lease import lock_folder
from onlineauto.service.options import Limits
from onlineauto.service.refused import RefusedError
from onlineauto.workspace.options import REGISTRY
from onlineauto.workspace.pricing import check_priced
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

    from onlineauto.formats.decisions.dsjson import LogRecord
    from onlineauto.options import Configuration
    from onlineauto.service.learning.experiment import Experiment
    from onlineauto.service.learning.rounds import Learners
    from onlineauto.service.log.log_copier import LogCopier
    from onlineauto.service.log.segment_log import Done
    from onlineauto.service.loop.lease import Lease
    from onlineauto.service.loop.route_status import RouteStatus

_LOG = logging.getLogger("onlineauto.service")
_SILENT = 86400.0
"""Seconds after which a rank server that has handed over no record may be replaced by another one."""
_AGAIN = 1.0
"""Seconds after which failed learning or saving is tried again."""
_LOW_DISK: Final = 0.1
"""The free share of a disk below which there is a warning, as in ``alerts.yaml``."""
_SHARE = 10.0
"""The next snapshot waits for this multiple of the duration of the last one, since a large one is slow."""

NO_CANARY: Final[dict[str, Any]] = {"canary": "", "canary_share": 0.0}
"""The settings that end a canary."""

_MOST_CHANGES: Final = 20


class LiveConfigSummary(msgspec.Struct, frozen=True):
    """A live config: its interactions and settings, bounds on its reward and on the champion's since then."""

    interactions: list[str]
    settings: dict[str, float | str]
    events: int
    low: float
    high: float
    champion_low: float
    champion_high: float


class ChampionChange(msgspec.Struct, frozen=True):
    """A change of the champion: the number of events of its search, and the new champion's interactions."""

    events: int
    interactions: list[str]


class Board(msgspec.Struct, frozen=True):
    """The state of the model and of its search; the fields without a comment are those of `Status`."""

    model: str
    learnt: int
    faulty: int
    too_wide: int
    outliers: int
    waited: float  # Mean number of seconds that a learnt decision has waited.
    champion_changes: int
    changes: list[ChampionChange]  # The latest of these changes.
    live_configs: list[LiveConfigSummary]  # The champion first.
    values: list[Value]
    points: list[Point]
    agreement: Agreement
    segments: list[SegmentSummary]


def board_of(learner: LogLearner) -> Board:
    """Return the state of the model of a learner; its thread calls this."""
    workspace, values = learner.workspace, learner.values
    champion, estimates = champion_of(workspace), workspace.estimates
    live = []
    for index, config in enumerate(workspace.searching.live_configs.configs):
        names = workspace.searching.interactions(index)
        live.append(
            LiveConfigSummary(
                interactions=list(champion.interactions)
                if index == 0
                else ["*".join(map(namespace_text, interaction)) for interaction in names],
                settings=dict(champion.settings) | dict(config.settings),
                events=champion.events if index == 0 else estimates.updates(index),
                low=estimates.lower(index),
                high=estimates.upper(index),
                champion_low=estimates.champion_lower(index) if index else estimates.lower(0),
                champion_high=estimates.champion_upper(index) if index else estimates.upper(0),
            )
        )
    return Board(
        model=learner.name,
        learnt=learner.learnt,
        faulty=learner.faulty,
        too_wide=workspace.diagnostics.counts[ProblemCode.TOO_WIDE],
        outliers=sum(workspace.outliers.values()),
        waited=learner.waited / max(learner.learnt, 1),
        champion_changes=champion.changes,
        changes=[
            ChampionChange(change.events, ["*".join(map(namespace_text, names)) for names in change.after])
            for change in list(workspace.searching.changes)[-_MOST_CHANGES:]
        ],
        live_configs=live,
        values=values.values(),
        points=list(values.points),
        agreement=msgspec.structs.replace(values.agreement),
        segments=learner.segments.summaries(),
    )


def changes_after_alarm(experiment: Experiment, settings: JoinSettings) -> dict[str, Any]:
    """Return the settings to change: a failed canary ends, and else the baseline decides; empty if none."""
    arm = experiment.failed_arm()
    changes: dict[str, Any] = {}
    if arm == CANARY and settings.canary:
        changes = NO_CANARY
    elif arm and arm != CANARY and settings.mode == "online":
        changes = {"mode": "apprentice"}
    if changes:
        _LOG.error(
            "a guardrail is broken: the %s is rolled back",
            arm,
            extra={"event": "rolled_back", "arm": arm, "quantity": experiment.alarms[-1].quantity},
        )
    return changes


class Every(msgspec.Struct, frozen=True):
    """Intervals in seconds: between publications, between snapshots, and between models of the history."""

    publish: float = 0.5
    snapshot: float = 30.0
    keep: float = 3600.0


class Loop(Front):
    r"""A bandit with its log, its table of decisions and its model, in a folder.

    Any number of threads may call its methods; one thread calls `learn`.

    Examples
    --------
    >>> from onlineauto.service.ranking import RankRequest
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     loop = Loop(folder, REGISTRY.parse("--cb_explore_adf"))
    ...     actions = [[{"topic": msgspec.Raw(b'"art"')}], [{"topic": msgspec.Raw(b'"sports"')}]]
    ...     answer = loop.rank(RankRequest("e1", [{}], ["a", "b"], actions), lambda error: None)
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
        learners: Learners | None = None,
        compares: bool = False,
        lease: Lease | None = None,
        clock: Callable[[], float] | None = None,
        deliver: Callable[[Sequence[Done], Exception | None], object] = call_all,
    ) -> None:
        configuration, clock = service_configuration(configuration), clock or SteadyClock()
        self.every, self.keep_log = every or Every(), keep_log
        self.copies: list[LogCopier] = []  # filled by the process that copies the log elsewhere
        self.route: RouteStatus | None = None  # of a router
        self.checks: list[Callable[[], str]] = []  # each returns what is wrong around the loop, or ""
        self.failed: Exception | None = None
        self.unsaved: OSError | None = None
        self._again_at = self._took = 0.0
        self._switched = 0  # the position behind the latest switch to another model
        self._closing = False
        self.lease = lease
        self._held = lock_folder(Path(folder), lease)
        with ExitStack() as failing:
            failing.callback(self._held.release)
            alone = nullcontext if lease is None else lease.alone
            claim_folder(Path(folder), alone)
            log = SegmentLog(
                Path(folder) / "log", segment_bytes=segment_bytes, keep_damaged=True, alone=alone
            )
            log.fence = None if lease is None else lease.check
            failing.callback(log.close)
            self.learner = LogLearner(folder, log, configuration, keep=keep, learners=learners)
            failing.callback(self.learner.close, snapshot=False)
            join = Join.of(self.learner.join.state())
            for _ in replay(join, log, self.learner.position):
                pass
            options = {"options": configuration.command(kept=True)}
            changed = _changed(join.settings, {**(settings or {}), **options})
            if compares:
                _check_guardrails(changed, settings or {})
            if changed.budget is not None:
                check_priced(configuration)
            failing.pop_all()
        self._behind_at_first = log.end
        self.board = board_of(self.learner)
        self.experiment, self._reported = self.learner.experiment.report(), -1
        self.traffic, self._watched = self.learner.traffic.summary(), -1
        self._learning = threading.RLock()
        now = clock()
        self._done_at = {
            "learn": now,
            "publish": 0.0,
            "snapshot": now,
            "keep": now,
            "report": 0.0,
            "traffic": 0.0,
        }
        known = list(self.learner.workspace.layout.keys())
        super().__init__(
            folder,
            log,
            join,
            self.learner.publish(),
            limits=limits or Limits(),
            app=app,
            namespaces=(name.decode("utf-8", "replace") for name in known),
            clock=clock,
            deliver=deliver,
        )
        if changed != self.join.settings or not self.log.end:
            self._append("settings", ignore_completion, Settings=msgspec.to_builtins(changed))
        self._load_canary()

    def take_over(self, source: str, position: int, content: bytes, done: Done) -> int:
        """Take over records of the log of a rank server; return the position of the next record to send."""
        with self._lock:
            known, now = self.join.sources.get(source, 0), self._now()
            if position > known:
                raise RefusedError(f"{source} is known up to {known}, not {position}", status=409)
            if len(source.encode()) > self.limits.name_bytes:
                raise RefusedError(f"the name of a rank server has at most {self.limits.name_bytes} bytes")
            taken: list[tuple[LogRecord, int, bytes]] = []
            for line in content.splitlines(keepends=True):
                position += len(line)
                record = read_record(line, where=f"the log of {source}")
                if record.kind not in ("rank", "reward", "activate", "metric", "cost"):
                    line = sealed(b'{"Type":"tick","Timestamp":"%b"}' % stamp(now).encode())
                if position > known:
                    taken.append((record, position, line))
            if taken and not known:
                self._check_source(source, taken[0][0], now)
            begin = known
            for record, behind, line in taken:
                waits = record.kind == "rank" and self.join.find(record.event_id, now) is None
                if waits and known > begin and self.join.waiting >= self.limits.pending:
                    break  # the rank server sends it again, with the records behind it
                if waits or known == begin:
                    self._check_room(self.join.waiting if waits else 0, WAITING, now)
                no_room = record.kind != "rank" and not self._has_room(record)
                moved = taken_over(line, source=source, behind=behind, time=now, no_room=no_room)
                self._submit(moved, ignore_completion)
                known = behind
            if known > begin:
                self._write(b"", done)  # calls `done` once all records are written
            else:
                done(None)
            return known

    def change(self, settings: Mapping[str, Any], done: Done) -> JoinSettings:
        """Change settings of the join for all later records; return the resulting settings."""
        with self._lock:
            return self._change(settings, done)

    def use_model(self, name: str, done: Done) -> None:
        """Switch to a model of the history, from here on in the log."""
        self.learner.models.path(name)
        with self._lock:
            self._append("model", done, Model=name)
            self._switched = self._commit.position
        if name == self.join.settings.canary:  # it decides for all now
            self.change(NO_CANARY, ignore_completion)
            self._load_canary()

    def start_canary(self, name: str, share: float, done: Done) -> None:
        """Let a model of the history decide for a share of the units; a share of 0 ends the canary."""
        if share:
            self.learner.published(name)
            self.change({"canary": name, "canary_share": share}, done)
        else:
            self.change(NO_CANARY, done)
        self._load_canary()

    def put_model(self, name: str, content: bytes, done: Done) -> None:
        """Add the bytes of a model to the history, and switch to it."""
        self.learner.check(content)
        with self._learning:
            self.learner.models.put(name, content)
        self.use_model(name, done)

    # -- learning --------------------------------------------------------------------------------------

    def learn(self) -> int:
        """Take some records of the log and learn; publish and save when due. Return the number of records.

        Failed learning is tried again after a second; calls before that return 0.
        """
        with self._learning:
            if self.failed is not None and time.monotonic() < self._again_at:
                return 0
            try:
                if self.lease is not None:
                    self.lease.check()
                taken = self.learner.step()
                self._roll_back()
                if self.learner.position >= self.log.durable:
                    self._done_at["learn"] = self.clock()
                self._publish_and_save()
            except Exception as error:
                if self.failed is None or str(self.failed) != str(error):
                    _LOG.exception("learning has stopped", extra={"event": "learning_stopped"})
                self.failed = error
                self._again_at = time.monotonic() + _AGAIN
                raise
            if self.failed is not None:
                self.failed = None
                _LOG.warning("learning continues", extra={"event": "learning_goes_on"})
            return taken

    def keep_model(self) -> str:
        """Write the current model into the history, and return its name."""
        with self._learning:
            return self.learner.keep()

    def model(self, *, learns: bool = False) -> tuple[str, bytes]:
        """Return the name and the bytes of the predicting model, with which rank servers rank identically.

        With `learns`, the model is whole: it can be put into another service and learns there.
        """
        with self._learning:
            self.learner.mend()
            file = io.BytesIO()
            self.learner.workspace.save(file, predict_only=False if learns else "ensemble")
            return self.learner.name, file.getvalue()

    def empty_model(self) -> bytes:
        """Return the bytes of a model with these options that has learnt nothing."""
        file = io.BytesIO()
        Workspace(configuration=self.learner.workspace.configuration).save(file)
        return file.getvalue()

    def log_times(self) -> tuple[float, float]:
        """Return the times of the first and the last record of the log, in seconds."""
        for _, line in self.log.lines(self.log.begin):
            with suppress(InputError):
                return read_record(line).time.timestamp(), self._latest
        return self._latest, self._latest

    @property
    def trouble(self) -> str:
        """The reason why the loop does not decide, learn or save, or ""."""
        if self.lease is not None and (problem := self.lease.problem):
            return problem
        if self.failed is not None:
            return super().trouble or f"learning has stopped: {self.failed}"
        return super().trouble or (
            "" if self.unsaved is None else f"the model cannot be saved: {self.unsaved}"
        )

    @property
    def outages(self) -> list[str]:
        """Why the log is not copied at present, and why no model answers a router."""
        copies = [copier.status() for copier in self.copies]
        found = [f"the log is not copied to {copy.target}: {copy.error}" for copy in copies if copy.error]
        return found if self.route is None or not self.route.trouble else [*found, self.route.trouble]

    @property
    def warnings(self) -> list[str]:
        """What is unusual, with a likely cause."""
        free = self.disk_free_share
        found = [
            super().trouble,
            f"{100 * free:.0f} % of the disk of {self.folder} is free." if free < _LOW_DISK else "",
            *self.outages,
            *(check() for check in self.checks),
        ]
        return [*filter(None, found), *self.traffic.warnings]

    @property
    def writable(self) -> bool:
        """True unless the log cannot be written at present, or another process may write it."""
        return super().writable and (self.lease is None or not self.lease.problem)

    @property
    def epoch(self) -> int:
        """The epoch of the lease; 0 without one."""
        return 0 if self.lease is None else self.lease.epoch

    @property
    def caught_up(self) -> bool:
        """True once every record that the log had at its opening is learnt, or learning has stopped."""
        return self.failed is not None or self.learner.position >= self._behind_at_first

    def lag_seconds(self) -> float:
        """Return the age of the oldest record that was not learnt; 0 if there is none."""
        if self.learner.position >= self.log.durable:
            return 0.0
        return max(self.clock() - self._done_at["learn"], 0.0)

    def close(self) -> None:
        """Write queued records, learn them, and write a snapshot.

        A failed write is logged: the records are in the log, and the next start learns them again.
        """
        self._closing = True
        self._commit.close()
        with self._learning:
            self._again_at = 0.0
            writes = self.lease is None or not self.lease.problem
            close_learner = partial(self.learner.close, snapshot=writes)
            for finish in (self._learn_the_rest, close_learner, self.log.close):
                try:
                    finish()
                except Exception as error:  # the process ends anyway, so the error is only logged
                    _LOG.error(
                        "the service ends without its last step; the next start learns from the log: %s",
                        error,
                        extra={"event": "unsaved"},
                    )
        self._held.release()

    # ---------------------------------------------------------------------------------------------------

    def _check_source(self, source: str, first: LogRecord, now: float) -> None:
        """Reject the first record of a rank server if there are too many servers, or if it may be known."""
        join = self.join
        if join.retired and first.time.timestamp() <= join.retired:
            raise RefusedError(
                f"rank server {source!r} is not known, and has records from before {stamp(join.retired)}. "
                "Rank servers that were silent since then are forgotten, so these records may be learnt "
                "already: begin with another folder",
                status=409,
            )
        if len(join.sources) >= MOST_SOURCES and (silent := now - min(join.heard.values())) < _SILENT:
            raise RefusedError(
                f"{MOST_SOURCES} rank servers have sent records within the last day; no more are accepted",
                status=429,
                retry_after=min(max(_SILENT - silent, 1.0), 60.0),
            )

    def _has_room(self, record: LogRecord) -> bool:
        """Return whether a reward or an activation taken over may wait, or a metric's key be remembered."""
        if record.kind not in ("reward", "activate"):
            return self.join.n_metrics(record.event_id) < self.limits.parts
        join, parts = self.join, self.join.parts_of(record.event_id, keyed=bool(record.key))
        return parts < self.limits.parts and (
            join.is_known(record.event_id) or join.early < self.limits.pending
        )

    def _roll_back(self) -> None:
        """Let the baseline decide, or end the canary, if a guardrail that asks for it is broken."""
        learner = self.learner
        if not learner.experiment.failed_arm() or not self.caught_up:
            return  # while the log is learnt again, it may have the answer to this alarm already
        with self._lock:
            settings = self.join.settings
            if learner.join.settings.epoch != settings.epoch or learner.position < self._switched:
                return  # the alarm is about an earlier epoch
            changes = changes_after_alarm(learner.experiment, settings)
            if changes:
                self._change(changes, ignore_completion)
        if changes:
            self._load_canary()

    def _change(self, settings: Mapping[str, Any], done: Done) -> JoinSettings:
        """Change settings of the join; the caller holds the lock."""
        changed = _changed(self.join.settings, settings)
        _check_guardrails(changed, settings)
        if changed.budget is not None:
            check_priced(self.learner.workspace.configuration)
        self._append("settings", done, Settings=msgspec.to_builtins(changed))
        return changed

    def _load_canary(self) -> None:
        """Load the canary of the settings; without its model, the canary ends."""
        settings = self.join.settings
        self.learner.models.in_use = settings.canary
        if not settings.canary:
            self.canary = None
        elif self.canary is None or self.canary.name != settings.canary:
            try:
                self.canary = self.learner.published(settings.canary)
            except OnlineautoError as error:
                _LOG.error("the canary ends: %s", error, extra={"event": "canary_lost"})
                self.change(NO_CANARY, ignore_completion)
                self._load_canary()

    def _learn_the_rest(self) -> None:
        while self.learn():
            pass

    def _publish_and_save(self) -> None:
        now, every = self.clock(), self.every
        if self.learner.name != self.published.name and self._is_due("publish", now, every.publish):
            self.published, self.board = self.learner.publish(), board_of(self.learner)
            self._done_at["publish"] = now
        changes = self.learner.experiment.changes
        if changes != self._reported and self._is_due("report", now, every.publish):
            self.experiment, self._reported = self.learner.experiment.report(), changes
            self._done_at["report"] = now
        seen = self.learner.traffic.seen
        if seen != self._watched and self._is_due("traffic", now, max(every.publish, 1.0)):
            self.traffic, self._watched = self.learner.traffic.summary(), seen
            self._done_at["traffic"] = now
        if self.unsaved is not None and time.monotonic() < self._again_at:
            return
        try:
            self._save(now)
        except OSError as error:
            if self.unsaved is None:
                _LOG.error("the model cannot be saved: %s", error, extra={"event": "not_saved"})
            self.unsaved = error
            self._again_at = time.monotonic() + _AGAIN

    def _save(self, now: float) -> None:
        """Write the snapshot and the model of the history, if they are due."""
        every = max(self.every.snapshot, _SHARE * self._took)
        if self.learner.snapshot_due or self._is_due("snapshot", now, every):
            begin = time.monotonic()
            self.learner.snapshot()
            self._took = time.monotonic() - begin
            self._done_at["snapshot"] = now
            if self.unsaved is not None:
                self.unsaved = None
                _LOG.warning("the model can be saved again", extra={"event": "saved"})
            if self.keep_log is not None:
                self._forget(now - self.keep_log)
        if self._is_due("keep", now, self.every.keep):
            self.learner.keep()
            self._done_at["keep"] = now

    def _is_due(self, what: str, now: float, every: float) -> bool:
        """Return whether the interval of a task has passed, or the clock was set back since."""
        return not 0.0 <= now - self._done_at[what] < every

    def _forget(self, before: float) -> None:
        """Remove the segments of the log that are not needed and were last written before a time."""
        with self._lock:  # other threads take records into this table
            oldest = self.join.oldest
        positions = (self.learner.position, self.learner.join.oldest, oldest)
        needed = min(position for position in positions if position is not None)
        old = self.log.old_segments(needed, written_before=before)
        if not old or self._closing:
            return
        with self._lock:  # the settings must be in the remaining part of the log
            self._append("settings", ignore_completion, Settings=msgspec.to_builtins(self.join.settings))
        self.log.remove_first(old)


def service_configuration(configuration: Configuration) -> Configuration:
    """Return the options of a model, if a service can use them: decisions with actions, read as dsjson."""
    if configuration.get("ccb_explore_adf"):
        raise OptionError(
            "a service learns each slot as a decision: give --cb_explore_adf, not --ccb_explore_adf, and "
            "send POST /v1/rank/slots"
        )
    if not configuration.get("cb_explore_adf"):
        raise OptionError("a service decides among actions that have features: give --cb_explore_adf")
    supplied = {
        option.name: configuration.get(option.name)
        for option in REGISTRY.options
        if option.name in configuration.supplied
    }
    return REGISTRY.from_keywords(**{**supplied, "dsjson": True})


def _changed(before: JoinSettings, changes: Mapping[str, Any]) -> JoinSettings:
    """Return settings with the given fields replaced."""
    if "reward_wait" in changes:
        changes = {**changes, "reward_wait": seconds_of(changes["reward_wait"], name="reward_wait")}
    try:
        settings = msgspec.convert({**msgspec.to_builtins(before), **changes}, JoinSettings)
    except msgspec.ValidationError as error:
        raise OptionError(f"settings: {error}") from None
    check_settings(settings)
    return before.next_epoch(settings)


def _check_guardrails(settings: JoinSettings, changes: Mapping[str, Any]) -> None:
    """Reject guardrails, or a share of the control arm, with which nothing can ever be compared."""
    is_given = changes.get("guardrails") or (changes.get("control") and settings.guardrails)
    if is_given and not can_compare(settings.control, settings.canary_share):
        raise OptionError(
            f"guardrails compare with a control arm or a canary that has {LEAST_SHARE:.1%} of the units or "
            "more: give --control 5%, or begin a canary first"
        )
