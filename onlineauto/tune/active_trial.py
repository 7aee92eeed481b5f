"""``ActiveTrial``: the argument of an objective, and ``OptimizeRun``: one call of ``Study.optimize``."""

from __future__ import annotations

import logging
import time
import traceback
from math import isnan
from threading import Lock
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

import numpy as np

from onlineauto.errors import OnlineautoError, OptionError, StoreError, short_repr
from onlineauto.tune.plain import count, number, scalar
from onlineauto.tune.schedulers import Decision
from onlineauto.tune.schedulers.fifo import FifoScheduler
from onlineauto.tune.searchers.open_searcher import OpenSearcher
from onlineauto.tune.searchers.outcome import Outcome
from onlineauto.tune.spaces import Categorical, Float, Int, Parameter
from onlineauto.tune.store import LeaseLost, MemoryStore
from onlineauto.tune.trial import PRUNED_WITHOUT_VALUE, Reason, TrialState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from onlineauto.tune.replica import Replica
    from onlineauto.tune.study_view import StudyView
    from onlineauto.tune.trial import Job, Trial

_LOG: Final = logging.getLogger("onlineauto")
_PAUSE: Final = 0.05
"""Seconds between two requests for a job while there is none."""


class TrialPruned(OnlineautoError):  # noqa: N818 - the name in Optuna
    """Raise it in an objective to end a trial early, after `ActiveTrial.should_prune` has returned True."""


