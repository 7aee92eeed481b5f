"""The bench of the learners, on a few events."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("river")

from bench.regression.learners import CLASSIFICATIONS, REGRESSIONS, main

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.ci


def test_committed_lines_are_features_by_name() -> None:
    features, label = REGRESSIONS["bikeshare"]()[0]
    assert label == 2.8332
    assert (features["h"], features["temp"]) == ("0", 0.24)


@pytest.mark.parametrize(("name", "sign"), [("TrumpApproval", 1), ("Phishing", -1)])
def test_ahead_of_a_linear_model(
    name: str, sign: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert name in REGRESSIONS | CLASSIFICATIONS
    learners = ["onlineauto", "river linear"]
    file = tmp_path / "learners.json"
    main(["--events", "500", "--orders", "2", "--sets", name, "--learners", *learners, "--json", str(file)])
    results = json.loads(file.read_text())[name]
    ours, linear = (sum(first for first, *_ in results[learner]) for learner in learners)
    assert sign * ours < sign * linear
    assert "onlineauto" in capsys.readouterr().out
