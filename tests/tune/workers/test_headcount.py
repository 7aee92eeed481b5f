"""The number of workers may change during a run; invalid and missing workers are reported."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from onlineauto.errors import OptionError
from onlineauto.tune import Callback, Categorical, Float, Headcount, RayWorkers, Study, Workers
from onlineauto.tune.trial import Job
from onlineauto.tune.workers.hooks import Stopper
from tests.tune.workers import trainables
from tests.waiting import PATIENCE, until


class Watch(Callback):
    """Records the number of running jobs at each start."""

    def __init__(self) -> None:
        self.running = 0
        self.most: list[int] = []

    def on_start(self, job: Job) -> None:
        self.running += 1
        self.most.append(self.running)

    def on_result(self, job: Job, value: float) -> None:
        self.running -= 1

    def on_lost(self, job: Job, why: str) -> None:
        self.running -= 1


class Once(Stopper):
    """Ends a run when its test sets `ends`."""

    ends = False

    def ends_run(self) -> bool:
        return self.ends


def study_of(folder: Path, trials: int | None = None) -> Study:
    space = {"rate": Float(0, 1), "seconds": Categorical([0.05])}
    storage = f"sqlite:///{folder / 'study.db'}"
    return Study(space, "fifo", "random", max_resource=2, max_trials=trials, storage=storage)


@pytest.mark.ci
def test_the_number_of_workers_may_change_during_a_run(tmp_path: Path) -> None:
    workers, watch, stopper = Headcount(0), Watch(), Once()
    study = study_of(tmp_path)
    options: dict[str, Any] = {"workers": Workers(workers), "callbacks": [watch], "stoppers": [stopper]}
    thread = threading.Thread(target=study.run, args=(trainables.Counter,), kwargs=options)
    thread.start()
    time.sleep(0.5)
    assert watch.most == []  # none runs
    workers.now = 1
    until(lambda: len(watch.most) >= 4)
    assert set(watch.most) == {1}
    workers.now = 3
    until(lambda: 3 in watch.most)
    workers.now = 1
    until(lambda: workers.busy <= 1)
    at = len(watch.most)
    until(lambda: len(watch.most) >= at + 4)
    assert set(watch.most[at:]) == {1}
    workers.now = 4
    until(lambda: 4 in watch.most)
    stopper.ends = True
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert {trial.state for trial in study.trials} == {"TERMINATED"}
    assert sum(trial.preemptions for trial in study.trials) == 0  # workers leave when their jobs have ended


@pytest.mark.ci
def test_a_closed_run_releases_its_jobs(tmp_path: Path) -> None:
    workers, watch = Headcount(2), Watch()
    study = study_of(tmp_path, 80)  # far more than those that run before it is closed
    options: dict[str, Any] = {"workers": workers, "callbacks": [watch]}
    thread = threading.Thread(target=study.run, args=(trainables.Counter,), kwargs=options)
    thread.start()
    until(lambda: len(watch.most) >= 3)
    workers.close()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert workers.busy == 0
    assert not study.is_done
    study.run(trainables.Counter, workers=4)
    assert study.is_done
    assert all(trial.attempt - trial.preemptions == 0 for trial in study.trials)


def test_a_missing_ray_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    study = Study({"rate": Float(0, 1)}, max_trials=2)
    with pytest.raises(OptionError, match=r"pip install '\.\[ray\]'"):
        study.run(trainables.Counter, workers=2, executor="ray")


def test_invalid_workers_are_rejected() -> None:
    study = Study({"rate": Float(0, 1)}, max_trials=2)
    with pytest.raises(OptionError, match="executor = 'spark' is unknown; valid are processes, ray"):
        study.run(trainables.Counter, executor="spark")
    with pytest.raises(OptionError, match='needs executor="ray"'):
        study.run(trainables.Counter, workers=RayWorkers(2))
    with pytest.raises(OptionError, match="workers = -1"):
        Headcount(-1)
    with pytest.raises(OptionError, match="workers = 0"):
        RayWorkers(0)
    with pytest.raises(OptionError, match="strategy = 'NEAR' is unknown"):
        RayWorkers(1, strategy="NEAR")
    for needs in ({"GPU": "many"}, [{"CPU": 1}, {"CPU": -1}]):
        with pytest.raises(OptionError, match=r"a trial needs [CG]PU = "):
            RayWorkers(1, needs=needs)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "needs", ["GPU", 5, None, [("CPU", 1)], {1: 2}, {"GPU": -1}, {"GPU": float("nan")}, [{"CPU": 1}, "GPU"]]
)
def test_invalid_needs_are_rejected(needs: Any) -> None:
    with pytest.raises(OptionError, match="a trial needs"):
        RayWorkers(2, needs=needs)
    with pytest.raises(OptionError, match="a trial needs"):
        RayWorkers(2, needs=lambda _: needs).bundles({})


@pytest.mark.parametrize("needs", [(), [], {}, [{}]])
def test_a_trial_needs_one_processor_by_default(needs: Any) -> None:
    assert RayWorkers(2, needs=needs).bundles({}) == ((("CPU", 1),),)
