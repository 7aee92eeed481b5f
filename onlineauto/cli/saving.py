"""``Saving``: the initial model of a run, and the models that it writes.

``Showing`` keeps the names of features for them, and for ``--audit``.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from onlineauto.automl.decisions import Swap
from onlineauto.automl.options import AutomlOptions
from onlineauto.engine.options.registry import ModelOptions, OutputOptions, RunOptions
from onlineauto.engine.report.predictions import STDOUT, open_sink
from onlineauto.engine.search.journal import decision_of
from onlineauto.engine.stream.source import read_blocks
from onlineauto.interop.named_blocks import line_names, named_blocks
from onlineauto.interop.vw.model import load_any_model, read_model
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

    from onlineauto.cli.report import RunReport
    from onlineauto.engine.event.outcomes import Outcomes
    from onlineauto.engine.search.journal import Entry
    from onlineauto.engine.stream.source import Sources
    from onlineauto.features.block import Block
    from onlineauto.formats.lines.diagnostics import Diagnostics
    from onlineauto.options import Configuration
    from onlineauto.workspace.model_file import State
    from onlineauto.workspace.run import Run

MODEL_FILES: Final = ("final_regressor", "readable_model", "invert_hash")
"""Options that name files of the model."""
_TOPIC_EVERY: Final = 10_000
_PAUSE: Final = 20.0

_MOST_LISTED = 10_000
"""Maximum number of crossed features of an interaction that an audit lists individually."""


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
        lane = {learner.shape.lane(0, each): index for index, each in enumerate(live)}
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
            if interrupted:
                self._report.finish(ending=self._interruption_message())
            else:
                self._report.finish()

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
