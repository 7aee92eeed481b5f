"""The verb ``learn``: learn from the input with a workspace, and print reports in VW's layout.

Without ``--quiet``, standard error has the header, the progress table and the footer in VW's layout, and the
problems of the input, as ``FILE:LINE:COLUMN: what was wrong; what was done``. With ``--vw_exact`` these lines
replace VW's ``[warning] ...`` on standard output, which has only predictions that are sent there.

The first Ctrl-C lets the current block finish and prints the footer; a second one exits at once.
"""

from __future__ import annotations

import io
import os
import select
import signal
import stat
import sys
import threading
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

import numpy as np

from onlineauto.cli.hints import no_events_error
from onlineauto.cli.outputs import MODEL_FILES, RunReport, Saving, Showing, open_workspace
from onlineauto.cli.terminal import show_compiling, warn, warn_of_effects
from onlineauto.engine.options.registry import ModelOptions, OutputOptions, PartitionOptions, RunOptions
from onlineauto.engine.report.predictions import STDOUT
from onlineauto.engine.stream.source import event_rules, read_blocks, rules_of
from onlineauto.errors import InputError, OptionError, install_hint
from onlineauto.features.options import FeatureOptions
from onlineauto.formats.blocks.file import BlockReader, block_writer
from onlineauto.formats.datasets.files import is_dataset
from onlineauto.formats.lines.diagnostics import ProblemCode
from onlineauto.formats.options import FORMATS, InputOptions, format_of
from onlineauto.formats.sources.source import ByteSource
from onlineauto.jit import is_compiling
from onlineauto.workspace.conversion import has_blocks
from onlineauto.workspace.model_file import check_target
from onlineauto.workspace.run import Run
from onlineauto.workspace.save_load import check_options

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import FrameType
    from typing import Self

    from _typeshed import WriteableBuffer

    from onlineauto.engine.stream.source import Sources
    from onlineauto.features.block import Block
    from onlineauto.formats.lines.diagnostics import Diagnostics
    from onlineauto.options import Configuration
    from onlineauto.service.topics.topic_source import TopicSource
    from onlineauto.workspace.model_file import State
    from onlineauto.workspace.workspace import Workspace

_OUTPUTS = ("predictions", "raw_predictions", "extra_metrics", "journal")
_KILLED = 128  # added to the number of a signal: the exit code of a process that the signal ended

NO_PACKAGE: Final = f"it needs a package: {install_hint('blocks')}"
"""The reason for a missing cache that is printed even with ``--quiet``."""
_NONE = "using no cache"


def cache_path(configuration: Configuration) -> str | None:
    """Return the name of the cache that the options request, or None."""
    options, data = configuration[RunOptions], configuration[InputOptions].data
    if not options.cache and options.cache_file is None:
        return None
    return options.cache_file or f"{data[0] if data else ''}.cache"


def use_cache(run: Run) -> tuple[str, str]:
    """Let a run read from a cache, or write one while it reads, if the options request a cache.

    The cache appears once the data are read to their end.
    """
    configuration = run.workspace.configuration
    options, data = configuration[RunOptions], configuration[InputOptions].data
    if (named := cache_path(configuration)) is None:
        return _NONE, ""
    path = Path(named)
    if problem := _problem(configuration, path):
        return _NONE, f"no cache, so each pass reads the text: {problem}"
    if not options.kill_cache and _is_current(path, data, configuration):
        run.read = lambda _, configuration, problems: _read(path, configuration, problems)
        return f"using cache_file = {path}", ""
    run.read = _Writing(path)
    return f"creating cache_file = {path}", ""


def _problem(configuration: Configuration, path: Path) -> str:
    """Return the reason why a cache is not possible, or ""."""
    options, inputs = configuration[RunOptions], configuration[InputOptions]
    if any(is_dataset(each) for each in inputs.data):
        return "the input is Parquet, which is read about as fast"
    if not inputs.data or not all(Path(each).is_file() for each in inputs.data):
        return "the input is not a file"
    if len(inputs.data) > 1 and options.cache_file is None:
        return "there are several files; --cache_file names one cache for all"
    if any(has_blocks(each) for each in inputs.data):
        return "the input is blocks already"
    if inputs.examples >= 0:
        return "--examples does not read all of the data"
    if configuration[OutputOptions].audit or configuration[ModelOptions].invert_hash is not None:
        return "it has no names of features, for which --audit and --invert_hash ask"
    try:
        import xxhash  # noqa: F401
    except ImportError:
        return NO_PACKAGE
    if not os.access(path.resolve().parent, os.W_OK | os.X_OK):
        return f"{path} cannot be written"
    if path.exists() and not options.kill_cache and not has_blocks(path):
        return f"{path} exists and is not a cache of onlineauto; -k replaces it"
    return ""


