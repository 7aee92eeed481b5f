"""Studies in tests: the next job, a clock that tests set, and states that can be compared."""

from __future__ import annotations

import json
from typing import Any

from onlineauto.tune import Study
from onlineauto.tune.trial import Job


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def passes(self, seconds: float) -> None:
        self.now += seconds


def asked(study: Study) -> Job:
    """Return the next job of a study, which has one."""
    job = study.ask()
    assert job is not None
    return job


def state_of(study: Study) -> dict[str, Any]:
    """Return the state of a study as a snapshot stores it: the scheduler, the searcher and all trials."""
    state: dict[str, Any] = json.loads(json.dumps(study._replica.progress.state_dict()))
    return state


def records_of(study: Study) -> list[Any]:
    """Return all records of a study that are applied, without the first one."""
    return study._replica.records(1)
