"""Studies on a Ray cluster, whose nodes and drivers are killed: ``pytest -m ray -n 0 tests/tune/on_ray``."""

from __future__ import annotations

import logging
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

import pytest

from onlineauto.errors import OptionError
from onlineauto.tune import Callback, Categorical, Float, Headcount, RayWorkers, Study, Workers
from onlineauto.tune.schedulers.fifo import FifoScheduler
from onlineauto.tune.schedulers.scheduler import WaitingTrial
from onlineauto.tune.store import open_store
from onlineauto.tune.trial import Job, claim_of
from onlineauto.tune.workers.trainable import AnyTrainable, Config
from tests.tune.on_ray.conftest import Nodes, until
from tests.tune.on_ray.driver import STEPS, new_study
from tests.tune.on_ray.trainables_on_ray import Placed, noted, nothing
from tests.tune.workers import trainables
from tests.tune.workers.trainables import rate_of

pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("default")]

MOST_SECONDS_A_TRIAL = 0.020


@pytest.fixture
def storage(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'study.db'}"


@pytest.mark.parametrize("what", [trainables.plain, trainables.reporting, trainables.Reused])
def test_a_study_on_ray_has_the_result_of_a_local_one(nodes: Nodes, what: AnyTrainable, storage: str) -> None:
    def run(storage: str | None, **options: Any) -> Study:
        study = Study(
            {"rate": Float(0, 1)}, searcher="random", max_resource=9, max_trials=12, storage=storage
        )
        study.run(what, **options)
        return study

    there, here = run(storage, workers=2, executor="ray"), run(None)
    assert {trial.number: trial.config for trial in there.trials} == {
        trial.number: trial.config for trial in here.trials
    }
    assert there.best_value == here.best_value


def test_ray_sends_trainables_and_reports_their_errors(nodes: Nodes) -> None:
    def fails(config: Config) -> Any:
        if config["how"] == "raises":
            raise ValueError("too large")
        return {"text": "many", "none": None, "list": [1]}[config["how"]]

    study = Study({"how": Categorical(["raises", "text", "none", "list"])}, "fifo", "grid", max_resource=2)
    study.run(fails, workers=1, executor="ray")
    assert {trial.config["how"]: trial.error for trial in study.trials} == {
        "raises": "ValueError: too large",
        "text": "its value after step 2 is 'many', and no number",
        "none": "it ended without a value",
        "list": "its value after step 2 is [1], and no number",
    }


class Seeing(FifoScheduler):
    """Begins the last waiting trial, and notes the free processors and what trials need."""

    name = "seeing"
    seen: ClassVar[list[tuple[float, float]]] = []

    def choose(self, waiting: Sequence[WaitingTrial], free: Mapping[str, float]) -> int:
        self.seen.append((free.get("CPU", 0), waiting[0].needs["CPU"]))
        return len(waiting) - 1


def test_a_trial_on_ray_reads_its_history_and_a_scheduler_the_resources(nodes: Nodes, storage: str) -> None:
    Seeing.seen.clear()
    study = Study({"rate": Float(0, 1)}, Seeing(), max_resource=2, max_trials=3, storage=storage)
    for rate in (0.25, 0.5, 0.75):
        study.enqueue({"rate": rate})
    study.run(trainables.counting_history, workers=RayWorkers(1, needs={"CPU": 0.5}), executor="ray")
    assert [(trial.config["rate"], trial.value) for trial in study.trials] == [(0.75, 0), (0.5, 2), (0.25, 4)]
    assert {needs for _, needs in Seeing.seen} == {0.5}
    assert all(free > 0 for free, _ in Seeing.seen)


