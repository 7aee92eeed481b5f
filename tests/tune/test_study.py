"""Studies: ask, tell, report, fail and enqueue; leases; shared studies; invalid input."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import inf, nan
from operator import attrgetter
from threading import Thread
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlineauto.errors import OptionError
from onlineauto.testing import check_store
from onlineauto.tune import (
    Categorical,
    Decision,
    Float,
    Int,
    LeaseLost,
    Scheduler,
    Searcher,
    State,
    Study,
    Suggestion,
    replica,
)
from onlineauto.tune.schedulers.asha import Asha
from onlineauto.tune.schedulers.dehb import Dehb
from onlineauto.tune.schedulers.fifo import FifoScheduler
from onlineauto.tune.schedulers.median import Median
from onlineauto.tune.store import MemoryStore, Record, Store
from onlineauto.tune.trial import Job
from tests.tune.studies import Clock, asked, state_of

pytestmark = pytest.mark.lane("quick")

SPACE = {"rate": Float(1e-4, 1, log=True), "depth": Int(1, 12), "loss": Categorical(["squared", "logistic"])}


def value_of(job: Job) -> float:
    return abs(float(str(job.config["rate"])) - 0.1) + int(str(job.config["depth"])) / 100 + 1 / job.resource


def test_the_store_in_memory_conforms() -> None:
    clock = Clock()
    check_store(lambda: MemoryStore(clock), pass_time=clock.passes)


def test_a_study_from_its_first_job_to_its_first_value() -> None:
    study = Study(
        SPACE,
        scheduler="hyperband",
        searcher="tpe",
        min_resource=1,
        max_resource=81,
        eta=3,
        mode="min",
        seed=0,
    )
    study.enqueue({"rate": 0.1, "depth": 1, "loss": "squared"})
    job = asked(study)
    assert (job.trial, job.resource, job.resume_from) == (0, 1, None)
    assert job.config == {"rate": 0.1, "depth": 1, "loss": "squared"}
    assert [trial.state for trial in study.trials] == [State.RUNNING]
    study.tell(job, 0.31)
    assert [trial.state for trial in study.trials] == [State.PAUSED]
    assert (study.best_trial.number, study.best_value) == (0, 0.31)
    assert not study.is_done


@pytest.mark.parametrize("scheduler", ["hyperband", "dehb", "asha", "median", "pbt", "fifo"])
@pytest.mark.parametrize("searcher", ["random", "quasi", "grid", "tpe"])
def test_every_pair_of_scheduler_and_searcher_ends(scheduler: str, searcher: str) -> None:
    study = Study(SPACE, scheduler, searcher, max_resource=9, max_trials=30)
    while (job := study.ask()) is not None:
        study.tell(job, value_of(job))
    assert study.is_done
    assert study.ask() is None
    paused = {State.PAUSED} if scheduler == "asha" else set()  # which another trial could have sent on
    assert {trial.state for trial in study.trials} <= {State.TERMINATED} | paused
    assert len(study.trials) <= 30
    assert study.best_trial.resource == 9


def test_higher_is_better_if_the_mode_says_so() -> None:
    low, high = (Study(SPACE, mode=mode, max_trials=40, max_resource=9) for mode in ("min", "max"))
    while (job := low.ask()) is not None:
        other = asked(high)
        assert (other.trial, other.config, other.resource) == (job.trial, job.config, job.resource)
        low.tell(job, value_of(job))
        high.tell(other, -value_of(job))
    assert (low.best_trial.number, low.best_value) == (high.best_trial.number, -high.best_value)


def test_a_value_that_is_not_a_number_fails_the_trial_and_the_rung_continues() -> None:
    study = Study(SPACE, max_resource=9, retries=3)
    jobs = [asked(study) for _ in range(9)]
    for job, value in zip(jobs, [nan, "0.5", None, inf, 4, np.float32(3), True, 2.0, -inf], strict=True):
        study.tell(job, value)
    errored = [trial for trial in study.trials if trial.state is State.ERRORED]
    assert [trial.number for trial in errored] == [0, 1, 2]
    assert errored[0].error == "the value is nan, which is not a number"
    assert [asked(study).trial for _ in range(3)] == [8, 6, 7]


def test_a_value_belongs_to_the_step_at_which_the_job_stopped() -> None:
    study = Study(SPACE, scheduler=Asha("stopping"), max_resource=9, searcher="random")
    for trial in range(4):
        job = asked(study)
        answers = [study.report(job, step, float(trial)) for step in (1, 2)]
        assert answers == ([Decision.CONTINUE] * 2 if trial == 0 else [Decision.STOP] * 2)
        study.tell(job, float(trial))
    assert [trial.values for trial in study.trials][1:] == [{1: 1.0}, {1: 2.0}, {1: 3.0}]
    assert study.trials[0].values == {9: 0.0}
    job = asked(study)
    for step in (-1, 1.5, "1", True):
        with pytest.raises(OptionError, match=r"step = .*: give a whole number from 0 to"):
            study.report(job, step, 1.0)  # type: ignore[arg-type]
    assert study.report(job, 0, 1.0) is Decision.CONTINUE


def test_a_failed_job_is_retried_up_to_the_given_number() -> None:
    study = Study(SPACE, retries=2, max_resource=9)
    job = asked(study)
    for attempt in range(3):
        assert (job.trial, job.attempt) == (0, attempt)
        study.fail(job, "out of memory")
        job = asked(study)
    assert job.trial == 1
    trial = study.trials[0]
    assert (trial.state, trial.failures, trial.error) == (State.ERRORED, 3, "out of memory")


def test_an_expired_lease_returns_the_job_to_the_queue() -> None:
    clock = Clock()
    store = MemoryStore(clock)
    first = Study(SPACE, name="rates", storage=store, lease=10)
    second = Study.load("rates", storage=store, lease=10)
    slow, quick = asked(first), asked(first)
    clock.passes(8)
    assert first.report(quick, 1, 0.5) is Decision.STOP
    assert first.heartbeat([quick]) == []
    clock.passes(8)
    again = asked(second)
    assert (again.trial, again.attempt, again.config, again.resource) == (
        slow.trial,
        1,
        slow.config,
        slow.resource,
    )
    for late in (
        lambda: first.tell(slow, 0.1),
        lambda: first.report(slow, 1, 0.1),
        lambda: first.fail(slow, "late"),
    ):
        with pytest.raises(LeaseLost, match="trial 0, attempt 0 is not"):
            late()
    assert first.heartbeat([slow, quick]) == [slow]
    second.tell(again, 0.2)
    first.tell(quick, 0.5)
    first.refresh()
    assert first.trials[0].values == {1: 0.2}
    assert (first.trials[0].preemptions, first.trials[0].failures) == (1, 0)
    with pytest.raises(LeaseLost):
        second.tell(again, 0.2)


def test_leases_expire_in_memory() -> None:
    study = Study(SPACE, lease=1e-9)
    job = asked(study)
    assert asked(study).trial == job.trial
    with pytest.raises(LeaseLost):
        study.tell(job, 1.0)


def test_the_history_of_a_job_ends_at_its_claim() -> None:
    store = MemoryStore()
    first = Study(SPACE, storage=store)
    second = Study.load("study", storage=store)
    first.tell(asked(first), 0.5)
    job = asked(first)
    before = first.history(job)
    assert [row["value"] for row in before] == [0.5]
    second.tell(asked(second), 0.25)
    assert first.history(job) == before
    assert [row["value"] for row in first.history(asked(first))] == [0.5, 0.25]
    row = first.history()[0]
    assert {key: row[key] for key in ("trial", "attempt", "resource", "told")} == {
        "trial": 0,
        "attempt": 0,
        "resource": 1,
        "told": True,
    }
    assert {key for key in row if key.startswith("config_")} == {"config_rate", "config_depth", "config_loss"}


class Json(MemoryStore):
    """Stores records as text, like a store on a disk."""

    def claim(self, owner: str, lease: float, **rest: Any) -> Any:
        records = super().claim(owner, lease, **rest)
        return [json.loads(json.dumps(record)) for record in records]

    def load(self, after: int = 0) -> Any:
        return [json.loads(json.dumps(record)) for record in super().load(after)]


@settings(max_examples=40)
@given(
    st.sampled_from(["hyperband", "dehb", "asha", "median", "pbt", "fifo", Median(1, history="start")]),
    st.sampled_from(["tpe", "random", "grid"]),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 10)), min_size=20, max_size=120),
    st.sampled_from([0.0, inf]),
)
def test_all_processes_come_to_the_same_state(
    scheduler: str | Scheduler, searcher: str, steps: list[tuple[int, int]], slow: float
) -> None:
    """Three processes share a study, and some of them restart. All have the same state at the end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replica, "_SLOW", slow)
        _share_a_study(scheduler, searcher, steps)


