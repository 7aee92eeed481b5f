"""Optuna's tests of heartbeats, with leases: jobs whose worker sends no heartbeat.

The expectations are those of Optuna's `test_heartbeat.py` and `test_callbacks.py` (MIT License, commit
1d8ce7bb, for 5.0). Optuna's heartbeat exists for its own SQL storage only, so it does not apply to
`optuna_storage`; `test_optuna.py` asserts this. Here a lease replaces it. Optuna fails a stale trial, and a
callback may add a copy of it, with a new number. Ours is the same trial again, with its next attempt.

* `test_repeatedly_called_record_heartbeat`: `test_heartbeats_may_repeat`.
* `test_fail_stale_trials`: `test_a_trial_is_stale_only_without_a_heartbeat`; with the thread that beats,
  `test_a_heartbeat_renews_the_lease_of_a_long_job` in `test_claims.py`.
* `test_fail_stale_trials_with_optimize` and `test_get_stale_trial_ids`:
  `test_optimize_takes_the_stale_trial_of_its_own_study`.
* `test_fail_stale_trials_with_race_condition`: `test_two_workers_share_no_stale_trial` and
  `test_a_trial_that_has_ended_is_never_stale`.
* `test_retry_heartbeat_stale_trial_callback`, with and without `_intermediate`:
  `test_a_stale_trial_keeps_its_config_and_its_reports`. Ours always inherits the reports.
* `…_repetitive_failure` and the three tests of `retry_history`: `test_a_trial_is_lost_three_times_at_most`.
  The limit is fixed, and counts from the last step with progress; `preemptions` is the length of the history.
* `test_invalid_heartbeat_interval_and_grace_period`: `test_bad_arguments_are_rejected` in `test_study.py`.
* `test_heartbeat_stale_trial_callback` cannot apply, because no callback is called by the process that finds
  a stale trial: the log has one record ``expired``, which `test_two_workers_share_no_stale_trial` counts.
* `test_heartbeat_experimental_warnings` cannot apply, because leases are not experimental.
"""

from __future__ import annotations

import threading

import pytest

from onlineauto.tune import ActiveTrial, Float, LeaseLost, State, Study
from onlineauto.tune.progress import TRIES
from onlineauto.tune.store import open_store
from onlineauto.tune.trial import Job, claim_of
from tests.tune.studies import asked, records_of

SPACE = {"x": Float(0, 1)}


def new_study(url: str, name: str = "study", max_trials: int = 6) -> Study:
    return Study(SPACE, "fifo", storage=url, name=name, max_trials=max_trials)


def lose(url: str, job: Job, name: str = "study") -> None:
    """End the lease of a job, as if its worker had sent no heartbeat."""
    assert open_store(url, name).heartbeat([claim_of(job)], -1) == []


def kinds(study: Study) -> list[tuple[str, int, int]]:
    return [(record["kind"], record["trial"], record["attempt"]) for record in records_of(study)]


def test_heartbeats_may_repeat(url: str) -> None:
    study = new_study(url)
    job = asked(study)
    assert study.heartbeat([job]) == []
    assert study.heartbeat([job, job]) == []
    assert asked(new_study(url)).trial == 1
    assert kinds(study) == [("asked", 0, 0), ("asked", 1, 0)]


def test_a_trial_is_stale_only_without_a_heartbeat(url: str) -> None:
    study, other = new_study(url), new_study(url)
    job = asked(study)
    assert asked(other).trial == 1  # its lease began with the claim
    lose(url, job)
    assert study.heartbeat([job]) == []  # it beats again before any process has noticed
    assert asked(other).trial == 2
    assert study.trials[0].state is State.RUNNING
    lose(url, job)
    again = asked(other)
    assert (again.trial, again.attempt) == (0, 1)
    assert study.heartbeat([job, again]) == [job]
    with pytest.raises(LeaseLost):
        study.tell(job, 1.0)