def _is_current(path: Path, data: tuple[str, ...], configuration: Configuration) -> bool:
    """Return whether a cache is newer than the data, and was written with the same reading options."""
    if not path.exists() or path.stat().st_mtime_ns < max(Path(path).stat().st_mtime_ns for path in data):
        return False
    source = ByteSource(path)
    try:
        reader, names = BlockReader(source), configuration[FeatureOptions].names
        reader.check_rules(rules_of(configuration))
        if names != reader.rules.get("names", "any") or names == "columns":  # identities may be new
            return False
    except InputError:
        return False
    finally:
        source.close()
    return True


def _read(path: Path, configuration: Configuration, problems: Diagnostics) -> Iterator[Block]:
    """Yield the blocks of a cache; if it is damaged, the error names the option that replaces it."""
    try:
        yield from read_blocks(path, configuration, problems)
    except InputError as error:
        raise InputError(f"{error}; -k writes a new cache") from None


class _Writing:
    """Reads the data and writes the cache in the first pass; reads the cache in later ones."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written = False

    def __call__(
        self, source: Sources, configuration: Configuration, problems: Diagnostics
    ) -> Iterator[Block]:
        if self._written:
            yield from read_blocks(self._path, configuration, problems)
            return
        names = configuration[FeatureOptions].names
        rules = rules_of(configuration) | ({} if names == "any" else {"names": names})
        with block_writer(self._path, rules=rules) as writer:
            for block in read_blocks(source, configuration, problems):
                writer.write(block)
                yield block
        self._written = True


def run(configuration: Configuration, topic: TopicSource | None = None) -> int:
    """Learn from the input, or from a topic, and report.

    Return 0; or 130 or 143 if the run was interrupted or terminated, and finished its block.
    """
    _check_files(configuration, are_files=topic is None)
    workspace, stored = open_workspace(configuration)
    supplied, configuration = configuration, workspace.configuration
    quiet = configuration[OutputOptions].quiet
    if not quiet:
        warn_of_effects(supplied, configuration)
    with ExitStack() as files, _Interrupt() as interrupt, show_compiling(quiet=quiet):
        source: Sources
        if topic is None:
            source = _sources(configuration, stored.get("dataset"), interrupt, files)
        else:
            source = topic
            topic.stopped = lambda: interrupt.requested
        learning = _open_run(workspace, source, stored, files)
        cache, warning = use_cache(learning)
        report = RunReport(learning, files, cache=cache)
        if warning:
            report.warn(warning)
            if quiet and warning.endswith(NO_PACKAGE):  # a requested file will not be written
                warn(warning)
        if learning.warning:
            report.warn(learning.warning)
        saving = Saving(learning, report, Showing(learning, files), is_topic=topic is not None)
        if learning.position.passes >= configuration[RunOptions].passes:
            report.warn("the run was complete already; to learn new events, continue from its model with -i")
        decided = False
        try:
            for block, outcomes in learning:
                saving.note(len(block))
                decided = decided or bool((np.diff(outcomes.action_start) > 1).any())
                if interrupt.requested:
                    break
        except _Stopped:
            if not learning.began:
                return _KILLED + interrupt.signal
        except Exception:
            if learning.began:
                saving.finish()
            raise
        saving.finish(interrupted=interrupt.requested)
    if interrupt.requested:
        return _KILLED + interrupt.signal
    if topic is None or not topic.waiting:
        _check_something_was_learnt(learning, topic, decided=decided)
    return 0


def _open_run(workspace: Workspace, source: Sources, stored: State, files: ExitStack) -> Run:
    """Return the run of a workspace over a source; with ``--workers`` it learns in partitions."""
    options = workspace.configuration[PartitionOptions]
    if options.workers is None:
        return Run(workspace, source, stored=stored, every=workspace.configuration[ModelOptions].save_every)
    from onlineauto.cluster.partitions.run import PartitionedRun

    return files.enter_context(
        PartitionedRun(
            workspace,
            source,
            stored=stored,
            workers=options.workers,
            partitions=options.partitions,
            backend=options.backend,
            servers=options.servers,
        )
    )


def _check_something_was_learnt(run: Run, topic: TopicSource | None, *, decided: bool) -> None:
    """Raise an error if a run had nothing to learn; it has `decided` if an event had several actions."""
    progress, workspace = run.progress, run.workspace
    configuration, problems = workspace.configuration, run.diagnostics
    is_log = format_of(configuration).log
    if workspace.semantics.reports_as_vw:
        return
    predicts, inputs = configuration[RunOptions].testonly, configuration[InputOptions]
    events = progress.example_number + progress.holdout_weight
    nothing = not (predicts or progress.weighted_labelled or progress.holdout_weight)
    bad = problems.total - problems.counts[ProblemCode.COLUMN_LEFT_OUT]
    if events and nothing and not bad and is_log:
        raise InputError(
            "nothing could be learnt: no event has its cost; rewards that came later than the decisions are "
            "joined by AutoML.join in Python, and by `onlineauto evaluate`"
        )
    if not events and not bad and is_log and _has_only_rewards(run, topic):
        how = "AutoML.join in Python joins the log of decisions with them"
        how = how if topic is None else "name the topic of decisions, and this one with --rewards"
        raise InputError(f"nothing could be learnt: there are rewards, and no decision; {how}")
    if bad and (not events or nothing):
        raise InputError(no_events_error(problems, configuration, kind=workspace.kind, unlabelled=events > 0))
    predicts |= bool(
        configuration[OutputOptions].predictions and configuration[ModelOptions].initial_regressor
    )
    if predicts or topic is not None or not run.began:  # the next messages of a topic may have labels
        return
    is_table = any(map(is_dataset, inputs.data))
    advice = "correct what the columns are in the file for --columns, or predict with -t"
    advice = advice if is_table else "-t predicts without learning"
    if nothing and (is_table or workspace.kind != "simple"):  # VW, too, predicts single lines without labels
        label = "label" if workspace.kind == "simple" else "cost and probability"
        raise InputError(f"nothing could be learnt: no event has its {label}; {advice}")
    if not decided and workspace.kind in ("cb_adf", "cb_explore_adf"):
        raise InputError(f"nothing could be learnt: each event has only one action; {advice}")


def _has_only_rewards(run: Run, topic: TopicSource | None) -> bool:
    """Return whether dsjson that gave no event has records, which are then rewards."""
    if topic is not None:
        offsets = topic.position(run.position.events)["offsets"]
        return topic.join is None and any(map(any, offsets.values()))
    for path in run.workspace.configuration[InputOptions].data:
        if stat.S_ISREG(_mode(path)):
            with closing(ByteSource(path)) as file:
                if b'"RewardValue"' in file.read(2**16) + file.read(2**16):  # the first has only a few bytes
                    return True
    return False


def _check_files(configuration: Configuration, *, are_files: bool) -> None:
    """Open the input before any output is emptied; if it `are_files`, check that no output overwrites it."""
    data = [path for path in configuration[InputOptions].data if path != "-" and are_files]
    options = configuration[OutputOptions]
    _check_columns(configuration, data)
    for path in data:
        if not is_dataset(path) and not stat.S_ISFIFO(_mode(path)):
            ByteSource(path).close()
    models = configuration[ModelOptions]
    outputs = {name: getattr(options, name) for name in _OUTPUTS}
    outputs["cache_file"] = cache_path(configuration)
    for name in MODEL_FILES:
        outputs[name] = path = getattr(models, name)
        if path is not None:
            check_target(path)
            check_options(configuration)
    written = [path for path in outputs.values() if path not in (None, *STDOUT)]
    if len(set(written)) < len(written):
        raise OptionError(f"{max(written, key=written.count)} is named for two outputs: one would be lost")
    for name, output in outputs.items():
        first = () if name == MODEL_FILES[0] else models.initial_regressor
        for source in (*data, *first, configuration[RunOptions].replay):
            if output is None or source is None or not Path(output).exists() or not Path(source).exists():
                continue
            if Path(source).samefile(output):
                raise OptionError(f"--{name} {output} is the input: it would be lost")


def _check_columns(configuration: Configuration, data: Sequence[str]) -> None:
    """Reject options that cannot be used with Parquet, and ``--columns`` without Parquet."""
    models = configuration[ModelOptions]
    datasets = [path for path in data if is_dataset(path)]
    if not datasets:
        if configuration[InputOptions].columns is not None:
            raise OptionError("--columns is for Parquet: no file of Parquet is named")
        return
    if len(datasets) < len(data):
        raise OptionError(f"{datasets[0]} is Parquet and other files are not: read them in two runs")
    for name, value in (
        ("audit", configuration[OutputOptions].audit),
        ("invert_hash", models.invert_hash),
        *((name, configuration.get(name)) for name in FORMATS),
    ):
        if value:
            raise OptionError(f"--{name} cannot be used with Parquet")


class _Stopped(BaseException):
    """A signal arrived while kernels were being compiled."""


class _Interrupt:
    """Records the first Ctrl-C or SIGTERM, and leaves the second one to Python."""

    def __init__(self) -> None:
        self.active = False
        self.signal = 0
        self.pipe = self._end = self._wakes = -1
        self._before: dict[int, Any] = {}

    @property
    def requested(self) -> bool:
        """True if a signal arrived."""
        return self.signal > 0

    def __enter__(self) -> Self:
        main = threading.current_thread() is threading.main_thread()
        if main and os.name != "nt":  # on Windows, select supports only sockets
            defaults = ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL))
            self._before = {each: handler for each, handler in defaults if signal.getsignal(each) is handler}
        self.active = bool(self._before)
        if self.active:
            self.pipe, self._end = os.pipe()
            os.set_blocking(self._end, False)
            # A signal just before a wait does not interrupt it, because its handler runs only afterwards.
            self._wakes = signal.set_wakeup_fd(self._end, warn_on_full_buffer=False)
            for number in self._before:
                signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self.active:
            self._restore()
            signal.set_wakeup_fd(self._wakes)
            os.close(self.pipe)
            os.close(self._end)

    def _note(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - as `signal` calls it
        self._restore()
        self.signal = number
        if is_compiling():  # there is no block to finish
            raise _Stopped
        os.write(self._end, b"!")

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


_NO_WAIT = os.O_NONBLOCK if sys.platform == "linux" else 0
"""Opens a pipe that has no writer yet. Without this flag, opening waits and ignores signals; with the flag,
``select`` waits and a signal ends it. Elsewhere a pipe without a writer would look like an ended one."""


class _Stream(io.RawIOBase):
    """A pipe or terminal that ends when the run is interrupted, so that received events are still learnt.

    A named pipe is opened at the first read.
    """

    def __init__(self, path: str, *, interrupt: _Interrupt, files: ExitStack) -> None:
        self.name = "<stdin>" if path == "-" else path
        self._descriptor = sys.stdin.fileno() if path == "-" else None
        self._interrupt = interrupt
        self._files = files

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Read available bytes into `buffer`, waiting for some; return their number, 0 after a signal."""
        if self._descriptor is None and not self._interrupt.requested:
            self._descriptor = os.open(self.name, os.O_RDONLY | _NO_WAIT)
            self._files.callback(os.close, self._descriptor)
        if self._descriptor is None:
            return 0
        pipe = self._interrupt.pipe
        while True:
            ready, _, _ = select.select([self._descriptor, pipe], [], [])
            if self._interrupt.requested:
                return 0
            if self._descriptor in ready:
                return os.readv(self._descriptor, [buffer])
            os.read(pipe, 1)  # the byte of another signal, or of one whose handler has not run yet


