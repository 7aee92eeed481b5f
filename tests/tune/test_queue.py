"""The queue of a study: enqueued configs and waiting jobs are visible, and a scheduler may reorder them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from onlineauto.errors import OptionError
from onlineauto.tune import Float, Job, Scheduler, State, Study, Workers, create_study
from onlineauto.tune.schedulers.asha import Asha
from onlineauto.tune.schedulers.dehb import Dehb
from onlineauto.tune.schedulers.fifo import FifoScheduler
from onlineauto.tune.schedulers.hyperband import Hyperband
from onlineauto.tune.schedulers.pbt import Pbt
from onlineauto.tune.schedulers.scheduler import WaitingTrial
from onlineauto.tune.store import MemoryStore
from onlineauto.tune.store.store_reader import StoreReader
from onlineauto.tune.watching import StudyWatch
from tests.tune.studies import asked, state_of

pytestmark = pytest.mark.lane("quick")

SPACE = {"size": Float(0, 10)}


class Largest(FifoScheduler):
    """Begins the largest waiting trial that fits into the free resources."""

    name = "largest"

    def choose(self, waiting: Sequence[WaitingTrial], free: Mapping[str, float]) -> int | None:
        fits = [
            index
            for index, trial in enumerate(waiting)
            if all(free[name] >= amount for name, amount in trial.needs.items())
        ]
        return max(fits, key=lambda index: float(str(waiting[index].config["size"])), default=None)


class LargestOfRung(Largest, Asha):
    """The same order for asynchronous successive halving."""

    name = "largest-of-rung"


def sizes(study: Study, state: State) -> list[Any]:
    return [(trial.number, trial.config["size"]) for trial in study.trials if trial.state is state]


def test_an_enqueued_config_is_a_trial_that_waits() -> None:
    study = Study(SPACE, "fifo", max_resource=1)
    study.enqueue({"size": 3})
    assert len(study.trials) == 1
    assert sizes(study, State.PENDING) == [(0, 3.0)]
    assert study.trials_dataframe()["state"].tolist() == ["WAITING"]
    study.enqueue({"size": 4})
    job = asked(study)
    assert [(trial.number, trial.state) for trial in study.trials] == [(0, State.RUNNING), (1, State.PENDING)]
    study.tell(job, 1.0)
    assert study.trials_dataframe()["state"].tolist() == ["COMPLETE", "WAITING"]
    assert study.best_trial.number == 0
    assert study.history() == [row for row in study.history() if row["trial"] == 0]


def test_a_queue_outlives_its_process(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    study = create_study(storage=url, study_name="s")
    study.enqueue_trial({"x": 0.5})
    study.enqueue_trial({"x": 0.5}, skip_if_exists=True)
    study.enqueue_trial({"x": 0.25})
    assert [trial.config for trial in Study.load("s", storage=url).trials] == [{"x": 0.5}, {"x": 0.25}]
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    assert [str(trial.state) for trial in study.trials] == ["COMPLETE", "WAITING"]


def test_the_page_of_a_store_counts_waiting_trials(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    study = Study(SPACE, storage=url)
    for size in (1, 2):
        study.enqueue({"size": size})
    asked(study)
    watch = StudyWatch(StoreReader(url).study("study"))
    description = json.loads(json.dumps(watch.describe()))
    assert description["states"] == {"RUNNING": 1, "PENDING": 1}
    assert description["trials"] == 2


@pytest.mark.parametrize("scheduler", [Largest, LargestOfRung])
def test_a_scheduler_reorders_enqueued_configs(scheduler: type[Largest]) -> None:
    store = MemoryStore()
    study = Study(SPACE, scheduler(), max_resource=9, storage=store)
    other = Study.load("study", storage=store, scheduler=scheduler())
    for size in (2, 7, 5):
        study.enqueue({"size": size})
    assert [asked(study).config["size"], asked(other).config["size"]] == [7, 5]
    assert sizes(other, State.PENDING) == [(2, 2.0)]
    assert asked(study).config["size"] == 2
    other.refresh()
    assert state_of(other) == state_of(study)
    assert not other.skipped


def test_a_scheduler_reorders_waiting_jobs() -> None:
    study = Study(SPACE, Largest(), max_resource=1, max_trials=3)
    for size in (2, 7, 5):
        study.enqueue({"size": size})
    jobs = [asked(study) for _ in range(3)]
    for job in reversed(jobs):
        study.release(job, early=True)
    assert sizes(study, State.PENDING) == [(0, 7.0), (1, 5.0), (2, 2.0)]
    assert [asked(study).config["size"] for _ in range(3)] == [7, 5, 2]


class Later(FifoScheduler):
    """Begins new trials before those that wait."""

    name = "later"

    def choose(self, waiting: Sequence[WaitingTrial], free: Mapping[str, float]) -> int | None:  # noqa: ARG002
        return None


def test_waiting_jobs_begin_when_there_is_no_other() -> None:
    store = MemoryStore()
    study = Study(SPACE, Later(), max_resource=1, max_trials=2, storage=store)
    first = asked(study)
    study.release(first)
    second = asked(study)
    assert (second.trial, second.attempt) == (1, 0)
    again = asked(study)
    assert (again.trial, again.attempt) == (0, 1)
    for job in (second, again):
        study.tell(job, 1.0)
    assert study.ask() is None
    assert study.is_done
    other = Study.load("study", storage=store, scheduler=Later())
    assert state_of(other) == state_of(study)
    assert not other.skipped


@pytest.mark.parametrize("base", [FifoScheduler, Asha, Dehb, Hyperband, Pbt])
def test_any_order_of_the_queue_has_one_state_in_all_processes(base: type[Scheduler]) -> None:
    draw = Random(3)

    def choose(_: object, waiting: Sequence[WaitingTrial], free: Mapping[str, float]) -> Any:
        return draw.choice([None, *range(len(waiting))])

    kind = type("Random", (base,), {"name": "random-order", "choose": choose})
    for _ in range(6):
        store = MemoryStore()
        first = Study(SPACE, kind(), max_resource=9, max_trials=draw.choice([6, 20]), storage=store)
        studies = [first, Study.load("study", storage=store, scheduler=kind())]
        jobs: list[tuple[Study, Job]] = []
        for _ in range(80):
            study, what = draw.choice(studies), draw.random()
            if what < 0.2 and len(study.trials) < 6:
                study.enqueue({"size": draw.random()})
            elif what < 0.5 or not jobs:
                job = study.ask()
                jobs += [] if job is None else [(study, job)]
            else:
                owner, job = jobs.pop(draw.randrange(len(jobs)))
                if what < 0.75:
                    owner.release(job)
                else:
                    owner.tell(job, draw.random())
        for owner, job in jobs:
            owner.tell(job, draw.random())
        while (job := studies[1].ask()) is not None:
            studies[1].tell(job, draw.random())
        first.refresh()
        again = Study.load("study", storage=store, scheduler=kind())
        assert state_of(first) == state_of(studies[1]) == state_of(again)
        assert first.is_done
        assert not again.skipped


@pytest.mark.parametrize("index", [3, -1, "first", True])
def test_an_index_outside_the_queue_is_rejected(index: Any) -> None:
    class Wrong(FifoScheduler):
        name = "wrong"

        def choose(self, waiting: Sequence[WaitingTrial], free: Mapping[str, float]) -> Any:  # noqa: ARG002
            return index

    study = Study(SPACE, Wrong(), max_resource=1)
    for size in (2, 7, 5):
        study.enqueue({"size": size})
    with pytest.raises(
        OptionError, match=r"'wrong' chose .* of 3 waiting trials: return an index from 0 to 2"
    ):
        study.ask()
    assert len(study.trials) == 3


def memory_of(config: Mapping[str, Any]) -> Mapping[str, float]:
    return {"memory": config["size"]}


def wait_and_return(config: Mapping[str, Any]) -> float:
    import time

    time.sleep(0.3)
    return float(config["size"])


@pytest.mark.lane("ci")
@pytest.mark.parametrize(("scheduler", "order"), [(Largest, [6, 4]), (FifoScheduler, [5, 6])])
def test_a_scheduler_sees_the_free_resources(scheduler: Any, order: list[float]) -> None:
    study = Study(SPACE, scheduler(), max_resource=1, max_trials=4)
    for size in (5, 6, 3, 4):
        study.enqueue({"size": size})
    study.run(wait_and_return, workers=Workers(2, has={"memory": 10}, needs=memory_of))
    assert [trial.config["size"] for trial in study.trials[:2]] == order
    assert all(trial.state is State.TERMINATED for trial in study.trials)
