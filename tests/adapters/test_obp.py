"""Feedback of the Open Bandit Pipeline."""

import warnings
from typing import Any

import numpy as np
import pytest

from onlineauto import AutoML, InputError
from onlineauto.obp import action_dist_of, events_of

pytestmark = pytest.mark.lane("sampled")


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


def test_feedback_as_the_open_bandit_dataset_has_it() -> None:
    """Keys, types and shapes are those of the small data set in the package."""
    draw, n, n_actions = np.random.default_rng(2), 60, 80
    logged = {
        "n_rounds": n,
        "n_actions": n_actions,
        "action": draw.integers(n_actions, size=n),
        "position": draw.integers(3, size=n),
        "reward": (draw.random(n) < 0.1).astype(int),
        "pscore": np.full(n, 1 / n_actions),
        "context": draw.random((n, 20)) < 0.2,
        "action_context": np.column_stack(
            [draw.normal(size=n_actions), draw.integers(9, size=(n_actions, 3))]
        ),
    }
    first = next(events_of(logged))
    assert set(first["context"]) == {"context", "position"}
    assert first["actions"][7]["action"] == "7"
    dist = action_dist_of(AutoML().fit(events_of(logged)), logged)
    assert dist.shape == (n, n_actions, 3)
    assert dist.sum(axis=1) == pytest.approx(1)


def test_the_pipeline_itself() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dataset: Any = pytest.importorskip("obp.dataset", exc_type=ImportError)
        made = dataset.SyntheticBanditDataset(n_actions=3, dim_context=4, random_state=1)
        logged = made.obtain_batch_bandit_feedback(n_rounds=2000)
    dist = action_dist_of(AutoML().fit(events_of(logged)), logged)
    value = made.calc_ground_truth_policy_value(expected_reward=logged["expected_reward"], action_dist=dist)
    assert value > logged["reward"].mean()


@pytest.mark.parametrize(
    ("change", "message"),
    [({"reward": None}, "has no reward"), ({"pscore": [0.5]}, "do not have its 10 rounds")],
)
def test_refusals(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        next(events_of(feedback(10) | change))


def test_actions_are_named_by_number_too() -> None:
    logged = feedback(400) | {"action_context": None}
    bandit = AutoML().fit(events_of(logged))
    assert bandit.workspace.identities == {"action^action"}
    context = next(events_of(logged))["context"]
    by_number = bandit.predict(context, [{"action": number} for number in range(3)])
    by_name = bandit.predict(context, [{"action": str(number)} for number in range(3)])
    assert by_number.tolist() == by_name.tolist()
    assert by_number.max() > 0.5
