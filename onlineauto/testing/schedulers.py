"""The conformance suite of schedulers."""

from __future__ import annotations

import json
from itertools import product
from math import inf
from random import Random
from typing import TYPE_CHECKING, Any

from onlineauto.tune.schedulers import Decision, Setting, State
from onlineauto.tune.searchers import SEARCHERS
from onlineauto.tune.spaces import Categorical, Float, Int, Space
from onlineauto.tune.trial import may_become

if TYPE_CHECKING:
    from collections.abc import Callable

    from onlineauto.tune.schedulers import Scheduler, Suggestion

_SPACE = Space(
    {
        "rate": Float(1e-3, 1, log=True),
        "depth": Int(1, 9),
        "loss": Categorical(["squared", "logistic", "hinge"]),
        "margin": Float(0, 1, when={"loss": "hinge"}),
    }
)
_STEPS = 250


def check_scheduler(make: Callable[[], Scheduler]) -> None:
    """Check a scheduler against the requirements of a study, in many simulated studies.

    Jobs end in any order, some with an error or an infinite loss, with one worker and with many. Trials are
    numbered 0, 1, 2, …; their configs are in the space, and their resources in the ladder. Only a paused
    trial is resumed, from a resource that it or another trial has reached. States follow the allowed
    transitions. The same calls give the same answers, also after the state was written as JSON and loaded
    into a new object. With a limit on trials, a study ends; `is_done` is true then, and not before.

    Parameters
    ----------
    make : callable
        Returns a new scheduler without a study, registered or not.

    Raises
    ------
    AssertionError
        If a requirement is violated; the message names the requirement and the study.

    Examples
    --------
    >>> from onlineauto.tune import SCHEDULERS
    >>> check_scheduler(SCHEDULERS["fifo"])
    """
    for seed, workers, limit, errors in product((0, 1), (1, 4, 30), (None, 1, 40), (0.0, 0.2, 1.0)):
        setting = Setting(space=_SPACE, max_resource=27, seed=seed)
        where = f"{make().name}, seed {seed}, {workers} workers, limit {limit}, {errors:.0%} errors"
        _Simulated(make, setting, limit, where).run(workers, errors)


class _Simulated:
    """A study that compares its scheduler with a copy, and replaces it by one with a loaded state."""

    def __init__(
        self, make: Callable[[], Scheduler], setting: Setting, limit: int | None, where: str
    ) -> None:
        self._make, self._setting, self._limit, self._where = make, setting, limit, where
        self._pairs = [self._begin(), self._begin()]
        self._random = Random(setting.seed)
        self._states: dict[int, State] = {}
        self._reached: dict[int, int] = {}
        self._jobs: dict[int, Suggestion] = {}

    def _begin(self) -> tuple[Scheduler, Any]:
        scheduler, searcher = self._make(), SEARCHERS["random"]()
        scheduler.begin(self._setting)
        searcher.begin(self._setting.space, seed=self._setting.seed)
        searcher.limit = self._limit
        return scheduler, searcher

    def run(self, workers: int, errors: float) -> None:
        """Request a job for each free worker, and end random jobs, until the study ends or for a while."""
        for _ in range(_STEPS):
            while len(self._jobs) < workers and self._suggest():
                pass
            if not self._jobs:
                break
            self._end(self._random.choice(sorted(self._jobs)), failed=self._random.random() < errors)
            if self._random.random() < 0.1:
                self._exchange()
        done = self._pairs[0][0].is_done
        self._require(not done or not self._jobs, "is_done is true while jobs run")
        ended = self._limit is None or self._jobs or not self._idle()
        self._require(bool(ended) or done, "there is no job any more, and is_done is false")

    def _idle(self) -> bool:
        return not self._suggest()

    def _suggest(self) -> bool:
        compares = self._random.random() < 0.1  # rarely, because writing a state is slow
        before = self._state_texts() if compares else []
        refusals = self._pairs[0][1].refusals
        job, again = (scheduler.suggest(searcher) for scheduler, searcher in self._pairs)
        self._require(job == again, f"the same calls give {job} and {again}")
        if job is None:
            same = not compares or self._pairs[0][1].refusals > refusals or before == self._state_texts()
            self._require(
                same,
                "suggest returns None and changes the state without a rejection by the searcher",
            )
            return False
        self._check(job)
        self._states[job.trial] = State.RUNNING
        self._jobs[job.trial] = job
        return True

    def _state_texts(self) -> list[str]:
        return [json.dumps(scheduler.state_dict()) for scheduler, _ in self._pairs]

    def _check(self, job: Suggestion) -> None:
        self._setting.space.check(job.config)
        low, high = 1, self._setting.max_resource
        self._require(low <= job.resource <= high, f"the resource is not from {low} to {high}: {job}")
        if job.trial not in self._states:
            self._require(job.trial == len(self._states), f"new trials are not numbered in order: {job}")
        else:
            state = self._states[job.trial]
            self._require(state is State.PAUSED, f"a trial is resumed that is {state}: {job}")
            self._require(job.resume_from is not None, f"a trial is resumed from nothing: {job}")
        if job.resume_from is not None:
            trial, resource = job.resume_from
            self._require(trial in self._states, f"resumes from an unknown trial: {job}")
            self._require(
                resource <= self._reached.get(trial, 0), f"resumes from what was not reached: {job}"
            )
            self._require(resource < job.resource, f"resumes from all there is to do: {job}")
        self._require(self._limit is None or job.trial < self._limit, f"more trials than there may be: {job}")

    def _end(self, trial: int, *, failed: bool) -> None:
        """Report some steps, and end a job."""
        job = self._jobs.pop(trial)
        resource = job.resume_from.resource if job.resume_from else 0
        losses = [self._random.choice([self._random.random(), 1.0, inf]) for _ in range(job.resource)]
        while resource < job.resource:
            resource += 1
            self._reached[trial] = max(self._reached.get(trial, 0), resource)
            answers = [pair[0].on_report(trial, resource, losses[resource - 1]) for pair in self._pairs]
            self._require(answers[0] is answers[1], "the same reports give other decisions")
            if answers[0] is Decision.STOP:
                break
        if failed:
            changes = [scheduler.on_error(trial) for scheduler, _ in self._pairs]
            self._states[trial] = State.ERRORED
        else:
            changes = [
                scheduler.on_result(trial, resource, losses[resource - 1]) for scheduler, _ in self._pairs
            ]
            self._require(trial in changes[0], f"on_result does not say what becomes of trial {trial}")
        self._require(changes[0] == changes[1], "the same results give other states")
        for changed, state in changes[0].items():
            before = self._states[changed]
            legal = before is state or may_become(before, state)
            self._require(legal, f"trial {changed} is {before}, which cannot become {state}")
            self._states[changed] = state

    def _exchange(self) -> None:
        """Load the states of the two schedulers, through JSON, into new ones."""
        scheduler, searcher = self._pairs[0]
        written = json.dumps(scheduler.state_dict()), json.dumps(searcher.state_dict())
        fresh = self._begin()
        for part, text in zip(fresh, written, strict=True):
            part.load_state_dict(json.loads(text))
        self._require(
            json.dumps(fresh[0].state_dict()) == written[0], "the state is another one after loading"
        )
        self._pairs[0] = fresh

    def _require(self, condition: bool, message: str) -> None:
        if not condition:
            raise AssertionError(f"{message}; {self._where}")
