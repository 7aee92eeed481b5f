"""Scripts for Optuna, after its tutorials, run here with at most three changed lines.

The comment ``# here: …`` of a line is the line by which it is replaced.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.filterwarnings("ignore")

CHANGED = re.compile(r"^( *).*?  # here: (.*)$", re.MULTILINE)

CONDITIONAL = """
import optuna  # here: from onlineauto import tune as optuna
from sklearn import datasets, ensemble, model_selection, svm

def objective(trial):
    x, y = datasets.load_iris(return_X_y=True)
    if trial.suggest_categorical("model", ["svm", "forest"]) == "svm":
        model = svm.SVC(C=trial.suggest_float("c", 1e-10, 1e10, log=True), gamma="auto")
    else:
        depth = trial.suggest_int("depth", 2, 32, log=True)
        model = ensemble.RandomForestClassifier(max_depth=depth, n_estimators=5, random_state=0)
    return model_selection.cross_val_score(model, x, y, cv=3).mean()

study = optuna.create_study(direction="maximize")
study.optimize(objective, n_trials=15)
print(study.best_trial)
assert study.best_value > 0.9
"""

STATES = """
import optuna  # here: from onlineauto import tune as optuna
from optuna.trial import TrialState  # here: from onlineauto.tune.trial import TrialState
from sklearn import datasets, linear_model, model_selection

def objective(trial):
    x, y = datasets.load_iris(return_X_y=True)
    x, test_x, y, test_y = model_selection.train_test_split(x, y, test_size=0.25, random_state=0)
    model = linear_model.SGDClassifier(alpha=trial.suggest_float("alpha", 1e-5, 1e-1, log=True))
    for step in range(20):
        model.partial_fit(x, y, classes=[0, 1, 2])
        trial.report(model.score(test_x, test_y), step)
        if trial.should_prune():
            raise optuna.TrialPruned()
    return model.score(test_x, test_y)

study = optuna.create_study(direction="maximize", pruner=optuna.pruners.MedianPruner(n_startup_trials=3))
study.optimize(objective, n_trials=20)
pruned = study.get_trials(deepcopy=False, states=[TrialState.PRUNED])
complete = [trial for trial in study.trials if trial.state == TrialState.COMPLETE]
assert len(study.trials) == len(pruned) + len(complete) == 20
assert study.best_trial in complete
assert all(trial.value == trial.intermediate_values[trial.last_step] for trial in pruned)
for name, value in study.best_trial.params.items():
    print(f"{name}: {value}")
"""

ATTRIBUTES = """
import optuna  # here: from onlineauto import tune as optuna
from sklearn import datasets, model_selection, svm

optuna.logging.set_verbosity(optuna.logging.WARNING)
study = optuna.create_study(study_name="iris", storage="sqlite:///study.db", load_if_exists=True)
study.set_user_attr("contributors", ["Ann", "Bo"])
study.set_user_attr("dataset", "iris")

def objective(trial):
    x, y = datasets.load_iris(return_X_y=True)
    model = svm.SVC(C=trial.suggest_float("c", 1e-10, 1e10, log=True))
    scores = model_selection.cross_val_score(model, x, y)
    trial.set_user_attr("accuracy", float(scores.mean()))
    trial.set_user_attr("folds", scores.tolist())
    return 1 - scores.mean()

study.optimize(objective, n_trials=3)
loaded = optuna.load_study(study_name="iris", storage="sqlite:///study.db")
assert loaded.user_attrs == {"contributors": ["Ann", "Bo"], "dataset": "iris"}
assert loaded.best_trial.user_attrs["accuracy"] == 1 - loaded.best_value
assert len(loaded.trials[0].user_attrs["folds"]) == 5
assert "user_attrs_accuracy" in loaded.trials_dataframe(attrs=("number", "value", "user_attrs", "state"))
"""

ASK_AND_TELL = """
import numpy as np
import optuna  # here: from onlineauto import tune as optuna

def loss(x, y):
    return x**2 + abs(y)

