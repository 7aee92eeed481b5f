"""``Trial`` and ``Job``: a config with its results, a task for a worker, and the transitions of states."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

from onlineauto.errors import OptionError
from onlineauto.tune.schedulers import ResumeFrom, State
from onlineauto.tune.spaces import Config  # noqa: TC001 - the state of a study has it by its type
from onlineauto.tune.store.protocol import Claim

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    def params(self) -> Config:
        """The config, under the name that Optuna gives it."""
        return self.config


def copy_trial(trial: Trial) -> Trial:
    """Return a copy that later records do not change."""
    return replace(trial, config=dict(trial.config), values=dict(trial.values))