def _share_a_study(scheduler: str | Scheduler, searcher: str, steps: list[tuple[int, int]]) -> None:
    clock = Clock()
    store = Json(clock)
    arguments: dict[str, Any] = {
        "max_resource": 9,
        "storage": store,
        "lease": 20,
        "retries": 1,
        "max_trials": 25,
    }
    studies = [Study(SPACE, scheduler, searcher, **arguments) for _ in range(3)]
    jobs: list[list[Job]] = [[], [], []]
    for who, what in steps:
        clock.passes(1)
        study = studies[who]
        if what == 10 and not study.is_done and len(study.trials) < 20:
            study.enqueue({"rate": 0.5, "depth": who + 1, "loss": "logistic"})
        if what < 5 or not jobs[who]:
            job = study.ask()
            jobs[who] += [] if job is None else [job]
            continue
        job = jobs[who].pop(0)
        try:
            if what == 5:
                study.fail(job, "as it goes")
            elif what == 6:
                study.report(job, 1, value_of(job))
                jobs[who].append(job)
            elif what == 7:
                studies[who] = Study.load("study", storage=store, lease=20)
            else:
                study.tell(job, value_of(job))
        except LeaseLost:
            pass
    studies.append(Study.load("study", storage=store))
    for study in studies:
        study.refresh()
        assert state_of(study) == state_of(studies[0])
    asked_for = [(record["trial"], record["attempt"]) for record in store.load() if record["kind"] == "asked"]
    assert len(asked_for) == len(set(asked_for))


