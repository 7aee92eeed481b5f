"""The table of single lines: what a run is, what is made of it, and what happens without AutoVW."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from bench.regression.peer import Peer, PeerError
from bench.regression.peer_worker import answer
from bench.regression.report import Run, printed, verdicts
from bench.regression.single_line import find, lines_of, main, squared_error
from bench.regression.table_worker import table

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.ci
def test_predictions_are_clipped_to_the_labels_so_far() -> None:
    assert squared_error([2, 1, 4], [7, 9, 3.5]) == pytest.approx((0 + 1 + 0.25) / 3)


@pytest.mark.ci
def test_orders_of_the_same_lines() -> None:
    path = find("bikeshare", None)
    assert path is not None
    as_it_is, other, again = (lines_of(path, seed=seed, lines=50) for seed in (0, 1, 1))
    assert as_it_is[0].startswith(b"2.8332 |h 0 ")
    assert other == again != as_it_is
    assert sorted(other) == sorted(as_it_is)


@pytest.mark.ci
def test_a_set_of_another_directory(tmp_path: Path) -> None:
    assert find("synth", None) is None
    (tmp_path / "reg-synth.txt.gz").touch()
    assert find("synth", tmp_path) == tmp_path / "reg-synth.txt.gz"


def runs(ours: float, peer: float, *, seconds: float = 0.1) -> list[Run]:
    stack = Run("a", "stack", 0, 8000, ours, seconds, 1)
    plain, pairs = replace(stack, contender="plain", error=0.3), replace(stack, contender="-q ::", error=0.2)
    slow = [Run("a", "AutoVW NI+LR", seed, 8000, peer + seed, 31.0) for seed in (-1, 0, 1)]
    return [plain, pairs, stack, *slow]


@pytest.mark.ci
def test_verdicts() -> None:
    assert list(verdicts(runs(0.1, 0.15)).values()) == [True, True, True]
    assert list(verdicts(runs(0.1, 0.09)).values()) == [True, False, True]
    assert list(verdicts(runs(0.1, 0.15, seconds=0.2)).values()) == [True, True, False]
    assert list(verdicts(runs(0.25, 0.5)[:3]).values()) == [True]  # of one set, none is asked for
    table = printed(runs(0.1, 0.15), contenders=["plain", "-q ::", "stack", "AutoVW NI+LR"])
    assert "0.1500 (-0.8500-1.1500)" in table
    assert "310" in table


@pytest.mark.ci
def test_tables_without_autovw(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.json"
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    words = ["--lines", "200", "--seeds", "2", "--sets", "synth", "flights", "--json", str(path)]
    assert main([*words, "--peer-python", str(python), "--table-python", str(python)]) in (0, 1)
    shown = capsys.readouterr().out
    assert "AutoVW is left out" in shown
    assert "No module named 'flaml'" in shown
    assert "reg-synth is left out" in shown
    rows = json.loads(path.read_text())
    assert rows["peer"] is rows["table"] is None
    assert [(row["contender"], row["seed"], row["lines"]) for row in rows["runs"]] == [
        (contender, seed, 200)
        for seed in (0, 1)
        for contender in ("plain", "-q ::", "stack", "mix", "champion")
    ]


@pytest.mark.ci
def test_a_worker_that_fails_says_why() -> None:
    assert "no_such_file" in answer({"file": "no_such_file", "learning_rate": False, "seed": 0})["error"]
    with pytest.raises(PeerError, match="ended with code"):
        Peer("false")


@pytest.mark.bench
def test_tables(capsys: pytest.CaptureFixture[str]) -> None:
    done = subprocess.run([sys.executable, "-c", "import flaml.onlineml"], capture_output=True, check=False)
    assert main(["--lines", "2000", "--seeds", "2"]) == 0
    assert ("AutoVW NI" in capsys.readouterr().out) is (done.returncode == 0)


@pytest.mark.ci
def test_numbers_in_words_are_numbers() -> None:
    rows, labels = table(["2 |a 7 x:3 |b red", "1.5 |a 8 |b 4"])
    assert rows == [{"a 0": 7.0, "a x": 3.0, "b 0": "red"}, {"a 0": 8.0, "b 0": "4"}]
    assert labels == [2.0, 1.5]
