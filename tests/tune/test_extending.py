"""Studies that get more trials or a larger resource, and configs that are enqueued after the end."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from onlineauto.cli.main import main
from onlineauto.errors import OptionError
from onlineauto.tune import SCHEDULERS, Categorical, Float, Int, State, Study
from onlineauto.tune.schedulers.asha import Asha
from onlineauto.tune.schedulers.dehb import Dehb
from onlineauto.tune.schedulers.fifo import FifoScheduler
from onlineauto.tune.schedulers.pbt import Pbt
from onlineauto.tune.store import MemoryStore, open_store
from onlineauto.tune.trial import Job
from tests.tune.studies import state_of

pytestmark = pytest.mark.lane("sampled")

SPACE = {"x": Float(0, 1)}


def value(config: Any, resource: int) -> float:
    return float(config["x"]) + 1 / resource


@pytest.mark.parametrize("scheduler", ["hyperband", "race", "dehb", "asha", "median", "fifo"])
def test_a_script_with_more_trials_extends_its_study(scheduler: str, url: str) -> None:
    arguments: dict[str, Any] = {"storage": url, "max_resource": 9}
    Study(SPACE, scheduler, max_trials=5, **arguments).run(value)
    other = Study.load("study", storage=url)
    study = Study(SPACE, scheduler, max_trials=12, **arguments)
    study.run(value)
    assert len(study.trials) == 12
    assert study.is_done
    assert study.skipped == []
    other.refresh()
    again = Study.load("study", storage=url)
    assert state_of(study) == state_of(other) == state_of(again)
    assert again.settings.max_trials == 12
    assert {trial.state for trial in again.trials} <= {State.TERMINATED, State.PAUSED}


def test_a_study_may_only_grow(url: str) -> None:
    study = Study(SPACE, storage=url, max_trials=5, max_resource=27)
    store = open_store(url, "study")
    for smaller in ({"max_trials": 4}, {"max_resource": 9}):
        with pytest.raises(OptionError, match="these limits may only grow"):
            study.extend(**smaller)
    with pytest.raises(OptionError, match="with max_resource = 27, not 81"):
        Study(SPACE, storage=url, max_trials=5)
    with pytest.raises(OptionError, match="with max_trials = 5, not None"):
        Study(SPACE, storage=url, max_resource=27)
    study.extend(max_trials=5)
    assert len(store.load()) == 1


@pytest.mark.parametrize("scheduler", ["hyperband", "race", "asha", "median", "fifo"])
def test_the_largest_resource_may_grow(scheduler: str, url: str) -> None:
    study = Study(SPACE, scheduler, storage=url, max_trials=9, max_resource=9)
    study.run(value)
    study.extend(max_trials=60, max_resource=27)
    best = study.run(value)
    assert best is not None
    assert best.resource == 27
    assert study.skipped == []
    again = Study.load("study", storage=url)
    assert [trial.values for trial in again.trials] == [trial.values for trial in study.trials]
    assert again.settings.setting.max_resource == 27
    assert again.rounds == study.rounds


def test_a_snapshot_keeps_the_limits() -> None:
    store = MemoryStore()
    study = Study(SPACE, "hyperband", storage=store, max_trials=9, max_resource=9)
    study.run(value)
    study.extend(max_trials=500, max_resource=27)
    study.run(value)
    assert store.snapshot() is not None
    again = Study.load("study", storage=store)
    assert state_of(again) == state_of(study)


@pytest.mark.parametrize("scheduler", ["dehb"])
def test_dehb_rejects_another_maximum_resource(scheduler: str) -> None:
    study = Study(SPACE, scheduler, max_trials=5, max_resource=9)
    with pytest.raises(OptionError, match=f"scheduler '{scheduler}' keeps the 9 that it began with"):
        study.extend(max_resource=27)
    study.extend(max_trials=6)
    assert study.settings.max_trials == 6


def test_a_run_of_a_study_that_is_done_is_explained(url: str, caplog: pytest.LogCaptureFixture) -> None:
    Study(SPACE, "fifo", storage=url, max_trials=5).run(value)
    study = Study.load("study", storage=url)
    with caplog.at_level(logging.WARNING):
        study.run(value, jobs=5)
    assert "the study 'study' is done, and runs no job: it has had 5 trials of 5" in caplog.text
    with pytest.raises(OptionError, match=r"has max_trials = 5, and is done: Study.extend\(max_trials=…\)"):
        study.enqueue({"x": 0.5})
    study.extend(max_trials=6)
    study.enqueue({"x": 0.5})
    study.run(value)
    assert study.trials[5].config == {"x": 0.5}


def test_added_trials_are_no_jobs_of_a_run(caplog: pytest.LogCaptureFixture) -> None:
    study = Study(SPACE, "fifo", max_trials=1)
    study.add_trials([{"value": 0.5, "params_x": 0.5}])
    study.run(value)
    assert "runs no job" not in caplog.text
    study.run(value)
    assert "the study 'study' is done, and runs no job: it has had 1 trials of 1" in caplog.text


@pytest.mark.parametrize("scheduler", ["hyperband", "fifo", "asha"])
def test_a_config_that_is_enqueued_after_the_end_is_tried(scheduler: str, url: str) -> None:
    space = {"n": Int(0, 1), "word": Categorical(["a", "b"])}
    study = Study(space, scheduler, "grid", storage=url, max_resource=9)
    while (job := study.ask()) is not None:
        study.tell(job, 1.0)
    assert study.is_done
    study.enqueue({"n": 1, "word": "a"})
    assert not study.is_done
    while (job := study.ask()) is not None:
        study.tell(job, 1.0)
    assert study.is_done
    assert study.trials[-1].config == {"n": 1, "word": "a"}
    assert len(study.trials) == 5
    assert [trial.config for trial in Study.load("study", storage=url).trials][4] == {"n": 1, "word": "a"}


@pytest.mark.parametrize("scheduler", ["hyperband", "race", "asha", "median", "pbt", "fifo"])
def test_a_larger_resource_alone_is_rejected_once_a_study_is_done(scheduler: str, url: str) -> None:
    """No trial would get more resource, so nothing would run."""
    study = Study(SPACE, scheduler, storage=url, max_trials=9, max_resource=9)
    study.run(value)
    store = open_store(url, "study")
    written = len(store.load())
    with pytest.raises(
        OptionError, match="is done, and has no job with max_trials = 9 and max_resource = 27"
    ):
        study.extend(max_resource=27)
    with pytest.raises(OptionError, match="trials that have ended are given no more"):
        Study(SPACE, scheduler, storage=url, max_trials=9, max_resource=27)
    assert (len(store.load()), study.is_done) == (written, True)
    if scheduler != "pbt":  # whose population is complete
        study.extend(max_trials=10, max_resource=27)
        assert study.ask() is not None


def test_more_trials_than_a_scheduler_or_a_searcher_has_are_rejected(url: str) -> None:
    space = {"n": Int(0, 1)}
    study = Study(space, "fifo", "grid", storage=url, max_resource=3, max_trials=2)
    study.run(value_of_n)
    with pytest.raises(OptionError, match="is done, and has no job"):
        study.extend(max_trials=4)


def value_of_n(config: Any) -> float:
    return float(config["n"])


@pytest.mark.parametrize(
    "scheduler", ["hyperband", "race", "dehb", "asha", "median", "fifo", Pbt(population=2)]
)
@pytest.mark.parametrize("is_done", [True, False])
def test_every_config_that_is_enqueued_after_the_last_trial_began_is_tried(
    scheduler: Any, is_done: bool, url: str
) -> None:
    """This includes PBT, and configs that are enqueued while the last trials are running."""
    study = Study({"n": Int(0, 1)}, scheduler, "grid", storage=url, max_resource=9)
    jobs = all_jobs(study)
    while is_done and jobs:
        tell_all(study, jobs)
        jobs = all_jobs(study)
    assert study.is_done == is_done
    for n in (1, 0):
        study.enqueue({"n": n})
    while jobs := [*jobs, *all_jobs(study)]:
        tell_all(study, jobs)
        jobs = []
    assert study.is_done
    assert [trial.config["n"] for trial in study.trials][-2:] == [1, 0]
    assert len(study.trials) == 4
    again = Study.load("study", storage=url)
    assert again.skipped == []
    assert [(trial.config, trial.state) for trial in again.trials] == [
        (trial.config, trial.state) for trial in study.trials
    ]


def all_jobs(study: Study) -> list[Job]:
    jobs = []
    while (job := study.ask()) is not None:
        jobs.append(job)
    return jobs


def tell_all(study: Study, jobs: list[Job]) -> None:
    for job in jobs:
        study.tell(job, 1.0)


class Closed(FifoScheduler):
    """Begins no trial after its end, even if it is extended."""

    name = "closed"

    def extend(self, setting: Any) -> None:
        self.setting = setting


def test_a_scheduler_that_accepts_no_more_configs_is_named() -> None:
    study = Study({"n": Int(0, 1)}, Closed(), "grid")
    study.run(value_of_n)
    with pytest.raises(OptionError, match="is done, and its scheduler 'closed' takes no more"):
        study.enqueue({"n": 1})


def test_a_config_beyond_the_limit_of_trials_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    study = Study(SPACE, "fifo", max_trials=1)
    assert study.ask() is not None
    study.enqueue({"x": 0.5})
    assert "the config that was enqueued is tried only if it is extended" in caplog.text


def test_a_command_with_more_trials_extends_its_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "extended_in_a_test.py").write_text("def f(config, resource):\n    return config['x']\n")
    (tmp_path / "s.toml").write_text("x = {type = 'float', low = 0, high = 1}\n")
    words = ["tune", "--trainable", "extended_in_a_test:f", "--space", "s.toml", "--study", "sqlite:///s.db"]
    for most in ("3", "7"):
        assert main([*words, "--scheduler", "fifo", "--max_resource", "3", "--max_trials", most]) == 0
    assert main(["tune", "--study", "sqlite:///s.db", "--max_trials", "8"]) == 0
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines() if "best of" in line] == [
        f"best of {most} trials" for most in (3, 7, 8)
    ]


@pytest.mark.parametrize("wrong", ["9", 8.5, True, float("nan"), 0, 10**30])
@pytest.mark.parametrize("what", ["max_trials", "max_resource"])
def test_extend_rejects_invalid_counts(what: str, wrong: Any) -> None:
    study = Study({"x": Float(0, 1)}, "fifo", max_trials=4, max_resource=3)
    with pytest.raises(OptionError, match=f"{what} = .* whole number"):
        study.extend(**{what: wrong})
    assert study.settings.max_trials == 4


@pytest.mark.parametrize("scheduler", [*SCHEDULERS, Pbt(3, interval=2), Dehb("slots"), Asha("stopping")])
def test_a_study_that_grows_at_random_has_one_state_in_all_processes(scheduler: Any) -> None:
    for seed in range(8):
        draw, store = Random(seed), MemoryStore()
        most = draw.choice([None, 1, 5, 12])
        searcher = "grid" if most is None else None
        study = Study(SPACE_OF_WORDS, scheduler, searcher, storage=store, max_resource=9, max_trials=most)
        other = Study.load("study", storage=store)
        jobs: list[tuple[Study, Job]] = []
        for _ in range(120):
            mine, chance = draw.choice([study, other]), draw.random()
            if chance < 0.1:
                with suppress(OptionError):
                    if chance < 0.05:
                        mine.enqueue(mine.space.decode([draw.random() for _ in range(mine.space.width)]))
                    else:
                        mine.extend(max_trials=(most or 0) + draw.randrange(30))
            elif chance < 0.6 and len(jobs) < 3:
                job = mine.ask()
                assert job or jobs or mine.is_done, seed
                jobs += [(mine, job)] if job else []
            elif jobs:
                end(draw, *jobs.pop(draw.randrange(len(jobs))))
        for each in jobs:
            end(draw, *each)
        while (job := other.ask()) is not None and len(other.trials) < 60:
            end(draw, other, job)
        study.refresh()
        again = Study.load("study", storage=store)
        assert state_of(study) == state_of(other) == state_of(again), seed
        assert again.skipped == [], seed
        if job is None:
            assert study.is_done, seed
            begun = [trial for trial in study.trials if trial.attempt >= 0]
            assert {trial.state for trial in begun} <= {State.TERMINATED, State.ERRORED}, seed


SPACE_OF_WORDS = {"n": Int(0, 3), "word": Categorical(["a", "b"])}


def end(draw: Random, study: Study, job: Job) -> None:
    """End a job in one of the ways in which it may end."""
    chance = draw.random()
    if chance < 0.1:
        study.fail(job, "bad luck")
    elif chance < 0.2:
        study.release(job)
    else:
        for step in range(job.step + 1, job.resource):
            if study.report(job, step, draw.random()) == "STOP":
                break
        study.tell(job, draw.random())
