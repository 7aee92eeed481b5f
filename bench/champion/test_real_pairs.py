"""The table of real pairs: written, and what is asked of the tests holds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from bench.champion.pair_tests import TESTS, Side, differences
from bench.champion.real_pairs import main
from bench.quality.logs import head, load

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from bench.quality.logs import BanditLog

EVENTS = 1500


def _sure(log: BanditLog, action: NDArray[np.int64]) -> Side:
    """Who is sure of an action of each event."""
    costs = np.zeros(log.rewards.shape)
    costs[np.arange(len(costs)), action] = -1
    return Side(greedy=action, costs=costs)


@pytest.mark.ci
def test_table(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    main(["--logs", "penbased-u", "--events", str(EVENTS), "--json", str(path)])
    pairs = json.loads(path.read_text())["pairs"]
    assert [(pair["champion"], pair["challenger"]) for pair in pairs] == [
        ("q::", "ctxZ"),
        ("q::", "best"),
        ("ctxZ", "best"),
        ("none", "aZ"),
        ("ctxZ", "q::"),
    ]
    assert all(set(pair["events"]) == set(TESTS) for pair in pairs)


@pytest.mark.ci
@pytest.mark.parametrize("test", TESTS.values(), ids=TESTS)
def test_who_knows_the_truth_is_better(test: Callable[[BanditLog, Side, Side], int | None]) -> None:
    log = head(load("penbased-u"), EVENTS)
    best = log.rewards.argmax(axis=1)
    right, wrong = _sure(log, best), _sure(log, (best + 1) % 10)
    found = test(log, right, wrong)
    assert found is not None
    assert 0 < found < EVENTS
    assert test(log, wrong, right) is None
    assert test(log, right, right) is None


@pytest.mark.ci
def test_differences_are_of_clipped_predictions() -> None:
    log = head(load("penbased-u"), 50)
    best = log.rewards.argmax(axis=1)
    right = _sure(log, best)
    far = Side(greedy=right.greedy, costs=100 * right.costs)
    assert not differences(log, right, far)[log.observed.argmax() + 1 :].any()


@pytest.mark.bench
def test_what_is_asked_holds() -> None:
    assert main([]) == 0
