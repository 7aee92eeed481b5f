"""The commands about studies."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from onlineauto.cli.main import main
from onlineauto.tune import Float, Study
from tests.waiting import PATIENCE, until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.lane("ci")

TRAINABLE = """
import os, signal, time
steps = 0
def loss(config, resource, report):
    global steps
    while report.step < resource:
        if steps == int(os.environ.get("STAYS_AFTER", "-1")):
            time.sleep(3600)
        if steps == int(os.environ.get("TERMINATED_AFTER", "-1")):
            signal.raise_signal(signal.SIGTERM)
        steps += 1
        report((config["rate"] - 0.3) ** 2 + 1 / (report.step + 1), save=report.step)
"""


def made(url: str, *, name: str = "rates", trials: int = 9) -> Study:
    space = {"rate": Float(0, 1)}
    return Study(space, max_resource=9, name=name, storage=url, max_trials=trials, searcher="random")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a trainable, in which the command runs."""
    (tmp_path / "training_of_a_test.py").write_text(TRAINABLE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def start(folder: Path, url: str, *, stays_after: int = -1) -> subprocess.Popen[bytes]:
    """Start a worker, which after so many steps does nothing for an hour."""
    command = [sys.executable, "-m", "onlineauto", "worker", "--study", url, "--quiet", "--lease", "2"]
    environment = os.environ | {"STAYS_AFTER": str(stays_after)}
    return subprocess.Popen([*command, "--trainable", "training_of_a_test:loss"], cwd=folder, env=environment)


def test_a_worker_does_a_study(url: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(url)
    assert main(["worker", "--study", url, "--trainable", "training_of_a_test:loss"]) == 0
    assert "trial 0 at 1: " in capsys.readouterr().err
    study = Study.load("rates", storage=url)
    assert study.is_done
    assert main(["studies", url]) == 0
    assert capsys.readouterr().out.startswith("rates: 9 terminated; best ")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "worker takes a store"),
        (
            ["--study", "URL"],
            "the study 'rates' has no trainable: pass one; or, if its trials learn",
        ),
        (["--study", "URL", "--trainable", "training"], "trainable = 'training': it is MODULE:NAME"),
        (["--study", "URL", "--trainable", "./training.py:loss"], "it is MODULE:NAME"),
        (["--study", "URL", "--trainable", "no_such_module:f"], "there is no module 'no_such_module' here"),
        (["--study", "URL", "--trainable", "training_of_a_test:f"], "'training_of_a_test' has no 'f'"),
        (["--study", "sqlite:///empty.db"], "empty.db, so no study"),
        (["--study", "URL", "--trainable", "time:time", "--name", "rate"], "there is no study 'rate'"),
        (
            ["--study", "x.db", "--trainable", "time:time", "--name", "rate"],
            "storage = 'x.db' is not a known store",
        ),
        (["--study", "URL", "--workers", "-1"], "--workers"),
    ],
)
def test_what_is_wrong_is_said(
    words: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{folder / 'study.db'}"
    made(url)
    assert main(["worker", *(url if word == "URL" else word for word in words)]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("stop", ["kill", "terminate"])
def test_workers_are_killed_and_the_study_is_done(url: str, folder: Path, stop: str) -> None:
    study = made(url, trials=12)
    first = start(folder, url, stays_after=4)

    def has_begun() -> bool:
        study.refresh()
        return len(study.history()) == 4

    try:
        until(has_begun)
        second = start(folder, url)
        getattr(first, stop)()
        assert first.wait(PATIENCE) == (143 if stop == "terminate" else -9)
    finally:
        first.kill()
    assert second.wait(PATIENCE) == 0
    study.refresh()
    assert study.is_done
    told = [(row["trial"], row["resource"]) for row in study.history() if row["told"]]
    assert len(told) == len(set(told))
    assert {trial.state for trial in study.trials} == {"TERMINATED"}


@pytest.mark.parametrize("verb", ["worker", "tune"])
def test_a_termination_within_a_trial_ends_the_command_and_gives_the_job_back(
    verb: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{folder / 'study.db'}"
    study = made(url)
    monkeypatch.setenv("TERMINATED_AFTER", "2")
    monkeypatch.delitem(sys.modules, "training_of_a_test", raising=False)
    words = ["--study", url, "--name", "rates", "--trainable", "training_of_a_test:loss", "--quiet"]
    with pytest.raises(SystemExit) as left:
        main([verb, *words])
    assert left.value.code == 143
    study.refresh()
    assert len(study.history()) == 2
    assert [trial.failures for trial in study.trials] == [0] * len(study.trials)
    assert "RUNNING" not in {trial.state for trial in study.trials}
    monkeypatch.delenv("TERMINATED_AFTER")
    assert main(["worker", *words]) == 0
    study.refresh()
    assert {trial.state for trial in study.trials} == {"TERMINATED"}
