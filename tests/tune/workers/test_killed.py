"""A study whose process is killed at any step continues, and ends with the same result."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from onlineauto.tune import Categorical, Float, Scheduler, Study
from onlineauto.tune.leases import is_dead, new_owner
from onlineauto.tune.schedulers.asha import Asha
from onlineauto.tune.schedulers.dehb import Dehb
from onlineauto.tune.schedulers.pbt import Pbt
from onlineauto.tune.workers.trainable import Config, Trainable

pytestmark = pytest.mark.lane("ci")

SCHEDULERS: Mapping[str, Callable[[], str | Scheduler]] = {
    "hyperband": lambda: "hyperband",
    "pbt": lambda: Pbt(population=4, interval=2),
    "asha": lambda: "asha",
    "stopping": lambda: Asha("stopping"),
    "median": lambda: "median",
    "dehb": lambda: "dehb",
    "slots": lambda: Dehb("slots"),
}


class Lineage(Trainable):
    """Its state has the rate of each step, including the steps of its donors."""

    tick: Callable[[], None] = staticmethod(lambda: None)

    def setup(self, config: Config) -> None:
        self.rate, self.rates = float(config["rate"]), list[float]()

    def step(self) -> float:
        Lineage.tick()
        self.rates.append(self.rate)
        far = float(sum(abs(rate - 0.3) for rate in self.rates))
        return float(far / len(self.rates) ** 1.5)

    def save(self) -> Any:
        return self.rates

    def load(self, saved: Any) -> None:
        self.rates = saved


def new_study(folder: Path, name: str) -> Study:
    return Study(
        {"rate": Float(0, 1), "loss": Categorical(["squared", "logistic"])},
        SCHEDULERS[name](),
        max_resource=6,
        eta=2,
        max_trials=7,
        storage=f"sqlite:///{folder / 'study.db'}",
    )


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def run(folder: Path, name: str, *, dies_at: int = 0) -> bool:
    """Run a study in a process, which kills itself at a step; return whether the study was completed."""
    child = os.fork()
    if not child:
        left = dies_at

        def tick(*_: object) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        Lineage.tick = tick
        sa.event.listen(sa.Engine, "begin", tick)
        sa.event.listen(sa.Engine, "commit", tick)
        try:
            new_study(folder, name).run(Lineage)
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL)
    return status == 0


def found(folder: Path, name: str) -> Any:
    """Return the values, trials and best trial of a completed study."""
    study = new_study(folder, name)
    assert study.is_done
    history = study.history()
    told = [tuple(row.values()) for row in history if row["told"]]
    reported = {(row["trial"], row["resource"], row["value"]) for row in history if not row["told"]}
    trials = [(trial.number, trial.config, trial.state, trial.values) for trial in study.trials]
    best = study.best
    assert best is not None
    return [(trial, *rest) for trial, _, *rest in told], reported, trials, best.number


@pytest.mark.parametrize(
    ("name", "every"),
    [("pbt", 11), *(pytest.param(name, 1, marks=pytest.mark.slow) for name in SCHEDULERS)],
)
def test_a_killed_study_ends_with_the_same_result(name: str, every: int, tmp_path: Path) -> None:
    assert run(made(tmp_path / "whole"), name)
    whole = found(tmp_path / "whole", name)
    assert {state for _, _, state, _ in whole[2]} == {"TERMINATED"}
    dies_at = every
    while not run(folder := made(tmp_path / f"{dies_at}"), name, dies_at=dies_at):
        with closing(sqlite3.connect(folder / "study.db", isolation_level=None)) as connection:
            if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'onlineauto_job'").fetchone():
                connection.execute("UPDATE onlineauto_job SET lease_until = 0")  # time goes by
        assert run(folder, name)
        assert found(folder, name) == whole, f"killed at step {dies_at}"
        dies_at += every
    assert dies_at > 60


@pytest.mark.skipif(not Path("/proc/self/ns/pid").exists(), reason="nobody knows who is dead")
def test_jobs_of_a_dead_local_process_are_free_at_once(tmp_path: Path) -> None:
    assert run(made(tmp_path / "whole"), "hyperband")
    assert not run(folder := made(tmp_path / "killed"), "hyperband", dies_at=40)
    before = time.monotonic()
    assert run(folder, "hyperband")
    assert time.monotonic() - before < 55  # a lease is a minute
    assert found(folder, "hyperband") == found(tmp_path / "whole", "hyperband")


def test_is_dead_knows_ended_processes_of_this_machine() -> None:
    mine = new_owner()
    assert not is_dead(mine)
    child = os.fork()
    if not child:
        os._exit(0)
    *host, _, place, token = mine.split("-")
    theirs = "-".join([*host, str(child), place, token])
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert is_dead(theirs) == bool(place)  # it is not reaped yet
    os.waitpid(child, 0)
    assert is_dead(theirs) == bool(place)
    assert not is_dead("-".join([*host, str(child), "another", token]))