study = optuna.create_study(pruner=optuna.pruners.HyperbandPruner(max_resource=9, reduction_factor=3))
for _ in range(20):
    trial = study.ask()
    x = trial.suggest_float("x", -10, 10, step=0.5)
    y = trial.suggest_int("y", -9, 9, step=3)
    for step in range(9):
        trial.report(loss(x, y) + 1 / (step + 1), step)
        if trial.should_prune():
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
            break
    else:
        study.tell(trial, loss(x, y))
states = [trial.state for trial in study.trials]
assert optuna.trial.TrialState.PRUNED in states and optuna.trial.TrialState.COMPLETE in states

known = {
    "x": optuna.distributions.FloatDistribution(-10, 10),
    "loss": optuna.distributions.CategoricalDistribution(("a", "b")),
}
study = optuna.create_study(direction="maximize")
for _ in range(10):
    trial = study.ask(known)
    study.tell(trial, trial.params["x"] + (trial.params["loss"] == "a"))
assert set(study.best_params) == {"x", "loss"}

study = optuna.create_study(sampler=optuna.samplers.CmaEsSampler(seed=1))
for _ in range(3):
    numbers, xs, ys = [], [], []
    for _ in range(10):
        trial = study.ask()
        numbers.append(trial.number)
        xs.append(trial.suggest_float("x", -10, 10))
        ys.append(trial.suggest_float("y", -10, 10))
    for number, value in zip(numbers, loss(np.array(xs), np.array(ys))):
        study.tell(number, value)
assert len(study.trials) == 30
assert study.best_value == loss(**study.best_params)
"""

SEVERAL = """
import optuna  # here: from onlineauto import tune as optuna

def objective(trial):
    x = trial.suggest_float("x", 0, 5)
    y = trial.suggest_float("y", 0, 3)
    return 4 * x**2 + 4 * y**2, (x - 5) ** 2 + (y - 5) ** 2

study = optuna.create_study(directions=["minimize", "minimize"], sampler=optuna.samplers.TPESampler(seed=2))
study.set_metric_names(["cost", "distance"])
study.optimize(objective, n_trials=40, timeout=300)
print(f"{len(study.best_trials)} of {len(study.trials)} trials are on the front")
nearest = min(study.best_trials, key=lambda trial: trial.values[1])
cheapest = min(study.best_trials, key=lambda trial: trial.values[0])
assert nearest.values[0] >= cheapest.values[0] and nearest.values[1] <= cheapest.values[1]
assert {"values_cost", "values_distance"} <= set(study.trials_dataframe().columns)
"""

ENQUEUED = """
import logging
import sys
import optuna  # here: from onlineauto import tune as optuna

optuna.logging.get_logger("optuna").addHandler(logging.StreamHandler(sys.stdout))

def objective(trial):
    rate = trial.suggest_float("rate", 0.4, 1.0)
    depth = trial.suggest_int("depth", 0, 7)
    return rate - abs(depth - 3)

known = {
    "rate": optuna.distributions.FloatDistribution(0.4, 1.0),
    "depth": optuna.distributions.IntDistribution(0, 7),
}
study = optuna.create_study(direction="maximize", pruner=optuna.pruners.MedianPruner())
study.enqueue_trial({"rate": 1.0, "depth": 0})
study.enqueue_trial({"rate": 0.75, "depth": 5})
study.optimize(objective, n_trials=20, timeout=600)
assert [trial.params["depth"] for trial in study.trials[:2]] == [0, 5]

study = optuna.create_study(direction="maximize", pruner=optuna.pruners.MedianPruner())
study.add_trial(
    optuna.trial.create_trial(params={"rate": 1.0, "depth": 3}, distributions=known, value=1.5)
)
study.optimize(objective, n_trials=10, show_progress_bar=True)
assert study.best_value == 1.5 and len(study.trials) == 11
"""

LIGHTGBM = """
import lightgbm as lgb
import optuna  # here: from onlineauto import tune as optuna
from sklearn import datasets, metrics, model_selection

