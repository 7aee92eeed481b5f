"""The table of learners that act: written, and what is asked of the search holds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from bench.quality.logs import head, load
from bench.quality.on_policy import contenders, main, play

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.ci
def test_table(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    main(["--sets", "surveys", "--events", "300", "--seeds", "2", "--json", str(path)])
    rows = json.loads(path.read_text())["rows"]
    assert [row["who"] for row in rows] == [each.name for each in contenders({"automl": 4})]
    assert all(0 < row["reward"]["low"] <= row["reward"]["high"] < 1 for row in rows)


@pytest.mark.ci
def test_the_wheel_and_ours_do_the_same_without_a_search() -> None:
    log = head(load("flights-u"), 200)
    learners = {each.name: each.make(log) for each in contenders({"automl": 4})}
    ours, wheels = (play(learners[name], log, seed=1) for name in ("ours, -q ::", "VW, -q ::"))
    assert np.array_equal(ours, wheels)


@pytest.mark.bench
def test_what_is_asked_holds() -> None:
    assert main([]) == 0