def test_a_trainable_that_the_nodes_do_not_have_is_an_error(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    from types import ModuleType

    module = ModuleType("only_on_this_node")
    monkeypatch.setitem(sys.modules, "only_on_this_node", module)
    exec("def loss(config): return 0.0", vars(module))  # noqa: S102 - a module without a file
    study = Study({"rate": Float(0, 1)}, max_trials=2)
    for workers in (1, RayWorkers(1, needs=lambda _: {"CPU": 1})):
        with pytest.raises(OptionError, match="there is no module 'only_on_this_node' here"):
            study.run("only_on_this_node:loss", workers=workers, executor="ray")


def test_a_trial_whose_node_died_goes_on_behind_its_last_checkpoint(
    nodes: Nodes, storage: str, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    killed: list[str] = []

    class Killer(Callback):
        def on_report(self, job: Job, step: int, value: float) -> None:
            if step == 5 and not killed:
                rate = job.config["rate"]
                killed.append(next(node for it, node, *_ in noted(notes) if it == rate))
                nodes.kill(killed[0])
                victims.append(job.trial)

        def on_checkpoint(self, job: Job, step: int) -> None:
            if job.attempt == 0:
                kept[job.trial] = step

    victims: list[int] = []
    kept: dict[int, int] = {}
    study = new_study(storage, str(notes), seconds=0.5)
    study.run(Placed, workers=2, executor="ray", checkpoint_every=3, callbacks=[Killer()])
    assert study.is_done
    assert {str(trial.state) for trial in study.trials} == {"TERMINATED"}
    [victim] = victims
    records = [record for record in records_of(storage) if record.get("trial") == victim]
    expired = next(at for at, record in enumerate(records) if record["kind"] == "expired")
    before = [record["step"] for record in records[:expired] if record["kind"] == "reported"]
    assert before[:5] == [1, 2, 3, 4, 5]  # and what the orphan did until Ray gave its node up for dead
    again = [record for record in records[expired + 1 :] if record["kind"] != "asked"]
    assert {record["attempt"] for record in again} == {1}  # no word of the first attempt after its end
    reported = [record["step"] for record in again if record["kind"] == "reported"]
    assert reported == list(range(kept[victim] + 1, STEPS))
    assert [record["resource"] for record in again if record["kind"] == "told"] == [STEPS]
    rate = study.trials[victim].config["rate"]
    done = [step for it, node, step, _ in noted(notes) if it == rate and node != killed[0]]
    assert done == [*reported, STEPS]
    assert study.trials[victim].preemptions == 1


def drivers(nodes: Nodes, storage: str, notes: Path, lease: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.tune.on_ray.driver"]
    return subprocess.Popen(
        [*command, nodes.address, storage, str(notes), str(lease)], stderr=subprocess.PIPE, text=True
    )


def records_of(storage: str) -> list[Any]:
    return [*open_store(storage, "study").load()]


@pytest.fixture
def driver_of_a_study(nodes: Nodes, storage: str, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Yield a driver of another process that has reported three steps of a trial."""
    new_study(storage, str(tmp_path / "notes"), lease=3)
    driver = drivers(nodes, storage, tmp_path / "notes", 3)
    until(
        lambda: (
            driver.poll() is not None
            or [record["step"] for record in records_of(storage) if record["kind"] == "reported"].count(3) > 0
        )
    )
    assert driver.poll() is None, driver.communicate()
    yield driver
    driver.kill()
    driver.communicate()


def test_a_driver_that_was_killed_loses_nothing(
    driver_of_a_study: subprocess.Popen[str], storage: str, tmp_path: Path
) -> None:
    driver_of_a_study.kill()
    driver_of_a_study.wait()
    study = Study.load("study", storage=storage)
    study.run(Placed, workers=2, executor="ray", checkpoint_every=2)
    assert study.is_done
    records = records_of(storage)
    assert sorted(record["trial"] for record in records if record["kind"] == "told") == [0, 1]
    alone = new_study(f"sqlite:///{tmp_path / 'alone.db'}", str(tmp_path / "alone"), seconds=0.3)
    assert [trial.config["rate"] for trial in study.trials] == [
        job.config["rate"] for job in (alone.ask() for _ in range(2)) if job is not None
    ]
    first: dict[int, list[int]] = {}
    for record in records:
        if record["kind"] == "reported":
            first.setdefault(record["trial"], []).append(record["step"])
    for steps in first.values():
        assert sorted({*steps}) == list(range(1, STEPS))
        assert len(steps) <= STEPS  # at most the step behind the last checkpoint was done again
    assert [trial.value for trial in study.trials] == [
        pytest.approx(rate_of(trial) * STEPS) for trial in study.trials
    ]


def fall_asleep(driver: subprocess.Popen[str], storage: str) -> None:
    """Stop a driver at a moment when it does not hold SQLite's lock."""

    def is_asleep() -> bool:
        os.kill(driver.pid, signal.SIGSTOP)
        with closing(sqlite3.connect(storage.removeprefix("sqlite:///"), timeout=0.2)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                os.kill(driver.pid, signal.SIGCONT)
                return False
            return True

    until(is_asleep)


def test_a_driver_whose_lease_has_expired_writes_nothing(
    driver_of_a_study: subprocess.Popen[str], storage: str
) -> None:
    fall_asleep(driver_of_a_study, storage)
    study = Study.load("study", storage=storage)
    taken: list[Job] = []

    def take() -> bool:
        job = study.ask()
        taken.extend([job] if job is not None else [])
        return len(taken) == 2

    until(take)
    assert [job.attempt for job in taken] == [1, 1]
    before = len(records_of(storage))
    os.kill(driver_of_a_study.pid, signal.SIGCONT)
    said = driver_of_a_study.stderr
    assert said is not None
    dropped = [line for line in (said.readline() for _ in range(2)) if "is dropped" in line]
    assert len(dropped) == 2
    assert records_of(storage)[before:] == []  # of what it did with the attempts that were taken from it
    open_store(storage, "study").heartbeat([claim_of(job) for job in taken], 0)
    assert driver_of_a_study.wait(180) == 0
    study.refresh()
    assert study.is_done
    assert [trial.preemptions for trial in study.trials] == [2, 2]


def test_actors_of_a_silent_driver_release_their_resources(
    driver_of_a_study: subprocess.Popen[str], storage: str
) -> None:
    fall_asleep(driver_of_a_study, storage)
    study = Study.load("study", storage=storage)
    study.run(Placed, workers=2, executor="ray", checkpoint_every=2)  # on the processors that the others had
    assert study.is_done
    records = records_of(storage)
    taken = [at for at, record in enumerate(records) if record["kind"] == "expired"]
    assert {records[at]["trial"] for at in taken} == {0, 1}
    os.kill(driver_of_a_study.pid, signal.SIGCONT)
    assert driver_of_a_study.wait(180) == 0
    assert records_of(storage) == records
    told = [record for record in records if record["kind"] == "told"]
    assert sorted((record["trial"], record["attempt"]) for record in told) == [(0, 1), (1, 1)]


def test_a_trial_that_does_nothing_takes_twenty_milliseconds(nodes: Nodes, storage: str) -> None:
    """The time is that of the fastest 50 trials, because other programs use the machine as well."""
    ends: list[float] = []

    class Clock(Callback):
        def on_result(self, job: Job, value: float) -> None:
            ends.append(time.monotonic())

    study = Study({"rate": Float(0, 1)}, "fifo", "random", max_resource=1, max_trials=200, storage=storage)
    study.run(nothing, workers=2, executor="ray", callbacks=[Clock()])
    assert len(ends) == 200
    assert (
        min(last - first for first, last in zip(ends, ends[50:], strict=False)) / 50 <= MOST_SECONDS_A_TRIAL
    )


def test_bundles_are_a_placement_group_that_is_removed(nodes: Nodes, tmp_path: Path) -> None:
    import ray

    notes = tmp_path / "notes"
    workers = RayWorkers(1, needs=[{"CPU": 1}, {"CPU": 1}], strategy="STRICT_SPREAD")
    study = Study(
        {"rate": Float(0, 1), "notes": Categorical([str(notes)])}, "fifo", max_resource=2, max_trials=2
    )
    study.run(Placed, workers=workers, executor="ray")
    assert {bundles for *_, bundles in noted(notes)} == {2}
    until(lambda: {each["state"] for each in ray.util.placement_group_table().values()} <= {"REMOVED"})
    until(lambda: ray.available_resources().get("CPU") == 2)


def test_needs_of_a_config_say_where_a_trial_runs(nodes: Nodes, tmp_path: Path) -> None:
    notes = tmp_path / "notes"

    def needs(config: Config) -> dict[str, float]:
        if config["rate"] > 0.8:
            raise ValueError("too large")
        return {"CPU": 0.5, "here" if config["rate"] < 0.5 else "there": 1}

    space = {"rate": Float(0, 1), "notes": Categorical([str(notes)])}
    study = Study(space, "fifo", "random", max_resource=1, max_trials=8, seed=3)
    study.run(Placed, workers=RayWorkers(2, needs=needs), executor="ray")
    assert study.is_done
    placed = {rate: nodes.name(node) for rate, node, *_ in noted(notes)}
    assert placed
    assert all((rate < 0.5) == (name == "here") for rate, name in placed.items())
    failed = [trial.error for trial in study.trials if float(f"{trial.config['rate']}") > 0.8]
    assert failed == ["ValueError: too large"] * len(failed)
    assert len(placed) + len(failed) == 8


def test_resources_that_no_node_has_are_reported(
    nodes: Nodes, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    workers = Headcount(1)
    threading.Timer(2, workers.close).start()
    with caplog.at_level(logging.WARNING, logger="onlineauto"):
        Study({"rate": Float(0, 1)}, max_trials=1).run(
            nothing, workers=RayWorkers(workers, needs={"GPU": 8}), executor="ray"
        )
    assert "no node of this Ray cluster has {'CPU': 1, 'GPU': 8}; trials wait for one" in caplog.text


def test_workers_have_the_resources_of_the_cluster(nodes: Nodes) -> None:
    study = Study({"rate": Float(0, 1)}, "fifo", "random", max_resource=2, max_trials=4)
    workers = Workers(2, has={"licence": 1}, needs={"licence": 0.6})
    assert study.run(trainables.Counter, workers=workers, executor="ray") is not None
    assert study.is_done
