"""`AutoMLRegressor(lags=K)`: the last labels as features."""

from __future__ import annotations

import io
import math
import warnings
from typing import Any

import numpy as np
import pytest

from onlineauto import AutoMLRegressor, InputError, OptionError
from onlineauto.api.lags import Lags


def series(n: int) -> list[tuple[dict[str, float], float]]:
    noise, label, rows = np.random.default_rng(5), 0.0, []
    for hour in range(n):
        label = 0.9 * label + float(noise.normal()) + 0.3 * (hour % 4)
        rows.append(({"hour": float(hour % 4)}, label))
    return rows


def test_lags_bring_the_error_of_a_series_near_to_its_noise() -> None:
    errors: dict[Any, Any] = {}
    for lags in (0, 2):
        model, rows = AutoMLRegressor(lags=lags), series(1500)
        errors[lags] = []
        for features, label in rows:
            errors[lags].append((model.predict(features) - label) ** 2)
            model.learn(features, label)
    assert np.mean(errors[2][500:]) < 1.2 < 0.5 * np.mean(errors[0][500:])


def test_an_event_is_learnt_with_the_labels_that_its_prediction_had() -> None:
    lags = Lags(2)
    lags.add(1.0)
    lags.add(4.0)
    seen = lags.complete({"hour": 1}, awaits=True)
    lags.add(9.0)
    assert (
        lags.complete({"hour": 1}, learns=True) == seen == {"hour": 1, "lag 1": 4, "lag 2": 1, "change 1": 3}
    )
    assert lags.complete({"hour": 1}, learns=True)["lag 1"] == 9.0  # learnt once, so nothing is awaited


def test_asking_for_an_explanation_leaves_no_event_waiting() -> None:
    model = AutoMLRegressor(lags=1)
    model.fit([(features, label) for features, label in series(50)])
    before = model._extra_state()
    model.explain({"hour": 2.0}, [features for features, _ in series(10)])
    assert model._extra_state() == before


def test_a_saved_model_continues_as_the_model_itself() -> None:
    rows, model = series(400), AutoMLRegressor(lags=3)
    model.fit(rows[:200])
    model.predict(rows[201][0])  # an event whose label comes late
    file = io.BytesIO()
    model.save(file)
    other = AutoMLRegressor.load(file.getvalue())
    for features, label in rows[200:]:
        assert model.predict(features) == other.predict(features)
        model.learn(features, label)
        other.learn(features, label)


def test_fit_equals_learning_one_by_one() -> None:
    rows, one, many = series(300), AutoMLRegressor(lags=2), AutoMLRegressor(lags=2)
    for features, label in rows:
        one.learn(features, label)
    many.fit(rows)
    assert one.predict({"hour": 1.0}) == many.predict({"hour": 1.0})


def test_missing_and_outlying_labels_are_no_lags() -> None:
    model = AutoMLRegressor(lags=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit([*series(100), ({"hour": 1.0}, math.nan), ({"hour": 1.0}, 1e30)])
    assert model._lags.latest == [label for _, label in series(100)[:-3:-1]]


@pytest.mark.parametrize("lags", [-1, 21, 1.5])
def test_other_numbers_of_lags_are_rejected(lags: float) -> None:
    with pytest.raises(OptionError, match="lags is a whole number from 0 to 20"):
        AutoMLRegressor(lags=lags)  # type: ignore[arg-type]


def test_reserved_names_and_lines_of_text_are_rejected() -> None:
    model = AutoMLRegressor(lags=2)
    with pytest.raises(InputError, match="'lag 1' is reserved"):
        model.learn({"lag 1": 2.0}, 1.0)
    with pytest.raises(InputError, match="lags needs rows of features"):
        model.fit(io.BytesIO(b"1 | a\n2 | b\n"))


@pytest.mark.parametrize("features", ["abc", [3], 7])
def test_features_that_are_no_mapping_are_rejected_as_without_lags(features: Any) -> None:
    model = AutoMLRegressor(lags=2)
    for attempt in (lambda: model.learn(features, 1.0), lambda: model.fit([(features, 1.0)])):
        with pytest.raises(InputError, match="features are a mapping of name to value"):
            attempt()


def test_a_label_that_is_invalid_leaves_the_prediction_waiting() -> None:
    model = AutoMLRegressor(lags=1)
    model.predict({"x": np.float64(5)})
    with pytest.raises(InputError):
        model.learn({"x": 5.0}, "abc")
    assert len(model._lags.waiting) == 1
    model.learn({"x": 5.0}, 2.0)
    assert not model._lags.waiting
