"""Scaled SquareCB: when it is the default, what it does not change, and that it needs no unit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onlineauto import AutoML, Workspace
from onlineauto.explorers.options import choose_explorer
from onlineauto.explorers.policy import Policy
from onlineauto.workspace.options import REGISTRY
from tests.engine.ensemble_streams import odd


@pytest.mark.parametrize(
    ("flags", "name"),
    [
        ("--cb_explore_adf --automl", "scaled_squarecb"),
        ("--cb_explore_adf --automl 8 --cb_type dr --predict_with champion", "scaled_squarecb"),
        ("--cb_explore_adf --automl --gamma_scale 3", "scaled_squarecb"),
        ("--cb_explore_adf --scaled_squarecb --epsilon 0.1", "scaled_squarecb"),
        ("--cb_explore_adf", "greedy"),
        ("--cb_explore_adf --automl --epsilon 0.05", "greedy"),
        ("--cb_explore_adf --automl --first_only", "greedy"),
        ("--cb_explore_adf --automl --vw_exact", "greedy"),
        ("--cb_explore_adf --automl --softmax", "softmax"),
        ("--ccb_explore_adf --automl", "greedy"),
        ("--cb_explore 3 --automl", "greedy"),
        ("--cb_adf --automl", "greedy"),
        ("--automl", "greedy"),
    ],
)
def test_it_is_the_default_of_searches_that_choose_no_explorer(flags: str, name: str) -> None:
    configuration = REGISTRY.parse(flags)
    assert choose_explorer(configuration).name == name
    assert not configuration.warnings


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "scaled_squarecb"),
        ({"explorer": "scaled_squarecb", "live_configs": None}, "scaled_squarecb"),
        ({"epsilon": 0.2}, "greedy"),
        ({"explorer": "greedy", "epsilon": 0.2}, "greedy"),
        ({"explorer": "greedy"}, "greedy"),
        ({"live_configs": None}, "greedy"),
    ],
)
def test_the_default_of_bandits(options: dict[str, Any], name: str) -> None:
    assert choose_explorer(AutoML(**options).workspace.configuration).name == name


def test_learning_a_log_does_not_depend_on_it() -> None:
    log = odd(600, numbers=1)
    default, greedy = (
        Workspace(cb_explore_adf=True, automl=2, hash_bits=10, epsilon=epsilon).fit(log)
        for epsilon in (None, 0.05)
    )
    assert default.weights.tobytes() == greedy.weights.tobytes()
    event = "shared |w w1 |n x0:0.4\n|a a0\n|a a1\n|a a2\n|a a3\n"
    assert default.predict(event).argmax() == greedy.predict(event).argmax()


@pytest.mark.parametrize("unit", [1e-6, 0.25, 4096.0, 1e9])
def test_probabilities_are_the_same_in_any_unit_of_costs(unit: float) -> None:
    policy = Policy(scaled_squarecb=True)
    pmf, again = (
        policy.pmf(np.array([0.5, -0.25, 2.0]) * each, learnt=50, error=0.5 * each) for each in (1.0, unit)
    )
    np.testing.assert_allclose(pmf, again, rtol=1e-4)


def test_all_actions_have_equal_probabilities_until_costs_differ() -> None:
    workspace = Workspace(cb_explore_adf=True, automl=2, hash_bits=10)
    for cost in (0, 0, 0):
        pmf = workspace.learn(f"shared |u x\n0:{cost}:0.5 |a a\n|a b\n")
    np.testing.assert_allclose(pmf, [0.5, 0.5])


def test_better_predictions_explore_less() -> None:
    scores, policy = [0.1, 0.3, 0.9], Policy(scaled_squarecb=True)
    chances = [policy.pmf(scores, learnt=100, error=error)[0] for error in (1.0, 0.3, 0.1)]
    assert chances == sorted(chances)
    assert policy.pmf(scores, learnt=100, error=0.0).tolist() == pytest.approx([1 / 3] * 3)
