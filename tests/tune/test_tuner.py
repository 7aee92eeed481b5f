"""`Tuner`: functions and classes of Ray Tune."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from datetime import timedelta
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onlineauto.errors import OptionError
from onlineauto.tune import Study, Timeout
from onlineauto.tune import tuner as tune


def train(config: Mapping[str, Any]) -> None:
    start = tune.saved() or {"loss": 1.0, "step": 0}
    loss = start["loss"]
    for step in range(start["step"], 9):
        loss += config["rate"] * (config["depth"] / 10 - loss)
        tune.report({"loss": loss, "twice": 2 * loss}, save={"loss": loss, "step": step + 1})


class Falling(tune.Trainable):
    steps = 0

    def setup(self, config: Mapping[str, Any]) -> None:
        self.rate, self.loss = config["rate"], 1.0

    def step(self) -> Any:
        type(self).steps += 1
        self.loss *= 1 - self.rate
        return {"loss": self.loss}

    def save(self) -> float:
        return self.loss

    def load(self, saved: float) -> None:
        self.loss = saved


SPACE = {"rate": tune.loguniform(0.01, 0.9), "depth": tune.randint(1, 4)}


def config(**more: Any) -> tune.TuneConfig:
    given: dict[str, Any] = {"metric": "loss", "mode": "min", "num_samples": 9, "max_concurrent_trials": 1}
    return tune.TuneConfig(**given | more)


@pytest.mark.parametrize(
    ("scheduler", "workers"),
    [
        (tune.FIFOScheduler(), 1),
        (tune.ASHAScheduler(max_t=9), None),
        (tune.HyperBandScheduler(max_t=9), 2),
        (tune.MedianStoppingRule(grace_period=2), None),
    ],
)
def test_trials_are_run_and_tabled(scheduler: Any, workers: int | None) -> None:
    settings = config(scheduler=scheduler, max_concurrent_trials=workers)
    results = tune.Tuner(train, param_space=SPACE | {"more": [1]}, tune_config=settings).fit()
    assert len(results) == 9
    assert results.errors == []
    best = results.get_best_result()
    assert max(result.metrics["training_iteration"] for result in results) == 9
    assert best.metrics["loss"] == min(result.metrics["loss"] for result in results)
    assert best.metrics["twice"] == 2 * best.metrics["loss"]
    assert set(best.config) == {"rate", "depth", "more"}
    assert {result.config["depth"] for result in results} <= {1, 2, 3}


def test_the_table_is_a_frame() -> None:
    pytest.importorskip("pandas")
    frame = tune.Tuner(train, param_space=SPACE, tune_config=config()).fit().get_dataframe()
    columns = {"loss", "twice", "training_iteration", "trial_id", "config/rate", "config/depth"}
    assert set(frame.columns) == columns
    assert len(frame) == 9


def test_a_class_reports_metrics_and_resumes_from_its_checkpoint() -> None:
    Falling.steps = 0
    scheduler = tune.HyperBandScheduler(max_t=9)
    results = tune.Tuner(
        Falling, param_space={"rate": tune.uniform(0, 1)}, tune_config=config(scheduler=scheduler)
    ).fit()
    reached = {result.trial: result.metrics["training_iteration"] for result in results}
    assert Falling.steps == sum(reached.values())


def test_a_function_may_return_its_metrics_and_fail() -> None:
    def returns(config: Mapping[str, Any]) -> dict[str, float]:
        if config["depth"] == 2:
            raise ValueError("two")
        return {"loss": config["rate"]}

    results = tune.Tuner(returns, param_space=SPACE, tune_config=config(mode="max")).fit()
    assert results.errors
    assert {str(error) for error in results.errors} == {"two"}
    assert all(
        isinstance(error, ValueError) and isinstance(error, tune.TrialError) for error in results.errors
    )
    assert "in returns" in results.errors[0].traceback
    assert results.get_best_result().metrics["loss"] == max(
        result.metrics["loss"] for result in results if not result.error
    )
    none = tune.Tuner(returns, param_space={"depth": 2, "rate": SPACE["rate"]}, tune_config=config()).fit()
    with pytest.raises(OptionError, match="no trial of the study 'study' has a value; 9 failed"):
        none.get_best_result()


def test_a_run_in_a_folder_is_continued(tmp_path: Path) -> None:
    run = tune.RunConfig(name="rates", storage_path=str(tmp_path / "runs"), stop={"training_iteration": 4})
    first = tune.Tuner(train, param_space=SPACE, tune_config=config(), run_config=run).fit()
    more = config(num_samples=12)
    second = tune.Tuner(train, param_space=SPACE, tune_config=more, run_config=run).fit()
    assert (tmp_path / "runs" / "rates.db").is_file()
    assert len(second) == 12
    assert list(second)[:9] == list(first)
    assert all(each.metrics["training_iteration"] == 4 for each in second)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"tune_config": config(metric=None, mode=None, scheduler=tune.ASHAScheduler())},
            r"metric = None, mode = None: give TuneConfig\(metric=",
        ),
        ({"tune_config": config(executor="threads")}, "executor = 'threads': valid are processes, ray"),
        ({"trainable": tune.with_resources(train, {"gpu": 1})}, "gpu needs TuneConfig"),
        (
            {"param_space": {"a": tune.grid_search([1, 2])}, "tune_config": config(search_alg="tpe")},
            "search_alg = 'tpe': grid_search needs random",
        ),
        ({"tune_config": config(scheduler=3)}, "scheduler = 3: give one of this module"),
        (
            {"tune_config": config(scheduler=tune.ASHAScheduler(metric="acc", mode="max"))},
            r"TuneConfig\(metric='loss'\), but the scheduler has 'acc': give one",
        ),
        (
            {"tune_config": config(scheduler=tune.FIFOScheduler(metric="loss", mode="max"))},
            r"TuneConfig\(mode='min'\), but the scheduler has 'max': give one",
        ),
        ({"run_config": tune.RunConfig(stop={"loss": 1})}, "stop = {'loss': 1}: valid is training_iteration"),
        ({"trainable": Falling}, "no limit on steps"),
        ({"param_space": 3}, "param_space is"),
        ({"param_space": {"a": {"b": tune.uniform(0, 1)}}}, r"param_space\['a'\] is a mapping"),
        ({"param_space": {}}, "the space has no parameters"),
    ],
)
def test_invalid_arguments_are_rejected(arguments: dict[str, Any], message: str) -> None:
    usual: dict[str, Any] = {"trainable": train, "param_space": SPACE, "tune_config": config()}
    with pytest.raises(OptionError, match=message):
        tune.Tuner(**usual | arguments)


def test_the_metric_must_be_reported() -> None:
    def other(config: Mapping[str, Any]) -> dict[str, float]:
        return {"acc": config["rate"]}

    results = tune.Tuner(other, param_space=SPACE, tune_config=config(num_samples=1)).fit()
    assert str(results.errors[0]).endswith("}): give a dict with the metric 'loss'")
    with pytest.raises(OptionError, match="no trial is running"):
        tune.report({"loss": 1})


OF_TRIALS = {"metric": "twice", "mode": "max", "time_attr": "epoch"}
ASHA = {
    **OF_TRIALS,
    "max_t": 0,
    "grace_period": 0,
    "reduction_factor": 1,
    "brackets": 2,
    "stop_last_trials": False,
}
RAY: dict[str, dict[str, Any]] = {
    "TuneConfig": {
        "mode": "max",
        "metric": "twice",
        "search_alg": object(),
        "scheduler": object(),
        "num_samples": 0,
        "max_concurrent_trials": -1,
        "time_budget_s": "1h",
        "reuse_actors": True,
        "trial_name_creator": str,
        "trial_dirname_creator": str,
        "chdir_to_trial_dir": False,
    },
    "RunConfig": {
        "name": 3,
        "storage_path": 3,
        "storage_filesystem": object(),
        "failure_config": object(),
        "checkpoint_config": object(),
        "sync_config": object(),
        "stop": str,
        "callbacks": [object()],
        "progress_reporter": object(),
        "log_to_file": True,
    },
    "FIFOScheduler": {},
    "ASHAScheduler": ASHA,
    "AsyncHyperBandScheduler": {**ASHA, "max_t": "x", "grace_period": 0.5},
    "HyperBandScheduler": {
        **OF_TRIALS,
        "max_t": 0.5,
        "reduction_factor": 2.5,
        "stop_last_trials": False,
    },
    "MedianStoppingRule": {
        **OF_TRIALS,
        "grace_period": 0.5,
        "min_samples_required": "x",
        "min_time_slice": 3,
        "hard_stop": False,
    },
}
"""The arguments in Ray's documentation, each with a value that is not valid or not supported here."""


