"""The bench of off-policy values: it runs, and its intervals hold."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from bench.quality.off_policy import main

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.ci


def test_table(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    words = ["--logs", "surveys-e", "--events", "600", "--seeds", "5", "--json", str(path)]
    assert main(words) == 0
    document = json.loads(path.read_text())
    assert len(document["rows"]) == 6
    for row in document["rows"]:
        assert row["errors"]["dr"] < row["widths"]["dr"]
