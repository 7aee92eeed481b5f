"""The outputs of a run: ``RunReport`` its reports, ``Saving`` its models, ``Showing`` names of features."""

from __future__ import annotations

import io
import os
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from onlineauto.automl.decisions import Swap
from onlineauto.automl.options import AutomlOptions
from onlineauto.cli.terminal import warn
from onlineauto.engine.options.registry import ModelOptions, OutputOptions, RunOptions
from onlineauto.engine.report.header import header
from onlineauto.engine.report.metrics import Metrics
from onlineauto.engine.report.predictions import ENDING, STDOUT, ParquetPredictions, Predictions, open_sink
from onlineauto.engine.report.progress import LabelRange, summary
from onlineauto.engine.report.search_summary import decay_warning, outside_warning, search_summary
from onlineauto.engine.search.journal import Journal, decision_of
from onlineauto.engine.stream.source import read_blocks
from onlineauto.errors import OptionError
from onlineauto.formats.lines.diagnostics import Diagnostics, summary_of
from onlineauto.interop.named_blocks import line_names, named_blocks
from onlineauto.interop.vw.model import is_vw_model, load_any_model, read_model
from onlineauto.learners.gradient_kernels import T
from onlineauto.learners.options import CbOptions
from onlineauto.workspace.inspection.named_examples import (
    Audit,
    InverseHash,
    NamedExamples,
    Nameless,
    learnt_example,
)
from onlineauto.workspace.model_file import replace_file
from onlineauto.workspace.predict_only import predicting_configs, spin_off, spun_off
from onlineauto.workspace.run import load_run
from onlineauto.workspace.save_load import save_model
from onlineauto.workspace.warm_start import search_from
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import ExitStack

    from onlineauto.engine.event.outcomes import Outcomes
    from onlineauto.engine.search.journal import Entry, Sink
    from onlineauto.engine.stream.source import Sources
    from onlineauto.features.block import Block
    from onlineauto.options import Configuration
    from onlineauto.workspace.model_file import State
    from onlineauto.workspace.run import Run

MODEL_FILES: Final = ("final_regressor", "readable_model", "invert_hash")
"""Options that name files of the model."""
_TOPIC_EVERY: Final = 10_000
_PAUSE: Final = 20.0

_MOST_LISTED = 10_000
"""Maximum number of crossed features of an interaction that an audit lists individually."""


