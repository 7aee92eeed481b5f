"""``tune_stream``: searches flags in one process and in several, and continues after an interruption."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from onlineauto import Workspace, datasets
from onlineauto.errors import InputError, OptionError
from onlineauto.tune import Float, Study
from onlineauto.tune.live import LiveLearner, flags_of, hand_over, tune_stream
from onlineauto.tune.live.tuning import used_resource
from onlineauto.tune.schedulers.pbt import Pbt
from onlineauto.workspace.options import REGISTRY
from onlineauto.workspace.run import Run
from tests.tune.live.streams import bandits, numbers, take
from tests.tune.studies import asked

pytestmark = pytest.mark.lane("ci")


def test_tune_stream_finds_the_interaction_of_a_stream() -> None:
    events = numbers(900)
    study = tune_stream(events, seed=1)
    best = study.best
    assert best is not None
    assert best.value is not None
    assert best.resource == 900
    assert best.config["a*b"] is True
    run = Run(Workspace(configuration=REGISTRY.parse(flags_of(best.config))), events)
    run.step()
    assert best.value == pytest.approx(run.progress.sum_loss / 900, rel=1e-5)
    assert set(best.config) == {"learning_rate", "power_t", "a*a", "a*b", "a*c", "b*b", "b*c", "c*c"}


def test_the_first_trials_have_the_flags_of_the_base() -> None:
    study = tune_stream(bandits(90), {"cb_explore_adf": True, "learning_rate": 0.2}, jobs=2)
    first, second = (trial.config for trial in study.trials)
    assert first == {"learning_rate": 0.2, "power_t": 0.5, "u*Z": False, "v*Z": False, "u*v*Z": False}
    assert second == first | {"u*Z": True, "v*Z": True, "u*v*Z": True}


def test_worker_processes_give_the_result_of_one_process(tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_text("\n".join(numbers(300)))
    alone = tune_stream(path, searcher="random", scheduler="hyperband", max_trials=6)
    both = tune_stream(path, searcher="random", scheduler="hyperband", max_trials=6, workers=2)
    assert {trial.number: trial.config for trial in both.trials} == {
        trial.number: trial.config for trial in alone.trials
    }
    values = {(trial.number, *value): 0 for trial in alone.trials for value in trial.values.items()}
    assert any((trial.number, *value) in values for trial in both.trials for value in trial.values.items())


def test_a_study_continues_after_an_interruption(tmp_path: Path) -> None:
    events, url = numbers(300), f"sqlite:///{tmp_path / 'study.db'}"
    whole = tune_stream(events, max_trials=9)
    for jobs in (1, 4, None):
        study = tune_stream(events, max_trials=9, jobs=jobs, storage=url)
    assert [trial.values for trial in study.trials] == [trial.values for trial in whole.trials]
    again = Study.load("stream", storage=url)
    assert isinstance(again.saved(again.best_trial.number), bytes)


def test_a_budget_ends_a_run() -> None:
    study = tune_stream(numbers(300), budget=1500)
    assert 1500 <= used_resource(study) < 1800
    more = tune_stream(numbers(300), budget=100)
    assert used_resource(more) < 400


def test_every_scheduler_runs_live_learners() -> None:
    events = numbers(270)
    for scheduler in ("asha", "median", Pbt(population=4, interval=90), "dehb", "fifo"):
        study = tune_stream(events, scheduler=scheduler, searcher="random", max_trials=12)
        assert study.best_trial.resource >= 90


def test_members_of_a_population_go_on_from_their_donors() -> None:
    learner, scheduler = LiveLearner(numbers(300), every=100), Pbt(population=2, interval=100, share=0.5)
    study = Study({"learning_rate": Float(0.001, 1, log=True)}, scheduler, "random", max_resource=300)
    study.enqueue({"learning_rate": 0.5})
    study.enqueue({"learning_rate": 0.001})
    good, bad = asked(study), asked(study)
    taken = {job.trial: take(learner, job.config, 100) for job in (good, bad)}
    for job in (good, bad):
        [value], [details] = taken[job.trial].values, taken[job.trial].details
        decision = study.report(job, 100, value, details)
    assert decision == "STOP"
    study.tell(bad, taken[bad.trial].values[-1])
    copy = asked(study)
    assert copy.resume_from == (good.trial, 100)
    assert copy.config != good.config
    went_on = take(learner, copy.config, 300, step=100, saved=taken[good.trial].saved)
    assert went_on.steps == [200, 300]
    assert [(each["offset_from"], each["missed"]) for each in went_on.details] == [(0, "nothing")] * 2
    study.report(copy, 200, went_on.values[0], went_on.details[0])
    assert used_resource(study) == 300


def test_other_options_can_be_searched() -> None:
    study = tune_stream(bandits(90), "--cb_explore_adf", ["cb_type", "l2"], max_trials=4)
    assert {trial.config["cb_type"] for trial in study.trials} <= {"mtr", "dr", "ips"}
    assert study.trials[0].config == {"cb_type": "mtr", "l2": 1e-9}


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"search": []}, OptionError, "search names nothing"),
        ({"search": ["epsilon"]}, OptionError, "'epsilon' cannot be searched; these can: learning_rate"),
        ({"min_examples": 200}, OptionError, "min_resource = 200, max_resource = 90"),
        ({"budget": 0}, OptionError, "budget = 0"),
        ({"base": "--passes 2"}, OptionError, "a trial reads its stream once"),
        ({"events": "there-is-no-such-file.txt"}, InputError, "there-is-no-such-file"),
    ],
)
def test_invalid_values_are_rejected(given: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        tune_stream(**{"events": numbers(90), **given})  # type: ignore[arg-type]


SEARCHES = ["live_configs", "lease", "members", "explorer"]


@pytest.mark.parametrize(
    ("scheduler", "searcher"), [("hyperband", "tpe"), ("dehb", "random"), ("fifo", "tpe")]
)
def test_trials_may_be_searches(scheduler: str, searcher: str) -> None:
    data, base = datasets.path("cb-penbased-u"), "--cb_explore_adf --automl 2 --squarecb"
    study = tune_stream(
        data, base, SEARCHES, scheduler=scheduler, searcher=searcher, max_examples=540, max_trials=8
    )
    first, best = study.trials[0], study.best
    assert first.config["automl"] == 2
    assert first.config["explorer"] == "squarecb"
    assert first.config["default_lease"] == 2000
    assert not any(trial.error for trial in study.trials)
    assert len({trial.config["automl"] for trial in study.trials}) > 2
    assert best is not None
    assert best.value is not None
    assert best.resource == 540
    search = Workspace(configuration=REGISTRY.parse(flags_of(best.config, base)))
    run = Run(search, LiveLearner(data, base, most=540).events.blocks)
    run.step()
    assert best.value == pytest.approx(run.progress.sum_loss / 540, rel=1e-4)


def test_searches_run_in_worker_processes_and_are_handed_over(tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_text("\n".join(numbers(300)))
    study = tune_stream(path, "--automl 2", max_trials=6, workers=2, storage=f"sqlite:///{tmp_path / 's.db'}")
    assert set(study.trials[0].config) == {"automl", "default_lease", "learning_rate"}
    assert not any(trial.error for trial in study.trials)
    assert hand_over(study, Workspace(live_configs=2).fit(path)) == 1


@pytest.mark.parametrize(
    ("search", "more", "message"),
    [
        (["interactions"], {}, "--automl exclude each other"),
        (["passes"], {}, r"'passes' cannot be searched; .*; and of a search \(--automl\): automl, default_"),
        (["lease", "members"], {"scheduler": "pbt"}, "pbt copies weights between trials"),
    ],
)
def test_searches_that_contradict_are_rejected(search: list[str], more: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        tune_stream(numbers(90), "--automl 2", search, **more)
