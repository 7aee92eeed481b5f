"""Scripts of Ray's tutorials with at most three changed lines.

The first two are Ray's own files, from the installed package (lane ``ray``). The others have the calls of the
first page of docs.ray.io/tune and of its guide to trainables, in our words.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import ROOT

FIRST_PAGE = """
from ray import tune

def objective(config):
    return {"score": config["a"] ** 2 + config["b"]}

search_space = {"a": tune.grid_search([0.001, 0.01, 0.1, 1.0]), "b": tune.choice([1, 2, 3])}
tuner = tune.Tuner(objective, param_space=search_space)
results = tuner.fit()
print(results.get_best_result(metric="score", mode="min").config)
print(len(results), "trials")
"""
TRAINABLES = """
from ray import tune

def root(x, a, b):
    return a * x ** 0.5 + b

def function(config):
    for x in range(20):
        tune.report({"score": root(x, config["a"], config["b"])})

results = tune.Tuner(function, param_space={"a": 2, "b": 4}).fit()
print(results[0].metrics["training_iteration"])

class Class(tune.Trainable):
    def setup(self, config):
        self.x, self.a, self.b = 0, config["a"], config["b"]

    def step(self):
        self.x += 1
        return {"score": root(self.x - 1, self.a, self.b)}

tuner = tune.Tuner(
    Class,
    run_config=tune.RunConfig(
        stop={"training_iteration": 20},
        checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
    ),
    param_space={"a": 2, "b": 4},
)
print(round(tuner.fit()[0].metrics["score"], 3), "trials")
"""
OURS = "from onlineauto.tune import tuner as tune"
CHANGES = {
    "from ray import tune\n": f"{OURS}\n",
    "from ray.tune.schedulers import AsyncHyperBandScheduler\n": (
        "from onlineauto.tune.tuner import AsyncHyperBandScheduler\n"
    ),
    "import ray\n": "",
    "    ray.init(configure_logging=False)\n": "",
}


def changed(text: str) -> str:
    """Return a script of Ray as one of onlineauto, after a check that few lines differ."""
    lines = text.splitlines(keepends=True)
    assert sum(line in CHANGES for line in lines) <= 3
    return "".join(CHANGES.get(line, line) for line in lines)


def output_of(script: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, str(script), *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=script.parent,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("text", "printed"),
    [(FIRST_PAGE, "4 trials\n"), (TRAINABLES, "20\n12.718 trials\n")],
    ids=["first page", "trainables"],
)
def test_a_script_without_a_guard_runs_in_processes(text: str, printed: str, tmp_path: Path) -> None:
    pytest.importorskip("cloudpickle")
    (tmp_path / "script.py").write_text(changed(text))
    assert output_of(tmp_path / "script.py").endswith(printed)


@pytest.mark.ray
@pytest.mark.parametrize("name", ["async_hyperband_example", "tune_basic_example"])
def test_an_example_of_ray_runs(name: str, tmp_path: Path) -> None:
    spec = importlib.util.find_spec(f"ray.tune.examples.{name}")
    assert spec is not None
    assert spec.origin is not None
    (tmp_path / "script.py").write_text(changed(Path(spec.origin).read_text()))
    assert output_of(tmp_path / "script.py", "--smoke-test").startswith("Best hyperparameters found")
