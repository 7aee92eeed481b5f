"""Pruning callbacks of LightGBM and XGBoost; these libraries are no dependencies of the tests."""

from __future__ import annotations

import builtins
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from onlineauto.errors import OptionError, PackageError
from onlineauto.tune import ActiveTrial, TrialPruned, create_study
from onlineauto.tune.integration import LightGBMPruningCallback, XGBoostPruningCallback
from onlineauto.tune.pruners import MedianPruner, ThresholdPruner

ROUNDS = 12


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((400, 5))
    return x, (x[:, 0] * x[:, 1] + 0.3 * rng.standard_normal(400) > 0).astype(float)


def env(iteration: int, *results: tuple[Any, ...]) -> Any:
    return SimpleNamespace(iteration=iteration, evaluation_result_list=list(results))


def test_a_metric_is_reported_at_its_interval_until_the_trial_is_pruned() -> None:
    study = create_study(direction="maximize", pruner=ThresholdPruner(lower=0.5))
    trial = study.ask()
    callback = LightGBMPruningCallback(trial, "auc", valid_name="test", report_interval=2)
    for iteration, value in enumerate([0.1, 0.6, 0.2, 0.7]):
        callback(env(iteration, ("train", "auc", 0.0, True), ("test", "auc", value, True)))
    assert study.trials[0].intermediate_values == {1: 0.6, 3: 0.7}
    with pytest.raises(TrialPruned, match="pruned at round 5"):
        callback(env(5, ("test", "auc", 0.4, True)))


def test_a_metric_that_is_not_there_or_has_another_direction_is_named() -> None:
    trial = create_study().ask()
    with pytest.raises(OptionError, match=r"metric = 'auc': the training evaluates valid_0: logloss"):
        LightGBMPruningCallback(trial, "auc")(env(0, ("valid_0", "logloss", 0.5, False)))
    with pytest.raises(OptionError, match="metric = 'auc' needs a study of direction='maximize'"):
        LightGBMPruningCallback(trial, "auc")(env(0, ("valid_0", "auc", 0.5, True)))


def test_xgboost_is_imported_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("xgboost"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(PackageError, match="pip install xgboost"):
        XGBoostPruningCallback(create_study().ask(), "validation-auc")


@pytest.mark.parametrize("cv", [False, True])
def test_trials_of_lightgbm_are_pruned(*, cv: bool) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    x, y = data()

    def objective(trial: ActiveTrial) -> float:
        params = {
            "objective": "binary",
            "metric": "auc",
            "verbosity": -1,
            "num_threads": 1,
            "num_leaves": trial.suggest_int("num_leaves", 2, 30),
            "learning_rate": trial.suggest_float("learning_rate", 1e-4, 0.3, log=True),
        }
        callbacks = [LightGBMPruningCallback(trial, "auc")]
        if cv:
            result = lightgbm.cv(params, lightgbm.Dataset(x, y), ROUNDS, nfold=3, callbacks=callbacks)
            return float(result["valid auc-mean"][-1])
        valid = lightgbm.Dataset(x[300:], y[300:])
        train = lightgbm.Dataset(x[:300], y[:300])
        booster = lightgbm.train(params, train, ROUNDS, valid_sets=[valid], callbacks=callbacks)
        return float(booster.best_score["valid_0"]["auc"])

    check(objective)


@pytest.mark.parametrize("cv", [False, True])
def test_trials_of_xgboost_are_pruned(*, cv: bool) -> None:
    xgboost = pytest.importorskip("xgboost")
    x, y = data()

    def objective(trial: ActiveTrial) -> float:
        params = {
            "objective": "binary:logistic",
            "eval_metric": "auc",
            "nthread": 1,
            "max_depth": trial.suggest_int("max_depth", 1, 6),
            "eta": trial.suggest_float("eta", 1e-4, 0.3, log=True),
        }
        if cv:
            callbacks = [XGBoostPruningCallback(trial, "test-auc")]
            result = xgboost.cv(params, xgboost.DMatrix(x, y), ROUNDS, nfold=3, callbacks=callbacks)
            return float(result["test-auc-mean"].iloc[-1])
        evals = [(xgboost.DMatrix(x[300:], y[300:]), "validation")]
        callbacks = [XGBoostPruningCallback(trial, "validation-auc")]
        train, result = xgboost.DMatrix(x[:300], y[:300]), {}
        xgboost.train(
            params, train, ROUNDS, evals=evals, evals_result=result, callbacks=callbacks, verbose_eval=False
        )
        return float(result["validation"]["auc"][-1])

    check(objective)
    callback = XGBoostPruningCallback(create_study().ask(), "auc")
    with pytest.raises(OptionError, match=r"observation_key = 'auc': the training evaluates validation-auc"):
        callback.after_iteration(None, 0, {"validation": {"auc": [0.5]}})


def check(objective: Any) -> None:
    study = create_study(direction="maximize", pruner=MedianPruner(n_startup_trials=3))
    study.optimize(objective, n_trials=20)
    states = [trial.state.name for trial in study.trials]
    assert {*states} == {"COMPLETE", "PRUNED"}
    complete, pruned = (
        [trial for trial in study.trials if trial.state.name == name] for name in ("COMPLETE", "PRUNED")
    )
    assert {len(trial.intermediate_values) for trial in complete} == {ROUNDS}
    assert all(len(trial.intermediate_values) < ROUNDS for trial in pruned)
    assert {
        trial.values[0] == trial.intermediate_values[ROUNDS - 1] for trial in complete if trial.values
    } == {True}
