"""The verb ``learn``: streams the input through a workspace and reports as Vowpal Wabbit does.

On standard error, unless ``--quiet``: the header, the progress table and the footer in VW's layout, and what
is wrong with the input, as ``FILE:LINE:COLUMN: what was wrong; what was done``. The latter is so with
``--vw_exact`` as well: where VW writes ``[warning] ...`` to standard output, these located lines take its
place, and standard output carries nothing but predictions that were sent there.

Ctrl-C lets the block at hand finish, then prints the footer; a second one stops at once.
"""

from __future__ import annotations

import io
import os
import select
import signal
import stat
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from onlineauto.automl.options import AutomlOptions
from onlineauto.cli.warmup import warm_up
from onlineauto.engine.header import header
from onlineauto.engine.journal import Journal
from onlineauto.engine.metrics import Metrics
from onlineauto.engine.options import OutputOptions, RunOptions
from onlineauto.engine.predictions import STDOUT, Predictions, open_sink
from onlineauto.engine.progress import Progress
from onlineauto.engine.search_report import decay_warning, outside_warning, story
from onlineauto.engine.summary import summary
from onlineauto.engine.trace import Trace
from onlineauto.engine.workspace import Workspace
from onlineauto.errors import InputError, OptionError
from onlineauto.explorers.choice import chosen_explorer
from onlineauto.formats.diagnostics import Diagnostics
from onlineauto.formats.options import InputOptions
from onlineauto.formats.source import ByteSource
from onlineauto.jit import is_warm
from onlineauto.learners.options import CbOptions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import FrameType, TracebackType
    from typing import Self

    from _typeshed import WriteableBuffer

    from onlineauto.engine.outcomes import Outcomes
    from onlineauto.engine.source import Sources
    from onlineauto.features.block import Block
    from onlineauto.options import Configuration

__all__ = ["run"]

_KILLED = 128  # and the number of the signal


def run(configuration: Configuration) -> int:
    """Learn from the input and report.

    Returns
    -------
    int
        0, or 130 or 143 if the run was interrupted or told to end, and ended in good order.

    Raises
    ------
    OptionError
        Options are at odds.
    InputError
        The input cannot be read or used; what came before it is learnt, predicted and summed up.
    OSError
        A file cannot be opened or written.
    KeyboardInterrupt
        On the second Ctrl-C.
    """
    _check_files(configuration)
    workspace = Workspace(configuration=configuration)
    if sys.stderr.isatty() and not configuration[OutputOptions].quiet and not is_warm():
        inputs = configuration[InputOptions]
        warm_up(json=inputs.json or inputs.dsjson)  # which shows how far it is
    with ExitStack() as files, _Interrupt() as interrupt:
        report = _Report(workspace, files)
        source = _sources(configuration[InputOptions].data, interrupt, files)
        try:
            for block, outcomes in workspace.stream(source, diagnostics=report.diagnostics):
                report.take(block, outcomes)
                if interrupt.seen:
                    break
        except Exception:
            if report.began:
                report.finish()
            raise
        report.finish()
    return _KILLED + interrupt.signal if interrupt.seen else 0


def _check_files(configuration: Configuration) -> None:
    """Open the input before an output is emptied, and refuse to write over it.

    Raises
    ------
    InputError
        The input cannot be opened.
    OptionError
        An output is the input.
    """
    data = [path for path in configuration[InputOptions].data if path != "-"]
    options = configuration[OutputOptions]
    for path in data:
        if not stat.S_ISFIFO(_mode(path)):
            ByteSource(path).close()
    outputs = ("predictions", "raw_predictions", "extra_metrics", "journal")
    written = [getattr(options, name) for name in outputs if getattr(options, name) not in (None, *STDOUT)]
    if len(set(written)) < len(written):
        raise OptionError(f"{max(written, key=written.count)} is named for two outputs: one would be lost")
    for name in outputs:
        output = getattr(options, name)
        for source in (*data, configuration[RunOptions].replay):
            if output is None or source is None or not Path(output).exists():
                continue
            if Path(source).samefile(output):
                raise OptionError(f"--{name} {output} is the input: it would be lost")


