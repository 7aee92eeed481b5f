"""Models for Python programs ignore events with a number far beyond all others, and say so."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from onlineauto import AutoML, AutoMLClassifier, AutoMLRegressor
from tests.api.events import saved

Rows = list[tuple[dict[str, Any], Any, float]]
SIZES = [1e6, -1e12, 1e25, -2.9e38]
KINDS = {AutoMLRegressor: ("label", "value", "weight"), AutoMLClassifier: ("value", "weight")}
CASES = [(make, kind) for make, kinds in KINDS.items() for kind in kinds]


def rows(make: type, n: int, absurd: dict[int, tuple[str, float]], *, seed: int = 3) -> Rows:
    """Return features, labels and weights; at the places of `absurd` a number of a kind is of that size."""
    draw, found = random.Random(seed), []
    for i in range(n):
        user, x = draw.choice("abc"), draw.random()
        label: Any = "pqr"[("abc".index(user) + (x > 0.5)) % 3]
        if make is AutoMLRegressor:
            label = 2.0 * "abc".index(user) + 3.0 * x + 0.05 * draw.gauss(0, 1)
        kind, size = absurd.get(i, ("", 0.0))
        features = {"user": user, "x": size if kind == "value" else x}
        label = size if kind == "label" else label
        found.append((features, label, abs(size) if kind == "weight" else 1.0))
    return found


def errors(make: Callable[[], Any], events: Rows, begin: int) -> float:
    """Return the mean error, or the share of wrong labels, from event `begin` on."""
    model, found = make(), []
    for features, label, weight in events:
        predicted = model.predict(features)
        found.append(abs(predicted - label) if isinstance(label, float) else float(predicted != label))
        with warnings.catch_warnings(action="ignore"):
            model.learn(features, label, weight=weight)
    return float(np.mean(found[begin:]))


@pytest.mark.parametrize("at", [0, 9, 300])
@pytest.mark.parametrize(("make", "kind"), CASES)
def test_one_outlier_changes_later_errors_little(make: Any, kind: str, at: int) -> None:
    n, begin = at + 801, at + 501
    twin = errors(make, rows(make, n, {}), begin)
    for size in SIZES[1:3] if at else SIZES:
        found = errors(make, rows(make, n, {at: (kind, size)}), begin)
        assert found <= twin * 1.05 + (0.02 if make is AutoMLClassifier else 0.01)


@pytest.mark.parametrize("make", [AutoMLRegressor, AutoMLClassifier])
def test_learn_fit_and_a_loaded_model_agree_about_outliers(make: Any) -> None:
    absurd = {2: ("value", 1e25), 150: ("weight", 1e20), 200: ("value", -1e9)}
    if make is AutoMLRegressor:
        absurd |= {0: ("label", -1e20), 170: ("label", 1e30)}
    events = rows(make, 400, absurd)
    one, all_ = make(seed=1), make(seed=1)
    with pytest.warns(UserWarning, match="of which the first: event 150: weight '1e\\+20'"):
        all_.fit(events)
    with warnings.catch_warnings(action="ignore"):
        for features, label, weight in events[:180]:
            one.learn(features, label, weight=weight)
        again = make.load(saved(one))
        for features, label, weight in events[180:]:
            one.learn(features, label, weight=weight)
            again.learn(features, label, weight=weight)
    assert one.predict(events[0][0]) == again.predict(events[0][0]) == all_.predict(events[0][0])
    assert one.events == again.events == all_.events
    assert one.average_loss == again.average_loss == pytest.approx(all_.average_loss, rel=1e-5)


def test_predictions_are_within_the_labels_learnt() -> None:
    draw, model = random.Random(1), AutoMLRegressor()
    labels = [1000.0, 1000.0001] + [draw.uniform(203.0, 2080.0) for _ in range(600)]
    for i, label in enumerate(labels):
        features = {"id": f"row {i}", "x": draw.gauss(0, 10), "town": draw.choice("ab")}
        if i:
            assert min(labels[:i]) <= model.predict(features) <= max(labels[:i])
        model.learn(features, label)
    asked = [{"id": f"row {i}", "x": 1000.0 * (i - 5), "town": "c"} for i in range(10)]
    each = model.predict_each(asked)
    assert min(labels) <= each.min() <= each.max() <= max(labels)
    assert each.tolist() == [model.predict(features) for features in asked]


def test_warnings_name_the_outlier() -> None:
    model = AutoMLRegressor()
    for i in range(200):
        model.learn({"x": i / 200}, i / 100)
    beyond = "is far beyond those before; the event is not learnt"
    with pytest.warns(UserWarning, match=rf"^x: the value 3e\+38 {beyond}$"):
        model.learn({"x": 3e38}, 1.0)
    with pytest.warns(UserWarning, match=rf"^the label -1e\+30 {beyond}$"):
        model.learn({"x": 0.5}, -1e30)
    with pytest.warns(UserWarning, match=rf"^the weight {beyond}$"):
        model.learn({"x": 0.5}, 1.0, weight=1e9)
    assert model.events == 200
    assert 0 <= model.predict({"x": 3e38}) <= 2


def choices(size: float | None, n: int = 900) -> tuple[float, AutoML]:
    """Return the share of good actions of the last 300, with one absurd reward after 50."""
    draw, model, good = random.Random(5), AutoML(seed=1), []
    for i in range(n):
        user = draw.choice("ab")
        choice = model.rank({"user": user}, [{"t": "a"}, {"t": "b"}])
        good.append(choice.action == "ab".index(user))
        reward = float(good[-1])
        model.learn(choice.event_id, reward=size if i == 50 and size is not None else reward)
    return float(np.mean(good[-300:])), model


@pytest.mark.parametrize("size", [*SIZES, 2.9e38])
def test_one_outlying_reward_changes_choices_little(size: float) -> None:
    with pytest.warns(UserWarning, match=r"event '.*': a reward of .* is far beyond"):
        share, model = choices(size)
    assert share >= choices(None)[0] - 0.05
    assert model.workspace.outliers["cost"] == 1
    assert 0 <= model.average_reward <= 1
    assert "not learnt         1 with numbers far beyond all others" in model.report()