class ActiveTrial:
    """A trial that is running: the argument of an objective.

    Attributes
    ----------
    number : int
        The number of the trial.
    params : dict
        The values that were suggested so far.
    """

    def __init__(self, job: Job, replica: Replica) -> None:
        self.number, self.params = job.trial, dict[str, Any]()
        self._job, self._replica = job, replica
        self._proposed: Mapping[str, Any] = replica.progress.trials[job.trial].config
        self._suggested: dict[str, Parameter] = {}
        self._last: tuple[int, float] | None = None
        self._from_zero: bool | None = None
        self._stops = False
        self._constraints: dict[str, float] = {}
        self._start = time.time()

    @property
    def maximizes(self) -> bool:
        """True if higher values of the first objective are better."""
        return next(iter(self._replica.progress.objectives.values())) < 0

    @property
    def user_attrs(self) -> dict[str, Any]:
        """The attributes of `set_user_attr`."""
        with self._replica.lock:
            return dict(self._replica.progress.trials[self.number].user_attrs)

    def set_user_attr(self, key: str, value: Any) -> None:
        """Store an attribute of this trial, which JSON can represent, at once."""
        self._replica.note({"user_attrs": {key: value}}, self.number)

    def suggest_float(
        self,
        name: str,
        low: float,
        high: float,
        *,
        step: float | None = None,
        log: bool = False,
        prior: float | None = None,
        spread: float = 0.25,
    ) -> float:
        """Return a number between two bounds, both included; with `log`, on a logarithmic scale.

        With `step`, only `low`, ``low + step``, … are valid.

        `prior` is a value that is believed to be good, with a `spread`, as for `Float`.

        Raises
        ------
        OptionError
            If the bounds are not valid, or the name was suggested with other bounds before.
        """
        return float(self.suggest(name, Float(low, high, log=log, step=step, prior=prior, spread=spread)))

    def suggest_int(
        self,
        name: str,
        low: int,
        high: int,
        *,
        step: int = 1,
        log: bool = False,
        prior: int | None = None,
        spread: float = 0.25,
    ) -> int:
        """Return a whole number between two bounds, both included; as for `suggest_float`."""
        return int(self.suggest(name, Int(low, high, log=log, step=step, prior=prior, spread=spread)))

    def suggest_categorical(
        self, name: str, choices: Sequence[Any], *, prior: Any = None, spread: float = 0.5
    ) -> Any:
        """Return one of a few values: text, numbers, booleans or None; as for `suggest_float`."""
        return self.suggest(name, Categorical(choices, prior=prior, spread=spread))

    def suggest_uniform(self, name: str, low: float, high: float) -> float:
        """Return a number between two bounds; the same as `suggest_float`."""
        return self.suggest_float(name, low, high)

    def suggest_loguniform(self, name: str, low: float, high: float) -> float:
        """Return a number on a logarithmic scale; the same as `suggest_float` with `log`."""
        return self.suggest_float(name, low, high, log=True)

    def suggest_discrete_uniform(self, name: str, low: float, high: float, q: float) -> float:
        """Return a multiple of a step; the same as `suggest_float` with the step `q`."""
        return self.suggest_float(name, low, high, step=q)

    def report(self, value: float, step: int) -> None:
        """Record an intermediate value. Steps count from 0 or from 1.

        Raises
        ------
        LeaseLost
            If another process has claimed the trial, because this one was thought to be dead.
        OptionError
            If the step is not a whole number of at least 0, or the value is not a number; it may be NaN.
        """
        first, reported = count("step", step, 0), number(value)
        if isnan(reported) and not isinstance(scalar(value), float):
            raise OptionError(f"report({short_repr(value)}, {first}): the value is not a number")
        if self._from_zero is None:
            self._from_zero = first == 0
        self._last = first + self._from_zero, reported
        with self._replica.lock:
            counted = {"from_zero": True} if self._from_zero else {}
            decision = self._replica.report(self._job, *self._last, suggested=self._unproposed() | counted)
        self._stops = decision is Decision.STOP

    def history(self) -> list[dict[str, Any]]:
        """Return a row for each value that trials had reported when this one began; see `StudyView.history`.

        The rows stay the same while the trial runs, however many other trials report or end.
        """
        return self._replica.history(self._job)

    def should_prune(self) -> bool:
        """Return whether the trial should end after its last report: then raise `TrialPruned`."""
        return self._stops

    def set_constraint(self, name: str, value: float) -> None:
        """Record a constraint of this trial, which is met if its value is at most 0."""
        if not isinstance(name, str):
            raise OptionError(f"{name!r} is not a name of a constraint: give a text")
        self._constraints[name] = number(value)

    def end(self, value: Any) -> None:
        """Record the value that the objective has returned, or the values if there are several objectives.

        Raises
        ------
        OptionError
            If the value is None, or there is not a number for each objective.
        """
        outcome = self._outcome(value)
        is_single = len(outcome.values) == 1
        if is_single and isnan(outcome.first) and not isinstance(scalar(value), float):
            raise OptionError(
                f"the objective returned {short_repr(value)}: return one number, or raise TrialPruned"
            )
        if outcome.has_nan:
            self.fail("the value is NaN, which is not a number", final=True)
            return
        self._tell(outcome, self._job.resource)

    def _tell(self, outcome: Outcome, resource: int) -> None:
        """Commit an outcome: at a resource if the scheduler accepts any, or else where the job stops."""
        with self._replica.lock:
            place = resource if self._is_free() else None
            self._replica.tell_outcome(self._job, outcome, suggested=self._at_end(), resource=place)

    def _outcome(self, value: Any) -> Outcome:
        outcome = Outcome.of(value, [*self._replica.progress.objectives])
        return Outcome(outcome.values, {**self._constraints, **outcome.constraints})

    def prune(self) -> None:
        """Record that the trial ends early, at its last report; without a report, it has no value."""
        with self._replica.lock:
            if self._last is None or isnan(self._last[1]):
                self.fail(PRUNED_WITHOUT_VALUE, final=True)
            elif len(self._replica.progress.objectives) > 1:
                self.fail("it was pruned without a value for each objective", final=True)
            elif self._stops or self._is_free():
                step, value = self._last
                self._tell(self._outcome(value), max(step, 1))
            else:
                reason = f"it was pruned after step {self._last[0]}, where its scheduler has not stopped it"
                self.fail(reason, final=True)

    def fail(self, why: str, *, final: bool) -> None:
        """Record that the trial failed."""
        with self._replica.lock:
            self._replica.fail(self._job, why, self._at_end(), final=final)

    def _at_end(self) -> dict[str, Any]:
        """Return the part of the last record with the suggested values and the times."""
        return self._unproposed() | {"times": [self._start, time.time()]}

    def _is_free(self) -> bool:
        """Return whether the scheduler accepts a value at any resource."""
        return isinstance(self._replica.progress.scheduler, FifoScheduler)

    def suggest(self, name: str, parameter: Parameter) -> Any:
        """Return a value of a parameter: a `Float`, an `Int` or a `Categorical`."""
        if not isinstance(name, str):
            raise OptionError(f"{name!r} is not a name of a parameter: give a text")
        with self._replica.lock:
            progress = self._replica.progress
        searcher, space = progress.searcher, progress.scheduler.setting.space
        is_open = isinstance(searcher, OpenSearcher)
        declared = searcher.parameters if isinstance(searcher, OpenSearcher) else space.parameters
        earlier = self._suggested.get(name) or declared.get(name)
        if earlier is not None and earlier.described() != parameter.described():
            raise OptionError(
                f"{name!r} is suggested with {parameter}, and was declared with {earlier}: a parameter keeps "
                "its range. Give it another name, or begin a study under another name"
            )
        if name in self.params:
            return self.params[name]
        for trial in progress.added.values() if earlier is None else ():
            if (cell := parameter.of_cell(trial.config.get(name))) is not None:
                parameter.check(f"add_trials: trial {-1 - trial.number} of the added ones: {name}", cell)
        if name in self._proposed:
            value = parameter.plain(self._proposed[name])
            parameter.check(name, value)
        elif is_open:
            first = parameter.prior if self.number == 0 else None
            value = parameter.draw(self._generator(name)) if first is None else first
        else:
            about = (
                f"it needs {dict(earlier.when)}"
                if earlier
                else f"the space has {', '.join(space.parameters)}"
            )
            raise OptionError(f"{name!r} is not in the config of trial {self.number}: {about}")
        self._suggested[name], self.params[name] = parameter, value
        return value

    def _generator(self, name: str) -> np.random.Generator:
        """Return random numbers that are the same again if the trial is repeated after an interruption."""
        seed = self._replica.progress.scheduler.setting.seed % 2**64
        return np.random.default_rng([seed, self.number, crc32(name.encode())])

    def _unproposed(self) -> dict[str, Any]:
        """Return the part of a record with the suggested values, if they are not those that are recorded."""
        progress = self._replica.progress
        if (
            not isinstance(progress.searcher, OpenSearcher)
            or self.params == progress.trials[self.number].config
        ):
            return {}
        parameters = progress.searcher.parameters
        declared = {
            name: parameter.described()
            for name, parameter in self._suggested.items()
            if name not in parameters
        }
        return {"suggested": {"config": dict(self.params), "parameters": declared}}


