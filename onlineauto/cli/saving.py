"""``Saving``: the initial model of a run, and the models that it writes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from onlineauto.automl.options import AutomlOptions
from onlineauto.cli.showing import names_to_state
from onlineauto.engine.options.registry import ModelOptions, RunOptions
from onlineauto.interop.vw.any_model import load_any_model, read_model
from onlineauto.workspace.model_file import replace_file
from onlineauto.workspace.predict_only import predicting_configs, spin_off, spun_off
from onlineauto.workspace.run import load_run
from onlineauto.workspace.save_load import save_model
from onlineauto.workspace.start.warm_start import search_from
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onlineauto.cli.report import RunReport
    from onlineauto.cli.showing import Showing
    from onlineauto.options import Configuration
    from onlineauto.workspace.model_file import State
    from onlineauto.workspace.run import Run

MODEL_FILES: Final = ("final_regressor", "readable_model", "invert_hash")
"""Options that name files of the model."""
_TOPIC_EVERY: Final = 10_000
_PAUSE: Final = 20.0


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