class _Report:
    """Everything that a run says: header, table, diagnostics, predictions, footer and metrics.

    Attributes
    ----------
    began : bool
        Whether there was a block to report.
    diagnostics : Diagnostics
        For the reader to fill.
    """

    def __init__(self, workspace: Workspace, files: ExitStack) -> None:
        self.began = False
        self._workspace = workspace
        self._configuration = configuration = workspace.configuration
        self._options = options = configuration[OutputOptions]
        self._progress = Progress(configuration, kind=workspace.kind)
        self._metrics: Metrics | None = None
        if options.extra_metrics is not None:
            self._metrics = Metrics(configuration, kind=workspace.kind, searching=workspace.searching)
        self._journal: Journal | None = None
        self._search = configuration[AutomlOptions]
        if self._search.automl is not None:
            self._watch_search(files)
        self._predictions = [
            Predictions(
                files.enter_context(open_sink(path)),
                kind=workspace.kind,
                rank_all=configuration[CbOptions].rank_all,
                raw=raw,
            )
            for path, raw in ((options.predictions, False), (options.raw_predictions, True))
            if path is not None
        ]
        self.diagnostics = Diagnostics(listener=None if options.quiet else self._say)
        if self._progress.warning:
            self._say(f"onlineauto: warning: {self._progress.warning}")
        for line in header(configuration, kind=workspace.kind):
            self._say(line)

    def _watch_search(self, files: ExitStack) -> None:
        """Open the journal and the trace."""
        workspace = self._workspace
        if self._options.journal is not None:
            sink = files.enter_context(open_sink(self._options.journal))
            self._journal = Journal(sink, command=self._configuration.command(kept=True))
            workspace.on_decision = self._journal.append
        if self._search.csv_trace:
            workspace.searching.trace = Trace(
                Path(),
                files,
                exact=workspace.exact,
                kind=workspace.search.champion.kind,
                cost_is_reward=self._search.reward_as_cost,
                regresses=workspace.exact and chosen_explorer(workspace.configuration).cb_types == ("mtr",),
                n_actions=workspace.n_actions,
            )

    def take(self, block: Block, outcomes: Outcomes) -> None:
        """Report a block."""
        self.began = True
        self._end_passes()
        self._progress.update(outcomes, emit=None if self._options.quiet else self._say)
        if self._metrics is not None:
            self._metrics.update(block, outcomes)
        for predictions in self._predictions:
            predictions.write(block, outcomes)

    def finish(self) -> None:
        """Sum the run up."""
        self._end_passes()
        if self.diagnostics.counts:
            self._say(_counted(self.diagnostics))
        for line in summary(self._progress, self._configuration):
            self._say(line)
        if self._search.automl is not None and not self._workspace.exact:
            for line in story(self._workspace.searching):
                self._say(line)
            workspace = self._workspace
            if warning := outside_warning(workspace.searching, costs=workspace.label_range):
                self._say(f"onlineauto: warning: {warning}")
        if not self._workspace.exact and (warning := decay_warning(self._workspace.decay)):
            self._say(f"onlineauto: warning: {warning}")
        if warning := self._workspace.searching.replay_warning:
            self._say(f"onlineauto: warning: {warning}")
        if self._journal is not None:
            self._journal.end(events=self._workspace.searching.n_events)
        if self._metrics is not None and self._options.extra_metrics is not None:
            found = self.diagnostics
            self._metrics.write(self._options.extra_metrics, diagnostics=_by_code(found), log=found.log)

    def _end_passes(self) -> None:
        while self._progress.current_pass < self._workspace.current_pass:
            self._progress.end_pass()

    def _say(self, line: object) -> None:
        if not self._options.quiet:
            print(line, file=sys.stderr)


def _by_code(diagnostics: Diagnostics) -> dict[str, int]:
    return {code.name.lower(): count for code, count in sorted(diagnostics.counts.items())}


def _counted(diagnostics: Diagnostics) -> str:
    """Say in one line what was wrong with the input, and how often."""
    counts = ", ".join(
        f"{count} {code.removeprefix('vw_').replace('_', ' ')}"
        for code, count in _by_code(diagnostics).items()
    )
    hidden = diagnostics.total - len(diagnostics.kept)
    shown = f", the first {len(diagnostics.kept)} shown" if hidden else ""
    problems = "problem" if diagnostics.total == 1 else "problems"
    return f"onlineauto: warning: {diagnostics.total} {problems} in the input{shown}: {counts}"


