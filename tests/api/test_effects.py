"""Explanations of regressions and classes add up to the prediction, in the unit of the labels."""

from __future__ import annotations

import copy
import io
import pickle
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlineauto import AutoML, AutoMLClassifier, AutoMLRegressor, InputError, OptionError
from onlineauto.api.effects import effects_of, effects_of_actions, parts_of
from onlineauto.pictures import effects, parts

DRAW = Random(0)
ROWS: list[dict[str, Any]] = [
    {"rooms": DRAW.randint(1, 5), "town": DRAW.choice(["Ulm", "Bonn"]), "noise": DRAW.random()}
    for _ in range(1500)
]
RENTS = [300.0 * row["rooms"] * (1 + (row["town"] == "Bonn")) for row in ROWS]
SIZES = ["large" if row["rooms"] > 3 else "small" for row in ROWS]
ROW = st.dictionaries(st.sampled_from("abcd"), st.floats(-3, 3), max_size=4)


@pytest.fixture(scope="module")
def regressor() -> AutoMLRegressor:
    return AutoMLRegressor().fit(ROWS, RENTS)


@pytest.fixture(scope="module")
def classifier() -> AutoMLClassifier:
    return AutoMLClassifier().fit(ROWS, SIZES)


@given(ROW, st.lists(ROW, min_size=1, max_size=3))
def test_parts_add_up_and_a_feature_without_effect_has_none(
    event: dict[str, float], background: list[dict[str, float]]
) -> None:
    def predict(rows: Any) -> Any:
        return np.array(
            [[row.get("a", 1) * row.get("b", 2) + row.get("c", 0), row.get("a", 0)] for row in rows]
        )

    found = parts_of(predict, event, background)
    np.testing.assert_allclose(found.prediction, predict([event])[0])
    np.testing.assert_allclose(found.base, predict(background).mean(axis=0))
    np.testing.assert_allclose(found.base + sum(found.parts.values()), found.prediction, atol=1e-9)
    assert not np.any(found.parts.get("d", 0))


def test_a_regression_is_explained_in_the_unit_of_its_labels(regressor: AutoMLRegressor) -> None:
    event = {"rooms": 4, "town": "Bonn", "noise": 0.5}
    [found] = regressor.explain(event, ROWS)["predictions"]
    assert found["prediction"] == pytest.approx(regressor.predict(event)) == pytest.approx(2400, rel=0.1)
    assert found["base"] == pytest.approx(np.mean(RENTS), rel=0.15)
    assert found["base"] + sum(found["features"].values()) == pytest.approx(found["prediction"])
    assert list(found["features"])[2] == "noise"
    [alone] = regressor.explain(event)["predictions"]
    assert alone["base"] == pytest.approx(regressor.predict({}))


def test_classes_are_explained_one_by_one(classifier: AutoMLClassifier) -> None:
    found = classifier.explain({"rooms": 5, "town": "Ulm", "noise": 0.5}, ROWS)
    assert [each["label"] for each in found["predictions"]] == classifier.labels
    large = next(each for each in found["predictions"] if each["label"] == "large")
    assert large["probability"] > 0.9
    assert next(iter(large["features"])) == "rooms"
    assert large["base"] + sum(large["features"].values()) == pytest.approx(large["probability"])


def test_effects_have_the_largest_first(regressor: AutoMLRegressor, classifier: AutoMLClassifier) -> None:
    found = regressor.effects(ROWS)
    assert list(found["features"])[2] == "noise"
    rooms = found["features"]["rooms"]
    sizes = [each["size"] for each in found["features"].values()]
    assert sizes == sorted(sizes, reverse=True)
    assert rooms["size"] == pytest.approx(np.ptp(rooms["predictions"]), rel=0.05)  # the same for both towns
    assert rooms["values"] == [1, 2, 3, 4, 5]
    np.testing.assert_allclose(np.diff(rooms["predictions"]), 450, rtol=0.25)
    assert set(found["features"]["town"]["values"]) == {"Ulm", "Bonn"}
    of_labels = classifier.effects(ROWS)
    assert of_labels["features"]["rooms"]["predictions"].shape == (5, 2)
    for model in (regressor, classifier):
        with pytest.raises(InputError, match="there are no rows"):
            model.effects([])


def test_effects_that_cancel_between_rows_have_a_size() -> None:
    rows = [{"a": sign, "b": 1} for sign in (-1, 1)]
    effect = effects_of(
        lambda rows: np.array([[row["a"] * row["b"]] for row in rows]), [*rows, {"a": 1, "b": 0}]
    )
    assert effect["b"].means.ravel() == pytest.approx([0, 1 / 3])
    assert effect["b"].size == 1


ARTICLES = {"a1": {"topic": "art", "shape": {"words": 3}}, "b7": {"topic": "sports", "shape": {"words": 2}}}


def visit_of(step: int) -> dict[str, Any]:
    return {"user": {"name": ("tom", "ann")[step % 2], "age": step % 7}, "hour": step % 24}


@pytest.fixture(scope="module")
def bandit() -> AutoML:
    model = AutoML(seed=7)
    for step in range(600):
        choice = model.rank(visit_of(step), ARTICLES)
        model.learn(choice, reward=float((step % 2 == 0) == (choice.action_id == "a1")))
    return model


