"""``Trial`` and ``Job``: a config with its results, a task for a worker, and the transitions of states."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from onlineauto.tune.schedulers import ResumeFrom, State
from onlineauto.tune.spaces import Config  # noqa: TC001 - the state of a study has it by its type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onlineauto.tune.store import Record

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

    @classmethod
    def of(cls, record: Record, version: int, step: int) -> Job:
        """Return the job of an ``asked`` record, which is the last record of this version."""
        came_from = record["resume_from"]
        return cls(
            record["trial"],
            dict(record["config"]),
            record["resource"],
            None if came_from is None else ResumeFrom(*came_from),
            record["attempt"],
            record["owner"],
            version - 1,
            step,
        )


@dataclass(slots=True)
class Trial:
    """One config, with its state and results."""

    number: int  # Trials are numbered 0, 1, 2, …
    config: Config
    state: State = State.RUNNING
    attempt: int = 0  # The number of its last job, from 0.
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
        return all(each <= 0 for each in self.constraints.values())

    @property
    def params(self) -> Config:
        """The config, under the name that Optuna gives it."""
        return self.config
