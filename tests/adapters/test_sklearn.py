"""scikit-learn's own checks, its pipelines, and frames."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.datasets import load_diabetes, load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from onlineauto.sklearn import AutoMLClassifier, AutoMLRegressor

pytestmark = pytest.mark.lane("sampled")

NOT_HERE = {"check_array_api_input"}
"""Skipped by scikit-learn itself: it needs an environment variable and other arrays than NumPy's."""

ONLINE = dict.fromkeys(
    ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"),
    "one step with the weight 2 is not two steps, and the order of rows counts",
)


@pytest.mark.parametrize("make", [AutoMLRegressor, AutoMLClassifier])
def test_checks(make: Any) -> None:
    results = check_estimator(make(), on_skip=None, on_fail=None, expected_failed_checks=ONLINE)
    assert {each["check_name"] for each in results if each["status"] != "passed"} <= {*NOT_HERE, *ONLINE}


def test_scores() -> None:
    assert cross_val_score(AutoMLClassifier(passes=3), *load_wine(return_X_y=True)).mean() > 0.93
    assert cross_val_score(AutoMLRegressor(passes=3), *load_diabetes(return_X_y=True)).mean() > 0.3


def test_pipelines_and_grids() -> None:
    x, y = load_wine(return_X_y=True)
    model = make_pipeline(StandardScaler(), AutoMLClassifier(live_configs=None))
    grid = GridSearchCV(model, {"automlclassifier__passes": [1, 3]}, cv=2).fit(x, y)
    assert grid.best_score_ > 0.9
    assert grid.best_estimator_[-1].get_params()["live_configs"] is None


def test_frames_have_texts_and_names() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"town": ["Ulm", "Bonn"] * 50, "rooms": [1.0, 2.0, np.nan, 4.0] * 25})
    model = AutoMLRegressor(passes=3).fit(frame, np.tile([10.0, 20.0], 50))
    assert list(model.feature_names_in_) == ["town", "rooms"]
    assert model.predict(frame[:2]).round() == pytest.approx([10, 20])
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["rooms", "town"]])


def test_a_pass_that_overfits_is_undone() -> None:
    draw = np.random.default_rng(0)
    numbers, place = draw.normal(size=(3000, 4)), draw.integers(0, 60, 3000)
    logit = numbers[:, 0] - 0.7 * numbers[:, 1] * numbers[:, 2] + draw.normal(size=60)[place] - 1
    y = draw.random(3000) < 1 / (1 + np.exp(-logit))
    rows = np.empty((3000, 5), object)
    rows[:, :4], rows[:, 4] = numbers, [f"p{each}" for each in place]
    losses = {}
    for passes in (1, 3):
        model = AutoMLClassifier(passes=passes).fit(rows[:2000], y[:2000])
        losses[passes] = log_loss(y[2000:], model.predict_proba(rows[2000:])[:, 1])
    assert losses[3] <= 1.02 * losses[1]


def test_zero_passes_are_rejected() -> None:
    with pytest.raises(ValueError, match="passes is 0: it must be at least 1"):
        AutoMLRegressor(passes=0).fit([[1.0]], [1.0])


def test_partial_fit_continues_and_keeps_its_classes() -> None:
    x, y = load_wine(return_X_y=True)
    model = AutoMLClassifier()
    with pytest.raises(ValueError, match="classes must be passed"):
        model.partial_fit(x, y)
    model.partial_fit(x[:100], y[:100], classes=[0, 1, 2])
    assert model.model_.events == 100
    assert not model.predict_proba(x)[:, 2].any()
    model.partial_fit(x[100:], y[100:])
    assert model.predict_proba(x).sum(axis=1) == pytest.approx(1)
    with pytest.raises(ValueError, match="not in the classes"):
        model.partial_fit(x, y + 1)