@pytest.mark.parametrize(("owner", "argument"), [(name, each) for name in RAY for each in RAY[name]])
def test_each_argument_of_ray_is_honoured_or_refused_before_the_run(owner: str, argument: str) -> None:
    def returns(config: Any) -> dict[str, float]:
        return {"twice": config["rate"]}

    def tuner() -> tune.Tuner:
        usual: dict[str, Any] = {
            "metric": "loss",
            "mode": "min",
            "num_samples": 2,
            "max_concurrent_trials": 1,
        }
        usual.pop(argument, None)
        given = {argument: RAY[owner][argument]}
        if owner == "TuneConfig":
            return tune.Tuner(returns, param_space=SPACE, tune_config=tune.TuneConfig(**usual | given))
        made = getattr(tune, owner)(**given)
        how = {"run_config": made} if owner == "RunConfig" else {}
        settings = tune.TuneConfig(**usual, **({} if how else {"scheduler": made}))
        return tune.Tuner(returns, param_space=SPACE, tune_config=settings, **how)

    if argument == "metric":
        assert tuner().fit().errors == []
    elif argument == "mode":
        assert tuner().study.settings.mode == "max"
    else:
        with pytest.raises((OptionError, TypeError), match=argument.replace("search_alg", "searcher")):
            tuner()


