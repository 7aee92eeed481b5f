"""The progress of a study as text and as a table, the name of the only study, and the end of a process.

The progress is a table on a terminal, a line without rich, and nothing in a pipe.
"""

from __future__ import annotations

import signal
import sys
import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from onlineauto.cli.terminal import progress_line
from onlineauto.errors import OptionError
from onlineauto.tune.settings import UNLIMITED
from onlineauto.tune.workers.hooks import Callback

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import FrameType

    from onlineauto.tune.study import Study
    from onlineauto.tune.trial import Job, Trial

_PAUSE: Final = 0.2
"""Minimum number of seconds between two updates."""
_BEST: Final = 5
_MOST: Final = 8
"""Maximum number of best trials, and of running trials, in the table."""

_TERMINATED: Final = 143


class Terminated(KeyboardInterrupt):
    """SIGTERM arrived. Like Ctrl-C, it is never treated as the error of a trial or of a job."""


@contextmanager
def return_jobs_on_exit() -> Iterator[None]:
    """Return jobs to the study if this process is terminated; let modules of this folder be imported."""
    if "" not in sys.path:
        sys.path.insert(0, "")
    before = signal.signal(signal.SIGTERM, _leave)
    try:
        yield
    except Terminated:
        raise SystemExit(_TERMINATED) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def only_name(url: str) -> str:
    """Return the name of the only study in a store."""
    from onlineauto.tune.store.sql_store import names_of_studies

    names = names_of_studies(url)
    if len(names) != 1:
        some = ", ".join(names) or "none"
        raise OptionError(f"name a study of the store with --name; it has: {some}")
    return names[0]


def _leave(number: int, frame: FrameType | None) -> None:
    """Interrupt the main thread."""
    del number, frame
    raise Terminated


@contextmanager
def show_progress(*, quiet: bool = False) -> Iterator[list[Callback]]:
    """Yield callbacks that display a study on standard error until the context ends; none in a pipe."""
    stream = sys.stderr
    if quiet or not stream.isatty():
        yield []
        return
    try:
        from rich.console import Console
        from rich.live import Live
    except ImportError:
        with progress_line() as draw:
            assert draw is not None
            yield [_Progress(lambda shown: draw(line_of(shown.study, shown.seconds)))]
        return
    with Live(console=Console(file=stream), auto_refresh=False, transient=True) as live:
        yield [_Progress(lambda shown: live.update(_table(shown.study, shown), refresh=True))]


def line_of(study: Study, seconds: float) -> str:
    """Return the progress of a study as one line."""
    best = [f"{len(study.best_trials)} best"] if len(study.objectives) > 1 else best_text(study)
    parts = [f"{study.name}: {len(study.trials)} trials", *counts_by_state(study), *best, f"{seconds:.0f} s"]
    return ", ".join(parts)


def counts_by_state(study: Study) -> list[str]:
    """Return the number of trials of each state as text."""
    states = Counter(trial.state.lower() for trial in study.trials)
    return [f"{count} {state}" for state, count in sorted(states.items())]


def best_text(study: Study) -> list[str]:
    """Return a description of the best trial, if there is one."""
    best = study.best
    return [
        f"best {trial.value:.6g} of trial {trial.number} at {resource_text(trial.resource)}"
        for trial in ([] if best is None else [best])
    ]


def resource_text(resource: int) -> str:
    """Return a resource as text; "the end" if trials have no limit."""
    return "the end" if resource >= UNLIMITED else f"{resource}"


def config_text(config: Mapping[str, Any]) -> str:
    """Return a config as short text.

    >>> config_text({"rate": 0.0123456789, "loss": "squared"})
    'rate=0.0123457 loss=squared'
    """
    return " ".join(f"{name}={_short(value)}" for name, value in config.items())


def _short(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


class _Progress(Callback):
    """Records the running jobs, and draws them at intervals."""

    study: Study

    def __init__(self, draw: Callable[[_Progress], None]) -> None:
        self._draw = draw
        self._begun, self._drawn = time.monotonic(), 0.0
        # The job, step and value of each running trial.
        self.running: dict[int, tuple[Job, int, float | None]] = {}

    @property
    def seconds(self) -> float:
        """The seconds that this run has taken."""
        return time.monotonic() - self._begun

    def on_begin(self, study: Study) -> None:
        self.study = study

    def on_start(self, job: Job) -> None:
        self.running[job.trial] = job, 0 if job.resume_from is None else job.resume_from[1], None
        self._draw_soon()

    def on_report(self, job: Job, step: int, value: float) -> None:
        self.running[job.trial] = job, step, value
        self._draw_soon()

    def on_result(self, job: Job, value: object) -> None:  # noqa: ARG002
        self.running.pop(job.trial, None)
        self._draw_soon()

    on_error = on_lost = on_result  # type: ignore[assignment]  # their second parameter is `why`

    def _draw_soon(self) -> None:
        if time.monotonic() - self._drawn >= _PAUSE:
            self._draw(self)
            self._drawn = time.monotonic()


def _table(study: Study, progress: _Progress) -> Any:
    """Return the table for rich."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for column in ("trial", "", "at", "of", "value"):
        table.add_column(column, justify="right", style="dim" if not column else None)
    table.add_column("config", overflow="ellipsis", no_wrap=True)
    for job, step, value in [*progress.running.values()][:_MOST]:
        number = "" if value is None else f"{value:.6g}"
        table.add_row(
            f"{job.trial}", "runs", f"{step}", resource_text(job.resource), number, config_text(job.config)
        )
    for trial in _best(study):
        at, number = resource_text(trial.resource), f"{trial.value:.6g}"
        table.add_row(f"{trial.number}", "best", at, "", number, config_text(trial.config))
    return Group(Text(line_of(study, progress.seconds)), table)


def _best(study: Study) -> list[Trial]:
    """Return the best trials among those with the largest resource, the best first."""
    if len(study.objectives) > 1:
        return study.best_trials[:_BEST]
    sign = -1.0 if study.mode == "max" else 1.0
    with_value = [trial for trial in study.trials if trial.value is not None]
    with_value.sort(key=lambda trial: (not trial.is_feasible, -trial.resource, sign * (trial.value or 0.0)))
    return with_value[:_BEST]