def objective(trial):
    x, y = datasets.load_breast_cancer(return_X_y=True)
    x, test_x, y, test_y = model_selection.train_test_split(x, y, test_size=0.25, random_state=0)
    params = {
        "objective": "binary", "metric": "auc", "verbosity": -1, "num_threads": 1,
        "lambda_l1": trial.suggest_float("lambda_l1", 1e-8, 10.0, log=True),
        "num_leaves": trial.suggest_int("num_leaves", 2, 64),
        "learning_rate": trial.suggest_float("learning_rate", 1e-4, 0.3, log=True),
    }
    callbacks = [optuna.integration.LightGBMPruningCallback(trial, "auc")]
    valid = lgb.Dataset(test_x, label=test_y)
    model = lgb.train(params, lgb.Dataset(x, label=y), 30, valid_sets=[valid], callbacks=callbacks)
    return metrics.roc_auc_score(test_y, model.predict(test_x))

study = optuna.create_study(pruner=optuna.pruners.MedianPruner(n_warmup_steps=10), direction="maximize")
study.optimize(objective, n_trials=15)
assert {trial.state.name for trial in study.trials} == {"COMPLETE", "PRUNED"}
assert study.best_trial.value > 0.9
"""

XGBOOST = """
import optuna  # here: from onlineauto import tune as optuna
import xgboost as xgb
from sklearn import datasets, model_selection

def objective(trial):
    x, y = datasets.load_breast_cancer(return_X_y=True)
    x, test_x, y, test_y = model_selection.train_test_split(x, y, test_size=0.25, random_state=0)
    valid = xgb.DMatrix(test_x, label=test_y)
    params = {
        "objective": "binary:logistic", "eval_metric": "auc", "nthread": 1, "verbosity": 0,
        "booster": trial.suggest_categorical("booster", ["gbtree", "dart"]),
        "alpha": trial.suggest_float("alpha", 1e-8, 1.0, log=True),
    }
    if params["booster"] == "dart":
        params["rate_drop"] = trial.suggest_float("rate_drop", 1e-8, 1.0, log=True)
    prune = optuna.integration.XGBoostPruningCallback(trial, "validation-auc")
    model = xgb.train(
        params, xgb.DMatrix(x, label=y), 20, evals=[(valid, "validation")], callbacks=[prune], verbose_eval=0
    )
    return ((model.predict(valid) > 0.5) == test_y).mean()

study = optuna.create_study(pruner=optuna.pruners.MedianPruner(n_warmup_steps=5), direction="maximize")
study.optimize(objective, n_trials=15)
assert study.best_value > 0.9
"""

SCRIPTS = {
    "sklearn_simple.py": CONDITIONAL,
    "basic/pruning.py": STATES,
    "003_attributes.py": ATTRIBUTES,
    "009_ask_and_tell.py": ASK_AND_TELL,
    "002_multi_objective.py": SEVERAL,
    "008_specify_params.py": ENQUEUED,
    "lightgbm_integration.py": LIGHTGBM,
    "xgboost_integration.py": XGBOOST,
}
NEEDS = {
    "lightgbm_integration.py": ("lightgbm",),
    "xgboost_integration.py": ("xgboost",),
}


def run(script: str, name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    for module in ("sklearn", "pandas", "cmaes", "sqlalchemy", "tqdm", *NEEDS.get(name, ())):
        pytest.importorskip(module)
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {}
    exec(compile(script, name, "exec"), names)  # noqa: S102 - a script of this file
    return names


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_runs_with_at_most_three_changed_lines(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = SCRIPTS[name]
    assert 1 <= len(CHANGED.findall(script)) <= 3
    names = run(CHANGED.sub(r"\1\2", script), name, tmp_path, monkeypatch)
    assert names["optuna"].__name__ == "onlineauto.tune"


@pytest.mark.lane("ci")
@pytest.mark.parametrize("name", SCRIPTS)
def test_the_unchanged_script_runs_in_optuna(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("optuna")
    if name in NEEDS:
        pytest.importorskip("optuna_integration")
    run(SCRIPTS[name], name, tmp_path, monkeypatch)