def test_effects_of_a_bandit_are_of_contexts_and_of_actions(bandit: AutoML) -> None:
    contexts = [visit_of(step) for step in range(80)]
    found = bandit.effects(contexts, ARTICLES)
    assert found["labels"] == ["a1", "b7"]
    features = found["features"]
    assert {*features} == {"user.name", "user.age", "hour", "actions.topic", "actions.shape.words"}
    assert {*list(features)[:2]} == {"user.name", "actions.topic"}
    user = features["user.name"]
    by_name = dict(zip(user["values"], user["predictions"], strict=True))
    assert by_name["tom"][0] - by_name["ann"][0] == pytest.approx(1, abs=0.2)
    assert by_name["ann"][1] - by_name["tom"][1] == pytest.approx(1, abs=0.2)
    assert user["size"] == pytest.approx(1, abs=0.2)
    of_one = bandit.effects([contexts[0]], ARTICLES)["features"]  # other values are those of actions
    assert {*of_one} == {"actions.topic", "actions.shape.words"}
    assert len(effects(found).figure.axes) == 6
    assert bandit.effects(contexts, list(ARTICLES.values()))["labels"] == [0, 1]


def test_effects_of_a_bandit_average_its_explained_rewards(bandit: AutoML) -> None:
    contexts = [visit_of(step + 3) for step in range(5)]  # with the hours 3 to 7
    hour = bandit.effects(contexts, ARTICLES)["features"]["hour"]
    explained = [
        [row["reward"] for row in bandit.explain({**each, "hour": 7}, ARTICLES)["actions"]]
        for each in contexts
    ]
    np.testing.assert_allclose(
        hour["predictions"][hour["values"].index(7)], np.mean(explained, axis=0), atol=1e-5
    )


def test_effects_of_a_bandit_reject_what_has_none(bandit: AutoML) -> None:
    cases: list[tuple[Any, Any, str]] = [
        ([], ARTICLES, "there are no rows"),
        ({"x": 1}, ARTICLES, "row 0 is .*, not a mapping"),
        ([{"user": "tom", "hour": 3}], [], "actions is empty"),
        ([{"user": "tom", "hour": 3}], ["a1"], "action 0"),
    ]
    for contexts, actions, message in cases:
        with pytest.raises(InputError, match=message):
            bandit.effects(contexts, actions)
    with pytest.raises(OptionError, match="several"):
        AutoML(bag=2).effects([visit_of(0)], ARTICLES)


def test_pictures_show_parts_and_effects(regressor: AutoMLRegressor, classifier: AutoMLClassifier) -> None:
    for model, panels in ((regressor, 1), (classifier, 2)):
        drawn = effects(model.effects(ROWS)).figure
        assert {axes.get_title(loc="left") for axes in drawn.axes} == {"rooms", "town", "noise"}
        assert len(parts(model.explain(ROWS[0], ROWS)).figure.axes) == panels


def test_the_report_has_the_unit_of_the_labels_alone(regressor: AutoMLRegressor) -> None:
    assert f"average loss      {regressor.average_loss:.4g}" in regressor.report()
    assert "champion's loss" not in regressor.report()


def test_a_pickle_is_the_file_of_the_model(regressor: AutoMLRegressor, classifier: AutoMLClassifier) -> None:
    for model in (regressor, classifier):
        file = io.BytesIO()
        model.save(file)
        packed = pickle.dumps(model)
        assert len(packed) < len(file.getvalue()) + 1000
        for other in (
            pickle.loads(packed),  # noqa: S301
            copy.deepcopy(model),
            copy.copy(model),
        ):
            np.testing.assert_array_equal(
                other.effects(ROWS[:5])["features"]["rooms"]["predictions"],
                model.effects(ROWS[:5])["features"]["rooms"]["predictions"],
            )


@pytest.mark.parametrize("rows", ["c", {"rooms": 1}, [1, 2], [None], np.zeros(3), [[1.0, 2.0]]])
def test_rows_that_are_not_mappings_are_refused(regressor: AutoMLRegressor, rows: Any) -> None:
    for explain in (regressor.effects, lambda rows: regressor.explain({"rooms": 1}, rows)):
        with pytest.raises(InputError, match=r"row 0 is .*, not a mapping of name to value"):
            explain(rows)


def test_explain_accepts_one_row_of_a_frame_and_rejects_more(regressor: AutoMLRegressor) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS)
    found = regressor.explain(ROWS[0], ROWS)
    assert regressor.explain(frame.iloc[0], ROWS) == found
    assert regressor.explain(frame.iloc[:1], ROWS) == found
    for features in (frame, ROWS[:1]):
        with pytest.raises(InputError, match=r"explain takes one event, not a .*iloc\[0\]"):
            regressor.explain(features, ROWS)  # type: ignore[arg-type]


def test_a_picture_of_parts_rejects_effects(regressor: AutoMLRegressor) -> None:
    with pytest.raises(InputError, match="parts draws a result of explain"):
        parts(regressor.effects(ROWS))


def test_a_classifier_without_labels_has_no_effects() -> None:
    with pytest.raises(InputError, match="there are no effects before the first label is learnt"):
        AutoMLClassifier().effects(ROWS[:9])


def test_effects_of_a_context_never_replace_those_of_actions() -> None:
    contexts = [{"actions": {"topic": i}, "context": {"actions": i}, "hour": i} for i in range(3)]
    found = effects_of_actions(
        lambda context, listed: np.array([action["topic"] + 0 * context["hour"] for action in listed]),
        contexts,
        [{"topic": 10}, {"topic": 20}],
    )
    assert {*found} == {"context.actions.topic", "context.context.actions", "hour", "actions.topic"}
    assert found["actions.topic"].values == [10, 20]
