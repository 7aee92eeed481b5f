"""``StudyView``: the readable part of a study: its settings, trials, best trial and history."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.errors import OptionError, PackageError, install_hint
from onlineauto.tune.replica import rows
from onlineauto.tune.searchers.open_searcher import OpenSearcher
from onlineauto.tune.searchers.pareto import front
from onlineauto.tune.trial import Job, TrialState, copy_trial

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from onlineauto.tune.record_checks import SkippedRecord
    from onlineauto.tune.replica import Replica
    from onlineauto.tune.settings import StudySettings
    from onlineauto.tune.spaces import Space
    from onlineauto.tune.trial import Trial


class StudyState(StrEnum):
    """States of a study, for a process that asks for a job."""

    OPEN = "open"
    """There may be a job: call `ask`."""
    NEEDS_RESOURCES = "needs resources"
    """A job was given back for lack of resources, and waits for a process that has them."""
    BUSY = "busy"
    """Other processes run all current jobs: call `wait`."""
    DONE = "done"
    """No job is running, and there will be no other job."""


class StudyDirection(StrEnum):
    """The direction in which values get better, as in Optuna."""

    MINIMIZE = "MINIMIZE"
    MAXIMIZE = "MAXIMIZE"


class StudyView:
    """The state of a study, for reading."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica

    @property
    def name(self) -> str:
        """The name of the study in its store."""
        return self._replica.name

    def refresh(self) -> None:
        """Read the records of other processes; `ask` and `tell` do this themselves."""
        with self._replica.lock:
            self._replica.refresh()

    @property
    def settings(self) -> StudySettings:
        """The settings of the study, with its current limits."""
        progress = self._replica.progress
        return replace(
            self._replica.settings, max_trials=progress.searcher.limit, setting=progress.scheduler.setting
        )

    @property
    def skipped(self) -> list[SkippedRecord]:
        """The records of the log that cannot be applied, with their positions; everything else is applied."""
        with self._replica.lock:
            return list(self._replica.progress.skipped)

    @property
    def rounds(self) -> int | None:
        """Number of rounds that the scheduler has completed; None if it has no rounds."""
        return self._replica.progress.scheduler.rounds

    @property
    def is_done(self) -> bool:
        """True if no job is running, and there will never be another job."""
        return self._replica.is_done

    @property
    def trials(self) -> list[Trial]:
        """Copies of all trials, by number; those of other studies, -1, -2, …, are at the end of the list.

        Enqueued configs are trials that are PENDING, with the numbers they get if they begin in this order.
        """
        with self._replica.lock:
            progress = self._replica.progress
            trials, added = (
                [self.copied(group[number]) for number in sorted(group)]
                for group in (progress.trials, progress.added)
            )
            return [*trials, *map(self.copied, progress.enqueued()), *added]

    def copied(self, trial: Trial) -> Trial:
        """Return a copy of a trial that later records do not change."""
        return copy_trial(trial)

    @property
    def user_attrs(self) -> dict[str, Any]:
        """The attributes of the study, which `Study.set_user_attr` sets."""
        with self._replica.lock:
            return dict(self._replica.progress.user_attrs)

    @property
    def best(self) -> Trial | None:
        """The incumbent: the trial with the best value at the largest resource so far. None at first.

        Feasible trials come first. If there are several objectives, the value is that of the first one.
        """
        with self._replica.lock:
            progress = self._replica.progress
            if progress.best is None:
                return None
            return self.copied((progress.trials if progress.best >= 0 else progress.added)[progress.best])

    @property
    def best_trial(self) -> Trial:
        """The trial with the best value at the largest resource.

        Raises
        ------
        OptionError
            If no trial has a value, or there are several objectives.
        """
        if len(self.objectives) > 1:
            raise OptionError(f"the study {self.name!r} has several objectives: see best_trials")
        best = self.best
        if best is None:
            raise OptionError(f"no trial of the study {self.name!r} has a value; {self._why_no_value()}")
        return best

    @property
    def best_params(self) -> dict[str, Any]:
        """The config of `best_trial`."""
        return self.best_trial.config

    @property
    def best_value(self) -> float:
        """The value of `best_trial`."""
        value = self.best_trial.value
        assert value is not None  # the best trial has one
        return value

    def trials_dataframe(self) -> Any:
        """Return a `pandas.DataFrame` with a row per trial: number, value, ``params_…``, state, resource.

        Attributes are in columns ``user_attrs_…``; an objective also has the times of its trials.

        States have Optuna's names: COMPLETE if the trial has reached the maximum resource, PRUNED if it
        is paused or has ended at a smaller one, FAIL, RUNNING or WAITING.
        """
        most, names = self.settings.setting.max_resource, self._replica.progress.metric_names
        return frame_of(
            {
                "number": trial.number,
                **(
                    {
                        f"values_{name}": value
                        for name, value in (
                            zip(names or trial.objectives, trial.objectives.values(), strict=True)
                            if trial.objectives
                            else ()
                        )
                    }
                    or {"value": trial.value}
                ),
                **{f"constraints_{name}": value for name, value in trial.constraints.items()},
                **{f"params_{name}": value for name, value in trial.config.items()},
                **{f"user_attrs_{name}": value for name, value in trial.user_attrs.items()},
                **{
                    name: getattr(trial, name)
                    for name in ("datetime_start", "datetime_complete", "duration")
                    if trial.times
                },
                "state": str(TrialState.of(trial, most)),
                "resource": trial.resource,
            }
            for trial in self.trials
        )

    def _why_no_value(self) -> str:
        """Return why no trial has a value, as the end of a sentence."""
        failed = [trial for trial in self.trials if trial.error]
        if not failed:
            return "none has ended"
        first = failed[0]
        where = (
            f"Study.trials[{first.number}].traceback says where" if first.traceback else "without a traceback"
        )
        return f"{len(failed)} failed, the first with {first.error}; {where}"

    @property
    def objectives(self) -> list[str]:
        """The names of the objectives; ``value`` if there is one."""
        return [*self._replica.progress.objectives]

    @property
    def best_trials(self) -> list[Trial]:
        """The feasible trials that no other one dominates, by number; with one objective, `best`."""
        objectives = self._replica.progress.objectives
        if len(objectives) == 1:
            return [best for best in [self.best] if best is not None and best.is_feasible]
        ended = [trial for trial in self.trials if trial.objectives and trial.is_feasible]
        if not ended:
            return []
        losses = [[sign * trial.objectives[name] for name, sign in objectives.items()] for trial in ended]
        return [ended[row] for row in front(np.array(losses)).tolist()]

    @property
    def space(self) -> Space:
        """The space: as it was declared, or what objectives have suggested so far."""
        with self._replica.lock:
            progress = self._replica.progress
            inferred = progress.searcher.known_space if isinstance(progress.searcher, OpenSearcher) else None
            return inferred or progress.scheduler.setting.space

    def needed(self, trial: int) -> set[int]:
        """Return the resources at which a trial's checkpoints are needed, in addition to the newest ones."""
        return self._replica.needed(trial)

    def disposable(self) -> list[int]:
        """Return the trials, each once, that ended early and whose checkpoints no job needs."""
        return self._replica.disposable()

    def saved(self, trial: int, *, checkpoints: str | Path | None = None) -> Any:
        """Return the object in the last checkpoint of a trial, as its trainable saved it, or None.

        Parameters
        ----------
        trial : int
            The number of the trial.
        checkpoints : str or Path, optional
            The folder that was passed to `run`.

        Raises
        ------
        OptionError
            There is no such trial.
        """
        from onlineauto.tune.store.checkpoints import unpack_checkpoint
        from onlineauto.tune.workers.running import checkpoints_of

        self.refresh()
        with self._replica.lock:
            trials = self._replica.progress.trials
            if trial not in trials:
                raise OptionError(f"there is no trial {trial!r}; the study {self.name!r} has {len(trials)}")
            most = trials[trial].job_resource
        newest = checkpoints_of(self._replica.store, checkpoints).newest(trial, most=most)
        return None if newest is None else unpack_checkpoint(newest.saved)

    def history(self, job: Job | None = None) -> list[dict[str, Any]]:
        """Return a row for each reported value, intermediate or final, in order, for `pandas.DataFrame`.

        Parameters
        ----------
        job : Job, optional
            Return the history up to the claim of this job; it stays the same while the job runs.

        Returns
        -------
        list of dict
            Keys: ``trial``, ``attempt``, ``resource``, ``value``, ``told`` (False if it was reported),
            ``value_…`` for each of several objectives, ``constraint_…`` for each constraint, ``config_…`` for
            each parameter of the trial, and the details of the value except lists.
        """
        if job is not None and not isinstance(job, Job):
            raise OptionError(f"job = {job!r}: give what Study.ask returned, or None for all values")
        self.refresh()
        return rows(self._replica.records()) if job is None else self._replica.history(job)


def frame_of(rows: Iterable[Mapping[str, Any]]) -> Any:
    """Return rows as a `pandas.DataFrame`; raise `PackageError` if pandas is not installed."""
    try:
        import pandas as pd
    except ImportError as error:
        raise PackageError(f"tables of trials need pandas: {install_hint('tune')}") from error
    return pd.DataFrame(list(rows))
