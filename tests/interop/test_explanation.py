"""Explanations: their parts add up to the scores, and terms of features are those of the model."""

from __future__ import annotations

import io
import json
from functools import cache
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlineauto import AutoML, Workspace
from onlineauto.errors import OptionError
from onlineauto.interop.explanation import explain
from tests.engine.ensemble_streams import odd

LINEAR = "features,ridge"
ALL = "features,waves,crosses,layer,baseline,ridge,means,trees"
USERS = ("ann", "tom", "eve")


def odd_event(word: int, x: float, actions: list[int]) -> str:
    lines = "".join(f"|a a{action}\n" for action in actions)
    return f"shared |w w{word} |n x0:{x:.3f}\n{lines}\n"


def text(user: str, age: float, label: str = "") -> str:
    return f"shared |u {user} age:{age:.3f}\n{label}|a art\n|a sports\n\n"


@cache
def learnt(members: str) -> Workspace:
    """Return a model whose ensemble predicts."""
    workspace = Workspace(cb_explore_adf=True, automl=2, hash_bits=10, members=members)
    workspace.fit(odd(1500, numbers=1))
    assert workspace.searching.predicts[0] == "ensemble"
    return workspace


EVENTS = st.builds(
    odd_event,
    st.integers(0, 4),
    st.floats(-3, 3),
    st.lists(st.integers(0, 5), min_size=1, max_size=5, unique=True),
)


@pytest.mark.parametrize("members", [LINEAR, ALL])
@settings(max_examples=30, deadline=None)
@given(event=EVENTS)
def test_the_parts_add_up_to_the_score(members: str, event: str) -> None:
    workspace = learnt(members)
    costs = workspace.scored(event, lambda scored: scored.context.buffers.score[:, -1].copy())
    found = explain(workspace, event)
    for row, cost in zip(found["actions"], costs, strict=False):
        assert row["cost"] == pytest.approx(cost, abs=1e-5)
        assert row["level"] + sum(row["members"].values()) == pytest.approx(cost, abs=1e-5)
        total = row["level"] + sum(row["features"].values()) + sum(row["rest"].values())
        assert total == pytest.approx(cost, abs=1e-4)


@settings(max_examples=20, deadline=None)
@given(event=EVENTS)
def test_a_snapshot_explains_the_same(event: str) -> None:
    workspace = learnt(ALL)
    assert explain(workspace.predictor(), event) == explain(workspace, event)


def test_an_explanation_of_the_ensemble_is_json() -> None:
    found = explain(learnt(ALL), odd_event(1, 0.4, [0, 1, 2, 3]))
    assert found["predicts"] == "ensemble"
    assert msgspec.json.decode(msgspec.json.encode(found)) == found


def test_constants_of_linear_members_are_in_the_level() -> None:
    workspace = learnt(LINEAR)
    found = explain(workspace, odd_event(1, 0.4, [0, 1, 2, 3]))
    assert found["predicts"] == "ensemble"
    for row in found["actions"]:
        assert set(row["members"]) == {"champion", "live config 1", "features", "ridge"}
        assert row["rest"] == {}  # not the mean of all costs, which ridge adds for every action
    [*known, new] = explain(workspace, odd_event(1, 0.4, [0, 1, 77]))["actions"]
    assert new["rest"].keys() == {"features", "ridge"}  # no regressions of its own
    assert all(row["rest"] == {} for row in known)


def test_members_that_are_not_linear_are_the_rest() -> None:
    rows = explain(learnt(ALL), odd_event(1, 0.4, [0, 1, 2, 3]))["actions"]
    assert any(set(row["rest"]) & {"waves", "layer", "crosses"} for row in rows)
    assert not any("features" in row["rest"] for row in rows)