def test_optimize_takes_the_stale_trial_of_its_own_study(url: str) -> None:
    first, second = new_study(url, "first"), new_study(url, "second")
    stale, other = asked(first), asked(second)
    lose(url, stale, "first")
    lose(url, other, "second")
    tried = []

    def objective(trial: ActiveTrial) -> float:
        tried.append(trial.suggest_float("x", 0, 1))
        return 1.0

    worker = Study.load("first", storage=url)
    worker.optimize(objective, n_trials=1)
    second.refresh()
    assert tried == [stale.config["x"]]
    assert kinds(worker) == [("asked", 0, 0), ("expired", 0, 0), ("asked", 0, 1), ("told", 0, 1)]
    assert second.heartbeat([other]) == []
    assert [(trial.state, trial.preemptions) for trial in worker.trials] == [(State.TERMINATED, 1)]
    assert [(trial.state, trial.preemptions) for trial in second.trials] == [(State.RUNNING, 0)]


def test_a_stale_trial_keeps_its_config_and_its_reports(url: str) -> None:
    study = new_study(url)
    job = asked(study)
    study.report(job, 1, 0.5)
    lose(url, job)
    again = asked(new_study(url))
    assert (again.trial, again.attempt, again.config, again.step) == (0, 1, job.config, 1)
    rows = study.history(again)
    assert [(row["trial"], row["attempt"], row["value"]) for row in rows] == [(0, 0, 0.5)]
    study.refresh()
    assert (study.trials[0].preemptions, study.trials[0].failures) == (1, 0)


def test_two_workers_share_no_stale_trial(url: str) -> None:
    study = new_study(url)
    lose(url, asked(study))
    workers = [Study.load("study", storage=url) for _ in range(2)]
    together = threading.Barrier(2)
    jobs: list[Job] = []

    def work(worker: Study) -> None:
        together.wait()
        jobs.append(asked(worker))

    threads = [threading.Thread(target=work, args=[worker]) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted((job.trial, job.attempt) for job in jobs) == [(0, 1), (1, 0)]
    assert kinds(study).count(("expired", 0, 0)) == 1


def test_a_trial_that_has_ended_is_never_stale(url: str) -> None:
    study = new_study(url)
    jobs = [asked(study) for _ in range(3)]
    study.tell(jobs[0], 0.5)
    study.fail(jobs[1], "no memory")
    lose(url, jobs[2])
    study.tell(jobs[2], 0.25)  # late, and before any process has noticed
    claims = [claim_of(job) for job in jobs]
    assert open_store(url, "study").heartbeat(claims, -1) == claims
    assert asked(new_study(url)).trial == 3
    study.refresh()
    assert [(trial.state, trial.attempt, trial.preemptions) for trial in study.trials[:3]] == [
        (State.TERMINATED, 0, 0),
        (State.ERRORED, 0, 0),
        (State.TERMINATED, 0, 0),
    ]


def test_a_trial_is_lost_three_times_at_most(url: str) -> None:
    """Five jobs in a row are lost. Optuna's test has three copies of a trial; ours has three attempts."""
    study = new_study(url)
    jobs = []
    for _ in range(5):
        jobs.append(asked(study))
        lose(url, jobs[-1])
    last = asked(study)
    assert TRIES == 3
    assert [(job.trial, job.attempt) for job in [*jobs, last]] == [
        (0, 0),
        (0, 1),
        (0, 2),
        (1, 0),
        (1, 1),
        (1, 2),
    ]
    study.tell(last, 0.5)
    assert jobs[0].config == jobs[1].config == jobs[2].config
    assert jobs[3].config == jobs[4].config == last.config != jobs[0].config
    assert [(trial.state, trial.preemptions) for trial in study.trials] == [
        (State.ERRORED, 3),
        (State.TERMINATED, 2),
    ]
    study.tell(asked(study), 0.5)
    assert study.trials[2].preemptions == 0