class RunReport:
    """All output of a run: header, table, diagnostics, predictions, footer and metrics."""

    def __init__(self, run: Run, files: ExitStack, *, cache: str = "using no cache") -> None:
        self._sinks: dict[str, Sink] = {}
        self._files, self._written = files, run.stored.get("outputs", {})
        self._run, self._workspace = run, (workspace := run.workspace)
        self._configuration = configuration = workspace.configuration
        self._options = options = configuration[OutputOptions]
        self._metrics: Metrics | None = None
        if options.extra_metrics is not None:
            self._metrics = Metrics(
                configuration,
                kind=workspace.kind,
                semantics=workspace.semantics,
                searching=workspace.searching,
            )
        self._journal: Journal | None = None
        self._search = configuration[AutomlOptions]
        if options.journal is not None and self._search.automl is not None:
            command, began = configuration.command(kept=True), "journal" in self._written
            with self._name_file_in_errors("journal"):
                self._journal = Journal(self._open("journal"), command=command, began=began)
            files.callback(workspace.observe(self._append).remove)
        self._predictions = {
            name: self._open_predictions(name, raw=raw)
            for name, raw in (("predictions", False), ("raw_predictions", True))
            if getattr(options, name) is not None
        }
        self._labels = LabelRange(configuration)
        if "metrics" in run.stored and self._metrics is not None:
            self._metrics.recount(run.stored["metrics"])
        self.diagnostics = run.diagnostics = Diagnostics(listener=None if options.quiet else self.write_line)
        run.emit = None if options.quiet else self.write_line
        run.sinks.append(self)
        if run.progress.warning:
            self.warn(run.progress.warning)
        learnt_weight = float(workspace.learner.model.shared[T])
        for line in header(configuration, kind=workspace.kind, learnt_weight=learnt_weight, cache=cache):
            self.write_line(line)

    def _open_predictions(self, name: str, *, raw: bool) -> Predictions | ParquetPredictions:
        """Return a writer of predictions to the file of option `name`."""
        path, rank_all = getattr(self._options, name), self._configuration[CbOptions].rank_all
        kind, names = self._workspace.kind, self._run.action_names
        if not path.endswith(ENDING):
            sink, as_vw = self._open(name), self._workspace.semantics.reports_as_vw
            return Predictions(sink, kind=kind, rank_all=rank_all, raw=raw, names=names, raw_tags=as_vw)
        if "position" in self._run.stored and Path(path).exists():
            raise OptionError(
                f"--{name} {path}: a resumed run cannot continue a file of Parquet; name another file"
            )
        predictions = ParquetPredictions(path, kind=kind, rank_all=rank_all, raw=raw, names=names)
        self._files.callback(predictions.close)
        return predictions

    def _open(self, name: str) -> Sink:
        """Open the output of option `name`, and return it positioned after a resumed run's bytes."""
        path, (before, at) = getattr(self._options, name), self._written.get(name, ("", 0))
        if before and before != _stored_path(path):
            raise OptionError(f"--{name} {path}: the resumed run has written to {before}: name that file")
        sink = self._sinks[name] = self._files.enter_context(open_sink(path, at=at))
        return sink

    def state(self) -> State:
        """Return the state from which a resumed run continues this report, after flushing all outputs."""
        written = dict(self._written)  # outputs that this run does not write are kept for a later run
        for name, sink in self._sinks.items():
            sink.flush()
            if isinstance(sink, io.BufferedIOBase) and sink.seekable():
                os.fsync(sink.fileno())
                written[name] = (_stored_path(getattr(self._options, name)), sink.tell())
        metrics = {} if self._metrics is None else {"metrics": self._metrics.counts()}
        return {"outputs": written} | metrics

    def take(self, block: Block, outcomes: Outcomes) -> None:
        """Report a block."""
        self._labels.update(outcomes)
        if self._metrics is not None:
            self._metrics.update(block, outcomes)
        for name, predictions in self._predictions.items():
            with self._name_file_in_errors(name):
                predictions.write(block, outcomes)

    def finish(self, *, ending: str) -> None:
        """Print the summary, which begins with `ending`, and write the metrics and the end of the journal."""
        self._run.count_passes()
        if self.diagnostics.counts:
            self.warn(_problem_counts(self.diagnostics))
        for line in summary(self._run.progress, self._configuration, ending=ending):
            self.write_line(line)
        is_native = not self._workspace.semantics.reports_as_vw
        if is_native and (warning := self._labels.warning):
            self.warn(warning)
        if self._search.automl is not None and is_native:
            if self._configuration[ModelOptions].initial_regressor:
                self.write_line("since the model began:")
            for line in search_summary(self._workspace.searching):
                self.write_line(line)
            labels = self._workspace.label_range
            if warning := outside_warning(self._workspace.searching, costs=labels):
                self.warn(warning)
        if is_native and (warning := decay_warning(self._workspace.learner.task.decay)):
            self.warn(warning)
        if warning := self._workspace.searching.replay_warning:
            self.warn(warning)
        if self._journal is not None:
            with self._name_file_in_errors("journal"):
                self._journal.end(events=self._workspace.searching.n_events)
        if self._metrics is not None and self._options.extra_metrics is not None:
            problems = self.diagnostics
            by_code = {code.name.lower(): count for code, count in sorted(problems.counts.items())}
            with self._name_file_in_errors("extra_metrics"):
                self._metrics.write(self._options.extra_metrics, diagnostics=by_code, log=problems.log)

    def _append(self, entry: Entry) -> None:
        """Write a decision to the journal."""
        if self._journal is not None:
            with self._name_file_in_errors("journal"):
                self._journal.append(entry)

    @contextmanager
    def _name_file_in_errors(self, name: str) -> Iterator[None]:
        """Add the file of option `name` to errors within the context."""
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OSError(error.errno, error.strerror, getattr(self._options, name)) from None

    def warn(self, text: str) -> None:
        """Print a warning to standard error, unless the run is quiet."""
        if not self._options.quiet:
            warn(text)

    def write_line(self, line: object) -> None:
        """Print a line to standard error, unless the run is quiet."""
        if not self._options.quiet:
            print(line, file=sys.stderr)


def _stored_path(path: str) -> str:
    """Return a path as a model file stores it: bytes that are not UTF-8 are escaped."""
    return path.encode("utf-8", "backslashreplace").decode()


