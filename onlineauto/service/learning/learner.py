"""``Learner``: a run over the log of a service. Killed at any instant, it ends as if it had never been.

What it learns is a function of the log: the join is, and the model is one of the joined decisions, however
they are cut into blocks. A snapshot holds the model, the join and the position in the log, and replaces the
one before in one step. So a learner that is started again takes up the log where its snapshot stands, and
learns nothing twice and nothing never.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple

import msgspec

from onlineauto.engine.search.journal import Journal
from onlineauto.engine.stream.validity import first_invalid_event
from onlineauto.errors import InputError
from onlineauto.formats.lines.diagnostics import Diagnostics
from onlineauto.service.join.join import Join, JoinSettings
from onlineauto.service.learning.labels import is_explored, labelled
from onlineauto.service.learning.models import Models
from onlineauto.service.learning.values import Values
from onlineauto.service.log.record import read_record
from onlineauto.workspace.run import Run, load_run
from onlineauto.workspace.save_load import load_model
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onlineauto.engine.event.outcomes import Outcomes
    from onlineauto.features.block import Block
    from onlineauto.options import Configuration
    from onlineauto.service.log.segment_log import SegmentLog
    from onlineauto.workspace.predictor import Predictor

__all__ = ["MOST_RECORDS", "Learner", "Published"]

MOST_RECORDS: Final = 1024
"""Records that are taken in one step, at most."""


class Published(NamedTuple):
    """A model that ranks: an immutable predictor, its name, and the time of the log when it was made."""

    predictor: Predictor
    name: str
    time: float


class _State(msgspec.Struct):
    """The part of a snapshot that is neither the model nor its run."""

    position: int
    learnt: int
    faulty: int
    waited: float
    join: dict[str, Any]
    values: dict[str, Any]
    journal: tuple[str, int]
    used: int = 0


class Learner:
    """Takes the records of a log, joins them, and learns what is joined. One thread uses it.

    Parameters
    ----------
    folder : path
        Has the snapshot, the history and the journals; it is there.
    log : SegmentLog
        The log.
    configuration : Configuration
        Options of the model; those of a snapshot must not differ where a model keeps them.
    settings : JoinSettings
        How to join, until the log says otherwise.
    keep : int
        Number of models in the history.

    Attributes
    ----------
    position : int
        The position in the log up to which everything is learnt.
    join : Join
        The decisions that wait.
    values : Values
        What policies would have earned.
    learnt, faulty : int
        Number of decisions that were learnt, and of those that could not be.
    waited : float
        Seconds that all learnt decisions together have waited.

    Raises
    ------
    InputError
        The snapshot is damaged, or the log does not have what comes next.
    OptionError
        The snapshot was made with other options.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        log: SegmentLog,
        configuration: Configuration,
        *,
        settings: JoinSettings | None = None,
        keep: int = 10,
    ) -> None:
        self.folder, self.log = Path(folder), log
        self.models = Models(self.folder / "models", keep=keep)
        self.values, self.join = Values(), Join(settings or JoinSettings())
        self.position = log.begin
        self.learnt = self.faulty = self._used = 0
        self.waited = 0.0
        self._configuration = configuration
        self._journal: BinaryIO | None = None
        self._blocks: list[Block] = []
        self._explored = True  # the decisions that are learnt now are the model's own
        self._predictor: Predictor | None = None
        if self.snapshot_path.exists():
            workspace, stored = load_run(self.snapshot_path, configuration)
            self._restore(stored)
            self._begin(workspace, stored)
        else:
            if log.begin:
                raise InputError(f"{self.snapshot_path} is missing, and the log no longer has its beginning")
            self._begin(Workspace(configuration=configuration), {})
            self._open_journal("000000000000", 0)

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
        """The name of the model as it is now: how much is learnt, and how often another took its place."""
        return f"{self.learnt:012d}-{self._used}" if self._used else f"{self.learnt:012d}"

    def step(self) -> int:
        """Take some records behind the position; return how many there were.

        Raises
        ------
        InputError
            A record is damaged, or names a model that is not there.
        """
        lines: list[bytes] = []
        taken = 0
        for position, line in self.log.lines(self.position):
            record = read_record(line, where=f"{self.log.folder}, position {position}")
            mode = self.join.settings.mode
            for ended in self.join.take(record, position, len(line)):
                self.waited += ended.waited
                decision = self.log.line_at(ended.position, ended.size)
                if lines and (is_explored(decision) != self._explored or len(lines) >= MOST_RECORDS):
                    self._learn(lines, mode)
                    lines = []
                self._explored = is_explored(decision)
                lines.append(labelled(decision, read_record(decision), ended.reward))
            if record.kind in ("settings", "model"):  # what ended until now is learnt as was said before
                self._learn(lines, mode)
                lines = []
            self.position = position + len(line)
            taken += 1
            if record.kind == "model":
                self._use(record.model)
                self.snapshot()  # the history may drop that model before the next one is due
            if taken == MOST_RECORDS:
                break
        self._learn(lines, self.join.settings.mode)
        return taken

    def publish(self) -> Published:
        """Return the model as it is now, for ranking."""
        found = self.workspace.predictor()
        self._predictor = found if self._predictor is None else found.like(self._predictor)
        return Published(self._predictor, self.name, self.join.now)

    def snapshot(self) -> None:
        """Write the model, the join and the position in the log; the file is replaced in one step.

        Raises
        ------
        OSError
            The file cannot be written; the old one is unchanged.
        """
        if self._journal is not None:
            os.fsync(self._journal.fileno())
        self._run.checkpoint(self.snapshot_path)

    def check(self, content: bytes) -> None:
        """Check that the bytes are a model that could learn here.

        Raises
        ------
        InputError, OptionError
            They are none, or one of other options.
        """
        load_model(Workspace, content, self._configuration)

    def keep(self) -> str:
        """Write the model as it is now into the history, and return its name."""
        self.models.add(self.name, self._run.checkpoint)
        return self.name

    def close(self, *, snapshot: bool = True) -> None:
        """Write a snapshot, unless a step has failed, and close the journal."""
        if snapshot:
            self.snapshot()
        if self._journal is not None:
            self._journal.close()

    # -- sink of the run -------------------------------------------------------------------------------

    def take(self, block: Block, outcomes: Outcomes) -> None:  # noqa: ARG002 - as `RunSink` has it
        """Take what the run has learnt."""
        self.learnt += len(outcomes)
        self.values.take(outcomes, explored=self._explored)

    def state(self) -> dict[str, Any]:
        """Return what a snapshot holds besides the model and its run."""
        name, size = "", 0
        if self._journal is not None:
            name, size = Path(self._journal.name).stem, self._journal.tell()
        kept = _State(
            self.position,
            self.learnt,
            self.faulty,
            self.waited,
            self.join.state(),
            self.values.state(),
            (name, size),
            self._used,
        )
        return {"service": msgspec.structs.asdict(kept)}

    # ---------------------------------------------------------------------------------------------------

    def _restore(self, stored: dict[str, Any]) -> None:
        """Take over the state of a snapshot.

        Raises
        ------
        InputError
            It is not one of a service, or the log ends before it.
        """
        try:
            state = msgspec.convert(stored["service"], _State)
            self.join, self.values = Join.of(state.join), Values.of(state.values)
        except (KeyError, ValueError) as error:
            raise InputError(f"{self.snapshot_path} is no snapshot of a service: {error}") from None
        if not self.log.begin <= state.position <= self.log.end:
            raise InputError(
                f"{self.snapshot_path} goes on at position {state.position} of the log, which has the "
                f"positions {self.log.begin} to {self.log.end}: they are not of one service"
            )
        self.position, self.waited = state.position, state.waited
        self.learnt, self.faulty, self._used = state.learnt, state.faulty, state.used
        self._open_journal(*state.journal)

    def _begin(self, workspace: Workspace, stored: dict[str, Any]) -> None:
        """Let a workspace learn what follows."""
        counters = {name: stored[name] for name in ("progress",) if name in stored}
        self._run = Run(workspace, self._feed(), stored=counters)
        self._run.sinks.append(self)
        workspace.observe(self._note)

    def _use(self, name: str) -> None:
        """Let a model of the history learn from here on."""
        workspace, stored = load_model(Workspace, self.models.path(name), self._configuration)
        self._begin(workspace, stored)
        self._used += 1
        self._open_journal(self.name, 0)

    def _feed(self) -> Iterator[Block]:
        while True:
            yield self._blocks.pop(0)

    def _learn(self, lines: list[bytes], mode: str) -> None:
        """Learn labelled lines, unless the service only logs; what cannot be learnt is counted."""
        if not lines or mode == "logging-only":
            return
        before = self.learnt
        found = Diagnostics()
        for block in self.workspace.read(b"".join(lines), diagnostics=found):
            rest = block
            while len(rest):
                valid, _ = first_invalid_event(rest, self.workspace.kind)
                if valid:
                    self._blocks.append(rest.head(valid))
                    self._run.step(valid)
                rest = rest.tail(min(valid + 1, len(rest)))
        self.faulty += len(lines) - (self.learnt - before)

    def _open_journal(self, name: str, size: int) -> None:
        """Open the journal of a search as it was when it had `size` bytes."""
        if self._journal is not None:
            self._journal.close()
        self._journal = None
        if not self.workspace_searches:
            return
        folder = self.folder / "journals"
        folder.mkdir(exist_ok=True)
        path = folder / f"{name}.jsonl"
        path.touch()
        self._journal = path.open("r+b")
        self._journal.truncate(size)
        self._journal.seek(size)
        self._writer = Journal(self._journal, command=self._configuration.command(kept=True), began=size > 0)

    @property
    def workspace_searches(self) -> bool:
        """True if the options ask for a search, which keeps a journal."""
        return self._configuration.get("automl") is not None

    def _note(self, entry: Any) -> None:
        if self._journal is not None:
            self._writer.append(entry)
