"""The table of lazy comparisons: written, and every decision as in full."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from bench.champion.lazy_bounds import main

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.ci
def test_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.json"
    assert main(["--checks", "36000", "--json", str(path)]) == 0
    rows = json.loads(path.read_text())
    assert len(rows) == 9
    for row in rows:
        assert row["checks"] == 4000
        assert row["by_means"] + row["by_wealth"] + row["in_full"] == pytest.approx(1)
    assert "36,000 comparisons, 0 decided differently" in capsys.readouterr().out


@pytest.mark.bench
def test_a_million_decisions_are_as_in_full() -> None:
    assert main(["--checks", "1000000"]) == 0