@pytest.mark.parametrize("scheduler", ["hyperband", "dehb", "asha", "pbt"])
def test_a_study_continues_from_any_prefix_of_its_log(scheduler: str) -> None:
    """Every second prefix of the log leads to the same study."""
    whole = Json()
    study = Study(SPACE, scheduler, storage=whole, max_resource=9, max_trials=14)
    run_to_the_end(study)
    records = whole.load()
    for length in range(1, len(records), 2):
        store = Json()
        store.begin(records[0])
        for record in records[1:length]:
            store.append(record)
        last = records[length - 1]
        again = Study.load("study", storage=store)
        if last["kind"] in ("asked", "reported"):
            store.append({"kind": "expired", "trial": last["trial"], "attempt": last["attempt"]})
        run_to_the_end(again)
        assert outcome(again) == outcome(study)


def run_to_the_end(study: Study) -> None:
    while (job := study.ask()) is not None:
        if job.resource > 1:
            study.report(job, 1, 0.9)
        study.tell(job, value_of(job))


def outcome(study: Study) -> list[tuple[Any, ...]]:
    return [(trial.config, trial.values, trial.state) for trial in study.trials]


def test_a_snapshot_replaces_the_records_before_it() -> None:
    store = Json()
    study = Study(SPACE, searcher="random", storage=store)
    for _ in range(1200):
        study.tell(asked(study), 0.5)
    snapshot = store.snapshot()
    assert snapshot is not None
    assert 1000 <= snapshot.version <= len(store.load())
    again = Study.load("study", storage=store)
    assert state_of(again) == state_of(study)


class Broken(MemoryStore):
    """Loses its connection after the decision."""

    broken = False

    def claim(self, owner: str, lease: float, *, after: int, decide: Any) -> Any:
        if self.broken:
            decide(self.load(after))
            raise ConnectionError("gone")
        return super().claim(owner, lease, after=after, decide=decide)


def test_a_failed_claim_changes_no_state() -> None:
    store = Broken()
    study = Study(SPACE, storage=store)
    first = asked(study)
    store.broken = True
    with pytest.raises(ConnectionError):
        study.ask()
    store.broken = False
    assert asked(study).trial == first.trial + 1
    assert len(study.trials) == 2


@pytest.mark.parametrize(
    "read",
    [attrgetter("settings"), attrgetter("rounds"), attrgetter("objectives"), attrgetter("best_trials")],
)
def test_a_reader_waits_for_a_claim_of_another_thread(read: Callable[[Study], object]) -> None:
    waited: list[bool] = []

    class Slow(MemoryStore):
        def claim(self, *arguments: Any, **options: Any) -> Any:
            reader.start()
            reader.join(0.1)
            waited.append(reader.is_alive())
            return super().claim(*arguments, **options)

    study = Study({"x": Float(0, 1)}, storage=Slow())
    reader = Thread(target=read, args=(study,))
    assert study.ask() is not None
    reader.join()
    assert waited == [True]


def test_the_same_name_is_the_same_study_or_an_error() -> None:
    store = MemoryStore()
    Study(SPACE, storage=store, name="rates")
    Study(SPACE, storage=store, name="rates")
    with pytest.raises(OptionError, match="'rates' exists already with eta = 3, not 4"):
        Study(SPACE, storage=store, name="rates", eta=4)
    with pytest.raises(OptionError, match="there is no study 'other'"):
        Study.load("other", storage=MemoryStore())


