"""The verb ``evaluate``: table, report, picture, and what is wrong with a command line."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from onlineauto import AutoML
from onlineauto.workspace.workspace import Workspace
from tests.cli.conftest import Command
from tests.property.model_draws import draw_stream


@pytest.fixture
def log(tmp_path: Path) -> Path:
    configuration = Workspace(cb_explore_adf=True).configuration
    path = tmp_path / "log.txt"
    path.write_text("".join(draw_stream(random.Random(2), configuration, n=1500)))
    return path


def test_table_report_and_picture(run: Command, log: Path, tmp_path: Path) -> None:
    Workspace(cb_explore_adf=True, quadratic=["::"], bit_precision=10).fit(log).save(tmp_path / "my.model")
    words = ["evaluate", "log.txt", "--policy", "my.model", "--policy", "--cb_explore_adf --epsilon 1 -b 10"]
    shown = run(words, "--picture v.svg --report v.json")
    assert shown.err.startswith("onlineauto: note: my.model is used as it is; if it learnt from this log")
    assert shown.err.count("\n") == 1
    lines = shown.out.splitlines()
    assert lines[0].startswith("average cost over 1500 events")
    report = json.loads((tmp_path / "v.json").read_text())
    assert [each["policy"] for each in report] == ["(as logged)", "my.model", words[-1]]
    for line, each in zip(lines[2:5], report, strict=True):
        assert line.startswith(each["policy"])
        assert f"{each['dr']['value']:.4f} [{each['dr']['low']:.4f}, {each['dr']['high']:.4f}]" in line
    assert lines[6].count("o") >= 1
    assert b"<svg" in (tmp_path / "v.svg").read_bytes()


def test_late_rewards_are_joined(run: Command, tmp_path: Path) -> None:
    log = tmp_path / "decisions.dsjson"
    serving = AutoML(decision_log=log, seed=1)
    for step in range(100):
        choice = serving.rank({"user": "tom"}, [{"shown": "a"}, {"shown": "b"}])
        if step < 90:
            serving.learn(choice, reward=float(choice.action))
    words = ["evaluate", str(log), "--policy", "--cb_explore_adf"]
    shown = run(*words, "--dsjson")
    assert shown.out.startswith("average cost over 90 events")
    assert shown.err.endswith("10 decisions without a reward left out; --default_reward gives them one\n")
    shown = run(*words, "--dsjson --default_reward 0")
    assert shown.out.startswith("average cost over 100 events")
    assert not shown.err
    rewards = tmp_path / "late.dsjson"
    rewards.write_text(f'{{"EventId":"{choice.event_id}","RewardValue":1}}\n')
    assert run(*words, "--dsjson --rewards", rewards).out.startswith("average cost over 1 events")
    run(*words, "--default_reward 0", code=2, err="--default_reward")
    assert run(words, code=1).err.endswith("the log of a decision service: add --dsjson\n")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["log.txt"], 2, "there is no policy to evaluate: name one or more with --policy"),
        (["log.txt", "--policy", "none.model"], 2, "none.model: there is no file none.model"),
        (["log.txt", "--policy", "--cb_explore_adf --epsilom 1"], 2, "did you mean --epsilon?"),
        (["log.txt", "--policy", "log.txt"], 1, "log.txt is not a model file of onlineauto"),
        (["none.txt", "--policy", "--cb_adf"], 1, "none.txt"),
        (["log.txt", "--policy", "--cb_adf", "--picture", "v.doc"], 2, "ends with .svg, .png or .pdf"),
        (["log.txt", "--policy", "--cb_adf", "--cost_range", "1"], 2, "--cost_range cannot be 1"),
    ],
)
def test_refusals(run: Command, log: Path, words: list[str], code: int, message: str) -> None:
    assert log.exists()
    run("evaluate", words, code=code, err=message)


def test_policies_that_differ_have_names_that_differ(run: Command, log: Path) -> None:
    ends = [
        "--cb_explore_adf --learning_rate 0.25 --epsilon 0.1",
        "--cb_explore_adf --learning_rate 0.25 --epsilon 0.01",
    ]
    shown = run("evaluate", log, [word for policy in ends for word in ("--policy", policy)]).out
    names = {line.split("  ")[0] for line in shown.splitlines() if line.startswith("--cb")}
    assert names == {f"--cb_explore...{policy[-25:]}" for policy in ends}
    middles = [f"--cb_explore_adf {rate} --ignore_linear abcdefghij -b 10" for rate in ("-l 0.5", "-l 0.1")]
    shown = run("evaluate", log, [word for policy in middles for word in ("--policy", policy)]).out
    assert {line.split("  ")[0] for line in shown.splitlines() if line.startswith("--cb")} == {*middles}


def test_help(run: Command) -> None:
    assert "--min_prob" in run("evaluate --help").out