class _Several(list["Path | BinaryIO"]):
    """Sources one after the other; the sequence ends when the run is interrupted."""

    def __init__(self, sources: Iterable[str | BinaryIO], *, interrupt: _Interrupt) -> None:
        super().__init__(Path(source) if isinstance(source, str) else source for source in sources)
        self._interrupt = interrupt

    def __iter__(self) -> Iterator[Path | BinaryIO]:
        for source in super().__iter__():
            if self._interrupt.requested:
                return
            yield source


def _sources(
    configuration: Configuration, learnt: State | None, interrupt: _Interrupt, files: ExitStack
) -> Sources:
    """Return the source to read, or a list of several; Parquet is one source, whose columns are checked.

    `learnt` describes the dataset that the model has learnt; see `DatasetSource.description`.
    """
    inputs = configuration[InputOptions]
    if inputs.data and all(map(is_dataset, inputs.data)):
        from onlineauto.formats.datasets.dataset_source import DatasetSource

        source = DatasetSource(inputs.data, inputs.columns)
        if learnt is not None:
            source = source.like(learnt, predicts=configuration[RunOptions].testonly)
        source.open(event_rules(configuration))
        return source
    sources = [_source(path, interrupt, files) for path in inputs.data or ("-",)]
    return sources[0] if len(sources) == 1 else _Several(sources, interrupt=interrupt)


def _source(path: str, interrupt: _Interrupt, files: ExitStack) -> str | BinaryIO:
    """Return the path of a file; a pipe or a terminal, which may block, as a stream."""
    if path != "-":
        if not interrupt.active or not stat.S_ISFIFO(_mode(path)):
            return path
        return cast("BinaryIO", _Stream(path, interrupt=interrupt, files=files))
    if sys.stdin is None:
        raise InputError("there is no standard input; -d names a file to read")
    try:
        sys.stdin.fileno()
    except OSError:  # not a real file, but an object within Python
        return sys.stdin.buffer
    if not interrupt.active:
        return sys.stdin.buffer
    return cast("BinaryIO", _Stream(path, interrupt=interrupt, files=files))


def _mode(path: str) -> int:
    try:
        return Path(path).stat().st_mode
    except OSError:  # the reader will report it
        return 0