def test_an_endless_run_is_rejected_with_the_names_of_ray() -> None:
    endless = tune.Tuner(train, param_space=SPACE, tune_config=config(num_samples=-1))
    with pytest.raises(OptionError, match="a Tuner takes num_samples above 0, or time_budget_s"):
        endless.fit()


def test_schedulers_have_the_arguments_that_they_were_given() -> None:
    def settings(scheduler: Any, **more: Any) -> Any:
        tuned = config(scheduler=scheduler, **more)
        return tune.Tuner(train, param_space=SPACE, tune_config=tuned).study.settings

    asha = settings(tune.ASHAScheduler(max_t=27, grace_period=2, reduction_factor=5))
    assert (asha.scheduler[:2], asha.setting.max_resource) == (("asha", {"variant": "stopping"}), 27)
    assert (asha.setting.min_resource, asha.setting.eta) == (2, 5)
    median = settings(tune.MedianStoppingRule(grace_period=4, min_samples_required=7))
    assert (median.scheduler[1]["grace_population"], median.setting.min_resource) == (7, 4)
    assert settings(None).scheduler[0] == "fifo"
    assert settings(None, num_samples=-1).max_trials is None
    run = tune.RunConfig(stop={"training_iteration": 4})  # the trial ends at the first limit
    both = tune.Tuner(
        train, param_space=SPACE, tune_config=config(scheduler=tune.ASHAScheduler()), run_config=run
    )
    assert both.study.settings.setting.max_resource == 4


def test_a_time_budget_begins_with_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(Timeout.__init__, "__kwdefaults__", {"clock": lambda: now})

    def slow(config: Mapping[str, Any]) -> dict[str, float]:
        nonlocal now
        now += 40
        return {"loss": config["rate"]}

    budget = config(num_samples=-1, time_budget_s=timedelta(minutes=1))
    tuner = tune.Tuner(slow, param_space=SPACE, tune_config=budget)
    now = 1000.0
    assert len(tuner.fit()) == 2


def test_results_are_compared_by_any_metric_and_scope() -> None:
    def up_and_down(config: Mapping[str, Any]) -> None:
        for step in range(4):
            away = abs(step - config["depth"])
            tune.report({"loss": away + config["rate"], "accuracy": -away, "curve": np.ones(2), "odd": nan})

    results = tune.Tuner(up_and_down, param_space=SPACE, tune_config=config()).fit()
    assert results.get_best_result().metrics["loss"] == min(result.metrics["loss"] for result in results)
    assert results.get_best_result(metric="loss", mode="min") == results.get_best_result()
    best = results.get_best_result("accuracy", "max")
    assert best.metrics["accuracy"] == max(result.metrics["accuracy"] for result in results)
    rows: dict[int, list[float]] = {}
    for row in results.study.history():
        if not row["told"] or row["resource"] == 4:
            rows.setdefault(row["trial"], []).append(row["loss"])
    for scope, value_of in (
        ("all", min),
        ("avg", lambda values: sum(values) / len(values)),
        ("last-5-avg", lambda values: sum(values) / len(values)),
    ):
        expected = min(rows, key=lambda trial: value_of(rows[trial]))
        assert results.get_best_result(scope=scope).trial == expected
    assert best.metrics["curve"] == [1, 1]
    frame = results.get_dataframe(filter_metric="accuracy", filter_mode="max")
    assert list(frame["accuracy"]) == [0] * len(results)
    assert list(frame["training_iteration"]) == [result.config["depth"] + 1 for result in results]
    for wrong, arguments in {
        "metric = 'acc': no trial has reported it, but accuracy, curve, loss": {"metric": "acc"},
        "mode = 'best': valid are min and max": {"mode": "best"},
        "scope = 'first': valid are all, last": {"scope": "first"},
        "filter_nan_and_inf": {"filter_nan_and_inf": False},
        "metric = 'odd'": {"metric": "odd"},
    }.items():
        with pytest.raises(OptionError, match=wrong):
            results.get_best_result(**arguments)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="filter_metric = 'acc'"):
        results.get_dataframe("acc")
    with pytest.raises(OptionError, match="filter_mode = 'max': give filter_metric"):
        results.get_dataframe(filter_mode="max")


