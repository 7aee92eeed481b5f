"""``LogLearner``: a run over the log of a service. A kill at any instant does not change what is learnt.

The model is a function of the log: the join is a function of the records, and the model is a function of the
joined decisions, however they are cut into blocks. A snapshot holds the model, the join and the position in
the log, and replaces the previous snapshot atomically. So a restarted learner continues at the position of
its snapshot, and learns each decision exactly once.
"""

from __future__ import annotations

import logging
import os
import re
from contextlib import nullcontext, suppress
from pathlib import Path
from struct import error as StructError  # noqa: N812 - it is a class
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from onlineauto.engine.search.journal import Journal
from onlineauto.engine.stream.validity import unknown_names
from onlineauto.errors import InputError, OnlineautoError, OptionError
from onlineauto.features.options import FeatureOptions
from onlineauto.formats.sources.replaced_file import replacing
from onlineauto.learners.options import CbOptions
from onlineauto.service.join.join import EndedDecision, Join, JoinSettings, Skipped, replay, skipped_at
from onlineauto.service.join.settings import read_settings
from onlineauto.service.learning.evaluate import is_explored, label_line
from onlineauto.service.learning.experiment import CONTROL, TREATMENT, Experiment, LabelledDecision
from onlineauto.service.learning.rounds import ANY, PlannedRounds, valid_blocks
from onlineauto.service.learning.segments import Segments
from onlineauto.service.learning.traffic import TrafficWatch
from onlineauto.service.learning.values import Values
from onlineauto.service.log.segment_log import read_record
from onlineauto.workspace.model_file import replace_file
from onlineauto.workspace.options import REGISTRY
from onlineauto.workspace.run import Run, load_run
from onlineauto.workspace.save_load import load_model, with_changed_options
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from onlineauto.engine.event.outcomes import Outcomes
    from onlineauto.features.block import Block
    from onlineauto.formats.decisions.dsjson import LogRecord
    from onlineauto.formats.sources.replaced_file import Alone
    from onlineauto.options import Configuration
    from onlineauto.service.learning.rounds import Learners
    from onlineauto.service.log.segment_log import SegmentLog
    from onlineauto.workspace.model_file import State
    from onlineauto.workspace.predictor import Predictor
    from onlineauto.workspace.save_load import ModelSource

_LOG = logging.getLogger("onlineauto.service")
_MOST_LATEST: Final = 20
MOST_RECORDS: Final = 1024
"""Maximum number of records in one step."""

PUT: Final = "put-"
"""Prefix of the names of models that were learnt elsewhere."""
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


class ModelVersion(msgspec.Struct, frozen=True):
    """A model of the history: its name, and the time at which it was written, in seconds."""

    name: str
    time: float
    bytes: int


class Models:
    """Model files in a folder: the latest `keep`, and the one named `in_use`; changed within `alone`."""

    def __init__(self, folder: str | os.PathLike[str], *, keep: int = 10, alone: Alone = nullcontext) -> None:
        self.folder, self.keep, self.in_use, self._alone = Path(folder), keep, "", alone
        self.folder.mkdir(parents=True, exist_ok=True)

    def all(self) -> list[ModelVersion]:
        """Return the models, the oldest first."""
        models = []
        for path in self.folder.glob("*.oam"):
            status = path.stat()
            models.append(ModelVersion(path.stem, status.st_mtime, status.st_size))
        return sorted(models, key=lambda model: (model.time, model.name))

    def path(self, name: str) -> Path:
        """Return the file of a model."""
        path = self.folder / f"{name}.oam"
        if not _NAME.fullmatch(name) or not path.is_file():
            names = ", ".join(each.name for each in self.all()) or "none"
            raise InputError(f"there is no model {name!r} in the history; it has {names}")
        return path

    def add(self, name: str, write: Callable[[Path], object]) -> None:
        """Let `write` write a model under a name, unless the name exists, and remove the oldest models."""
        path = self.folder / f"{name}.oam"
        if not path.exists():
            write(path)
        with self._alone():
            for old in self.all()[: -self.keep]:
                if old.name not in (name, self.in_use):
                    (self.folder / f"{old.name}.oam").unlink(missing_ok=True)

    def put(self, name: str, content: bytes) -> None:
        """Write the bytes of a model under a name."""
        if not _NAME.fullmatch(name):
            raise InputError(
                f"a model cannot be called {name!r}: use at most 64 characters of a to z, 0 to 9 and '-'"
            )
        self.add(name, lambda path: replace_file(path, [content], alone=self._alone, private=True))