def test_terms_of_a_linear_model_are_weights_times_values() -> None:
    workspace = Workspace(cb_explore_adf=True, quadratic="ua", hash_bits=18)
    for i in range(60):
        workspace.learn(text(USERS[i % 3], i % 4, label=f"0:{-(i % 3)}:0.5 "))
    row = explain(workspace, text("tom", 2))["actions"][0]
    assert set(row["features"]) == {"u^tom", "u^age", "a^art", "Constant", "u^tom*a^art", "u^age*a^art"}
    without = explain(workspace, text("tom", 0))["actions"][0]  # a feature of value 0 is not read
    age = row["features"]["u^age"] + row["features"]["u^age*a^art"]
    assert row["cost"] - without["cost"] == pytest.approx(age, abs=1e-6)


def test_a_bandit_explains_rewards_by_the_names_of_its_values() -> None:
    bandit = AutoML(seed=7)
    for step in range(120):
        context = {"user": ("tom", "ann")[step % 2], "age": step % 5}
        choice = bandit.rank(context, {"a1": {"topic": "art"}, "b2": {"topic": "sports"}})
        bandit.learn(choice, reward=float((choice.action == 0) == (step % 2 == 0)))
    found = bandit.explain({"user": "tom", "age": 3}, {"a1": {"topic": "art"}, "b2": {"topic": "sports"}})
    assert found == json.loads(json.dumps(found))
    art, sports = found["actions"]
    assert (art["action_id"], sports["action_id"]) == ("a1", "b2")
    assert art["reward"] > sports["reward"]
    assert art["features"]["topic=art*user=tom"] > 0
    np.testing.assert_array_equal(
        [art["probability"], sports["probability"]],
        bandit.predict({"user": "tom", "age": 3}, [{"topic": "art"}, {"topic": "sports"}]),
    )


@pytest.mark.parametrize(
    "options",
    [
        {"quadratic": "ua"},
        {"quadratic": "ua", "cb_type": "dr"},
        {"quadratic": "ua", "l1": 1e-3, "l2": 1e-3},
        {"automl": 2},
    ],
)
def test_a_model_of_exact_mode_is_explained_and_does_not_change(options: dict[str, Any]) -> None:
    kind = "cb_explore_adf" if "automl" in options else "cb_adf"
    workspace = Workspace(**{kind: True, "vw_exact": True, "hash_bits": 10, **options})
    workspace.fit([text(USERS[i % 3], i % 4, label=f"0:{-(i % 3)}:0.5 ") for i in range(60)])
    before, after = io.BytesIO(), io.BytesIO()
    workspace.save(before)
    rows = explain(workspace, text("tom", 2))["actions"]
    workspace.save(after)
    assert after.getvalue() == before.getvalue()
    predicted = [row["cost" if kind == "cb_adf" else "probability"] for row in rows]
    np.testing.assert_allclose(predicted, workspace.predict(text("tom", 2)), atol=1e-6)
    for row in rows:
        assert sum(row["features"].values()) == pytest.approx(row["cost"], abs=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs a model of --cb_explore_adf"),
        ({"ccb_explore_adf": True}, "needs a model of --cb_explore_adf"),
        ({"cb_explore_adf": True, "bag": 2}, "--bag has several"),
    ],
)
def test_error_names_the_part_that_cannot_be_explained(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        explain(Workspace(**options), text("tom", 1))


def test_parts_add_up_with_more_actions_than_regressions() -> None:
    workspace = Workspace(cb_explore_adf=True, automl=2, hash_bits=10).fit(odd(2500, actions=130, numbers=1))
    event = odd_event(1, 0.4, list(range(130)))
    costs = workspace.scored(event, lambda scored: scored.context.buffers.score.copy())
    found = explain(workspace, event)
    column = -1 if found["predicts"] == "ensemble" else 0
    for row, cost in zip(found["actions"], costs[:130, column], strict=True):
        assert row["level"] + sum(row["members"].values()) == pytest.approx(cost, abs=1e-5)
        total = row["level"] + sum(row["features"].values()) + sum(row["rest"].values())
        assert total == pytest.approx(cost, abs=1e-4)
    assert found["predicts"] == "ensemble"
