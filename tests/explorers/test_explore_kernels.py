"""The costs and weights that explorers pass to learners."""

from __future__ import annotations

import numpy as np
import pytest

from onlineauto.explorers.exploration import make_exploration
from onlineauto.explorers.explore_kernels import learnt_probability
from onlineauto.explorers.quirks import NO_EXPLORING_QUIRKS
from onlineauto.workspace.options import REGISTRY


@pytest.mark.parametrize(
    ("regresses", "weighs_last", "expected"),
    [
        (False, False, [0.25, 0.25, 0.25]),
        (False, True, [0.25, 0.25, 0.25]),
        (True, False, [1, 1, 1]),
        (True, True, [1, 1, 0.25]),
    ],
)
def test_regression_takes_all_costs_alike_but_where_vw_weighs_the_last_action(
    regresses: bool, weighs_last: bool, expected: list[float]
) -> None:
    quirks = NO_EXPLORING_QUIRKS._replace(weighs_last_action=weighs_last)
    exploration = make_exploration(REGISTRY.parse(["--cb_explore_adf"]), quirks=quirks)
    at = exploration._replace(regresses=regresses)
    found = [learnt_probability(at, np.float32(0.25), action, 3) for action in range(3)]
    assert found == expected