class JournalFile:
    """Appends to a file; bytes that the disk does not take are written first by the next write.

    `alone` raises an `OSError` if another process may write to the file.
    """

    def __init__(self, path: str | os.PathLike[str], size: int, *, alone: Alone = nullcontext) -> None:
        self.name, self._alone = Path(path).stem, alone
        with alone():
            self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            os.ftruncate(self._file, size)
        self._written, self._rest = size, b""

    def tell(self) -> int:
        """Return the size of the journal, including buffered bytes."""
        return self._written + len(self._rest)

    def write(self, data: bytes) -> int:
        """Append bytes."""
        self._rest += data
        return len(data)

    def flush(self) -> None:
        """Write as many buffered bytes as the disk takes."""
        with suppress(OSError):
            self._write()

    def sync(self) -> None:
        """Wait until the disk has everything."""
        self._write()
        os.fsync(self._file)

    def close(self) -> None:
        """Write as many buffered bytes as the disk takes, and close the file."""
        self.flush()
        os.close(self._file)

    def _write(self) -> None:
        with self._alone() if self._rest else nullcontext():
            while self._rest:
                done = os.pwrite(self._file, self._rest, self._written)
                self._written, self._rest = self._written + done, self._rest[done:]


class SearchJournal:
    """The journal of the current search, if the options ask for a search."""

    def __init__(self, folder: Path, alone: Alone) -> None:
        self._folder, self._alone = folder, alone
        self._file: JournalFile | None = None

    def open(self, name: str, size: int, configuration: Configuration) -> None:
        """Open the journal of a search with options, and cut it to `size` bytes."""
        self.close()
        if configuration.get("automl") is None:
            return
        self._folder.mkdir(exist_ok=True)
        self._file = JournalFile(self._folder / f"{name}.jsonl", size, alone=self._alone)
        self._writer = Journal(self._file, command=configuration.command(kept=True), began=size > 0)

    @property
    def place(self) -> tuple[str, int]:
        """The name and the size of the journal."""
        return ("", 0) if self._file is None else (self._file.name, self._file.tell())

    def append(self, entry: Any) -> None:
        """Write an entry of the search."""
        if self._file is not None:
            self._writer.append(entry)

    def sync(self) -> None:
        """Wait until the disk has everything."""
        if self._file is not None:
            self._file.sync()

    def close(self) -> None:
        """Close the journal, if one is open."""
        if self._file is not None:
            self._file.close()
            self._file = None


class Published(NamedTuple):
    """A model that ranks: an immutable predictor, its name, and the time of the log at publication."""

    predictor: Predictor
    name: str
    time: float

    @property
    def replaced(self) -> int:
        """The number of replacements of the model before it, from its name."""
        number = self.name.partition("-")[2]
        return int(number) if number.isascii() and number.isdigit() else 0


class _State(msgspec.Struct):
    """The part of a snapshot besides the model and its run."""

    position: int
    learnt: int
    faulty: int
    waited: float
    join: dict[str, Any]
    values: dict[str, Any]
    journal: tuple[str, int]
    used: int
    skipped: int
    latest: list[Skipped]
    held_out: int
    experiment: dict[str, Any]
    segments: dict[str, Any]
    traffic: dict[str, Any] = {}


class _LostError(InputError):
    """The log lacks the records that follow a snapshot."""


