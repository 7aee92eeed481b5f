"""Trainables that other processes import. They record their steps in a file that their config names."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any, ClassVar

from onlineauto.tune import Study, Trial
from onlineauto.tune.trial import Job
from onlineauto.tune.workers.hooks import Callback
from onlineauto.tune.workers.trainable import Config, Report, Trainable


class Counter(Trainable):
    """Its value is the rate times the number of steps; it may kill its own process."""

    made = 0

    def setup(self, config: Config) -> None:
        Counter.made += 1
        self.config, self.total = config, 0

    def step(self) -> float:
        self.total += 1
        note(self.config, f"{self.total}")
        if self.config.get("dies_at") == self.total and once(self.config):
            os.kill(os.getpid(), signal.SIGKILL)
        if self.config.get("fails_at") == self.total:
            raise ValueError("too large")
        time.sleep(self.config.get("seconds", 0))
        return float(self.config["rate"]) * self.total

    def save(self) -> Any:
        return {"total": self.total}

    def load(self, saved: Any) -> None:
        self.total = saved["total"]


class Mortal(Counter):
    """Kills its process in the second step there."""

    here = 0

    def step(self) -> float:
        self.here += 1
        if self.here == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().step()


class Reused(Counter):
    """One object runs many trials."""

    def reset(self, config: Config) -> bool:
        self.config, self.total = config, 0
        return True


def plain(config: Config) -> float:
    return float(config["rate"])


def reporting(config: Config, resource: int, report: Report) -> None:
    total = 0 if report.saved is None else report.saved
    while True:  # the report says when it is enough
        total += 1
        note(config, f"{total}")
        report(config["rate"] * total, save=total)


def silent(config: Config) -> None:
    del config


def dying(config: Config) -> float:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0.0


def note(config: Config, text: str) -> None:
    """Append a line to the file of a trial."""
    if "notes" in config:
        with Path(config["notes"]).open("a") as file:
            file.write(f"{text}\n")


def once(config: Config) -> bool:
    """Return True the first time that it is asked."""
    try:
        Path(f"{config['notes']}.once").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


class FailsTwice(Counter):
    """Fails once in its second step and once in its third."""

    steps: ClassVar[list[int]] = []

    def step(self) -> float:
        self.total += 1
        FailsTwice.steps.append(self.total)
        if FailsTwice.steps.count(self.total) == 1 and self.total in (2, 3):
            raise ValueError("not yet")
        return float(self.total)


class Lineage(Counter):
    """Its value is the negative sum of the rates of all steps, also of those that it has copied."""

    def step(self) -> float:
        self.total += self.config["rate"]
        time.sleep(0.05)  # so that several members run at once
        return -float(self.total)


class Donors(Callback):
    """The trial and the step that each copy began with. A later job of a copy resumes the copy itself."""

    def __init__(self) -> None:
        self.of: dict[int, tuple[int, int]] = {}

    def on_start(self, job: Job) -> None:
        if job.resume_from is not None and job.resume_from[0] != job.trial:
            self.of[job.trial] = job.resume_from


def lineage_of(study: Study, trial: int, donors: Donors) -> list[float]:
    """Return the rates of the steps of a trial and of its donors."""
    copy = study.trials[trial]
    donor, at = donors.of.get(trial, (None, 0))
    before = [] if donor is None else lineage_of(study, donor, donors)
    return before[:at] + (copy.step - at) * [rate_of(copy)]


def rate_of(trial: Trial) -> float:
    rate = trial.config["rate"]
    assert isinstance(rate, float)
    return rate


def counting_history(config: Config, resource: int, report: Any) -> None:
    """Report the number of values that trials had reported when this one began, at each step."""
    while report.step < resource:
        report(len(report.history))
