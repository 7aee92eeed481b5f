"""Jobs of ask and tell: renewed leases, released jobs, and the answers of `ask` and `wait`."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from onlineauto.errors import OptionError
from onlineauto.tune import Categorical, Float, LeaseLost, State, Study, StudyState, Workers
from onlineauto.tune.progress import TRIES
from onlineauto.tune.store import MemoryStore, open_store
from onlineauto.tune.store.store_reader import StoreReader
from onlineauto.tune.trial import claim_of
from tests.tune.studies import Clock, asked
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.lane("ci")

SPACE = {"x": Float(0, 1)}


def heartbeats() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "onlineauto heartbeat"}


def test_a_heartbeat_renews_the_lease_of_a_long_job(url: str) -> None:
    first = Study(SPACE, "fifo", storage=url, max_trials=2, lease=3)
    second = Study.load("study", storage=url)
    job = asked(first)
    time.sleep(4)
    other = asked(second)
    assert other.trial == 1
    assert second.ask() is None
    first.tell(job, 0.5)
    second.tell(other, 0.5)
    assert [trial.attempt for trial in second.trials] == [0, 0]


def test_the_lease_is_a_setting_of_the_study(url: str) -> None:
    studies = [
        Study(SPACE, storage=url, lease=2.5),
        Study.load("study", storage=url),
        Study(SPACE, storage=url),
        Study.load("study", storage=url, lease=7),
        Study(SPACE, storage=url, name="other"),
        Study.load("other", storage=url),
    ]
    jobs = [asked(study) for study in studies]
    reader = StoreReader(url)
    leases = [lease.lease for name in ("study", "other") for lease in reader.study(name).leases()]
    reader.close()
    assert leases == [2.5, 2.5, 2.5, 7, 60, 60]
    assert studies[3].settings.lease == 2.5
    assert len(jobs) == 6


def test_the_heartbeat_runs_while_the_study_has_a_job(tmp_path: Path) -> None:
    before = heartbeats()  # of earlier tests; their threads may end at any time
    study = Study(SPACE, storage=f"sqlite:///{tmp_path}/s.db", lease=0.1)
    assert not heartbeats() - before
    study.tell(asked(study), 1.0)
    until(lambda: not heartbeats() - before)
    job = asked(study)
    assert len(heartbeats() - before) == 1
    del study
    gc.collect()
    until(lambda: not heartbeats() - before)
    other = Study.load("study", storage=f"sqlite:///{tmp_path}/s.db")
    until(lambda: (found := other.ask()) is not None and found.trial == job.trial)


def test_a_process_with_a_job_can_end(tmp_path: Path) -> None:
    program = (
        "from onlineauto.tune import *\n"
        f"study = Study({{'x': Float(0, 1)}}, storage='sqlite:///{tmp_path}/s.db', lease=100)\n"
        "study.ask()\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=50)


def test_a_value_is_accepted_until_another_process_has_claimed_the_job() -> None:
    clock = Clock()
    store = MemoryStore(clock)
    first, second = (Study(SPACE, "fifo", storage=store, lease=10, retries=1) for _ in range(2))
    slow, slower = asked(first), asked(first)
    clock.now = 11
    third = asked(second)  # records that both leases are over, and claims the first of them again
    assert (third.trial, third.attempt) == (slow.trial, 1)
    with pytest.raises(LeaseLost):
        first.tell(slow, 0.25)
    first.tell(slower, 0.75)
    assert (first.trials[1].value, first.trials[1].state) == (0.75, State.TERMINATED)
    with pytest.raises(LeaseLost):
        first.tell(slower, 0.5)
    second.fail(third, "no luck")
    with pytest.raises(LeaseLost):  # it failed, and waits for its next attempt
        second.tell(third, 0.5)


def test_a_released_job_is_the_next_one_without_delay(url: str) -> None:
    first, second = (Study(SPACE, storage=url) for _ in range(2))
    job = asked(first)
    first.release(job)
    assert first.trials[0].state is State.PENDING
    again = asked(second)
    assert (again.trial, again.attempt) == (job.trial, 1)
    with pytest.raises(LeaseLost):
        first.tell(job, 0.5)


def test_ask_returns_none_while_another_process_has_the_last_job() -> None:
    store = MemoryStore()
    first, second = (Study(SPACE, "fifo", storage=store, max_trials=1) for _ in range(2))
    job = asked(first)
    assert second.ask() is None
    assert not second.is_done
    assert second.wait(timeout=0.1) is False
    assert not second.is_done
    threading.Timer(0.2, lambda: first.tell(job, 0.5)).start()
    assert second.ask(wait=True) is None
    assert second.is_done
    assert second.wait() is False


def test_a_study_says_why_there_is_no_job() -> None:
    study = Study(SPACE, "fifo", max_trials=1, max_resource=1)
    assert str(study.state) == "open"
    job = asked(study)
    assert study.ask() is None
    assert str(study.state) == "busy"
    study.release(job)
    assert str(study.state) == "needs resources"
    study.tell(asked(study), 1.0)
    assert study.state is StudyState.DONE


def test_waiting_ends_when_a_lease_expires() -> None:
    clock = Clock()
    store = MemoryStore(clock)
    first, second = (Study(SPACE, "fifo", storage=store, max_trials=1, lease=5) for _ in range(2))
    job = asked(first)
    threading.Timer(0.2, lambda: setattr(clock, "now", 6.0)).start()
    again = second.ask(wait=True)
    assert again is not None
    assert (again.trial, again.attempt) == (job.trial, 1)


def test_a_trial_that_loses_each_process_fails_without_a_controller(url: str) -> None:
    Study(SPACE, "fifo", storage=url, max_trials=2)
    for attempt in range(TRIES):
        study = Study.load("study", storage=url)  # a command that is started again
        job = asked(study)
        assert (job.trial, job.attempt) == (0, attempt)
        open_store(url, "study").heartbeat([claim_of(job)], -1)  # and dies
    study = Study.load("study", storage=url)
    assert asked(study).trial == 1
    assert study.trials[0].state is State.ERRORED
    assert study.trials[0].error == "its process was lost 3 times after step 0; it is not tried again"


def test_lost_processes_do_not_count_if_the_trial_progresses() -> None:
    clock = Clock()
    study = Study(SPACE, "fifo", storage=MemoryStore(clock), lease=1, max_trials=1)
    for step in range(1, 9):
        job = asked(study)
        study.report(job, step, 0.5)
        clock.now += 2
    assert asked(study).attempt == 8
    assert study.trials[0].preemptions == 8


def needs_gpu(config: Any, resource: int) -> float:
    end = time.monotonic() + PATIENCE
    while not Path(config["go"]).exists():
        assert time.monotonic() < end
        time.sleep(0.01)
    return float(config["x"]) + resource


def test_a_trial_that_waits_for_resources_is_pending(tmp_path: Path) -> None:
    url, go = f"sqlite:///{tmp_path}/s.db", tmp_path / "go"
    study = Study({**SPACE, "go": Categorical([str(go)])}, "fifo", storage=url, max_trials=4, max_resource=3)
    workers = Workers(2, has={"gpu": 1}, needs={"gpu": 1})
    thread = threading.Thread(target=lambda: study.run(needs_gpu, workers=workers))
    thread.start()
    other = Study.load("study", storage=url)

    def waits() -> bool:
        other.refresh()
        return sorted(trial.state for trial in other.trials) == [State.PENDING, State.RUNNING]

    until(waits)
    go.touch()
    thread.join(PATIENCE)
    assert [trial.state for trial in study.trials] == [State.TERMINATED] * 4
    assert [trial.preemptions for trial in study.trials] == [0] * 4


def test_a_loop_of_wait_and_ask_ends() -> None:
    study = Study(SPACE, "fifo", max_trials=3)
    told = 0
    while study.wait():
        job = study.ask()
        if job is not None:
            study.tell(job, 1.0)
            told += 1
    assert told == 3
    assert study.is_done


@pytest.mark.parametrize("scheduler", ["fifo", "asha", "hyperband"])
def test_a_step_reported_again_behind_a_record_of_another_process(scheduler: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    created = Study(SPACE, scheduler, max_resource=9, max_trials=6, storage=url)
    loaded = Study.load("study", storage=url)
    mine, other = asked(created), asked(loaded)
    created.report(mine, 0, 0.5)
    created.refresh()
    loaded.tell(other, 0.1)
    created.report(mine, 0, 0.5)  # appends nothing: what is new is the other's
    assert created.trials == loaded.trials
    created.tell(mine, 0.2)
    while (job := created.ask()) is not None:
        created.tell(job, 0.3)
    fresh = Study.load("study", storage=url)
    assert created.is_done
    assert (fresh.trials, list(fresh.skipped)) == (created.trials, [])


@pytest.mark.parametrize("details", [["epoch", 3], "epoch", 3, [], {"n": 10**5000}, {10**5000: 1}])
def test_invalid_details_write_nothing(details: Any) -> None:
    study = Study(SPACE, "fifo", max_resource=1, max_trials=1)
    job = asked(study)
    with pytest.raises(OptionError, match="details"):
        study.tell(job, 1.0, details)
    with pytest.raises(OptionError, match="details"):
        study.report(job, 1, 1.0, details)
    study.tell(job, 1.0)
    assert [trial.value for trial in study.trials] == [1.0]


def test_ask_fails_jobs_whose_values_cannot_be_applied() -> None:
    store = MemoryStore()
    study = Study(SPACE, "fifo", max_resource=1, max_trials=2, storage=store)
    jobs = [study.ask(), study.ask()]
    for job, details in zip(jobs, (["no mapping"], {}), strict=True):
        assert job is not None
        record = {"kind": "told", "trial": job.trial, "attempt": 0, "resource": 1, "value": 0.5}
        store.commit(claim_of(job), record | {"details": details})
    study.refresh()
    assert study.ask() is None  # not by a wait, which would last for ever
    assert study.is_done
    assert [trial.state for trial in study.trials] == [State.ERRORED, State.TERMINATED]