def _problem_counts(diagnostics: Diagnostics) -> str:
    """Return a line with the numbers of problems in the input, by kind."""
    counts = "; ".join(f"{count} x {summary_of(code)}" for code, count in sorted(diagnostics.counts.items()))
    hidden = diagnostics.total - len(diagnostics.kept)
    limit = f", the first {len(diagnostics.kept)} shown" if hidden else ""
    problems = "problem" if diagnostics.total == 1 else "problems"
    return f"{diagnostics.total} {problems} in the input{limit}: {counts}"


class Showing:
    """Reads events with names, if an option requires names, and audits events before they are learnt."""

    def __init__(self, run: Run, files: ExitStack) -> None:
        self._workspace = workspace = run.workspace
        configuration = workspace.configuration
        self._known: dict[int, str] = dict(run.stored.get("names", ()))
        run.sinks.append(self)
        self._searches = configuration[AutomlOptions].automl is not None
        self._audit: Audit | None = None
        if configuration[OutputOptions].audit:
            self._audit = Audit(workspace)
            self._sink = files.enter_context(open_sink(STDOUT[0]))
        self._inverse: InverseHash | None = None
        if configuration[ModelOptions].invert_hash is not None:
            self._inverse = InverseHash(workspace)
            if not workspace.semantics.reports_as_vw:  # VW names only features of this run
                self._inverse.names.update(self._known)
        self._first = True
        if self._audit is not None or self._inverse is not None:
            run.read = self._read
            self._names = line_names(configuration)
            names_all = self._inverse is not None or workspace.semantics.reports_as_vw
            self._examples = NamedExamples(workspace, self._names, most=None if names_all else _MOST_LISTED)
            self._nameless = NamedExamples(workspace, Nameless())

    @property
    def names(self) -> Mapping[int, str]:
        """Names of the weights that events have used; see `InverseHash`."""
        return self._known if self._inverse is None else self._inverse.names

    def take(self, block: Block, outcomes: Outcomes) -> None:
        """Do nothing, because events are audited before they are learnt."""

    def state(self) -> State:
        """Return the names for a model file."""
        return names_to_state(self.names)

    def names_of(self, live: Sequence[int], lanes: int) -> dict[int, str]:
        """Return the names of the weights of some live configs, numbered for a table with `lanes` lanes."""
        learner = self._workspace.learner
        before = learner.shape.lanes
        lane = {learner.shape.lane(0, live_config): index for index, live_config in enumerate(live)}
        return {
            number // before * lanes + lane[number % before]: name
            for number, name in self.names.items()
            if number % before in lane
        }

    def _read(self, source: Sources, configuration: Configuration, problems: Diagnostics) -> Iterator[Block]:
        first, self._first = self._first, False
        single = named_blocks(source, configuration, problems, names=self._names)
        for block in read_blocks(single, configuration, problems):
            if self._audit is not None:
                examples = (
                    self._examples if first or not self._workspace.semantics.reports_as_vw else self._nameless
                )
                text = self._audit.text(block, examples.examples_of(block))
                self._sink.write(text.encode("utf-8", "surrogateescape"))
                self._sink.flush()
            if self._inverse is None or not first:
                yield block
            elif self._searches:
                yield from self._learn_in_search(block, self._inverse)
            else:
                self._inverse.note(self._inverse.names_of_weights(self._examples.examples_of(block)))
                yield block

    def _learn_in_search(self, block: Block, inverse: InverseHash) -> Iterator[Block]:
        """Yield an event for the search to learn, and record the names of the weights that it used.

        Names are recorded after the event, since it may add interactions. If it changes the champion, they
        are recorded just before the change, which comes last.
        """
        workspace = self._workspace
        as_vw = workspace.semantics.reports_as_vw
        learns = learnt_example(workspace.learner.task, block) is not None or not as_vw
        switches = workspace.searching.n_switches

        def note() -> None:
            inverse.note(inverse.names_of_weights(self._examples.examples_of(block), challengers=learns))

        def record_entry(entry: Entry) -> None:
            if isinstance(decision_of(entry), Swap):
                note()

        with workspace.observe(record_entry):
            yield block
        if workspace.searching.n_switches == switches or not as_vw:
            note()


def names_to_state(names: Mapping[int, str]) -> State:
    """Return names in the form of a model file: pairs of a weight's number and its name."""
    pairs = sorted(
        (number, name.encode("utf-8", "backslashreplace").decode()) for number, name in names.items()
    )
    return {"names": pairs} if pairs else {}


