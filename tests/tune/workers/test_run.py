"""``Study.run``: here and in processes, in memory and in databases."""

from __future__ import annotations

from pathlib import Path

import pytest

from onlineauto.errors import OptionError
from onlineauto.tune import Callback, Float, Study, Workers
from onlineauto.tune.schedulers.pbt import Pbt
from onlineauto.tune.trial import Job
from onlineauto.tune.workers.hooks import Target
from onlineauto.tune.workers.trainable import AnyTrainable
from tests.tune.studies import asked
from tests.tune.workers import trainables


def rated(storage: str | None = None, *, trials: int | None = 12, retries: int = 0) -> Study:
    return Study(
        {"rate": Float(0, 1)},
        searcher="random",
        max_resource=9,
        max_trials=trials,
        storage=storage,
        retries=retries,
    )


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("what", [trainables.plain, trainables.reporting, trainables.Counter])
def test_a_study_is_run_in_memory(what: AnyTrainable, workers: int) -> None:
    study = rated()
    best = study.run(what, workers=workers)
    assert best is study.best is not None or best == study.best
    assert study.is_done
    assert len(study.trials) == 12
    assert {trial.state for trial in study.trials} == {"TERMINATED"}


def test_a_study_is_run_in_a_database_and_goes_on(url: str) -> None:
    first = rated(url).run(trainables.Counter, jobs=5)
    assert first is not None
    study = Study.load("study", storage=url)
    assert sum(len(trial.values) for trial in study.trials) == 5
    study.run(trainables.Counter, workers=2)
    assert study.is_done
    alone = rated()
    alone.run(trainables.Counter)
    assert {trial.number: trial.config for trial in study.trials} == {
        trial.number: trial.config for trial in alone.trials
    }


def test_one_round_ends_a_study_without_an_end() -> None:
    study = rated(trials=None)
    study.run(trainables.plain)
    assert not study.is_done
    assert len(study.trials) > 12


def test_a_stopper_ends_a_study_without_an_end() -> None:
    study = rated(trials=None)
    best = study.run(trainables.plain, stoppers=[Target(0.2)])
    assert best is not None
    assert min(value for trial in study.trials for value in trial.values.values()) <= 0.2


def test_a_trial_that_fails_is_tried_again_behind_its_checkpoint(tmp_path: Path) -> None:
    study = Study({"rate": Float(0, 1)}, scheduler="fifo", max_resource=5, max_trials=1, retries=2)
    study.run(trainables.FailsTwice)
    [trial] = study.trials
    assert (trial.state, trial.failures, trial.step) == ("TERMINATED", 2, 5)
    assert trainables.FailsTwice.steps == [1, 2, 2, 3, 3, 4, 5]


def test_a_run_in_memory_does_not_wait_for_a_job_of_the_same_process() -> None:
    study = rated(trials=1)
    assert study.ask() is not None
    assert study.run(trainables.plain) is None
    assert study.run(trainables.plain, workers=1) is None


def test_the_history_of_a_job_does_not_change(url: str) -> None:
    mine, theirs = rated(url), rated(url)
    job = asked(mine)
    before = mine.history(job)
    theirs.run(trainables.plain, jobs=4)
    mine.refresh()
    assert mine.history(job) == before == []
    assert len(mine.history()) == 4
    mine.tell(job, 1.0)
    later = asked(mine)
    assert len(mine.history(later)) == 5


def test_checkpoints_of_trials_that_were_not_promoted_are_removed(url: str) -> None:
    study = rated(url, trials=30)
    best = study.run(trainables.Counter)
    assert best is not None
    for trial in study.trials:
        kept = study.saved(trial.number) is not None
        assert kept == (trial.resource == 9)
    assert study.saved(best.number) == {"total": 9}


def test_a_copy_continues_from_the_state_of_its_donor() -> None:
    space = {"rate": Float(0.5, 1)}
    study = Study(space, Pbt(population=4, interval=2), max_resource=12, max_trials=9, searcher="random")
    donors = trainables.Donors()
    study.run(trainables.Lineage, workers=2, callbacks=[donors])
    assert donors.of
    for copy, (donor, at) in donors.of.items():
        done = sum(trainables.lineage_of(study, donor, donors)[:at])
        first = next(row for row in study.history() if row["trial"] == copy)
        assert first["resource"] == at + 1
        assert first["value"] == pytest.approx(-done - trainables.rate_of(study.trials[copy]))


@pytest.mark.parametrize("scheduler", ["asha", "hyperband", "dehb", "median", "pbt"])
def test_no_trial_is_paused_when_a_study_is_over(scheduler: str) -> None:
    study = Study({"rate": Float(0, 1)}, scheduler, max_resource=9, max_trials=7, searcher="random")
    study.run(trainables.Counter)
    assert study.is_done
    assert {trial.state for trial in study.trials} == {"TERMINATED"}


def test_a_trial_waits_for_its_resources() -> None:
    study = Study({"rate": Float(0.5, 1)}, "fifo", "random", max_resource=2, max_trials=6)
    running: set[int] = set()
    most = []

    class Watch(Callback):
        def on_start(self, job: Job) -> None:
            held.add(job.trial)

        def on_report(self, job: Job, step: int, value: float) -> None:
            running.add(job.trial)
            most.append(len(running))

        def on_result(self, job: Job, value: float) -> None:
            running.discard(job.trial)

    held: set[int] = set()
    workers = Workers(3, has={"gpu": 1}, needs={"gpu": 0.6})
    study.run(trainables.Lineage, workers=workers, callbacks=[Watch()])
    assert study.is_done
    assert held == set(range(6))
    assert max(most) == 1


def test_a_demand_beyond_the_total_is_an_error() -> None:
    with pytest.raises(OptionError, match="a trial needs gpu = 2, but only 1 is available"):
        Workers(2, has={"gpu": 1}, needs={"gpu": 2})
    with pytest.raises(OptionError, match="has gpu = -1"):
        Workers(2, has={"gpu": -1})
    study = Study({"rate": Float(0, 1)}, "fifo", "random", max_resource=2, max_trials=8)
    workers = Workers(2, has={"gpu": 1}, needs=lambda config: {"gpu": 2 if config["rate"] > 0.5 else 1})
    study.run(trainables.Counter, workers=workers)
    for trial in study.trials:
        assert trial.state == ("ERRORED" if trainables.rate_of(trial) > 0.5 else "TERMINATED")
        assert trial.error in ("", "OptionError: a trial needs gpu = 2, but only 1 is available")
    assert {str(trial.state) for trial in study.trials} == {"ERRORED", "TERMINATED"}
