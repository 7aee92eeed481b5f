"""Targets of contextual bandits: kernels compared with slow reference implementations, and guarantees."""

from __future__ import annotations

from math import isclose

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlineauto.learners.loss_kernels import dr_cost, ips_cost, mtr_weight
from tests.naive import bandit

pytestmark = pytest.mark.lane("quick")

F = np.float32
PROBABILITY = st.one_of(st.just(0.0), st.floats(0, 1, width=32)).map(F)
CLIP = st.one_of(st.just(0.0), st.floats(0, 1, width=32)).map(F)
COST = st.floats(width=32, allow_nan=False, allow_infinity=False).map(F)
COUNT = st.integers(1, 2**40)


def same(got: float, expected: np.float32) -> bool:
    return bool(np.array_equal(F(got), expected, equal_nan=True))


@given(probability=PROBABILITY, clip=CLIP, events=COUNT, extra=COUNT)
def test_mtr_weight(probability: np.float32, clip: np.float32, events: int, extra: int) -> None:
    with np.errstate(all="ignore"):
        expected = bandit.mtr_weight(probability, clip, events, events + extra)
    assert same(mtr_weight(probability, clip, events, events + extra), expected)


@given(cost=COST, probability=PROBABILITY, clip=CLIP)
def test_ips_cost(cost: np.float32, probability: np.float32, clip: np.float32) -> None:
    with np.errstate(all="ignore"):
        expected = bandit.ips_target(cost, probability, clip)
    assert same(ips_cost(cost, probability, clip), expected)


@given(cost=COST, probability=PROBABILITY, clip=CLIP, estimate=COST)
def test_dr_cost(cost: np.float32, probability: np.float32, clip: np.float32, estimate: np.float32) -> None:
    with np.errstate(all="ignore"):
        expected = bandit.dr_target(cost, probability, clip, estimate)
    assert same(dr_cost(cost, probability, clip, estimate), expected)


@given(
    costs=st.lists(st.floats(-3, 3).map(F), min_size=2, max_size=6),
    estimates=st.lists(st.floats(-3, 3).map(F), min_size=6, max_size=6),
    masses=st.lists(st.integers(1, 9), min_size=6, max_size=6),
)
def test_targets_are_unbiased(
    costs: list[np.float32], estimates: list[np.float32], masses: list[int]
) -> None:
    """Averaged over the logged action, IPS and doubly robust targets are the costs."""
    n = len(costs)
    pmf = [F(mass / sum(masses[:n])) for mass in masses[:n]]
    for action, cost in enumerate(costs):
        ips = float(pmf[action]) * ips_cost(cost, pmf[action], F(0))
        assert isclose(ips, cost, rel_tol=1e-5, abs_tol=1e-5)
        logged = dr_cost(cost, pmf[action], F(0), estimates[action])
        others = (1 - float(pmf[action])) * float(estimates[action])
        assert isclose(float(pmf[action]) * logged + others, cost, rel_tol=1e-4, abs_tol=1e-4)


def test_mtr_weight_of_uniform_logging_is_one() -> None:
    assert mtr_weight(F(0.25), F(0), 10, 40) == 1.0


def test_clipping_bounds_the_weight() -> None:
    assert mtr_weight(F(0), F(0.1), 1, 1) == float(F(1) / F(0.1))
    assert mtr_weight(F(0), F(0), 1, 1) == np.inf
