from __future__ import annotations

import numpy as np
import pytest

from datasets.logs import epsilon_greedy, uniform

pytestmark = pytest.mark.lane("quick")


@pytest.mark.parametrize("actions", [2, 10, 26])
def test_uniform_takes_every_action_equally_often(actions: int) -> None:
    log = uniform(20_000, actions=actions)
    counts = np.bincount(log.actions, minlength=actions)
    expected = 20_000 / actions
    assert len(counts) == actions
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected)
    assert set(log.probabilities) == {1 / actions}


@pytest.mark.parametrize("actions", [2, 10, 26])
def test_epsilon_greedy_states_its_true_probabilities(actions: int) -> None:
    draws = np.random.default_rng(5)
    keys = [str(key) for key in draws.integers(0, 4, 20_000)]
    best = np.array([int(key) % actions for key in keys])
    log = epsilon_greedy(keys, best, actions=actions)
    assert set(log.probabilities.round(9)) == {round(0.2 / actions, 9), round(0.8 + 0.2 / actions, 9)}
    weights = 1 / log.probabilities
    assert abs(weights.mean() - actions) < 5 * weights.std() / np.sqrt(len(weights))
    # told of a tenth of the events, the rule knows the best action of four keys almost from the start
    hits = (log.actions == best).mean()
    assert abs(hits - (0.8 + 0.2 / actions)) < 0.02
    counts = np.bincount(log.actions[log.probabilities < 0.5], minlength=actions)
    assert (counts > 0).all()


def test_the_rule_starts_with_action_0_and_never_looks_ahead() -> None:
    draws = np.random.default_rng(6)
    keys = [str(key) for key in draws.integers(0, 3, 500)]
    best = draws.integers(0, 5, 500)
    changed = best.copy()
    changed[250:] = (changed[250:] + 1) % 5
    before, after = (epsilon_greedy(keys, which, actions=5) for which in (best, changed))
    assert before.actions[:250].tolist() == after.actions[:250].tolist()
    assert before.actions[250:].tolist() != after.actions[250:].tolist()
    first = epsilon_greedy([str(number) for number in range(1000)], np.full(1000, 3), actions=5)
    assert set(first.actions[first.probabilities > 0.5]) == {0}
