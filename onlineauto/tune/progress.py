"""``Progress``: the state of a study after some records. It decides, and repeats what was decided.

Whoever applies the same records in the same order comes to the same state. A config in the log is taken from
there, so a searcher proposes only in the process that asked it.
"""

from __future__ import annotations

from collections import deque
from math import isnan
from typing import TYPE_CHECKING, Any

from onlineauto.tune.schedulers import Decision, ResumeFrom, State
from onlineauto.tune.trial import Trial, may_become

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from onlineauto.tune.schedulers import Scheduler
    from onlineauto.tune.searchers import Searcher
    from onlineauto.tune.store import Record
    from onlineauto.tune.trial import Job

__all__ = ["Progress"]

_MAY_END = ("told", "failed", "idle")
"""Records after which a study may be over."""


class Progress:
    """Trials, and the scheduler and the searcher that have seen them.

    Parameters
    ----------
    scheduler : Scheduler
        Has begun.
    searcher : Searcher
        Has begun.
    sign : float
        1 if lower values are better, and -1 if higher ones are.
    retries : int
        How often the job of a trial is tried again after it failed.

    Attributes
    ----------
    version : int
        How many records were applied.
    trials : dict of int to Trial
    trainable : str or None
        What trials run, as ``MODULE:NAME``, if somebody has said so.
    """

    def __init__(self, scheduler: Scheduler, searcher: Searcher, *, sign: float, retries: int) -> None:
        self.scheduler, self.searcher = scheduler, searcher
        self.version = 0
        self.trials: dict[int, Trial] = {}
        self.trainable: str | None = None
        self._sign, self._retries = sign, retries
        self._waiting: deque[int] = deque()
        self._stopped: dict[int, int] = {}
        self._origins: dict[int, ResumeFrom] = {}
        self._ended: set[int] = set()
        self._best: tuple[int, float, int] | None = None
        self._decided: Record | None = None
        self._apply: Mapping[str, Callable[[Record], None]] = {
            "study": lambda record: None,  # noqa: ARG005
            "enqueued": self._enqueued,
            "named": self._named,
            "asked": self._asked,
            "reported": self._reported,
            "told": self._told,
            "failed": self._failed,
            "expired": self._expired,
            "idle": self._idle,
        }

    @property
    def best(self) -> int | None:
        """The number of the incumbent: of the trials that were given most, the one with the best value."""
        return None if self._best is None else self._best[-1]

    @property
    def is_done(self) -> bool:
        """True if there is no job now, and there will never be one."""
        return not self._waiting and self.scheduler.is_done

    def decide(self, owner: str) -> Record | None:
        """Return the next record, ``asked`` or ``idle``, or None; then `apply` has to be called with it."""
        if self._waiting:
            trial = self.trials[self._waiting[0]]
            resource, came_from = trial.job_resource, trial.resume_from
            self._decided = _asked(trial.number, trial.attempt + 1, owner, trial.config, resource, came_from)
            return self._decided
        refusals = self.searcher.refusals
        suggested = self.scheduler.suggest(self.searcher)
        if suggested is None:
            self._decided = {"kind": "idle"} if self.searcher.refusals > refusals else None
            return self._decided
        known = self.trials.get(suggested.trial)
        attempt = 0 if known is None else known.attempt + 1
        trial_number, config, resource, came_from = suggested
        self._decided = _asked(trial_number, attempt, owner, config, resource, came_from)
        return self._decided

    def apply(self, record: Record) -> None:
        """Come to the state after one more record."""
        self._apply[record["kind"]](record)
        self.version += 1
        if record["kind"] in _MAY_END and self.is_done:  # nobody will resume those that are paused
            for trial in self.trials.values():
                if trial.state is State.PAUSED:
                    self._becomes(trial.number, State.TERMINATED)

    def decision(self, trial: int) -> Decision:
        """Return whether the job of a trial goes on after what it has reported."""
        return Decision.STOP if trial in self._stopped else Decision.CONTINUE

    def reached(self, job: Job) -> int:
        """Return the resource at which a job ends that is told now."""
        return self._stopped.get(job.trial, job.resource)

    def goes_on_behind(self, trial: int) -> int:
        """Return the last step that is not done again; where a trial stops, its value has to be told."""
        step = self.trials[trial].step
        return min(step, self._stopped.get(trial, step + 1) - 1)

    def needed(self, trial: int) -> set[int]:
        """Return the resources of a trial's checkpoints that other jobs may begin with."""
        beginnings = [*self.scheduler.resumable(), *self._origins.values()]
        return {resource for number, resource in beginnings if number == trial}

    def disposable(self) -> list[int]:
        """Return the trials, each once, that ended early and whose checkpoints nobody needs any more."""
        most = self.scheduler.setting.max_resource
        self._ended -= {number for number in self._ended if self.trials[number].resource >= most}
        found = [number for number in self._ended if number != self.best and not self.needed(number)]
        self._ended -= set(found)
        return sorted(found)

    def _idle(self, record: Record) -> None:
        if record != self._decided:
            with self.searcher.repeating(None):
                self.scheduler.suggest(self.searcher)
        self._decided = None

    def _enqueued(self, record: Record) -> None:
        self.searcher.enqueue(dict(record["config"]))

    def _named(self, record: Record) -> None:
        self.trainable = record["trainable"]

    def _asked(self, record: Record) -> None:
        number = record["trial"]
        if self._waiting:
            self._waiting.popleft()
        elif record != self._decided:
            self._repeat(record)
        self._decided = None
        if number in self.trials:
            self._becomes(number, State.RUNNING)
        else:
            self.trials[number] = Trial(number, dict(record["config"]))
        trial = self.trials[number]
        came_from = record["resume_from"]
        trial.attempt, trial.job_resource = record["attempt"], record["resource"]
        trial.resume_from = None if came_from is None else ResumeFrom(*came_from)
        if trial.resume_from is not None:
            self._origins[number] = trial.resume_from

    def _repeat(self, record: Record) -> None:
        """Let the scheduler suggest what it suggested when this was decided."""
        known = dict(record["config"]) if record["trial"] not in self.trials else None
        with self.searcher.repeating(known):
            again = self.scheduler.suggest(self.searcher)
        if again is None or (again.trial, again.resource) != (record["trial"], record["resource"]):
            raise ValueError(
                f"record {self.version + 1} is about trial {record['trial']} at {record['resource']}, and "
                f"the scheduler suggests {again}: it is not the one that wrote this log"
            )

    def _reported(self, record: Record) -> None:
        trial, step, value = self.trials[record["trial"]], record["step"], record["value"]
        if step <= trial.step or isnan(value):  # a job that is tried again reports what was reported before
            return
        trial.step = step
        self._read_details(record)
        if self.scheduler.on_report(trial.number, step, self._sign * value) is Decision.STOP:
            self._stopped.setdefault(trial.number, step)

    def _told(self, record: Record) -> None:
        trial, resource, value = self.trials[record["trial"]], record["resource"], record["value"]
        trial.values[resource] = value
        trial.step = max(trial.step, resource)
        self._note_best(trial)
        self._stopped.pop(trial.number, None)
        self._origins.pop(trial.number, None)
        self._read_details(record)
        changed = self.scheduler.on_result(trial.number, resource, self._sign * value)
        self.searcher.on_result(trial.config, resource, self._sign * value)
        self._change(changed)

    def _read_details(self, record: Record) -> None:
        if "details" in record:
            self.scheduler.on_details(record["trial"], record["details"])

    def _note_best(self, trial: Trial) -> None:
        """Note the incumbent: of those that were given most the best one, and of equal ones the first."""
        rank = -trial.resource, self._sign * trial.values[trial.resource], trial.number
        self._best = rank if self._best is None else min(self._best, rank)

    def _failed(self, record: Record) -> None:
        trial = self.trials[record["trial"]]
        trial.failures += 1
        trial.error = record["why"]
        if trial.failures <= self._retries and not record["final"]:
            self._waits(trial)
            return
        self._stopped.pop(trial.number, None)
        self._origins.pop(trial.number, None)
        self._becomes(trial.number, State.ERRORED)
        changed = self.scheduler.on_error(trial.number)
        self.searcher.on_error(trial.config)
        self._change(changed)

    def _expired(self, record: Record) -> None:
        trial = self.trials[record["trial"]]
        trial.preemptions += 1
        self._waits(trial)

    def _waits(self, trial: Trial) -> None:
        self._becomes(trial.number, State.PENDING)
        self._waiting.append(trial.number)

    def _change(self, changed: Mapping[int, State]) -> None:
        for number, state in changed.items():
            self._becomes(number, state)

    def _becomes(self, number: int, state: State) -> None:
        trial = self.trials[number]
        if trial.state is not state:
            if not may_become(trial.state, state):
                raise ValueError(f"trial {number} is {trial.state}, which cannot become {state}")
            trial.state = state
            if state in (State.TERMINATED, State.ERRORED):
                self._ended.add(number)

    def state_dict(self) -> dict[str, Any]:
        """Return the state as plain JSON."""
        return {
            "version": self.version,
            "trainable": self.trainable,
            "scheduler": self.scheduler.state_dict(),
            "searcher": self.searcher.state_dict(),
            "waiting": list(self._waiting),
            "stopped": {str(trial): step for trial, step in self._stopped.items()},
            "trials": [_trial_state(trial) for trial in self.trials.values()],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; the scheduler and the searcher have begun as its own had."""
        self.version, self.trainable = state["version"], state["trainable"]
        self.scheduler.load_state_dict(state["scheduler"])
        self.searcher.load_state_dict(state["searcher"])
        self._waiting = deque(state["waiting"])
        self._stopped = {int(trial): step for trial, step in state["stopped"].items()}
        self.trials = {each["number"]: _trial(each) for each in state["trials"]}
        self._origins, self._ended, self._best = {}, set(), None
        for trial in self.trials.values():
            if trial.values:
                self._note_best(trial)
            if trial.state in (State.TERMINATED, State.ERRORED):
                self._ended.add(trial.number)
            elif trial.state is not State.PAUSED and trial.resume_from is not None:
                self._origins[trial.number] = trial.resume_from


def _asked(
    trial: int,
    attempt: int,
    owner: str,
    config: Mapping[str, Any],
    resource: int,
    came_from: ResumeFrom | None,
) -> Record:
    return {
        "kind": "asked",
        "trial": trial,
        "attempt": attempt,
        "owner": owner,
        "config": dict(config),
        "resource": resource,
        "resume_from": None if came_from is None else list(came_from),
    }


def _trial_state(trial: Trial) -> dict[str, Any]:
    return {
        "number": trial.number,
        "config": dict(trial.config),
        "state": str(trial.state),
        "attempt": trial.attempt,
        "job_resource": trial.job_resource,
        "resume_from": None if trial.resume_from is None else list(trial.resume_from),
        "values": {str(resource): value for resource, value in trial.values.items()},
        "step": trial.step,
        "failures": trial.failures,
        "preemptions": trial.preemptions,
        "error": trial.error,
    }


def _trial(state: Mapping[str, Any]) -> Trial:
    came_from = state["resume_from"]
    return Trial(
        **{
            **state,
            "state": State(state["state"]),
            "resume_from": None if came_from is None else ResumeFrom(*came_from),
            "values": {int(resource): value for resource, value in state["values"].items()},
        }
    )
