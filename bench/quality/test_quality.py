"""The table of the search on bandit logs: written, and what is asked of it holds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from bench.quality import __main__ as quality
from bench.quality.__main__ import main
from bench.quality.logs import head, load
from bench.quality.report import BASE, BEST, LINEAR, Measured, comparisons, means, rows
from bench.quality.runs import Run, fixed_configs, from_flags, option, run_ours

if TYPE_CHECKING:
    from pathlib import Path

    from onlineauto.options import Configuration

SHORT = ["--sets", "penbased", "--events", "1500", "--seeds", "2", "--forest", "0"]


def _table(path: Path, *words: str) -> dict[str, Any]:
    main([*words, "--json", str(path)])
    document: dict[str, Any] = json.loads(path.read_text())
    return document


@pytest.mark.ci
def test_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ours = ["--automl 4", "--automl 4 --champion_test reward"]
    document = _table(tmp_path / "rows.json", *SHORT, "--ours", *ours, "--peer-seeds", "0")
    assert document["ours"] == ours
    assert [(row["log"], row["who"]) for row in document["rows"]] == [
        (log, who) for log in ("penbased-u", "penbased-e") for who in (BASE, LINEAR, BEST, *ours)
    ]
    assert {mean["group"] for mean in document["means"]} == {"tuned, uniform", "tuned, ε-greedy"}
    whole = {(run["log"], run["seed"], run["who"]): run["rewards"][0] for run in document["runs"]}
    for run in document["runs"]:
        low, high = (whole[run["log"], run["seed"], who] for who in (BASE, BEST))
        assert run["scores"][0] == pytest.approx((run["rewards"][0] - low) / (high - low))
        assert run["rewards"][2:] == [pytest.approx(run["rewards"][2]), None]
    assert "1 tuned, uniform" in capsys.readouterr().out


@pytest.mark.ci
def test_a_run_anew_measures_only_what_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["--sets", "letter", "--kinds", "u", "--events", "600", "--seeds", "1", "--peer-seeds", "0"]
    words += ["--cache", str(tmp_path / "cache.jsonl")]
    first = _table(tmp_path / "1.json", *words, "--ours", "--automl 2")
    asked: list[str] = []

    def run(path: Path, configuration: Configuration) -> Run:
        asked.append(configuration.command())
        return run_ours(path, configuration)

    monkeypatch.setattr(quality, "run_ours", run)
    assert _table(tmp_path / "2.json", *words, "--ours", "--automl 2") == first
    assert not asked
    _table(tmp_path / "3.json", *words, "--ours", "--automl 2", "--automl 3")
    assert set(asked) == {from_flags("--automl 3").command()}


def _one(log: str, who: str, *rewards: float) -> Measured:
    return Measured(log, 0, who, (*rewards, None, None), (None,) * 4, 1.0)


@pytest.mark.ci
def test_comparisons() -> None:
    measured = [
        *(_one("letter-u", who, 0.3, 0.4) for who in (BASE, LINEAR)),
        _one("letter-u", "LightGBM", 0.5, 0.4),
        _one("letter-u", "LightGBM each", 0.2, 0.7),
        _one("letter-u", "x", 0.55, 0.5),
        _one("letter-n-u", BASE, 0.5, 0.4),
        _one("letter-n-u", LINEAR, 0.1, 0.4),
        _one("letter-n-u", "x", 0.45, 0.5),
    ]
    assert comparisons(measured, "x") == [
        "behind LightGBM, whole or second half: 1 of 1, letter-u by 0.200",
        "more than .002 below -q :: or context x action, worst seed: 1 of 2, letter-n-u by 0.050",
        "letter-n-u: +0.100 below bins by hand",
    ]


@pytest.mark.ci
def test_fixed_configs() -> None:
    penbased, letter = (fixed_configs(head(load(f"{name}-u"), 10)) for name in ("penbased", "letter"))
    assert list(penbased) == ["ctxZ", "cubics", "products"]
    assert list(letter) == ["ctxZ", "cubics"]
    assert letter["ctxZ"] == {"quadratic": [f"{name}Z" for name in "abcdefgh"]}
    assert len(letter["cubics"]["cubic"]) == 28
    assert penbased["products"]["cubic"] == ["chZ", "ahZ", "ehZ"]


@pytest.mark.ci
def test_values_of_options() -> None:
    assert option("champion_test=reward") == ("champion_test", "reward")
    assert option("feature_cost=0.0") == ("feature_cost", 0.0)
    assert option("reward_as_cost=True") == ("reward_as_cost", True)


@pytest.mark.ci
def test_nothing_measured() -> None:
    assert not rows([])
    assert not means([])


@pytest.mark.bench
def test_what_is_asked_holds(tmp_path: Path) -> None:
    document = _table(tmp_path / "rows.json")
    assert document["verdicts"]
    assert all(document["verdicts"].values())
