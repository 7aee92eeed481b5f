"""In VW's simulator, on-policy, exact mode and VW have the same rewards, decisions and weights."""

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
    vw_lived,
)
from tests.parity.automl_outputs import state_differences


@pytest.mark.parametrize(
    ("life", "events"),
    [(FIFTEEN, 15), (WEIGHTS, 1331), (RAND, 931), (ONE_DIFF, 645), (INCLUSION, 4132), (CUBIC, 400)],
    ids=["fifteen", "weights", "rand", "one_diff", "inclusion", "cubic"],
)
def test_exact_mode_equals_vw_on_policy(life: Life, events: int, tmp_path: Path) -> None:
    expected, vw = vw_lived(life, events, directory=tmp_path)
    rates, seen = lived(life)
    actual = seen[events]
    assert rates[:events] == expected
    assert not state_differences(vw.search, actual.search)
    assert (vw.interactions, vw.switches) == (actual.interactions, actual.switches)
    assert vw.weights.as_dict() == actual.weights.as_dict()
