"""Trials see the history at their start: in objectives, trainables and, as an option, in pruning."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from onlineauto.errors import OptionError
from onlineauto.tune import ActiveTrial, Decision, Float, Job, Study, create_study
from onlineauto.tune.schedulers.asha import Asha
from onlineauto.tune.schedulers.median import Median
from onlineauto.tune.schedulers.pruning import Pruning
from onlineauto.tune.schedulers.scheduler import Scheduler
from onlineauto.tune.store import MemoryStore
from tests.tune.studies import asked, state_of

pytestmark = pytest.mark.lane("quick")

SPACE = {"rate": Float(0, 1)}


def test_the_history_of_an_objective_stays_as_it_was_at_its_start() -> None:
    study = create_study(seed=1)
    seen: list[list[Any]] = []

    def objective(trial: ActiveTrial) -> float:
        before = trial.history()
        x = trial.suggest_float("x", 0, 1)
        trial.report(x, 0)
        if trial.number == 2:  # another trial ends while this one runs
            job = asked(study)
            study.tell(job, 7.0)
            assert 7.0 in [row["value"] for row in study.history()]
        assert trial.history() == before
        seen.append([row["value"] for row in before if row["told"]])
        return float(trial.number)

    study.optimize(objective, n_trials=4)
    assert seen == [[], [0.0], [0.0, 1.0], [0.0, 1.0, 7.0, 2.0]]


def test_the_history_of_a_trial_that_was_asked_for_stays_as_it_was() -> None:
    study = create_study()
    first, second = study.ask(), study.ask()
    study.tell(second, second.suggest_float("x", 0, 1))
    assert first.history() == []
    assert [row["trial"] for row in study.ask().history()] == [1]


def first_rows(config: Any, resource: int, report: Any) -> float:
    """Return the number of values in the history; wait for others in between."""
    number = len(report.history)
    report(number)
    time.sleep(0.1)
    assert len(report.history) == number
    assert all(row["told"] in (True, False) and "config_rate" in row for row in report.history)
    return float(number)


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.lane("ci"))])
def test_a_trainable_reads_the_history_of_its_start(workers: int, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    study = Study(SPACE, "fifo", max_resource=2, max_trials=5, storage=url)
    study.run(first_rows, workers=workers)
    jobs = [record for record in study._replica.records() if record["kind"] == "asked"]
    assert len(jobs) == 5
    for trial in study.trials:
        version = next(
            index
            for index, record in enumerate(study._replica.records())
            if record["kind"] == "asked" and record["trial"] == trial.number
        )
        job = Job(trial.number, trial.config, 2, version=version)
        assert trial.value == len(study.history(job))
    assert {trial.error for trial in study.trials} == {""}


def play(scheduler: Scheduler, *, ends: bool) -> tuple[list[Decision], Study]:
    """Return the decisions on the reports of one trial; others end in between or before its start."""
    study = Study(SPACE, scheduler, max_resource=9, max_trials=20, seed=2, storage=MemoryStore())
    for _ in range(3):
        run_one(study, 0.5)
    job = asked(study)
    decisions = []
    for step in range(1, 9):
        for _ in range(2 if ends and step > 1 else 0):
            run_one(study, 0.01)
        decisions.append(study.report(job, step, 0.4))
    return decisions, study


def run_one(study: Study, value: float) -> None:
    job = asked(study)
    for step in range(1, 9):
        if study.report(job, step, value) is Decision.STOP:
            break
    study.tell(job, value)


@pytest.mark.parametrize("history", ["now", "start"])
@pytest.mark.parametrize("kind", ["median", "asha", "percentile", "halving"])
def test_a_pruner_that_sees_the_start_ignores_trials_that_end_later(kind: str, history: str) -> None:
    def scheduler() -> Scheduler:
        if kind == "median":
            return Median(grace_population=2, history=history)
        if kind == "asha":
            return Asha("stopping", history=history)
        options = {"n_startup_trials": 1} if kind == "percentile" else {"min_resource": 1}
        return Pruning(kind, history=history, **options)

    alone, _ = play(scheduler(), ends=False)
    crowded, study = play(scheduler(), ends=True)
    assert (alone == crowded) is (history == "start")
    assert Decision.STOP not in alone
    again = Study.load("study", storage=study._replica.store)
    assert state_of(again) == state_of(study)
    restored = study.settings.progress()
    restored.load_state_dict(state_of(study))
    assert json.loads(json.dumps(restored.state_dict())) == state_of(study)
    assert bool(restored._starts) is (history == "start")


def test_a_pruner_that_sees_the_start_still_stops_trials() -> None:
    study = Study(SPACE, Median(grace_population=2, history="start"), max_resource=9, max_trials=20)
    for _ in range(3):
        run_one(study, 0.5)
    job = asked(study)
    assert study.report(job, 1, 0.6) is Decision.STOP
    study.tell(job, 0.6)
    assert not study._replica.progress._starts
    assert study._replica.settings.described()["scheduler"]["options"]["history"] == "start"


def test_options_of_the_history_are_checked() -> None:
    with pytest.raises(OptionError, match="history = 'end': valid are now, start"):
        Median(history="end")
    with pytest.raises(OptionError, match="needs variant = 'stopping'"):
        Asha(history="start")
    assert "history" not in Median().options
