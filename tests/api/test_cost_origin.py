"""Rewards that are far from 0 and close together are learnt as well as rewards from 0 to 1."""

from __future__ import annotations

import io

import numpy as np
import pytest

from onlineauto import AutoML, Workspace
from onlineauto.interop import read_vw_model, write_vw_model
from onlineauto.workspace.inspection.inspection import inspection
from onlineauto.workspace.warm_start import challenge
from tests.api.events import saved

ACTIONS = {name: {"article": name} for name in "abcd"}
FEATURES = {"user": ["tom", "ann", "bob", "eve"]}


def _serve(bandit: AutoML, n: int, offset: float, *, begin: int = 0) -> float:
    """Serve events of four users, each of whom likes one action; return the share of right choices."""
    right = 0
    for event in range(begin, begin + n):
        user = (event * event + event // 7) % 4
        choice = bandit.rank({"user": FEATURES["user"][user], "hour": event % 24}, ACTIONS)
        earned = choice.action_id == "abcd"[user]
        bandit.learn(choice.event_id, reward=offset + earned)
        right += earned
    return right / n


def _origin(workspace: Workspace) -> float:
    return float(inspection(workspace, names={})["learnt"]["cost_origin"])


@pytest.mark.parametrize("predictor", ["ensemble", "champion"])
@pytest.mark.parametrize("offset", [1000.0, -1000.0, 1e5])
def test_an_offset_of_all_rewards_changes_little(offset: float, predictor: str) -> None:
    near, far = (AutoML(epsilon=0.1, seed=3, predict_with=predictor) for _ in range(2))
    shares = [_serve(bandit, 600, shift) for bandit, shift in ((near, 0.0), (far, offset))]
    assert shares[1] > shares[0] - 0.05
    assert _serve(far, 300, offset, begin=600) > 0.85
    assert _origin(far.workspace) == pytest.approx(-offset, abs=1)
    assert _origin(near.workspace) == 0.0
    expected = far.predict({"user": "tom", "hour": 3}, ACTIONS)
    assert expected.shape == (4,)


def test_costs_near_zero_have_no_origin() -> None:
    bandit = AutoML(epsilon=0.1, seed=3)
    _serve(bandit, 100, 15.0)
    assert _origin(bandit.workspace) == 0.0


def test_a_loaded_model_equals_one_that_continued() -> None:
    bandit = AutoML(epsilon=0.1, seed=3)
    _serve(bandit, 50, 1000.0)
    for begin in (50, 150):
        again = AutoML.load(saved(bandit))
        for each in (bandit, again):
            _serve(each, 100, 1000.0, begin=begin)
        assert saved(again) == saved(bandit)


def _texts(n: int, offset: float) -> list[str]:
    draw = np.random.default_rng(1)
    events = []
    for _ in range(n):
        user, logged = draw.integers(4, size=2)
        lines = [f"shared |user {FEATURES['user'][user]}"]
        for action, name in enumerate("abcd"):
            label = f"0:{-offset - (action == user):g}:0.25 " if action == logged else ""
            lines.append(f"{label}|article {name}")
        events.append("\n".join(lines) + "\n")
    return events


def test_exported_and_warm_started_models_keep_the_cost_origin() -> None:
    texts = _texts(300, 1000.0)
    bandit = Workspace(cb_adf=True, automl=4, predict_with="champion").fit(texts)
    assert _origin(bandit) == pytest.approx(-1000.5)
    question = "shared |user tom\n|article a\n|article b\n|article c\n|article d\n"
    costs = bandit.predict(question)
    assert costs.min() < -1000
    assert costs.argmin() == 0
    file = io.BytesIO()
    write_vw_model(bandit, file)
    assert read_vw_model(file.getvalue()).predict(question) == pytest.approx(costs, abs=2e-3)
    only_predicts = Workspace.load(io.BytesIO(saved(bandit)))
    assert only_predicts.predict(question).tolist() == costs.tolist()
    for options in ({}, {"l2": 1e-6}, {"predict_with": "champion"}):
        started = AutoML(**options).warm_start(saved(bandit)).workspace
        assert started.predict(question).argmax() == 0
        assert _origin(started) == (0.0 if "l2" in options else pytest.approx(-1000.5))
        started.fit(texts)
        assert started.predict(question).argmax() == 0


def test_a_challenger_from_a_model_without_an_origin() -> None:
    texts = _texts(300, 1000.0)
    bandit = Workspace(cb_adf=True, automl=4, predict_with="champion").fit(texts)
    other = Workspace(cb_adf=True, quadratic="ua", automl=None).fit(_texts(900, 1000.0))
    (cell, _), model = other.learner.shape.constant, other.learner.model
    own = model.weights[cell, other.learner.champion_lanes()[0]]
    lane = bandit.learner.lanes_of(challenge(bandit, other))[0]
    assert own < -1  # among others, the constant has learnt the offset
    assert bandit.learner.model.weights[cell, lane] == pytest.approx(own + 1000.5, abs=1e-3)
