"""Scripts for Optuna and Ray Tune run with one or two changed lines."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import onlineauto.tune as example
from onlineauto.errors import OptionError
from tests.tune.studies import records_of

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = {"18_from_optuna.py": 1, "19_from_ray_tune.py": 2}
"""Scripts with the number of lines that were changed."""


def original(script: str) -> str:
    """Return the script before the change."""
    text = (EXAMPLES / script).read_text("utf-8")
    return re.sub(r"^( *).*?  # was: (.*)$", r"\1\2", text, flags=re.MULTILINE)


@pytest.mark.parametrize("script", SCRIPTS)
def test_one_or_two_lines_of_forty_are_changed(script: str) -> None:
    example, reference = (EXAMPLES / script).read_text("utf-8").splitlines(), original(script).splitlines()
    assert sum(one != other for one, other in zip(example, reference, strict=True)) == SCRIPTS[script]
    assert 40 <= len(example) <= 45
    modules = {
        alias.name if isinstance(node, ast.Import) else str(node.module)
        for node in ast.walk(ast.parse("\n".join(reference)))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert not any(name.startswith("onlineauto") for name in modules)


def test_the_original_for_optuna_runs_and_finds_the_same(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    pytest.importorskip("pandas")
    script = tmp_path / "script.py"
    script.write_text(original("18_from_optuna.py"), "utf-8")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert "best model: network" in done.stdout
    assert "pruned: True" in done.stdout


def first_value(trial: Any) -> float:
    return float(trial.suggest_float("x", 0, 1))


def in_trial(name: str, *usual: Any) -> Callable[..., Any]:
    """Call a method of a trial in an objective."""

    def call(study: Any, **more: Any) -> Any:
        def objective(trial: Any) -> float:
            getattr(trial, name)(*usual, **more)
            return 1.0

        study.optimize(objective, n_trials=1)

    return call


CALLS: dict[str, tuple[Callable[..., Any], dict[str, tuple[Any, bool]]]] = {
    "create_study": (
        lambda _, **more: example.create_study(**more),
        {
            "storage": (3, False),
            "sampler": ("tpe", False),
            "pruner": ("median", False),
            "study_name": ("named", True),
            "direction": ("maximize", True),
            "load_if_exists": (True, True),
            "directions": (["minimize", "maximize"], True),
        },
    ),
    "load_study": (
        lambda _, **more: example.load_study(**{"study_name": "x", "storage": "sqlite:///x.db"} | more),
        {
            "study_name": (None, False),
            "storage": (3, False),
            "sampler": ("tpe", False),
            "pruner": ("median", False),
        },
    ),
    "Study.optimize": (
        lambda study, **more: study.optimize(**{"func": first_value, "n_trials": 2} | more),
        {
            "func": (3, False),
            "n_trials": (3, True),
            "timeout": ("long", False),
            "n_jobs": (2, True),
            "catch": (iter([ValueError]), True),
            "callbacks": (iter([lambda *_: None]), True),
            "gc_after_trial": (True, True),
            "show_progress_bar": (True, True),
        },
    ),
    "Study.enqueue_trial": (
        lambda study, **more: study.enqueue_trial(**{"params": {"x": 0.5}} | more),
        {"params": (3, False), "user_attrs": ({"a": 1}, True), "skip_if_exists": (True, True)},
    ),
    "Study.ask": (
        lambda study, **more: study.ask(**more),
        {"fixed_distributions": ({"x": example.Float(0, 1)}, True)},
    ),
    "Study.tell": (
        lambda study, **more: study.tell(**{"trial": study.ask(), "values": 1.0} | more),
        {"trial": (3, False), "values": ("x", False), "state": (1, False), "skip_if_finished": (True, True)},
    ),
    "Study.trials_dataframe": (
        lambda study, **more: study.trials_dataframe(**more),
        {"attrs": ((), True), "multi_index": (True, False)},
    ),
    "Study.add_trials": (lambda study, **more: study.add_trials(**more), {"trials": (3, False)}),
    "Trial.suggest_float": (
        in_trial("suggest_float"),
        {
            "name": (3, False),
            "low": (None, False),
            "high": (None, False),
            "step": (0.5, True),
            "log": (True, True),
        },
    ),
    "Trial.suggest_int": (
        in_trial("suggest_int"),
        {
            "name": (3, False),
            "low": (None, False),
            "high": (None, False),
            "step": (2, True),
            "log": (True, True),
        },
    ),
    "Trial.suggest_categorical": (
        in_trial("suggest_categorical"),
        {"name": (3, False), "choices": (3, False)},
    ),
    "Trial.report": (in_trial("report"), {"value": ("x", False), "step": (-1, False)}),
}
"""Calls of Optuna, and for each argument a value, and whether it is accepted."""
USUAL: dict[str, dict[str, Any]] = {
    "Trial.suggest_float": {"name": "x", "low": 1, "high": 9},
    "Trial.suggest_int": {"name": "x", "low": 1, "high": 9},
    "Trial.suggest_categorical": {"name": "x", "choices": ["a", "b"]},
    "Trial.report": {"value": 1.0, "step": 1},
}


@pytest.mark.parametrize(("call", "argument"), [(call, each) for call in CALLS for each in CALLS[call][1]])
def test_each_argument_of_optuna_is_honoured_or_refused(
    call: str, argument: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make, arguments = CALLS[call]
    value, is_accepted = arguments[argument]
    given = USUAL.get(call, {}) | {argument: value}
    study = example.create_study()
    if is_accepted:
        make(study, **given)
        return
    names = {
        "low": "bounds",
        "high": "bounds",
        "choices": "Categorical",
        "params": "config",
        "trials": "add_trials",
        "values": "the objective returned 'x'",
    }
    about = names.get(argument, argument).replace("study_", "") if argument != "name" else "3 is not a name"
    if argument in ("value", "step") and call == "Trial.report":
        about = "value" if argument == "value" else "step = -1"
    with pytest.raises((OptionError, TypeError), match=about):
        make(study, **given)
    assert not [trial for trial in study.trials if trial.value is not None]


@pytest.mark.parametrize("call", CALLS)
def test_the_arguments_are_those_of_optuna(call: str) -> None:
    optuna = pytest.importorskip("optuna")
    owner, _, name = call.rpartition(".")
    holder = {"": optuna, "Study": optuna.study.Study, "Trial": optuna.Trial}[owner]
    names = [each for each in inspect.signature(getattr(holder, name)).parameters if each != "self"]
    assert sorted(names) == sorted(CALLS[call][1])


def test_arguments_of_optuna_have_their_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    study = example.create_study(directions=["maximize"], lease=10, retries=2, study_name="named")
    assert (study.settings.mode, study.settings.lease, study.settings.retries) == ("max", 10, 2)
    assert study.settings.scheduler[0] == "median"
    collected: list[str] = []
    monkeypatch.setattr("gc.collect", lambda: collected.append("all"))
    study.enqueue_trial({"x": 0.25}, skip_if_exists=True)
    study.enqueue_trial({"x": 0.25}, skip_if_exists=True)
    study.enqueue_trial({"x": 0.25})
    study.optimize(
        first_value,
        n_trials=3,
        gc_after_trial=True,
        callbacks=(each for each in [lambda *_: collected.append("call")]),
    )
    assert [trial.config["x"] == 0.25 for trial in study.trials] == [True, True, False]
    study.enqueue_trial({"x": study.trials[2].config["x"]}, skip_if_exists=True)
    assert [record["kind"] for record in records_of(study)].count("enqueued") == 2
    assert collected == ["all", "call"] * 3
    with pytest.raises(OptionError, match="catch = 'ValueError': give types of exceptions"):
        study.optimize(first_value, n_trials=1, catch="ValueError")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="callbacks = 3: give functions"):
        study.optimize(first_value, n_trials=1, callbacks=3)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="direction = 'minimize' and directions: give one"):
        example.create_study(direction="minimize", directions=["minimize", "maximize"])
    for odd in ("x", None, "1.5"):
        with pytest.raises(OptionError, match="the value is not a number"):
            in_trial("report", odd, 1)(example.create_study())


def test_trials_of_the_other_direction_are_rejected() -> None:
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    for make in (optuna.create_study, example.create_study):
        other = make(direction="maximize")
        other.optimize(first_value, n_trials=3)
        study = example.create_study()
        with pytest.raises(OptionError, match="the mode of these trials is not that of the study, min"):
            study.add_trials(other)
        same = example.create_study(direction=getattr(other, "direction", "maximize"))
        same.add_trials(other)
        assert same.best_value == other.best_value
        with pytest.raises(OptionError, match="the mode of these trials"):
            study.add_trials(make(directions=["minimize", "minimize"]))
