"""Feedback of the Open Bandit Pipeline."""

from typing import Any

import numpy as np
import pytest

from onlineauto import AutoML, InputError
from onlineauto.obp import action_dist_of, events_of


def feedback(n: int = 2000, n_actions: int = 3) -> dict[str, Any]:
    """Make feedback in the pipeline's form; the best action is the sign of a number in the context."""
    draw = np.random.default_rng(1)
    context = draw.normal(size=(n, 2))
    action = draw.integers(n_actions, size=n)
    best = (context[:, 0] > 0).astype(int)
    return {
        "n_rounds": n,
        "n_actions": n_actions,
        "context": context,
        "action_context": np.eye(n_actions),
        "action": action,
        "position": np.arange(n) % 2,
        "reward": (action == best).astype(int),
        "expected_reward": None,
        "pi_b": np.full((n, n_actions, 1), 1 / n_actions),
        "pscore": np.full(n, 1 / n_actions),
    }


def test_learns_and_answers_in_the_form_of_the_pipeline() -> None:
    logged = feedback()
    bandit = AutoML().fit(events_of(logged))
    dist = action_dist_of(bandit, logged)
    assert dist.shape == (2000, 3, 2)
    assert dist.sum(axis=1) == pytest.approx(1)
    best = (logged["context"][:, 0] > 0).astype(int)
    assert (dist[1000:, :, 0].argmax(axis=1) == best[1000:]).mean() > 0.85


def test_without_pscore_and_features_of_actions() -> None:
    logged = feedback(10) | {"pscore": None, "action_context": None, "position": None}
    first = next(events_of(logged))
    assert first["probability"] == pytest.approx(1 / 3)
    assert first["actions"] == [{"action": "0"}, {"action": "1"}, {"action": "2"}]
    assert action_dist_of(AutoML(), logged).shape == (10, 3, 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [({"reward": None}, "has no reward"), ({"pscore": [0.5]}, "do not have its 10 rounds")],
)
def test_refusals(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        next(events_of(feedback(10) | change))
