"""`Tuner`: functions and classes of Ray Tune."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from onlineauto.errors import OptionError
from onlineauto.tune import tuner as tune

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


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
    given: dict[str, Any] = {"metric": "loss", "mode": "min", "num_samples": 9}
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
    assert best.metrics["training_iteration"] == 9
    assert best.metrics["twice"] == 2 * best.metrics["loss"] == 2 * results.study.best_value
    assert set(best.config) == {"rate", "depth", "more"}
    assert {each.config["depth"] for each in results} <= {1, 2, 3}


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
    reached = {each.trial: each.metrics["training_iteration"] for each in results}
    assert Falling.steps == sum(reached.values())


def test_a_function_may_return_its_metrics_and_fail() -> None:
    def returns(config: Mapping[str, Any]) -> dict[str, float]:
        if config["depth"] == 2:
            raise ValueError("two")
        return {"loss": config["rate"]}

    results = tune.Tuner(returns, param_space=SPACE, tune_config=config(mode="max")).fit()
    assert results.errors
    assert set(results.errors) == {"ValueError: two"}
    assert results.get_best_result().metrics["loss"] == max(
        each.metrics["loss"] for each in results if not each.error
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
        ({"tune_config": None}, r"metric = None, mode = None: give TuneConfig\(metric="),
        ({"tune_config": config(scheduler=3)}, "scheduler = 3: give one of this module"),
        ({"run_config": tune.RunConfig(stop={"loss": 1})}, "stop = 'loss': valid is training_iteration"),
        ({"trainable": Falling}, "no limit on steps"),
        ({"param_space": 3}, "param_space is"),
        ({"param_space": {"a": {"b": tune.uniform(0, 1)}}}, r"param_space\['a'\] is a mapping"),
        ({"param_space": {"a": 3}}, "the space has no parameters"),
    ],
)
def test_arguments_that_are_not_valid_are_refused(arguments: dict[str, Any], message: str) -> None:
    usual: dict[str, Any] = {"trainable": train, "param_space": SPACE, "tune_config": config()}
    with pytest.raises(OptionError, match=message):
        tune.Tuner(**usual | arguments)


def test_the_metric_must_be_reported() -> None:
    def other(config: Mapping[str, Any]) -> dict[str, float]:
        return {"acc": config["rate"]}

    results = tune.Tuner(other, param_space=SPACE, tune_config=config(num_samples=1)).fit()
    assert results.errors[0].endswith("}): give a dict with the metric 'loss'")
    with pytest.raises(OptionError, match="no trial is running"):
        tune.report({"loss": 1})