class _Interrupt:
    """Takes note of the first Ctrl-C or SIGTERM and leaves the second to Python.

    Attributes
    ----------
    active : bool
        Whether this is the main thread of a process that has not set both aside.
    signal : int
        The one that came; 0 if none did.
    pipe : int
        Descriptor that can be read from then on, so that a wait for input can end; -1 if there is none.
    """

    def __init__(self) -> None:
        self.active = False
        self.signal = 0
        self.pipe = self._end = -1
        self._before: dict[int, Any] = {}

    @property
    def seen(self) -> bool:
        """Whether there was one."""
        return self.signal > 0

    def __enter__(self) -> Self:
        main = threading.current_thread() is threading.main_thread()
        if main and os.name != "nt":  # whose select waits for sockets only
            usual = ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL))
            self._before = {each: handler for each, handler in usual if signal.getsignal(each) is handler}
        self.active = bool(self._before)
        if self.active:
            self.pipe, self._end = os.pipe()
            os.set_blocking(self._end, False)
            for number in self._before:
                signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.active:
            self._restore()
            os.close(self.pipe)
            os.close(self._end)

    def _note(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - as `signal` calls it
        self._restore()
        self.signal = number
        os.write(self._end, b"!")

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


class _Stream(io.RawIOBase):
    """A pipe or terminal that ends when the run is interrupted, so that what has come in is still learnt.

    A pipe with a name is opened when it is its turn: that waits for somebody to write to it.
    """

    def __init__(self, path: str, *, interrupt: _Interrupt, files: ExitStack) -> None:
        self.name = "<stdin>" if path == "-" else path
        self._descriptor = sys.stdin.fileno() if path == "-" else None
        self._interrupt = interrupt
        self._files = files

    def readable(self) -> bool:
        """Say that this is to read from."""
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Wait for bytes or for Ctrl-C."""
        if self._descriptor is None and not self._interrupt.seen:
            self._descriptor = os.open(self.name, os.O_RDONLY)
            self._files.callback(os.close, self._descriptor)
        if self._descriptor is None:
            return 0
        select.select([self._descriptor, self._interrupt.pipe], [], [])
        return 0 if self._interrupt.seen else os.readv(self._descriptor, [buffer])


class _Several(list["Path | BinaryIO"]):
    """Sources, one after the other; none more once the run is interrupted."""

    def __init__(self, sources: Iterable[str | BinaryIO], *, interrupt: _Interrupt) -> None:
        super().__init__(Path(source) if isinstance(source, str) else source for source in sources)
        self._interrupt = interrupt

    def __iter__(self) -> Iterator[Path | BinaryIO]:
        for source in super().__iter__():
            if self._interrupt.seen:
                return
            yield source


def _sources(paths: Sequence[str], interrupt: _Interrupt, files: ExitStack) -> Sources:
    """Return what to read: a source, or several."""
    sources = [_source(path, interrupt, files) for path in paths or ("-",)]
    return sources[0] if len(sources) == 1 else _Several(sources, interrupt=interrupt)


def _source(path: str, interrupt: _Interrupt, files: ExitStack) -> str | BinaryIO:
    """Return a file by its path, for the reader to open; what can keep us waiting, as a stream."""
    if path != "-":
        if not interrupt.active or not stat.S_ISFIFO(_mode(path)):
            return path
        return cast("BinaryIO", _Stream(path, interrupt=interrupt, files=files))
    if sys.stdin is None:
        raise InputError("there is no standard input; -d names a file to read")
    try:
        sys.stdin.fileno()
    except OSError:  # not a file: something within Python
        return sys.stdin.buffer
    if not interrupt.active:
        return sys.stdin.buffer
    return cast("BinaryIO", _Stream(path, interrupt=interrupt, files=files))


def _mode(path: str) -> int:
    try:
        return Path(path).stat().st_mode
    except OSError:  # for the reader to complain of
        return 0
