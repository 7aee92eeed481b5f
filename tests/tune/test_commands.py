"""The verbs ``tune``, ``worker`` and ``studies``."""

from __future__ import annotations

import io
import os
import shlex
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from onlineauto.cli.main import main
from onlineauto.errors import OptionError
from onlineauto.tune import Float, Study
from tests.waiting import PATIENCE, until

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
    """Return a folder with a trainable and a space, in which the command runs."""
    (tmp_path / "tuned_in_a_test.py").write_text(TRAINABLE)
    (tmp_path / "space.toml").write_text(SPACE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "tuned_in_a_test", raising=False)
    return tmp_path


class Terminal(io.StringIO):
    """A standard error that is a terminal."""

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
    assert [int(line.split()[1].rstrip(":")) for line in front] == [
        trial.number for trial in study.best_trials
    ]
    assert all(trial.is_feasible for trial in study.best_trials)
    assert main(["studies", url]) == 0
    assert capsys.readouterr().out == f"study: 20 terminated; {len(front)} are dominated by no other\n"
    assert main(["tune", *options, "--mode", "min,down"]) != 0
    assert "mode = ['min', 'down']: valid are min, max" in capsys.readouterr().err


def test_a_study_continues_and_records_its_trainable(
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
def test_a_terminal_shows_the_progress(
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


def test_an_interrupted_study_continues(folder: Path) -> None:
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


def test_the_reason_why_no_trial_has_a_value_is_printed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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
def test_errors_of_arguments_are_named(
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
        (["--automl", "--search", "interactions"], "--automl exclude each other"),
        (["--max_examples", "1"], "one rung"),
        (["--window", "0"], "--window"),
    ],
)
def test_errors_of_a_stream_are_reported(
    words: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tune", "-d", stream(folder, 90), *words]) == 2
    assert message in capsys.readouterr().err


def test_options_of_streams_need_a_stream(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, flag in ((["--search", "power_t"], "--search"), (["--missed", "match"], "--missed")):
        assert main(["tune", *NEW, *words]) == 2
        assert f"{flag} applies only to a stream: add -d FILE" in capsys.readouterr().err
    assert main(["tune", "-d", "none.txt"]) == 1
    assert "none.txt: no such file" in capsys.readouterr().err


def made(url: str, *, name: str = "rates", trials: int = 9) -> Study:
    space = {"rate": Float(0, 1)}
    return Study(space, max_resource=9, name=name, storage=url, max_trials=trials, searcher="random")


def start(folder: Path, url: str, *, stays_after: int = -1) -> subprocess.Popen[bytes]:
    """Start a worker, which does nothing for an hour after a number of steps."""
    command = [sys.executable, "-m", "onlineauto", "worker", "--study", url, "--quiet", "--lease", "2"]
    environment = os.environ | {"STAYS_AFTER": str(stays_after)}
    return subprocess.Popen([*command, "--trainable", "tuned_in_a_test:loss"], cwd=folder, env=environment)


@pytest.mark.lane("ci")
def test_a_worker_runs_a_study_to_its_end(url: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(url)
    assert main(["worker", "--study", url, "--trainable", "tuned_in_a_test:loss"]) == 0
    assert "trial 0 at 1: " in capsys.readouterr().err
    study = Study.load("rates", storage=url)
    assert study.is_done
    assert main(["studies", url]) == 0
    assert capsys.readouterr().out.startswith("rates: 9 terminated; best ")


@pytest.mark.lane("ci")
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
        (["--study", "URL", "--trainable", "tuned_in_a_test:f"], "'tuned_in_a_test' has no 'f'"),
        (["--study", "sqlite:///empty.db"], "empty.db, so no study"),
        (["--study", "URL", "--trainable", "time:time", "--name", "rate"], "there is no study 'rate'"),
        (
            ["--study", "x.db", "--trainable", "time:time", "--name", "rate"],
            "storage = 'x.db' is not a known store",
        ),
        (["--study", "URL", "--workers", "-1"], "--workers"),
    ],
)
def test_errors_of_arguments_of_a_worker_are_named(
    words: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{folder / 'study.db'}"
    made(url)
    assert main(["worker", *(url if word == "URL" else word for word in words)]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.lane("ci")
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


@pytest.mark.lane("ci")
@pytest.mark.parametrize("verb", ["worker", "tune"])
def test_a_termination_within_a_trial_ends_the_command_and_gives_the_job_back(
    verb: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{folder / 'study.db'}"
    study = made(url)
    monkeypatch.setenv("TERMINATED_AFTER", "2")
    monkeypatch.delitem(sys.modules, "tuned_in_a_test", raising=False)
    words = ["--study", url, "--name", "rates", "--trainable", "tuned_in_a_test:loss", "--quiet"]
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
