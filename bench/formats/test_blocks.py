"""The benchmark of blocks works; with ``-m bench``, it meets its target."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from bench.formats.blocks import STREAMS, main

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.ci
def test_it_writes_what_it_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--rounds", "2", "--scale", "0.01", "--json", str(tmp_path / "b.json")])
    rows = json.loads((tmp_path / "b.json").read_text())["rows"]
    assert [row["stream"] for row in rows] == list(STREAMS)
    assert all(len(row["text_seconds"]) == len(row["blocks_seconds"]) == 2 for row in rows)
    assert f"{rows[0]['times']:.2f}" in capsys.readouterr().out


@pytest.mark.bench
def test_blocks_are_read_three_times_as_fast_as_text() -> None:
    assert main([]) == 0
