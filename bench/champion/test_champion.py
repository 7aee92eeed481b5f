"""The tables of the champion test: written, and what is asked of it holds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from bench.champion.__main__ import main

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.bench
def test_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.json"
    assert main(["--streams", "400", "--json", str(path)]) == 0
    tables = json.loads(path.read_text())
    assert (len(tables["power"]), len(tables["null"]), len(tables["delay"])) == (24, 15, 3)
    assert "NO" not in capsys.readouterr().out