def open_workspace(configuration: Configuration) -> tuple[Workspace, State]:
    """Return the initial workspace, and the state of the run that saved its model file.

    With ``--resume`` that is the model of ``-f``, if the file exists. Otherwise it is the model of ``-i``,
    which may be one of Vowpal Wabbit, or a new model. If that model does not search and the options do, it
    becomes the first champion.
    """
    models = configuration[ModelOptions]
    if models.resume and models.final_regressor is not None and Path(models.final_regressor).exists():
        return load_run(models.final_regressor, configuration)
    if not models.initial_regressor:
        return Workspace(configuration=configuration), {}
    path = models.initial_regressor[0]
    if configuration[AutomlOptions].automl is not None:
        source = read_model(path, testonly=configuration[RunOptions].testonly)
        if source.configuration[AutomlOptions].automl is None:
            return search_from(source, configuration, name=path), {}
        if is_vw_model(path) and not configuration[OutputOptions].quiet:
            warn(
                f"{path} is a search of Vowpal Wabbit, which --vw_exact continues; AutoML.warm_start, in "
                "Python, begins onlineauto's own search with its champion"
            )
    workspace, run = load_any_model(path, configuration)
    state_names = {"names", "dataset"} | ({"progress"} if models.preserve_performance_counters else set())
    return workspace, {name: run[name] for name in state_names & run.keys()}


class Saving:
    """Writes the model of ``-f``: at intervals with ``--save_every``, and at the end, also as text.

    A save of a topic costs as much as decisions wait. So without ``--save_every`` a topic is saved after
    10,000 events, and once 20 times as long has passed as the last save took.
    """

    def __init__(self, run: Run, report: RunReport, showing: Showing, *, is_topic: bool = False) -> None:
        self._run, self._workspace = run, (workspace := run.workspace)
        self._report, self._showing = report, showing
        self._options = workspace.configuration[ModelOptions]
        self._path = self._options.final_regressor
        self._unsaved = 0
        self._every = self._options.save_every
        self._pause = 0.0 if self._every is not None or not is_topic else _PAUSE
        if self._every is None and is_topic:
            self._every = _TOPIC_EVERY
        self._next_save = 0.0

    def note(self, n: int) -> None:
        """Count `n` more learnt events, and save the model if it is due."""
        self._unsaved += n
        is_due = self._every is not None and self._unsaved >= self._every
        if is_due and time.monotonic() >= self._next_save:
            begin = time.monotonic()
            self.save()
            end = time.monotonic()
            self._next_save = end + self._pause * (end - begin)

    def finish(self, *, interrupted: bool = False) -> None:
        """Write the model and its texts, then print the summary, which a resumed run must not count."""
        self._run.count_passes()
        try:
            self.save()
            if self._options.readable_model is not None:
                self._write_text(self._options.readable_model, None)
            if self._options.invert_hash is not None:
                self._write_text(self._options.invert_hash, self._showing.names)
        finally:
            self._report.finish(ending=self._interruption_message() if interrupted else "finished run")

    def _interruption_message(self) -> str:
        """Return the message that the run was interrupted, with the file of its model."""
        message = f"interrupted after {self._run.progress.example_number} events"
        if self._path is None:
            return message
        hint = "" if self._options.predict_only() else "; --resume continues"
        return f"{message}; model saved to {self._path}{hint}"

    def save(self) -> None:
        """Write the model, if ``-f`` names a file."""
        if self._path is None:
            return
        self._unsaved = 0
        if scope := self._options.predict_only():
            state = spin_off(self._workspace, scope)
            live = predicting_configs(self._workspace, scope)
            names = self._showing.names_of(live, state["learner"]["model"]["shape"][2])
            save_model(state, self._path, run=names_to_state(names) | self._run.dataset)
            return
        self._run.checkpoint(self._path)

    def _write_text(self, path: str, names: Mapping[int, str] | None) -> None:
        """Write the model, or its predicting part, as text."""
        workspace, alone = self._workspace, self._options.predict_only()
        if alone and len(workspace.searching.live_configs.configs) > 1:
            live = predicting_configs(workspace, alone)
            workspace = spun_off(workspace, alone)
            if names is not None:
                names = self._showing.names_of(live, workspace.learner.shape.lanes)
        from onlineauto.workspace.inspection.readable_model import readable_model

        lines = readable_model(
            workspace,
            self._run.progress,
            names=names,
            weights_only=bool(alone),
            hexfloat=self._options.hexfloat_weights,
        )
        replace_file(path, (line.encode("utf-8", "surrogateescape") for line in lines))
