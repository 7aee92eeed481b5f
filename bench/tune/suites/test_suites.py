"""The suites and runs of tuners on them, with a few trials; a suite whose package is absent is skipped."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from bench.tune.suites import curves, running
from bench.tune.suites.__main__ import main, normalised
from bench.tune.suites.problems import PROBLEMS
from bench.tune.suites.running import Peers, run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bench.tune.suites.problems import Instance

pytestmark = pytest.mark.ci

SUITES = ("HPOLib", "HPOBench", "NASBench201", "bbob", "bbob-mixint", "MF-Hartmann", "curves")


def instance_of(suite: str, seed: int = 0) -> Instance:
    for problem in PROBLEMS:
        if problem.suite == suite:
            return problem.instance(seed)
    pytest.skip(f"the package with {suite} is not installed")


def drawn(instance: Instance, rng: np.random.Generator) -> Sequence[float]:
    return [
        rng.uniform(low, high)
        if kind == "float"
        else int(rng.integers(int(low), int(high) + (kind == "int")))
        for kind, low, high in instance.space
    ]


@pytest.mark.parametrize("suite", SUITES)
def test_no_config_is_better_than_the_optimum(suite: str) -> None:
    instance, rng = instance_of(suite), np.random.default_rng(0)
    losses = [instance.loss(drawn(instance, rng), instance.highest) for _ in range(200)]
    assert instance.optimum <= min(losses) < max(losses)


@pytest.mark.parametrize("suite", SUITES)
def test_a_seed_repeats_its_run(suite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "SINGLE", 20)
    monkeypatch.setattr(running, "MULTI", 3)
    who = "TPE: the default" if suite in SUITES[:5] else "Hyperband, TPE: the default"
    first, second = (run(who, instance_of(suite, seed=2), 2).regrets for _ in range(2))
    assert first == second
    assert len(first) == running.PARTS
    assert first[-1] >= 0


def test_mf_hartmann_is_hartmann_at_the_highest_level_and_noisy_below() -> None:
    instance = instance_of("MF-Hartmann")
    best = [0.114614, 0.555649, 0.852547]
    assert instance.loss(best, 81) == pytest.approx(instance.optimum, abs=1e-4)
    assert instance.loss(best, 3) > instance.loss(best, 27) > instance.optimum
    assert instance.loss(best, 3) == instance.loss(best, 3)


def test_curves_are_those_of_the_models() -> None:
    """A config of the committed table is trained again, within what versions of scikit-learn differ."""
    pytest.importorskip("sklearn")
    rows = curves.rows_of("load_wine")
    grid = curves.GRIDS["perceptron"]
    at = (4, 2, 0, 0, 0)
    config = {name: values[each] for (name, values), each in zip(grid.items(), at, strict=True)}
    trained = list(curves.perceptron(config, rows))
    assert trained == pytest.approx(curves.read()["perceptron, wine"][at].tolist(), rel=0.02, abs=0.01)


def test_a_job_pays_for_the_levels_that_are_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "MULTI", 1)
    instance = instance_of("curves")

    def tuner(*_: object) -> running.Tuner:
        yield [0] * 5, 9, 0.0
        yield [0] * 5, 27, 0.0
        yield [1] * 5, 1, 0.0

    monkeypatch.setattr(running, "_ours", tuner)
    regrets = run("random", instance, 0).regrets
    first = instance.loss([0] * 5, 27) - instance.optimum
    assert regrets == [np.inf] * 6 + [first] * 14  # 9 of 27 epochs are 6.7 of 20 parts


def test_runs_are_resumed_and_normalised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(running, "MULTI", 1)
    file = tmp_path / "runs.jsonl"
    words = ["run", str(file), "--who", "random", "our DEHB", "--only", "MF-Hartmann: 3", "--seeds"]
    assert main([*words, "1"]) == 0
    before = file.read_text("utf-8")
    assert main([*words, "2"]) == 0
    lines = file.read_text("utf-8").splitlines()
    assert file.read_text("utf-8").startswith(before)
    assert len(lines) == 8
    runs, _ = normalised(lines)
    assert np.median([each[-1] for each in runs["MF-Hartmann", "3 numbers, bad"]["random"].values()]) == 1
    assert main(["table", str(file)]) == 0
    assert "| MF-Hartmann | our DEHB | 2 | 2 |" in capsys.readouterr().out


def test_a_peer_is_asked_and_told_over_lines_of_json(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("optuna")
    monkeypatch.setattr(running, "SINGLE", 20)
    monkeypatch.setattr(running, "MULTI", 2)
    peers = Peers(sys.executable)
    ours = run("random", instance_of("curves"), 0)
    try:
        first, second = (
            run("Optuna TPE + Hyperband pruner", instance_of("curves"), 1, peers) for _ in range(2)
        )
    finally:
        peers.close()
    assert first.regrets == second.regrets != ours.regrets
    assert first.cost > 0
    assert json.dumps(first.regrets)
