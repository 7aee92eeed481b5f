"""Run: a stream being learnt, with its position, its counters and its sinks."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Protocol

from onlineauto.engine.report.progress import ProgressTable
from onlineauto.engine.stream.position import Position
from onlineauto.engine.stream.source import read_blocks, with_datasets
from onlineauto.errors import InputError, OptionError
from onlineauto.formats.lines.event_source import EndlessSource, EventSource
from onlineauto.workspace.options import REGISTRY
from onlineauto.workspace.save_load import load_model, save_model
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import BinaryIO, Unpack

    from onlineauto.engine.event.outcomes import Outcomes
    from onlineauto.engine.stream.source import BlockSource, Sources
    from onlineauto.features.block import Block
    from onlineauto.formats.lines.diagnostics import Diagnostics
    from onlineauto.options import Configuration
    from onlineauto.workspace.model_file import State
    from onlineauto.workspace.option_types import Options
    from onlineauto.workspace.save_load import ModelSource


class RunSink(Protocol):
    """Receives the blocks that a run has learnt."""

    def take(self, block: Block, outcomes: Outcomes) -> None:
        """Receive a learnt block and its outcomes."""

    def state(self) -> State:
        """Return the state of this sink for a resumed run, which has it in `Run.stored`."""


class Run:
    r"""A stream being learnt by a workspace, step by step.

    `resume` continues from a `checkpoint` with the same result as if the run had never stopped, whatever the
    steps. Only one thread may use a run at a time; other threads may predict with its workspace.

    Examples
    --------
    >>> import io
    >>> from onlineauto import Workspace
    >>> events, file = [f"{i % 2} |a x{i % 3}" for i in range(100)], io.BytesIO()
    >>> run = Run(Workspace(), events)
    >>> run.step(30), run.position.events
    (30, 30)
    >>> run.checkpoint(file)
    >>> again = Run.resume(file.getvalue(), events)
    >>> again.step(), again.step()
    (70, 0)
    >>> again.progress.example_number
    100

    Parameters
    ----------
    workspace : Workspace
        The workspace that learns.
    source : Sources
        The events; see `Workspace.stream`.
    stored : mapping, optional
        The state of another run, from its model file: this run continues at that `position` and its counts.
    every : int, optional
        A block ends after every `every` events of a pass.

    Attributes
    ----------
    workspace : Workspace
        The workspace that learns.
    stored : mapping
        The stored state of the resumed run.
    progress : Progress
        The counters.
    sinks : list of RunSink
        Receive each learnt block, in this order.
    diagnostics : Diagnostics
        Problems with the input; those of the workspace, unless others are set before the first step.
    read : BlockSource
        Reads the blocks; may be set before the first step.
    emit : callable or None
        Called with each line of the progress table.
    began : bool
        True once a block was learnt.
    """

    def __init__(
        self,
        workspace: Workspace,
        source: Sources,
        *,
        stored: Mapping[str, Any] | None = None,
        every: int | None = None,
    ) -> None:
        self.workspace, self.stored = workspace, stored or {}
        self.progress = ProgressTable(workspace.configuration, kind=workspace.kind)
        if "progress" in self.stored:
            self.progress.recount(self.stored["progress"])
        self._first_pass = workspace.learner.current_pass - self.progress.current_pass
        self.sinks: list[RunSink] = []
        self.diagnostics: Diagnostics = workspace.diagnostics
        self.read: BlockSource = read_blocks
        self.emit: Callable[[str], object] | None = None
        self.began = False
        self._source, self._every = with_datasets(source, workspace.configuration), every
        self._start = Position(**self.stored.get("position", {}))
        self._stream: Iterator[tuple[Block, Outcomes]] | None = None
        self._events_left: int | None = None

    @property
    def position(self) -> Position:
        """The passes and events done so far."""
        return self._start if self._stream is None else self.workspace.position

    @property
    def warning(self) -> str:
        """A warning about this way to learn the source, for the user who chose it; "" if there is none."""
        return ""

    @property
    def dataset(self) -> State:
        """The meaning and the types of the columns of the dataset, or those of an earlier dataset, if any."""
        described = getattr(self._source, "description", None) or self.stored.get("dataset")
        return {"dataset": described} if described else {}

    @property
    def action_names(self) -> Sequence[str]:
        """The names of the actions, if all events have the same actions and the source names them."""
        return getattr(self._source, "action_names", ())

    def __iter__(self) -> Iterator[tuple[Block, Outcomes]]:
        """Learn block by block to the end of the stream, and yield each block with its outcomes.

        Raises
        ------
        InputError
            As for `Workspace.stream`; all events before are learnt and passed to the sinks.
        """
        self._events_left = None
        while (taken := self._next()) is not None:
            yield taken

    def step(self, n: int | None = None) -> int:
        """Learn the next `n` events, or all remaining ones; return their number.

        Raises
        ------
        InputError
            As for `Workspace.stream`; all events before are learnt and passed to the sinks.
        OptionError
            `n` is negative.
        """
        if n is not None and n < 0:
            raise OptionError(f"a run cannot step by {n} events")
        done, self._events_left = 0, n
        while self._events_left != 0 and (taken := self._next()) is not None:
            events = len(taken[0])
            done += events
            if self._events_left is not None:
                self._events_left -= events
        return done

    def state(self) -> State:
        """Return the state for a resumed run besides the model: position, counters, and states of sinks."""
        self.count_passes()
        position = self.position
        if self._stream is not None and (source := self._positioned_source()) is not None:
            position = position._replace(at=source.position(position.events))
        state: State = {"position": position._asdict(), "progress": self.progress.counts()} | self.dataset
        for sink in self.sinks:
            state |= sink.state()
        return state

    def _positioned_source(self) -> EventSource | None:
        """Return the source if it has a position to store: of an event, or of decisions that wait."""
        source = self._source
        if not isinstance(source, EventSource):
            return None
        waits = isinstance(source, EndlessSource) and source.waiting
        return source if self.position.events or waits else None

    def checkpoint(self, target: str | os.PathLike[str] | BinaryIO) -> None:
        """Write the model together with the state of this run. An existing file is replaced atomically.

        Raises
        ------
        OSError
            The file cannot be written; an existing file is unchanged.
        OptionError
            A journal is replayed.
        """
        with self.workspace.lock:  # no thread may change its arrays while they are written
            save_model(self.workspace.state(copy=False), target, run=self.state())
        if isinstance(self._source, EndlessSource):
            self._source.saved()

    @classmethod
    def resume(cls, checkpoint: ModelSource, source: Sources, **options: Unpack[Options]) -> Run:
        """Return a run that continues over the same source where a checkpoint was written.

        Options that a model file does not store must be passed again, as for `Workspace.load`.

        Raises
        ------
        InputError
            The file is not a model, or was not saved by a run.
        OptionError
            An option has another value and cannot change.
        """
        workspace, stored = load_run(checkpoint, REGISTRY.from_keywords(**options))
        return cls(workspace, source, stored=stored)

    def count_passes(self) -> None:
        """Count the completed passes."""
        while self._first_pass + self.progress.current_pass < self.workspace.learner.current_pass:
            self.progress.end_pass()

    def _next(self) -> tuple[Block, Outcomes] | None:
        """Learn the next block, update the counters and the sinks, and return the block; None at the end."""
        if self._stream is None:
            self._stream = self.workspace.stream(
                self._source,
                diagnostics=self.diagnostics,
                start=self._start,
                every=self._every,
                read=self._portions,
            )
        taken = next(self._stream, None)
        self.count_passes()
        if taken is not None:
            self.began = True
            self.progress.update(taken[1], emit=self.emit)
            for sink in self.sinks:
                sink.take(*taken)
        return taken

    def _portions(
        self, source: Sources, configuration: Configuration, problems: Diagnostics
    ) -> Iterator[Block]:
        """Yield the blocks of a source, none with more events than the step still needs."""
        for block in self.read(source, configuration, problems):
            rest = block
            while self._events_left is not None and len(rest) > (wanted := self._events_left):
                yield rest.head(wanted)
                rest = rest.tail(wanted)
            yield rest


def load_run(source: ModelSource, configuration: Configuration) -> tuple[Workspace, State]:
    """Return the workspace of a checkpoint, and the state of its run."""
    workspace, stored = load_model(Workspace, source, configuration)
    if "position" not in stored:
        name = os.fspath(source) if isinstance(source, str | os.PathLike) else "the model"
        raise InputError(f"{name} was not saved by a run, so --resume cannot continue from it")
    return workspace, stored
