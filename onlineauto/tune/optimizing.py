"""``Optimizing``: the calls of a study that users of Optuna know."""

from __future__ import annotations

import gc
import logging
import os
import time
import traceback
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from math import inf
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from onlineauto.errors import OptionError, PackageError, StoreError, install_hint, short_repr
from onlineauto.tune.active_trial import ActiveTrial, TrialPruned
from onlineauto.tune.plain import count, number
from onlineauto.tune.schedulers import State
from onlineauto.tune.searchers.open_searcher import OpenSearcher
from onlineauto.tune.store import LeaseLost, MemoryStore
from onlineauto.tune.study_view import StudyView, copy_trial
from onlineauto.tune.warm_start import added_trials, signs_of
from onlineauto.tune.workers.jobs import Reason
from onlineauto.tune.workers.owners import free_jobs_of_dead

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from onlineauto.tune.claims import Claims
    from onlineauto.tune.trial import Job, Trial

_LOG: Final = logging.getLogger("onlineauto")
UNLIMITED: Final = 10**9
"""Resource of a complete trial, if a study has no maximum: more steps than a trial reports."""
_PAUSE: Final = 0.05
"""Seconds between two requests for a job while there is none."""


class Optimizing(StudyView):
    """A study whose trials are calls of an objective function."""

    _claims: Claims
    _run: _Run | None = None

    def optimize(
        self,
        func: Callable[[ActiveTrial], Any],
        n_trials: int | None = None,
        timeout: float | None = None,
        n_jobs: int = 1,
        catch: type[Exception] | Iterable[type[Exception]] = (),
        callbacks: Iterable[Callable[[Any, Trial], None]] | None = None,
        gc_after_trial: bool = False,
        show_progress_bar: bool = False,
    ) -> None:
        """Call an objective with one trial after the other.

        A trial that was interrupted comes first, with the same values. An error in the objective fails its
        trial and is raised. NaN fails the trial, and the next one begins.

        Parameters
        ----------
        func : callable
            The objective, which takes an `ActiveTrial` and returns a number, or one for each objective.
        n_trials : int, optional
            Number of trials of this call; None for no limit. A trial that its scheduler resumes does not
            count; the objective is then called with the same values again.
        timeout : float, optional
            Seconds after which no further trial begins.
        n_jobs : int
            Number of threads; -1 for one per processor.
        catch : type or iterable of types
            Errors that fail their trial without ending the call.
        callbacks : iterable of callable, optional
            Called with the study and the trial after each trial. `stop` ends the call.
        gc_after_trial, show_progress_bar : bool
            True to collect garbage after each trial; only False, because a call prints nothing.

        Raises
        ------
        OptionError
            If an argument is not valid, the study is done, the objective returns None or anything else that
            is not a number, or it suggests a parameter with another range than before.
        """
        if not callable(func):
            raise OptionError(f"func = {func!r}: give a function of a trial")
        if show_progress_bar:
            raise OptionError("show_progress_bar = True is not supported: report progress in callbacks=[...]")
        limit = inf if n_trials is None else count("n_trials", n_trials, 1)
        seconds = inf if timeout is None else number(timeout)
        if not seconds > 0:
            raise OptionError(f"timeout = {short_repr(timeout)}: give a number of seconds above 0")
        threads = os.cpu_count() or 1 if n_jobs == -1 else count("n_jobs", n_jobs, 1)
        errors, called = _several(catch), _several(callbacks)
        if not all(isinstance(each, type) and issubclass(each, Exception) for each in errors):
            raise OptionError(f"catch = {short_repr(catch)}: give types of exceptions")
        if not all(map(callable, called)):
            raise OptionError(f"callbacks = {short_repr(callbacks)}: give functions of a study and a trial")
        if gc_after_trial:
            called.insert(0, lambda *_: gc.collect())
        self.refresh()
        if self.is_done and n_trials is not None:
            raise OptionError(f"the study {self.name!r} is done: Study.extend(max_trials=…) continues it")
        free_jobs_of_dead(self._store, self.trials)
        run = self._run = _Run(self, func, limit, time.monotonic() + seconds, tuple(errors), called)
        if threads == 1:
            run.work()
            return
        with ThreadPoolExecutor(threads) as pool:
            futures = [pool.submit(run.work) for _ in range(threads)]
            try:
                for future in futures:
                    future.result()
            finally:
                run.stops = True

    def stop(self) -> None:
        """Let no further trial of `optimize` begin; a callback or an objective may call this."""
        if self._run is not None:
            self._run.stops = True

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
            raise OptionError(f"no trial of the study {self.name!r} has a value; {self._why_none()}")
        return best

    @property
    def best_params(self) -> dict[str, Any]:
        """The config of `best_trial`."""
        return self.best_trial.config

    @property
    def best_value(self) -> float:
        """The value of `best_trial`."""
        best = self.best_trial
        return best.values[best.resource]

    def trials_dataframe(self) -> Any:
        """Return a `pandas.DataFrame` with a row per trial: number, value, ``params_…``, state, resource.

        States have Optuna's names: COMPLETE if the trial has reached the maximum resource, PRUNED if it has
        ended before, FAIL, RUNNING or WAITING.
        """
        most = self.settings.setting.max_resource
        return frame_of(
            {
                "number": each.number,
                **(
                    {f"values_{name}": value for name, value in each.objectives.items()}
                    or {"value": each.value}
                ),
                **{f"constraints_{name}": value for name, value in each.constraints.items()},
                **{f"params_{name}": value for name, value in each.config.items()},
                "state": state_of(each, most),
                "resource": each.resource,
            }
            for each in self.trials
        )

    def add_trials(self, trials: Any) -> None:
        """Add finished trials of elsewhere: the searcher learns from them, and the best may be among them.

        They do not count for `max_trials`, and no scheduler compares them with its own.

        Parameters
        ----------
        trials : Study, sequence, DataFrame, str or Path
            A study of this library or of Optuna, its trials, a list of dicts, a frame, or a CSV file. Rows
            have ``value``, parameters as ``params_NAME``, ``config_NAME`` or ``config/NAME``, and optionally
            ``resource``. Trials without a value are left out.

        Raises
        ------
        OptionError
            If a config is not in the space, a value of a table is infinite, or no trial has a value; nothing
            is added. A parameter that is suggested later is checked then.
        """
        if len(self.objectives) > 1:
            raise OptionError("add_trials takes trials of one objective; enqueue their configs instead")
        if signs_of(trials) not in ([], signs_of(self)):
            raise OptionError(
                f"add_trials: the mode of these trials is not that of the study, {self.settings.mode}"
            )
        setting = self.settings.setting
        with self._lock:
            searcher = self._replica.progress.searcher
            declared = searcher.parameters if isinstance(searcher, OpenSearcher) else {}
            added = added_trials(trials, setting.space, setting.max_resource, declared)
            record = {"kind": "added", "trials": added}
            self._replica.follow(record, self._store.append(record))

    def _why_none(self) -> str:
        failed = [trial for trial in self.trials if trial.error]
        if not failed:
            return "none has ended"
        first = failed[0]
        where = (
            f"Study.trials[{first.number}].traceback says where" if first.traceback else "without a traceback"
        )
        return f"{len(failed)} failed, the first with {first.error}; {where}"


