"""RobustConfidenceSequence: the estimator as a Python object."""

from __future__ import annotations

import math

import numpy as np
import pytest

from onlineauto.errors import InputError, OptionError
from onlineauto.estimators.robust import RobustConfidenceSequence
from onlineauto.estimators.robust_kernels import LARGEST_WEIGHT
from tests.naive.confidence_sequence import Estimator


def test_fresh_bounds_say_nothing() -> None:
    fresh = RobustConfidenceSequence()
    assert (fresh.lower_bound, fresh.upper_bound) == (0.0, 1.0)
    assert (fresh.updates, fresh.last_w, fresh.last_r) == (0, 0.0, 0.0)


@pytest.mark.parametrize("alpha", [0.05, float(np.float32(0.05)), 0.4])
def test_bounds_are_the_twins(alpha: float) -> None:
    ours = RobustConfidenceSequence(alpha, tol_x=1e-4)
    twin = Estimator(alpha=alpha, tol_x=1e-4)
    for i in range(200):
        w, r = (3.0, 0.0, 0.5)[i % 3], i % 7 / 6
        ours.update(w, r)
        twin.update(w, r)
    assert ours.lower_bound == pytest.approx(twin.lower_bound(), abs=1e-9)
    assert ours.upper_bound == pytest.approx(twin.upper_bound(), abs=1e-9)
    assert 0 < ours.lower_bound < ours.upper_bound < 1


def test_reset_forgets_all() -> None:
    ours = RobustConfidenceSequence()
    for _ in range(100):
        ours.update(1, 1)
    assert ours.lower_bound > 0.5
    assert (ours.updates, ours.last_w, ours.last_r) == (100, 1.0, 1.0)
    ours.reset()
    assert (ours.lower_bound, ours.upper_bound) == (0.0, 1.0)
    assert (ours.updates, ours.last_w, ours.last_r) == (0, 0.0, 0.0)


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, math.nan])
def test_alpha_is_a_probability(alpha: float) -> None:
    with pytest.raises(OptionError, match="alpha"):
        RobustConfidenceSequence(alpha)


@pytest.mark.parametrize("tol_x", [0.0, -1.0, math.nan])
def test_precision_is_positive(tol_x: float) -> None:
    with pytest.raises(OptionError, match="tol_x"):
        RobustConfidenceSequence(tol_x=tol_x)


@pytest.mark.parametrize(
    ("w", "r", "message"),
    [
        (-1.0, 0.5, "weight"),
        (math.inf, 0.5, "weight"),
        (math.nan, 0.5, "weight"),
        (1.0, -0.1, "reward"),
        (1.0, 1.1, "reward"),
        (1.0, math.nan, "reward"),
    ],
)
def test_bad_events_are_refused_and_change_nothing(w: float, r: float, message: str) -> None:
    ours = RobustConfidenceSequence()
    ours.update(2.0, 1.0)
    with pytest.raises(InputError, match=message):
        ours.update(w, r)
    assert (ours.updates, ours.last_w, ours.last_r) == (1, 2.0, 1.0)


def test_one_enormous_weight_proves_nothing() -> None:
    """In VW one of 1e38 may prove anything, by rounding."""
    seen = set()
    for zeros in range(0, 60, 3):
        ours = RobustConfidenceSequence(alpha=1e-13)
        for w in [0.0] * zeros + [1e38]:
            ours.update(w, 1.0)
        seen.add((ours.lower_bound, ours.upper_bound))
        assert ours.last_w == 1e38 > LARGEST_WEIGHT
    assert seen == {(0.0, 1.0)}
