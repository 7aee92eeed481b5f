"""Slow searchers propose without the lock of the log: the same configs alone, and none twice together."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from math import inf
from threading import Lock
from typing import Any

import numpy as np
import pytest

from onlineauto.tune import Categorical, Float, Int, Searcher, Study, create_study, replica
from onlineauto.tune.store import MemoryStore
from onlineauto.tune.trial import Job
from tests.tune.studies import asked, records_of, state_of

pytestmark = pytest.mark.lane("quick")

SPACE = {"rate": Float(1e-4, 1, log=True), "depth": Int(1, 12), "loss": Categorical(["squared", "logistic"])}


class Sleeping(Searcher):
    """Proposes random configs, and needs 40 ms for each."""

    name = "sleeping"
    together = 0
    most = 0
    lock = Lock()

    def propose(self, number: int, rng: np.random.Generator) -> Any:  # noqa: ARG002
        kind = type(self)
        with kind.lock:
            kind.together += 1
            kind.most = max(kind.most, kind.together)
        time.sleep(0.04)
        with kind.lock:
            kind.together -= 1
        return self.space.decode(rng.random(self.space.width))


class Next(Searcher):
    """Proposes the least whole number that is not a trial yet, whatever the random numbers."""

    name = "next"

    def begin(self, space: Any, *, seed: int) -> None:
        super().begin(space, seed=seed)
        self._seen: list[int] = []

    def on_ask(self, config: Any) -> None:
        self._seen.append(config["depth"])

    def propose(self, number: int, rng: np.random.Generator) -> Any:  # noqa: ARG002
        time.sleep(0.025)
        rest = [depth for depth in range(12) if depth not in self._seen]
        return {"depth": rest[0]} if rest else None

    def remember(self) -> dict[str, Any]:
        return {"seen": self._seen}

    def recall(self, state: Any) -> None:
        self._seen = list(state["seen"])


def loss_of(config: Any, resource: int) -> float:
    return float(abs(config["rate"] - 0.1) + config["depth"] / 100 + 1 / resource)


def log_of(scheduler: str, searcher: str) -> tuple[list[Any], int]:
    """Return the log of a study with up to three jobs at once, and the number of drafts."""
    study = Study(SPACE, scheduler, searcher, max_resource=9, max_trials=24, seed=5)
    study.enqueue({"rate": 0.1, "depth": 1, "loss": "squared"})
    pending: list[Job] = []
    while (job := study.ask()) is not None or pending:
        pending += [] if job is None else [job]
        if len(pending) > 3 or job is None:
            job = pending.pop(0)
            study.tell(job, loss_of(job.config, job.resource))
    return [{**record, "owner": ""} for record in records_of(study)], study._replica._n_drafts


@pytest.mark.parametrize("searcher", ["random", "quasi", "grid", "tpe", "cmaes", "gp"])
@pytest.mark.parametrize("scheduler", ["hyperband", "dehb", "asha", "pbt", "fifo"])
def test_one_process_proposes_the_same_without_a_lock(
    scheduler: str, searcher: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica, "_SLOW", inf)
    before, no_drafts = log_of(scheduler, searcher)
    monkeypatch.setattr(replica, "_SLOW", 0)
    after, n_drafts = log_of(scheduler, searcher)
    assert after == before
    assert no_drafts == 0
    assert n_drafts >= 5


def test_suggested_spaces_propose_the_same_without_a_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    def values() -> list[Any]:
        study = create_study(seed=3)
        study.optimize(
            lambda trial: trial.suggest_float("x", 0, 1) * trial.suggest_int("n", 1, 5), n_trials=30
        )
        return [(trial.config, trial.value) for trial in study.trials]

    before = values()
    monkeypatch.setattr(replica, "_SLOW", 0)
    assert values() == before


def test_threads_propose_at_the_same_time() -> None:
    Sleeping.most = 0
    study = Study(SPACE, "fifo", Sleeping(), max_resource=1, max_trials=40)

    def work() -> None:
        while (job := study.ask()) is not None:
            study.tell(job, loss_of(job.config, 1))

    began = time.perf_counter()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: work(), range(4)))
    assert time.perf_counter() - began < 40 * 0.04 * 0.75  # the sum of all proposals is 1.6 s
    assert Sleeping.most == 4
    configs = [tuple(trial.config.items()) for trial in study.trials]
    assert len(configs) == len(set(configs)) == 40
    assert state_of(Study.load("study", storage=study._replica.store, searcher=Sleeping())) == state_of(study)


def rate_of(config: Any) -> float:
    return float(config["rate"])


@pytest.mark.lane("ci")
def test_a_run_with_worker_processes_proposes_at_the_same_time() -> None:
    Sleeping.most = 0
    study = Study(SPACE, "fifo", Sleeping(), max_resource=1, max_trials=30)
    study.run(rate_of, workers=3)
    assert Sleeping.most == 3
    assert len({tuple(trial.config.items()) for trial in study.trials}) == len(study.trials) == 30
    assert study._replica._n_drafts < 36  # few proposals are made in vain


@pytest.mark.lane("ci")
def test_a_run_with_one_worker_process_proposes_what_this_process_proposes() -> None:
    runs = [Study(SPACE, "asha", Sleeping(), max_resource=9, max_trials=12) for _ in range(2)]
    for workers, study in enumerate(runs):
        study.run(loss_of, workers=workers)
    assert len({json.dumps([trial.config for trial in study.trials]) for study in runs}) == 1


def test_no_config_of_a_table_is_tried_twice() -> None:
    store = MemoryStore()
    arguments: Any = {"max_resource": 1, "storage": store}
    studies = [Study({"depth": Int(0, 11)}, "fifo", Next(), **arguments) for _ in range(3)]

    def work(study: Study) -> None:
        while (job := study.ask()) is not None:
            study.tell(job, job.config["depth"])

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, studies * 2))
    studies[0].refresh()
    assert sorted(int(str(trial.config["depth"])) for trial in studies[0].trials) == list(range(12))


def test_a_proposal_that_another_process_has_taken_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    first = Study({"depth": Int(0, 11)}, "fifo", Next(), max_resource=1, storage=store)
    second = Study.load("study", storage=store, searcher=Next())
    assert asked(first).config == {"depth": 0}
    draft = first._replica.draft()
    assert draft is not None
    assert draft.config == {"depth": 1}
    assert asked(second).config == {"depth": 1}
    first.refresh()
    assert draft.is_taken(first._replica.progress)
    drafts = [draft]
    later = first._replica.draft
    monkeypatch.setattr(first._replica, "draft", lambda: drafts.pop() if drafts else later())
    assert asked(first).config == {"depth": 2}
    assert not drafts


def test_a_searcher_that_raises_an_error_changes_no_state() -> None:
    class Failing(Sleeping):
        name = "failing"

        def propose(self, number: int, rng: np.random.Generator) -> Any:
            if number == 2:
                raise RuntimeError("no proposal")
            return super().propose(number, rng)

    study = Study(SPACE, "fifo", Failing(), max_resource=1, max_trials=9)
    jobs = [asked(study), asked(study)]
    before = state_of(study)
    with pytest.raises(RuntimeError, match="no proposal"):
        study.ask()
    assert state_of(study) == before
    assert len(jobs) == len(study.trials) == 2
