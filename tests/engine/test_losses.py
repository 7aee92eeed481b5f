"""The progressive loss of a decision is the expected cost of its policy, by the logged probability."""

from __future__ import annotations

from typing import Any

import pytest

from onlineauto import Workspace
from onlineauto.interop import from_dicts

pytestmark = pytest.mark.lane("quick")

_ACTIONS = [{"a": "x"}, {"a": "y"}]


def _loss(weight: float, **options: Any) -> float:
    """Return the loss of the second of two equal events, of which the last has a weight."""
    logged = {"actions": _ACTIONS, "chosen": 1, "cost": -0.5, "probability": 0.25}
    bandit = Workspace(**options)
    [block] = from_dicts([logged | {"weight": 1.0}, logged | {"weight": weight}])
    return float(bandit.learn_block(block).loss[1])


@pytest.mark.parametrize("weight", [0.5, 1.0, 3.0])
def test_the_loss_of_a_policy_is_its_expected_cost_times_the_weight(weight: float) -> None:
    assert _loss(weight, cb_explore_adf=True, epsilon=0.2) == pytest.approx(weight * 0.9 * -0.5 / 0.25)


@pytest.mark.parametrize("weight", [0.5, 3.0])
def test_without_exploration_the_weight_does_not_count(weight: float) -> None:
    assert _loss(weight, cb_adf=True) == _loss(1.0, cb_adf=True) == -2


def test_unlabelled_event_has_no_loss() -> None:
    [block] = from_dicts([{"actions": _ACTIONS}])
    found = Workspace(cb_explore_adf=True).learn_block(block)
    assert (found.loss[0], found.labelled[0], found.prediction[0]) == (0, False, 1)