class _Run:
    """One call of `optimize`, in all its threads."""

    def __init__(
        self,
        study: Optimizing,
        objective: Callable[[ActiveTrial], Any],
        left: float,
        end: float,
        catch: tuple[type[Exception], ...],
        callbacks: Sequence[Callable[[Any, Trial], None]],
    ) -> None:
        self._study, self._objective, self._left, self._end = study, objective, left, end
        self._catch, self._callbacks = catch, callbacks
        self._lock, self._running, self.stops = Lock(), 0, False

    def work(self) -> None:
        """Run trials until the call ends. An error of this thread ends the call in all threads."""
        try:
            while not self.stops and time.monotonic() < self._end:
                job = self._next()
                if job is not None:
                    self._perform(job)
                elif self._left <= 0 or self._is_over():
                    return
                else:
                    time.sleep(_PAUSE)
        except BaseException:
            self.stops = True
            raise

    def _next(self) -> Job | None:
        study = self._study
        with self._lock, study._lock:  # noqa: SLF001 - this object is a part of the study
            if self._left <= 0:
                return None
            claims = study._claims  # noqa: SLF001
            job = None if claims.found_no_job and not claims.changes() else claims.ask()
            if job is not None:
                self._running += 1
                self._left -= job.resume_from is None
            return job

    def _is_over(self) -> bool:
        """Return whether there will be no job: in memory, none can come from other processes."""
        alone = isinstance(self._study._store, MemoryStore) and not self._running  # noqa: SLF001
        return alone or self._study.is_done

    def _perform(self, job: Job) -> None:
        study = self._study
        lock, claims, replica = study._lock, study._claims, study._replica  # noqa: SLF001
        trial = ActiveTrial(job, claims, replica, lock)
        try:
            try:
                trial.end(self._objective(trial))
            except TrialPruned:
                trial.prune()
        except LeaseLost as error:
            _LOG.warning("trial %d is dropped: %s", job.trial, error)
            return
        except StoreError:
            raise
        except Exception as error:
            reason = Reason(f"{type(error).__name__}: {error}", traceback.format_exc())
            trial.fail(reason, final=False)
            if not isinstance(error, self._catch):
                raise
        except BaseException:  # such as Ctrl-C: the next call continues with this trial
            with lock:
                claims.release(job, early=False)
            raise
        finally:
            with self._lock:
                self._running -= 1
        with lock:
            done = copy_trial(replica.progress.trials[job.trial])
        if done.error and done.state is State.ERRORED:
            _LOG.warning("trial %d failed: %s", job.trial, done.error)
        for callback in self._callbacks:
            callback(study, done)


def _several(given: Any) -> list[Any]:
    """Return an argument that may be None, one object or several, as a list."""
    return [] if given is None else [*given] if isinstance(given, Iterable) else [given]


def frame_of(rows: Iterable[Mapping[str, Any]]) -> Any:
    """Return rows as a `pandas.DataFrame`; raise `PackageError` if pandas is not installed."""
    try:
        import pandas as pd
    except ImportError as error:
        raise PackageError(f"tables of trials need pandas: {install_hint('tune')}") from error
    return pd.DataFrame(list(rows))


def state_of(trial: Trial, most: int) -> str:
    """Return the state of a trial in Optuna's words."""
    if trial.state is State.TERMINATED:
        return "COMPLETE" if trial.resource >= most else "PRUNED"
    return {State.RUNNING: "RUNNING", State.ERRORED: "FAIL", State.PAUSED: "PRUNED"}.get(
        trial.state, "WAITING"
    )
