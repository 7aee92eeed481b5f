"""The verb ``tune``: it begins studies, goes on with them, and shows how far they are."""

from __future__ import annotations

import io
import os
import shlex
import signal
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from onlineauto.cli.main import main
from onlineauto.errors import OptionError
from onlineauto.tune import Study
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

TRAINABLE = """
import os, time
steps = 0
def loss(config, resource, report):
    global steps
    while report.step < resource:
        if steps == int(os.environ.get("STAYS_AFTER", "-1")):
            time.sleep(3600)
        steps += 1
        report((config["rate"] - 0.3) ** 2 + 1 / (report.step + 1), save=report.step)
def both(config):
    return {"loss": config["rate"], "gain": config["rate"] * (config["loss"] == "squared"),
            "constraints": [0.2 - config["rate"]]}
def fails(config):
    raise ValueError("no data")
"""
SPACE = """
rate = {type = "float", low = 0, high = 1}
loss = {type = "choice", values = ["squared", "logistic"]}
"""
NEW = ("--trainable", "tuned_in_a_test:loss", "--space", "space.toml", "--max_resource", "9")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a trainable and a space, in which the command runs."""
    (tmp_path / "tuned_in_a_test.py").write_text(TRAINABLE)
    (tmp_path / "space.toml").write_text(SPACE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "tuned_in_a_test", raising=False)
    return tmp_path


class Terminal(io.StringIO):
    """What is written to a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("workers", ["0", "2"])