class Own(FifoScheduler):
    """A custom scheduler."""

    name = "own"


def test_a_custom_scheduler_is_passed_to_load() -> None:
    store = MemoryStore()
    study = Study(SPACE, scheduler=Own(), storage=store, max_trials=3)
    study.tell(asked(study), 1.0)
    with pytest.raises(OptionError, match=r"'own' of tests\.tune\.test_study: it needs --import tests"):
        Study.load("study", storage=store)
    assert asked(Study.load("study", storage=store, scheduler=Own())).trial == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scheduler": "sha"}, "valid are hyperband, race, dehb, asha, median, pruning, pbt, fifo"),
        ({"searcher": "bayes"}, "valid are auto, random, quasi, grid, tpe"),
        ({"mode": "best"}, "valid are min, max"),
        ({"max_trials": 0}, "max_trials = 0"),
        ({"retries": -1}, "retries = -1"),
        ({"lease": 0}, "lease = 0"),
        ({"lease": -1}, "lease = -1"),
        ({"lease": nan}, "lease = nan"),
        ({"max_resource": 1}, "one rung"),
        ({"seed": "x"}, "seed = 'x': give a whole number"),
        ({"storage": "nowhere://x"}, "is not a known store"),
    ],
)
def test_bad_arguments_are_rejected(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Study(SPACE, **arguments)


def test_a_config_outside_the_space_is_rejected_while_a_job_runs() -> None:
    study = Study(SPACE)
    job = asked(study)
    with pytest.raises(
        OptionError, match="depth = 99 is outside the space; valid is type int, low 1, high 12"
    ):
        study.enqueue({"rate": 0.1, "depth": 99, "loss": "squared"})
    study.tell(job, 0.5)
    assert len(study.history()) == 1


def test_run_completes_one_round_or_rejects_an_endless_study() -> None:
    study = Study(SPACE, max_resource=9)
    best = study.run(lambda config, resource: float(str(config["rate"])) + 1 / resource)
    assert best is not None
    assert (best.resource, len(study.trials)) == (9, 9 + 5 + 3)
    with pytest.raises(OptionError, match="never ends: give max_trials, or jobs"):
        Study(SPACE, scheduler="asha").run(lambda *_: 0.0)
    fifo = Study(SPACE, scheduler="fifo")
    fifo.run(lambda *_: 0.0, jobs=5)
    assert len(fifo.trials) == 5


def test_another_process_can_report_the_result_of_a_job() -> None:
    store = MemoryStore()
    first = Study(SPACE, scheduler="asha", storage=store)
    second = Study.load("study", storage=store)
    job = asked(first)
    assert first.report(job, 1, 0.5) is Decision.STOP
    second.tell(job, 0.5)
    assert second.trials[0].values == {1: 0.5}
    with pytest.raises(LeaseLost):
        first.tell(job, 0.5)


@pytest.mark.parametrize("scheduler", ["hyperband", "dehb", "asha", "median", "pbt", "fifo", Dehb("slots")])
def test_configs_that_are_enqueued_come_first(scheduler: str | Scheduler) -> None:
    study = Study(SPACE, scheduler, max_resource=9, max_trials=20)
    wished = [{"rate": 0.1, "depth": depth, "loss": "squared"} for depth in (3, 1)]
    for config in wished:
        study.enqueue(config)
    assert [asked(study).config for _ in range(2)] == wished
    while (job := study.ask()) is not None:
        study.enqueue(wished[0])
        study.tell(job, value_of(job))
    assert {trial.config["depth"] for trial in study.trials[3:]} == {3}


def test_a_study_ends_with_configs_in_the_queue() -> None:
    study = Study(SPACE, max_trials=1)
    for depth in (1, 2):
        study.enqueue({"rate": 0.1, "depth": depth, "loss": "squared"})
    while (job := study.ask()) is not None:
        study.tell(job, 0.5)
    assert study.is_done
    assert [(trial.config["depth"], trial.state) for trial in study.trials] == [
        (1, State.TERMINATED),
        (2, State.PENDING),
    ]


def test_the_types_that_users_build_on_are_public() -> None:
    assert issubclass(Own, Scheduler)
    assert Searcher is not None
    assert Suggestion(0, {}, 1).resume_from is None
    store: Store = MemoryStore()
    assert store.load() == []
    record: Record = {"kind": "idle"}
    assert record["kind"] == "idle"
