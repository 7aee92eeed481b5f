"""The table of the search on bandit logs: written, and what is asked of it holds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.bench.bandit_logs import head, load
from tests.bench.bandit_runs import fixed_configs, option
from tests.bench.quality import main, means, rows

if TYPE_CHECKING:
    from pathlib import Path

SHORT = ["--sets", "penbased", "--events", "1500", "--seeds", "2"]


def _table(path: Path, *words: str) -> dict[str, Any]:
    main([*words, "--json", str(path)])
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def test_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = _table(tmp_path / "rows.json", *SHORT, "--option", "champion_test=reward")
    assert document["search"] == {"automl": 4, "champion_test": "reward"}
    assert [(row["log"], row["who"]) for row in document["rows"]] == [
        (log, who) for log in ("penbased-u", "penbased-e") for who in ("ours", "VW")
    ]
    assert [(mean["kind"], mean["logs"]) for mean in document["means"]] == 2 * [("uniform", 1)] + 2 * [
        ("ε-greedy", 1)
    ]
    for run in document["runs"]:
        assert 0 < run["base"] < run["best"] < 1
        assert run["score"] == pytest.approx((run["reward"] - run["base"]) / (run["best"] - run["base"]))
    assert "mean of 1 uniform logs" in capsys.readouterr().out


def test_fixed_configs() -> None:
    penbased, letter = (fixed_configs(head(load(f"{name}-u"), 10)) for name in ("penbased", "letter"))
    assert list(penbased) == ["ctxZ", "cubics", "products"]
    assert list(letter) == ["ctxZ", "cubics"]
    assert letter["ctxZ"] == {"quadratic": [f"{name}Z" for name in "abcdefgh"]}
    assert len(letter["cubics"]["cubic"]) == 28
    assert penbased["products"]["cubic"] == ["chZ", "ahZ", "ehZ"]


def test_values_of_options() -> None:
    assert option("champion_test=reward") == ("champion_test", "reward")
    assert option("feature_cost=0.0") == ("feature_cost", 0.0)
    assert option("reward_as_cost=True") == ("reward_as_cost", True)


def test_nothing_measured() -> None:
    assert not rows([])
    assert not means([])


@pytest.mark.bench
def test_what_is_asked_holds(tmp_path: Path) -> None:
    document = _table(tmp_path / "rows.json")
    assert document["verdicts"]
    assert all(document["verdicts"].values())
