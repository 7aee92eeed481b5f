"""``RunReport``: all output of a run."""

from __future__ import annotations

import io
import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from onlineauto.automl.options import AutomlOptions
from onlineauto.engine.options.registry import ModelOptions, OutputOptions
from onlineauto.engine.report.header import header
from onlineauto.engine.report.metrics import Metrics
from onlineauto.engine.report.predictions import ENDING, ParquetPredictions, Predictions, open_sink
from onlineauto.engine.report.progress import LabelRange, summary
from onlineauto.engine.report.search_summary import decay_warning, outside_warning, search_summary
from onlineauto.engine.search.journal import Journal
from onlineauto.errors import OptionError
from onlineauto.formats.lines.diagnostics import Diagnostics, summary_of
from onlineauto.learners.gradient_kernels import T
from onlineauto.learners.options import CbOptions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import ExitStack

    from onlineauto.engine.event.outcomes import Outcomes
    from onlineauto.engine.search.journal import Entry, Sink
    from onlineauto.features.block import Block
    from onlineauto.workspace.model_file import State
    from onlineauto.workspace.run import Run


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
            self.write_line(f"onlineauto: warning: {run.progress.warning}")
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

    def finish(self, *, ending: str = "finished run") -> None:
        """Print the summary, which begins with `ending`, and write the metrics and the end of the journal."""
        self._run.count_passes()
        if self.diagnostics.counts:
            self.write_line(_problem_counts(self.diagnostics))
        for line in summary(self._run.progress, self._configuration, ending=ending):
            self.write_line(line)
        is_native = not self._workspace.semantics.reports_as_vw
        if is_native and (warning := self._labels.warning):
            self.write_line(f"onlineauto: warning: {warning}")
        if self._search.automl is not None and is_native:
            if self._configuration[ModelOptions].initial_regressor:
                self.write_line("since the model began:")
            for line in search_summary(self._workspace.searching):
                self.write_line(line)
            workspace = self._workspace
            if warning := outside_warning(workspace.searching, costs=workspace.label_range):
                self.write_line(f"onlineauto: warning: {warning}")
        if is_native and (warning := decay_warning(self._workspace.learner.task.decay)):
            self.write_line(f"onlineauto: warning: {warning}")
        if warning := self._workspace.searching.replay_warning:
            self.write_line(f"onlineauto: warning: {warning}")
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
    return f"onlineauto: warning: {diagnostics.total} {problems} in the input{limit}: {counts}"
