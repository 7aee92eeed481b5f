"""Hyperband with rungs of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from onlineauto import OptionError
from onlineauto.cli.main import main
from onlineauto.testing import check_scheduler
from onlineauto.tune import Float, Study
from onlineauto.tune.schedulers.brackets import Bracket
from onlineauto.tune.schedulers.hyperband import Hyperband

RUNGS = [[(9, 1), (4, 3), (1, 9)], [(3, 3), (1, 9)]]


def test_brackets_have_the_given_rungs() -> None:
    study = Study({"x": Float(0, 1)}, Hyperband(rungs=RUNGS), max_resource=9, seed=1)
    study.run(lambda config: config["x"], rounds=1)
    by_resource = [sum(trial.resource >= level for trial in study.trials) for level in (1, 3, 9)]
    assert by_resource == [12, 7, 2]


def test_scheduler_conforms() -> None:
    check_scheduler(lambda: Hyperband(rungs=[[(9, 1), (4, 3), (1, 27)], [(3, 27)]]))


def test_study_in_a_store_has_the_same_rungs(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path / 's.db'}"
    Study({"x": Float(0, 1)}, Hyperband(rungs=RUNGS), max_resource=9, seed=1, name="s", storage=url)
    study = Study.load("s", storage=url)
    study.run(lambda config: config["x"], rounds=1)
    assert sum(trial.resource >= 1 for trial in study.trials) == 12


@pytest.mark.parametrize(
    ("rungs", "message"),
    [
        ([[(5, 3), (9, 1)]], "have to fall"),
        ([[(9, 1), (9, 3)]], "have to fall"),
        ([[(9, 3), (4, 3)]], "to rise"),
        ([[(9, 0)]], "at least 1"),
        ([[(9, 1.5)]], "at least 1"),
        ([[9, 1]], "at least 1"),
        ([[]], "at least 1"),
        ([], "give brackets"),
        ("geometric", "give brackets"),
    ],
)
def test_invalid_rungs_are_errors(rungs: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Hyperband(rungs=rungs)


@pytest.mark.parametrize("rungs", [[(1, 9), (5, 3)], [(5, 3), (5, 9)], [(5, 3), (1, 3)]])
def test_bracket_checks_sizes_and_levels(rungs: Any) -> None:
    with pytest.raises(OptionError, match="numbers of trials have to fall, and resources to rise"):
        Bracket(rungs)


def test_sizes_that_are_a_list_are_an_option_error() -> None:
    with pytest.raises(OptionError, match="unknown"):
        Hyperband(sizes=RUNGS)  # type: ignore[arg-type]


def test_rungs_beyond_the_maximum_are_an_error() -> None:
    with pytest.raises(OptionError, match="max_resource 3"):
        Study({"x": Float(0, 1)}, Hyperband(rungs=RUNGS), max_resource=3)


@pytest.mark.parametrize(
    ("words", "trials"),
    [("--scheduler dehb --variant slots", 14), ("--scheduler dehb --brackets 2", 12), ("--brackets 1", 9)],
)
def test_command_line_has_the_options_of_schedulers(
    words: str,
    trials: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    space = tmp_path / "space.toml"
    space.write_text('x = {type = "float", low = 0.0, high = 1.0}\n')
    command = f"tune --trainable operator:length_hint --space {space} --max_resource 9 {words}"
    assert main(command.split()) == 0
    assert f"best of {trials} trials" in capsys.readouterr().out


def test_option_that_a_scheduler_does_not_have_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    space = tmp_path / "space.toml"
    space.write_text('x = {type = "float", low = 0.0, high = 1.0}\n')
    command = f"tune --trainable operator:neg --space {space} --scheduler fifo --variant slots --max_trials 1"
    assert main(command.split()) == 2
    assert "--variant is no option of the scheduler fifo" in capsys.readouterr().err