def test_metric_is_optional_and_trials_run_in_processes() -> None:
    pytest.importorskip("cloudpickle")
    parent = os.getpid()

    def trainable(config: Mapping[str, Any]) -> int:
        time.sleep(0.05)
        return os.getpid()

    settings = tune.TuneConfig(num_samples=10, max_concurrent_trials=2)
    results = tune.Tuner(trainable, param_space={"x": tune.uniform(0, 1)}, tune_config=settings).fit()
    processes = {result.metrics["_metric"] for result in results}
    assert (len(results), len(processes), parent in processes) == (10, 2, False)
    assert results.get_best_result(mode="min").metrics["_metric"] == min(processes)
    with pytest.raises(OptionError, match="mode = None: valid are min and max"):
        results.get_best_result()


def test_several_metrics_without_a_choice_are_compared_by_name() -> None:
    def both(config: Mapping[str, Any]) -> dict[str, Any]:
        return {"text": "a", "loss": config["rate"], "gain": -config["rate"]}

    settings = tune.TuneConfig(num_samples=4, max_concurrent_trials=1)
    results = tune.Tuner(both, param_space=SPACE, tune_config=settings).fit()
    assert results.study.settings.searcher[0] == "random"
    assert results.get_best_result("loss", "min") == results.get_best_result("gain", "max")
    with pytest.raises(OptionError, match="metric = None: trials have reported several metrics"):
        results.get_best_result(mode="min")


def test_a_function_that_cannot_be_sent_runs_here_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    lock = threading.Lock()

    def locked(config: Mapping[str, Any]) -> float:
        with lock:
            return float(config["rate"])

    results = tune.Tuner(locked, param_space=SPACE, tune_config=tune.TuneConfig(num_samples=3)).fit()
    assert results.errors == []
    assert "trials run one by one, since" in caplog.text


def test_grids_are_tried_completely_beside_random_parameters(tmp_path: Path) -> None:
    run = tune.RunConfig(storage_path=tmp_path, name="grid")
    space = {"a": tune.grid_search([1, 2, 3]), "b": tune.grid_search(["x", "y"]), "c": tune.uniform(0, 1)}
    results = tune.Tuner(
        lambda config: config["c"],
        param_space=space,
        tune_config=config(num_samples=2, metric="_metric"),
        run_config=run,
    ).fit()
    pairs = sorted((result.config["a"], result.config["b"]) for result in results)
    assert pairs == sorted([(a, b) for a in (1, 2, 3) for b in "xy"] * 2)
    assert len({result.config["c"] for result in results}) == 12
    assert len(Study.load("grid", storage=f"sqlite:///{tmp_path / 'grid.db'}").trials) == 12


def test_failures_are_repeated() -> None:
    tries: dict[float, int] = {}

    def fails_twice(config: Mapping[str, Any]) -> dict[str, float]:
        tries[config["rate"]] = tries.get(config["rate"], 0) + 1
        if tries[config["rate"]] < 3:
            raise OSError("lost")
        return {"loss": config["rate"]}

    def fit(**failure: Any) -> tune.ResultGrid:
        tries.clear()
        run = tune.RunConfig(failure_config=tune.FailureConfig(**failure))
        return tune.Tuner(fails_twice, param_space=SPACE, tune_config=config(), run_config=run).fit()

    assert [len(fit(max_failures=number).errors) for number in (2, -1, 1)] == [0, 0, 9]
    assert isinstance(fit().errors[0], OSError)


def test_checkpoints_are_as_rare_as_requested() -> None:
    def steps(frequency: int) -> int:
        saved = []

        class Saving(Falling):
            def save(self) -> float:
                saved.append(1)
                return self.loss

        saving = tune.CheckpointConfig(checkpoint_frequency=frequency)
        run = tune.RunConfig(stop={"training_iteration": 9}, checkpoint_config=saving)
        space = {"rate": tune.uniform(0, 1)}
        tune.Tuner(Saving, param_space=space, tune_config=config(num_samples=1), run_config=run).fit()
        return len(saved)

    assert (steps(1), steps(3), steps(0)) == (9, 3, 9)


@pytest.mark.ray
def test_executor_ray_runs_trials_in_actors() -> None:
    settings = config(executor="ray", max_concurrent_trials=2, num_samples=4, metric="pid")
    needs = tune.with_resources(lambda config: {"pid": os.getpid() + 0 * config["rate"]}, {"cpu": 1})
    results = tune.Tuner(needs, param_space=SPACE, tune_config=settings).fit()
    assert len(results) == 4
    assert results.errors == []
    assert os.getpid() not in {result.metrics["pid"] for result in results}
    default = tune.TuneConfig(executor="ray", num_samples=2)
    assert len(tune.Tuner(lambda config: config["rate"], param_space=SPACE, tune_config=default).fit()) == 2
