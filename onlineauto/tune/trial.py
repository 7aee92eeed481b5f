"""``Trial`` and ``Job``: a config with its results, a task for a worker, and the transitions of states."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from onlineauto.errors import OptionError
from onlineauto.tune.schedulers import ResumeFrom, State
from onlineauto.tune.spaces import Config  # noqa: TC001 - the state of a study has it by its type
from onlineauto.tune.store.protocol import Claim

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PRUNED_WITHOUT_VALUE = "it was pruned before it reported a number"
"""The error of a trial that no scheduler and no searcher can learn from."""
_LONGEST = 4000
"""Maximum number of characters of a traceback that a study stores; earlier characters are dropped."""
TRANSITIONS: Mapping[State, frozenset[State]] = {
    State.PENDING: frozenset({State.RUNNING, State.TERMINATED, State.ERRORED}),
    State.RUNNING: frozenset({State.PENDING, State.PAUSED, State.TERMINATED, State.ERRORED}),
    State.PAUSED: frozenset({State.RUNNING, State.TERMINATED}),
    State.TERMINATED: frozenset(),
    State.ERRORED: frozenset(),
}
"""The states that may follow each state. A new trial is running."""


def may_become(before: State, after: State) -> bool:
    """Return whether a state may follow another one.

    >>> may_become(State.PAUSED, State.RUNNING), may_become(State.ERRORED, State.RUNNING)
    (True, False)
    """
    return after in TRANSITIONS[before]


@dataclass(frozen=True, slots=True)
class Job:
    """A task for a worker: train a trial up to a resource."""

    trial: int  # The number of the trial.
    config: Config
    resource: int  # The resource at the end of the job, counted from the beginning of the trial.
    resume_from: ResumeFrom | None = None  # The checkpoint to begin with; None to begin from scratch.
    attempt: int = 0  # Number of earlier jobs of this trial.
    owner: str = ""  # The name under which it was claimed.
    version: int = 0  # Number of records of the study at the claim: the history that this job sees.
    step: int = 0  # The last step that need not be repeated, because its value was reported.


def claim_of(job: Job) -> Claim:
    """Return the right to write about a job."""
    try:
        return Claim(job.trial, job.attempt, job.owner)
    except AttributeError:
        raise OptionError(f"job = {job!r}: give a job that Study.ask returned; None is not a job") from None


class Reason(str):
    """Why a job failed, and the traceback of the error."""

    __slots__ = ("traceback",)
    traceback: str

    def __new__(cls, why: str, traceback: str) -> Self:  # noqa: D102
        reason = super().__new__(cls, why)
        reason.traceback = traceback[-_LONGEST:]
        return reason


@dataclass(slots=True)
class Trial:
    """One config, with its state and results."""

    number: int  # Trials are numbered 0, 1, 2, …
    config: Config
    state: State = State.RUNNING
    attempt: int = 0  # The number of its last job, from 0; -1 if it was enqueued and has not begun.
    job_resource: int = 0  # The resource of its last job.
    resume_from: ResumeFrom | None = None  # The checkpoint that its last job began with.
    values: dict[int, float] = field(default_factory=dict)  # By resource: the value with which a job ended.
    step: int = 0  # The furthest step that was reported, intermediate or final.
    failures: int = 0  # Number of jobs that failed.
    preemptions: int = 0  # Number of jobs that were lost with their worker.
    error: str = ""  # Why the last job failed, or empty.
    traceback: str = ""  # The traceback of the last job that failed, or empty.
    objectives: dict[str, float] = field(default_factory=dict)  # The value of each, if there are several.
    constraints: dict[str, float] = field(default_factory=dict)  # They are met if they are at most 0.
    user_attrs: dict[str, Any] = field(default_factory=dict)  # By name: what `set_user_attr` has stored.
    times: tuple[float, float] | None = None  # Of an objective: start and end, in seconds since 1970.

    @property
    def resource(self) -> int:
        """The largest resource with a value; 0 if no job has ended."""
        return max(self.values, default=0)

    @property
    def value(self) -> float | None:
        """The value at `resource`, or None."""
        return self.values[self.resource] if self.values else None

    @property
    def is_feasible(self) -> bool:
        """True if no constraint is violated."""
        return all(value <= 0 for value in self.constraints.values())

    @property
    def datetime_start(self) -> datetime | None:
        """The local time at which an objective began; None before it has ended, and for a trainable."""
        return None if self.times is None else datetime.fromtimestamp(self.times[0])

    @property
    def datetime_complete(self) -> datetime | None:
        """The local time at which an objective ended."""
        return None if self.times is None else datetime.fromtimestamp(self.times[1])

    @property
    def duration(self) -> timedelta | None:
        """The time that an objective took."""
        start, end = self.datetime_start, self.datetime_complete
        return None if start is None or end is None else end - start

    @property
    def params(self) -> Config:
        """The config, under the name that Optuna gives it."""
        return self.config


class TrialState(StrEnum):
    """The state of a trial of an objective, as in Optuna."""

    RUNNING = "RUNNING"
    COMPLETE = "COMPLETE"
    """The objective has returned a value; or, with `max_resource`, the trial has reached it."""
    PRUNED = "PRUNED"
    """The trial has ended early, or is paused."""
    FAIL = "FAIL"
    WAITING = "WAITING"
    """The trial waits for a process: it was enqueued, or its process was lost."""

    def is_finished(self) -> bool:
        """Return whether the trial has ended."""
        return self in (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)

    @classmethod
    def of(cls, trial: Trial, max_resource: int) -> TrialState:
        """Return the state of a trial, which may be a `FrozenTrial`."""
        if isinstance(trial.state, cls):
            return trial.state
        if trial.state is State.TERMINATED:
            return cls.COMPLETE if trial.resource >= max_resource else cls.PRUNED
        if trial.error == PRUNED_WITHOUT_VALUE:
            return cls.PRUNED
        states = {State.RUNNING: cls.RUNNING, State.ERRORED: cls.FAIL, State.PAUSED: cls.PRUNED}
        return states.get(trial.state, cls.WAITING)


class FrozenTrial:
    """A trial of an objective, as `create_study` returns it, with Optuna's names.

    It also has the attributes of `Trial`, such as ``resource``, ``error`` and ``traceback``. An objective may
    be called with it again: it then suggests the values of `params`, and prunes nothing.

    Attributes
    ----------
    state : TrialState
    values : list of float or None
        The value of each objective; of a trial that was pruned, the last value. None without a value.
    intermediate_values : dict
        The reported values by their steps.
    """

    def __init__(
        self, trial: Trial, max_resource: int, curves: Callable[[], Mapping[int, dict[int, float]]]
    ) -> None:
        self._trial, self._curves = trial, curves
        self.state = TrialState.of(trial, max_resource)
        self.values = list(trial.objectives.values()) or (None if trial.value is None else [trial.value])

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of a copy, which does not follow the study."""
        return self.__dict__ | {"_curves": partial(dict, {self.number: self.intermediate_values})}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # while a copy is made
            raise AttributeError(name)
        return getattr(self._trial, name)

    def __repr__(self) -> str:
        return (
            f"FrozenTrial(number={self.number}, state={self.state.name}, values={self.values}, "
            f"params={self.params}, user_attrs={self.user_attrs})"
        )

    def __eq__(self, other: object) -> bool:
        return bool(self._trial == getattr(other, "_trial", other))

    __hash__ = None  # type: ignore[assignment]

    @property
    def intermediate_values(self) -> dict[int, float]:
        """The reported values by their steps."""
        return dict(self._curves().get(self.number, {}))

    @property
    def last_step(self) -> int | None:
        """The largest step that was reported."""
        return max(self.intermediate_values, default=None)

    def suggest_float(self, name: str, *_: Any, **__: Any) -> Any:
        """Return the value that this trial has had."""
        return self.params[name]

    suggest_int = suggest_categorical = suggest_float

    def report(self, value: float, step: int) -> None:
        """Do nothing."""

    def should_prune(self) -> bool:
        """Return False."""
        return False


def create_trial(
    *, params: Mapping[str, Any], value: float, distributions: Any = None, **others: Any
) -> dict[str, Any]:
    """Return a finished trial of elsewhere for `ObjectiveStudy.add_trial`; it needs no distributions."""
    del distributions
    if others:
        raise OptionError(
            f"create_trial({next(iter(others))}=…) is not supported here: give params and value"
        )
    return {"value": value} | {f"params_{name}": cell for name, cell in params.items()}


def copy_trial(trial: Trial) -> Trial:
    """Return a copy that later records do not change."""
    return replace(
        trial, config=dict(trial.config), values=dict(trial.values), user_attrs=dict(trial.user_attrs)
    )
