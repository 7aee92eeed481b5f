"""In VW's simulator, on-policy, ours and the wheel live the same lives."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.automl_simulator.scenarios import (
    CUBIC,
    FIFTEEN,
    INCLUSION,
    ONE_DIFF,
    RAND,
    WEIGHTS,
    Life,
    lived,
    wheel_lived,
)
from tests.parity.automl_outputs import state_differences


@pytest.mark.parametrize(
    ("life", "events"),
    [(FIFTEEN, 15), (WEIGHTS, 1331), (RAND, 931), (ONE_DIFF, 645), (INCLUSION, 4132), (CUBIC, 400)],
    ids=["fifteen", "weights", "rand", "one_diff", "inclusion", "cubic"],
)
def test_ours_lives_as_the_wheel_does(life: Life, events: int, tmp_path: Path) -> None:
    theirs, wheel = wheel_lived(life, events, directory=tmp_path)
    rates, seen = lived(life)
    mine = seen[events]
    assert rates[:events] == theirs
    assert not state_differences(wheel.search, mine.search)
    assert (wheel.interactions, wheel.switches) == (mine.interactions, mine.switches)
    assert wheel.weights.as_dict() == mine.weights.as_dict()