class OptimizeRun:
    """One call of `optimize`, in all its threads."""

    def __init__(
        self,
        study: StudyView,
        replica: Replica,
        objective: Callable[[ActiveTrial], Any],
        left: float,
        end: float,
        catch: tuple[type[Exception], ...],
        callbacks: Sequence[Callable[[Any, Trial], None]],
    ) -> None:
        self._study, self._replica, self._objective = study, replica, objective
        self._left, self._end, self._catch, self._callbacks = left, end, catch, callbacks
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
        replica = self._replica
        drafts = [replica.draft()] if self._left > 0 else []  # other threads may go on while it is made
        with self._lock, replica.lock:
            if self._left <= 0:
                return None
            is_empty = replica.found_no_job and not replica.changes()
            job = None if is_empty else replica.ask(drafts=drafts)
            if job is not None:
                self._running += 1
                self._left -= job.resume_from is None
            return job

    def _is_over(self) -> bool:
        """Return whether there will be no job: in memory, none can come from other processes."""
        alone = isinstance(self._replica.store, MemoryStore) and not self._running
        return alone or self._replica.is_done

    def _perform(self, job: Job) -> None:
        replica = self._replica
        trial = ActiveTrial(job, replica)
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
            replica.release(job)
            raise
        finally:
            with self._lock:
                self._running -= 1
        with replica.lock:
            done = self._study.copied(replica.progress.trials[job.trial])
        if done.error and TrialState.of(done, 0) is TrialState.FAIL:
            _LOG.warning("trial %d failed: %s", job.trial, done.error)
        for callback in self._callbacks:
            callback(self._study, done)