def test_the_best_config_is_printed_and_nothing_else(
    workers: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tune", *NEW, "--workers", workers]) == 0
    out, err = capsys.readouterr()
    first, *config = out.splitlines()
    assert first.startswith("best of ")
    assert [line.split()[0] for line in config] == ["rate", "loss"]
    assert err == ""


def test_the_front_of_several_objectives_is_printed(
    url: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--trainable", "tuned_in_a_test:both", "--space", "space.toml", "--max_trials", "20")
    assert main(["tune", *options, "--mode", "loss:min,gain:max", "--study", url]) == 0
    first, *front = capsys.readouterr().out.splitlines()
    study = Study.load("study", storage=url)
    assert first == f"{len(front)} of 20 trials are dominated by no other"
    assert [int(line.split()[1].rstrip(":")) for line in front] == [each.number for each in study.best_trials]
    assert all(each.is_feasible for each in study.best_trials)
    assert main(["studies", url]) == 0
    assert capsys.readouterr().out == f"study: 20 terminated; {len(front)} are dominated by no other\n"
    assert main(["tune", *options, "--mode", "min,down"]) != 0
    assert "mode = ['min', 'down']: valid are min, max" in capsys.readouterr().err


def test_a_study_goes_on_and_knows_what_it_runs(
    url: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tune", *NEW, "--study", url, "--max_trials", "5"]) == 0
    first = capsys.readouterr().out
    assert main(["tune", *NEW, "--study", url, "--max_trials", "5"]) == 0
    assert main(["tune", "--study", url]) == 0
    assert main(["worker", "--study", url]) == 0
    assert capsys.readouterr().out == 2 * first
    assert Study.load("study", storage=url).is_done


@pytest.mark.parametrize(("rich", "said"), [(True, "config"), (False, "9 trials")])
def test_a_terminal_shows_how_far_it_is(
    rich: bool, said: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr("onlineauto.cli.study_progress._PAUSE", 0)
    if not rich:
        monkeypatch.setitem(sys.modules, "rich.live", None)
    assert main(["tune", *NEW, "--max_trials", "9"]) == 0
    assert said in terminal.getvalue()
    assert "study: 9 trials, " in terminal.getvalue()


def test_an_interrupted_study_goes_on(folder: Path) -> None:
    url = f"sqlite:///{folder / 'study.db'}"
    command = [sys.executable, "-m", "onlineauto", "tune", *NEW, "--study", url, "--max_trials", "9"]
    stays = {**os.environ, "STAYS_AFTER": "4", "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, cwd=folder, env=stays, stderr=subprocess.PIPE) as process:

        def has_begun() -> bool:
            with suppress(OptionError):  # there is no study yet
                return len(Study.load("study", storage=url).history()) == 4
            return False

        until(has_begun)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert b"the same command continues the study in sqlite" in process.stderr.read()
    assert process.returncode == 130
    assert main(command[3:]) == 0
    study = Study.load("study", storage=url)
    assert study.is_done
    assert {trial.state for trial in study.trials} == {"TERMINATED"}


def test_why_no_trial_has_a_value_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--trainable", "tuned_in_a_test:fails", "--space", "space.toml", "--max_trials", "2"]
    assert main(["tune", *words]) == 1
    assert "no trial of study has a value; trial 1 failed: ValueError: no data" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "tune takes a stream: onlineauto tune -d train.txt"),
        (["--space", "space.toml"], "tune needs a function to run: --trainable"),
        (["--trainable", "a:b", "--space", "space.tml"], "the space: "),
        (["--trainable", "a:b", "--space", "none.toml"], "none.toml: No such file or directory"),
        (["--trainable", "no_such:f", "--space", "space.toml"], "there is no module 'no_such' here"),
        (["--study", "sqlite:///s.db", "--eta", "2"], "--eta applies only to a new study"),
        (["--study", "sqlite:///s.db"], "there is no study 'study' in sqlite:///s.db"),
        ([*NEW[:4], "--max_resource", "1"], "max_resource"),
        ([*NEW, "--scheduler", "hyperbend"], "--scheduler"),
        ([*NEW, "--scheduler", "fifo"], "scheduler = 'fifo' never ends: give max_trials, or jobs"),
    ],
)
def test_what_is_wrong_is_said(
    words: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tune", *words]) == 2
    assert message in capsys.readouterr().err


def stream(folder: Path, events: int = 600) -> str:
    """Write a stream in which a product of two namespaces matters."""
    path = folder / "train.txt"
    lines = (f"{(i % 2) ^ (i // 2 % 2)} |a x{i % 2} |b y{i // 2 % 2} |c z{i % 3}" for i in range(events))
    path.write_text("\n".join(lines))
    return str(path)


@pytest.mark.ci
@pytest.mark.parametrize("workers", ["0", "2"])
def test_the_best_flags_of_a_stream(workers: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = stream(folder)
    words = [
        "-d",
        data,
        "--search",
        "learning_rate,interactions",
        "--max_examples",
        "540",
        "--workers",
        workers,
    ]
    assert main(["tune", *words, "-f", "best.model", "--max_trials", "12", "--study", "sqlite:///s.db"]) == 0
    first, command, model = capsys.readouterr().out.splitlines()
    assert first.startswith("best of 12 trials: ")
    assert first.endswith(" at 540")
    assert command.startswith(f"onlineauto -d {data} --experimental_full_name_interactions ")
    assert model.endswith(" after 540 events, is in best.model")
    assert main(shlex.split(command)[1:]) == 0
    assert main(["-d", data, "-t", "-i", "best.model", "--quiet"]) == 0
    assert main(["plot", "sqlite:///s.db", "-o", "study.svg"]) == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--search", "rate"], "'rate' cannot be searched; these can: learning_rate"),
        (
            ["--search", "learning_rate", "--max_resource", "9"],
            "--max_resource applies only to a function: for a stream,",
        ),
        (["--automl"], "automl: a trial is one config, without a search"),
        (["--max_examples", "1"], "one rung"),
        (["--window", "0"], "--window"),
    ],
)
def test_what_is_wrong_with_a_stream_is_said(
    words: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tune", "-d", stream(folder, 90), *words]) == 2
    assert message in capsys.readouterr().err


def test_what_is_of_a_stream_needs_one(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, flag in ((["--search", "power_t"], "--search"), (["--missed", "match"], "--missed")):
        assert main(["tune", *NEW, *words]) == 2
        assert f"{flag} applies only to a stream: add -d FILE" in capsys.readouterr().err
    assert main(["tune", "-d", "none.txt"]) == 1
    assert "none.txt: no such file" in capsys.readouterr().err