class LogLearner:
    """Takes the records of a log, joins them, and learns the joined decisions. One thread uses a learner."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        log: SegmentLog,
        configuration: Configuration,
        *,
        settings: JoinSettings | None = None,
        keep: int = 10,
        learners: Learners | None = None,
    ) -> None:
        self.folder, self.log = Path(folder), log
        self.models = Models(self.folder / "models", keep=keep, alone=log.alone)
        self.configuration, self._settings = configuration, settings or JoinSettings()
        self._journal = SearchJournal(self.folder / "journals", log.alone)
        self._rounds = None if learners is None else PlannedRounds(self.folder / "rounds", log, learners)
        self._part = ANY
        self._blocks: list[Block] = []
        self._explored = True  # True if the model chose the actions of the decisions that are being learnt
        self._predictor: Predictor | None = None
        self._unlearnable: dict[int, str] = {}  # the reasons for decisions that are left out, by position
        self._single_range: tuple[int, int] | None = None  # positions of decisions to learn one by one
        self._learning: LabelledDecision | None = None
        self._broken = False
        self.snapshot_due = False
        self.position, self.waited = log.begin, 0.0
        self._load()

    @property
    def snapshot_path(self) -> Path:
        """The file of the snapshot."""
        return self.folder / "snapshot.oam"

    @property
    def workspace(self) -> Workspace:
        """The workspace that learns."""
        return self._run.workspace

    @property
    def name(self) -> str:
        """The name of the model now: the number of learnt decisions, and of replacements of the model."""
        return f"{self.learnt:012d}-{self._used}" if self._used else f"{self.learnt:012d}"

    def step(self) -> int:
        """Apply the next records of the log; return their number.

        A decision whose learning raises an error is located and left out: the snapshot is loaded again, and
        the records behind it are learnt without that decision. So no decision leaves the model half changed.
        """
        self.mend()
        begin = self.position
        try:
            return self._step()
        except OSError:
            self._broken = True
            raise
        except Exception as error:
            self._broken = True
            self._isolate(begin, error)
            self.mend()
            return 1

    def mend(self) -> None:
        """Load the snapshot again if a step has failed before its end."""
        if self._broken:
            self._load()
            self._broken = False

    def _step(self) -> int:
        lines: list[LabelledDecision] = []
        taken, self._part = 0, ANY
        if self._rounds is not None and self._single_range is None:
            self._part = self._rounds.part_at(self.position, self.learnt)
        most = ANY.end if self._part.together else MOST_RECORDS
        for entry in replay(self.join, self.log, self.position):
            for ended in entry.ended:
                self.waited += ended.waited
                self.traffic.take_reward(ended.reward, rewarded=ended.rewarded)
                decided = self._labelled_decision(ended)
                if decided is None:
                    continue
                if decided.arm:
                    self.experiment.take(decided, ended.reward, self.join.now)
                if decided.arm == CONTROL:
                    self.held_out += 1
                    continue
                if lines and (decided.explored != self._explored or len(lines) >= most):
                    self._learn(lines, entry.mode)
                    lines = []
                self._explored = decided.explored
                lines.append(decided)
            if entry.skipped is not None:
                self._skip(entry.skipped)
            elif entry.record is not None and entry.record.kind in ("settings", "model"):
                self._learn(lines, entry.mode)  # decisions before this record are learnt in the earlier mode
                lines = []
            self.position = entry.position + len(entry.line)
            taken += 1
            if entry.record is not None:
                self._follow(entry.record, entry.position)
            if self.position >= self._part.end or taken == most:
                break
            if self._single_range is not None and self.position == self._single_range[0]:
                break
        self._learn(lines, self.join.settings.mode)
        self._end_single_range()
        return taken

    def publish(self) -> Published:
        """Return the model in its current state, for ranking."""
        predictor = self.workspace.predictor()
        self._predictor = predictor if self._predictor is None else predictor.like(self._predictor)
        return Published(self._predictor, self.name, self.join.now)

    def published(self, name: str) -> Published:
        """Return a model of the history, for ranking; it does not learn."""
        workspace, _ = self._load_servable(self.models.path(name))
        return Published(workspace.predictor(), name, self.join.now)

    def snapshot(self) -> None:
        """Write the model, the join and the position in the log; the file is replaced atomically."""
        self.snapshot_due = True
        self._journal.sync()
        self._write(self.snapshot_path)
        self.snapshot_due = False

    def _write(self, path: Path) -> None:
        """Write the model and the state to a file, unless another process has taken over meanwhile."""
        with replacing(path, alone=self.log.alone, private=True) as file:
            self._run.checkpoint(file)

    def check(self, content: bytes) -> None:
        """Check that bytes are a model that this learner could use."""
        self._load_servable(content)

    def _load_servable(self, source: ModelSource) -> tuple[Workspace, State]:
        """Return the workspace and the run of a model file, if a service can rank with it."""
        needs_warm_start = OptionError(
            "a service cannot rank with a model of --vw_exact, as convert makes of one of Vowpal Wabbit: "
            "put the file of AutoML(names=…, hash_bits=…).warm_start(…, namespaces=[…]).save(…)"
        )
        try:
            workspace, stored = load_model(Workspace, source, self.configuration)
        except OptionError:  # other options than those of the service, which those of --vw_exact are always
            if load_model(Workspace, source, REGISTRY.from_keywords())[0].semantics.notices_predicted:
                raise needs_warm_start from None
            raise
        if workspace.semantics.notices_predicted:
            raise needs_warm_start
        if workspace.configuration[FeatureOptions].names == "unknown":
            raise unknown_names()
        return workspace, stored

    def keep(self) -> str:
        """Write the current model into the history, and return its name."""
        self.mend()
        self.models.add(self.name, self._write)
        return self.name

    def close(self, *, snapshot: bool = True) -> None:
        """Write a snapshot, unless a step has failed, and close the journal."""
        try:
            if snapshot and not self._broken:
                self.snapshot()
        finally:
            self._journal.close()
            if self._rounds is not None:
                self._rounds.learners.close()

    def release(self) -> None:
        """Free the model of a closed learner now, since the learner and its run refer to each other."""
        self._run.sinks.clear()
        del self._run

    # -- sink of the run -------------------------------------------------------------------------------

    def take(self, block: Block, outcomes: Outcomes) -> None:  # noqa: ARG002 - as `RunSink` has it
        """Record the outcomes of a block that the run has learnt."""
        self.learnt += len(outcomes)
        kept = self._run.workspace.configuration[CbOptions].keep_unrewarded
        self.values.take(outcomes, explored=self._explored, kept=kept)

    def state(self) -> dict[str, Any]:
        """Return the part of a snapshot besides the model and its run."""
        state = _State(
            self.position,
            self.learnt,
            self.faulty,
            self.waited,
            self.join.state(),
            self.values.state(),
            self._journal.place,
            self._used,
            self.skipped,
            self.latest,
            self.held_out,
            self.experiment.state(),
            self.segments.state(),
            self.traffic.state(),
        )
        return {"service": msgspec.structs.asdict(state)}

    # ---------------------------------------------------------------------------------------------------

    def _load(self) -> None:
        """Load the snapshot, or start without one; a damaged snapshot is rebuilt from the log."""
        path, problem = self.snapshot_path, f"{self.snapshot_path} is missing"
        if path.exists():
            try:
                return self._restore(path)
            except (_LostError, OptionError, OSError):
                raise
            except Exception as error:  # the damage may raise anything; the log has the same information
                problem = str(error)
                with self.log.alone():
                    path.replace(path.with_suffix(".damaged"))
                _LOG.error(
                    "the snapshot is damaged, and learnt again from the log: %s",
                    error,
                    extra={"event": "snapshot_damaged", "kept_as": str(path.with_suffix(".damaged"))},
                )
        lost = self._lost_model(self.log.begin) if path.with_suffix(".damaged").exists() else ""
        if not self.log.begin and not lost:
            self._reset()
            self.configuration = self._with_logged_options(self.log.begin, "")
            self._begin(Workspace(configuration=self.configuration), {})
            self._journal.open("000000000000", 0, self.configuration)
            return None
        for model in reversed(self.models.all()):
            if not model.name.startswith(PUT):  # an uploaded model was learnt from another log
                with suppress(Exception):  # the next model may be undamaged
                    self._restore(self.models.path(model.name))
                    if not lost or not self._lost_model(self.position):
                        return None
        raise InputError(
            f"{problem}, and {self.models.folder} lacks {lost}.oam, which the log names: restore one of them "
            f"from a copy; or remove {path.with_suffix('.damaged')}, to learn again without that model"
            if lost
            else f"{problem}, and the log no longer has its beginning: restore the file from a backup, or "
            "begin with another folder"
        )

    def _logged(self, kind: str, position: int) -> Iterator[LogRecord]:
        """Yield the undamaged records of a kind in the log, from a position on."""
        head = b'{"Type":"%b"' % kind.encode()
        for _, line in self.log.lines(position):
            if line.startswith(head):
                with suppress(InputError):
                    record = read_record(line)
                    yield record

    def _lost_model(self, position: int) -> str:
        """Return the name of a model that the log names from a position on and the history lacks, or ""."""
        names = (record.model for record in self._logged("model", position))
        return next((name for name in names if not (self.models.folder / f"{name}.oam").exists()), "")

    def _with_logged_options(self, position: int, options: str) -> Configuration:
        """Return the options, with those of the last settings in the log from `position` on, or `options`."""
        for record in self._logged("settings", position):
            with suppress(InputError):  # its settings are damaged
                options = read_settings(record.settings).options or options
        if not options:
            return self.configuration
        try:
            logged = REGISTRY.parse_kept(options)
        except OptionError as error:
            raise InputError(
                f"{self.log.folder} has options that this program does not know: {error}"
            ) from None
        return with_changed_options(logged, self.configuration, name=str(self.log.folder))

    def _reset(self) -> None:
        """Start with an empty model at the beginning of the log."""
        self.values, self.join = Values(), Join(self._settings)
        self.position, self.waited = self.log.begin, 0.0
        self.learnt = self.faulty = self.skipped = self.held_out = self._used = 0
        self.experiment, self.segments = Experiment(self._settings), Segments()
        self.traffic = TrafficWatch()
        self.latest: list[Skipped] = []

    def _restore(self, path: Path) -> None:
        """Restore the state in a snapshot, or in a model of the history."""
        workspace, stored = load_run(path, self.configuration)
        try:
            state = msgspec.convert(stored["service"], _State)
            join, values = Join.of(state.join), Values.of(state.values)
            experiment = Experiment.of(state.experiment)
            segments, traffic = Segments.of(state.segments), TrafficWatch(state.traffic)
        except (KeyError, ValueError, StructError) as error:
            raise InputError(f"{path} is not a snapshot of a service: {error}") from None
        if state.position < self.log.begin:
            raise InputError(f"{path} continues at {state.position}, and the log begins at {self.log.begin}")
        if state.position > self.log.end:
            raise _LostError(
                f"{path} continues at position {state.position} of the log, which has the positions "
                f"{self.log.begin} to {self.log.end}: the end of the log is lost, or the log is of another "
                f"service. Restore the log from a backup; or move {path.name} to another folder, and the "
                "service learns again from the log"
            )
        configuration = self._with_logged_options(state.position, join.settings.options)
        if configuration != workspace.configuration:
            workspace, stored = load_run(path, configuration)
        self._reset()
        self.configuration = configuration
        self.join, self.values = join, values
        self.position, self.waited = state.position, state.waited
        self.learnt, self.faulty, self._used = state.learnt, state.faulty, state.used
        self.skipped, self.latest = state.skipped, state.latest
        self.held_out, self.experiment, self.segments = state.held_out, experiment, segments
        self.traffic = traffic
        self._journal.open(*state.journal, configuration)
        self._begin(workspace, stored)

    def _begin(self, workspace: Workspace, stored: dict[str, Any]) -> None:
        """Let a workspace learn the following records."""
        counters = {name: stored[name] for name in ("progress",) if name in stored}
        self._run = Run(workspace, self._feed(), stored=counters)
        self._run.sinks.append(self)
        workspace.observe(self._journal.append)

    def _follow(self, record: LogRecord, position: int) -> None:
        """Apply a record that changes the model or the settings, or that has the value of a metric."""
        if record.kind == "model":
            self._use(record.model, position)
        elif record.kind == "settings":
            self.experiment.follow(self.join.settings, self._used, self.join.now)
        elif record.kind == "metric" and not self.join.is_repeated:
            self._take_metric(record)

    def _take_metric(self, record: LogRecord) -> None:
        """Add the value of a metric to its decision; a value of an unknown decision is only counted."""
        found = self.join.find(record.event_id, (record.taken or record.time).timestamp())
        until = found.deadline if found is not None and self.join.waits(record.event_id) else 0.0
        decided = None
        if found is not None:
            with suppress(OnlineautoError, LookupError, ValueError):  # the decision is damaged or removed
                decision = read_record(self.log.line_at(found.position, found.size))
                decided = LabelledDecision(
                    found.position, b"", True, decision.arm, decision.bucket, decision.epoch
                )
        self.experiment.take_metric(record.metric, record.value, decided, self.join.now, until=until)

    def _use(self, name: str, position: int) -> None:
        """Continue learning with a model of the history, if it exists and matches the options."""
        try:
            workspace, stored = self._load_servable(self.models.path(name))
        except OnlineautoError as error:
            self._skip(skipped_at(self.log, position, error))
            return
        self._used += 1
        self.experiment.follow(self.join.settings, self._used, self.join.now)  # before the snapshot
        self._begin(workspace, stored)
        self._journal.open(self.name, 0, self.configuration)
        with suppress(OSError):  # the snapshot is written later
            self.snapshot()  # now, because the history may drop that model before the next snapshot is due

    def _feed(self) -> Iterator[Block]:
        while True:
            yield self._blocks.pop(0)

    def _labelled_decision(self, ended: EndedDecision) -> LabelledDecision | None:
        """Return an ended decision with its label; None if it cannot be learnt."""
        reason = self._unlearnable.get(ended.position)
        if reason is not None:
            self.faulty += 1
            self._skip(skipped_at(self.log, ended.position, reason))
            return None
        try:
            line = self.log.line_at(ended.position, ended.size)
            record = read_record(line)
            labels = label_line(line, record, ended.reward)
        except (OnlineautoError, LookupError, ValueError, TypeError) as error:
            self.faulty += 1
            self._skip(skipped_at(self.log, ended.position, error))
            return None
        explored = is_explored(line)
        self.traffic.take(record, explored=explored)
        if explored and record.arm in ("", TREATMENT):
            self.segments.take(record, ended.reward)
        return LabelledDecision(ended.position, labels, explored, record.arm, record.bucket, record.epoch)

    def _learn(self, decided: list[LabelledDecision], mode: str) -> None:
        """Learn decisions, unless the mode is logging-only; count the decisions that cannot be learnt."""
        if not decided or mode == "logging-only":
            return
        single = self._single_range is not None and self.position >= self._single_range[0]
        for part in [[decision] for decision in decided] if single else [decided]:
            self._learning = part[0] if single else None
            before = self.learnt
            blocks = valid_blocks(self.workspace, b"".join(decision.line for decision in part))
            if self._rounds is not None and self._part.together:
                for learnt in self._rounds.learners.learn(self.workspace, [*blocks], self.learnt):
                    self._run.progress.update(learnt[1], emit=None)
                    self.take(*learnt)
            else:
                for block in blocks:
                    self._blocks.append(block)
                    self._run.step(len(block))
            if self.learnt - before < len(part):
                self._count_faulty(part)
        self._learning = None

    def _count_faulty(self, decided: list[LabelledDecision]) -> None:
        """Count the decisions whose lines have no valid event, and report their positions."""
        for decision in decided:
            if not [*valid_blocks(self.workspace, decision.line)]:
                self.faulty += 1
                self._skip(skipped_at(self.log, decision.position, "it has no event that can be learnt"))

    def _isolate(self, begin: int, error: Exception) -> None:
        """Prepare to repeat a step without the decision that raised an error, or to locate it."""
        decided, self._learning = self._learning, None
        self._blocks.clear()
        _LOG.error("a step of learning has failed", exc_info=error, extra={"event": "learning_failed"})
        if decided is not None:
            self._unlearnable[decided.position] = f"it cannot be learnt: {error}"
        elif self._single_range is None:
            self._single_range = (begin, max(self.position, begin + 1))
        else:  # no single decision was being learnt, so none can be left out
            raise error

    def _end_single_range(self) -> None:
        """Learn many decisions at once again, after the range in which one decision has failed."""
        if self._single_range is None:
            return
        if self.position >= self._single_range[1]:
            self._single_range = None
            self._unlearnable.clear()
            self.snapshot_due = True
        elif self.position == self._single_range[0]:
            with suppress(OSError):  # a restart then repeats a longer part of the log
                self.snapshot()

    def _skip(self, skipped: Skipped) -> None:
        """Count and log a record that could not be applied."""
        self.skipped += 1
        self.latest = [*self.latest, skipped][-_MOST_LATEST:]
        _LOG.error(str(skipped), extra={"event": "record_skipped", "position": skipped.position})
