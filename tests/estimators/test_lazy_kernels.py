"""Lazy comparisons of bounds decide like full comparisons, also when two bounds are nearly equal."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

from onlineauto.estimators.robust_kernels import (
    BY_MEANS,
    BY_WEALTH,
    IN_FULL,
    LOWER,
    SIZE,
    SUM,
    UPPER,
    T,
    add,
    is_better,
    lower_bound,
    upper_bound,
)
from onlineauto.jit import kernel
from tests.estimators.lazy_streams import BETTER, LOGS, WRONG, compare, draw, measure
from tests.estimators.test_robust_kernels import PAIRS, TESTS, Pair, Rule, deciding_sum, estimate, rule
from tests.naive import confidence_sequence as naive

OFF = np.array([0.0, 1e-16, 2e-16, 1e-15, 1e-13, 1e-11, 1e-9, 3e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-3, 0.1])


@kernel
def check(
    challenger: NDArray[np.float64], champion: NDArray[np.float64], test: Rule, tally: NDArray[np.int64]
) -> bool:
    """Compare lazily and in full, and return the full result."""
    better, effort = is_better(challenger, champion, test)
    full = lower_bound(challenger, test) > upper_bound(champion, test)
    tally[effort] += 1
    tally[BETTER] += full
    tally[WRONG] += better != full
    return full


@kernel
def check_around(
    challenger: NDArray[np.float64],
    champion: NDArray[np.float64],
    test: Rule,
    off: NDArray[np.float64],
    tally: NDArray[np.int64],
) -> None:
    """Compare around sums of the champion where the decision changes, means are equal, bounds are 0 or 1."""
    original, n = champion[UPPER, SUM], champion[UPPER, T]
    high = deciding_sum(challenger, champion, test)
    mean = challenger[LOWER, SUM] / challenger[LOWER, T]
    for center in (high, n * (1.0 - mean), n * (1.0 - mean - 2.0 * test.tol_x), n, 0.0):
        for by in off:
            for sign in (-1.0, 1.0):
                champion[UPPER, SUM] = center * (1.0 + sign * by) + (sign * by if center == 0.0 else 0.0)
                check(challenger, champion, test, tally)
    champion[UPPER, SUM] = original


@pytest.mark.parametrize("log", LOGS)
def test_lazy_and_full_comparisons_agree_along_streams(log: str) -> None:
    shares = measure(log, tol_x=1e-6, checks=20_000, seed=20)
    assert shares.wrong == 0
    assert shares.by_means > 0.2
    assert shares.by_wealth > 0
    assert shares.in_full < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("tol_x", [1e-6, 1e-3, 0.1])
@pytest.mark.parametrize("log", LOGS)
def test_a_hundred_thousand_lazy_decisions_equal_full_ones(log: str, tol_x: float) -> None:
    assert measure(log, tol_x=tol_x, checks=100_000, seed=1).wrong == 0


ODD = [
    rule(),
    rule(alpha=0.05 / 16),
    rule(alpha=0.5),
    rule(alpha=0.999),
    rule(alpha=1.5),
    rule(alpha=1.999),
    rule(alpha=3.0),
    rule(tol_x=0.0),
    rule(tol_x=1e-300),
    rule(tol_x=1e-12),
    rule(tol_x=1e-3),
    rule(tol_x=0.1),
    rule(tol_x=0.3),
    rule(tol_x=0.9),
    rule(tol_x=1.0),
    rule(tol_x=7.0),
    rule(tol_x=math.inf),
    rule(tol_x=math.nan),
    rule(alpha=math.nan),
]


def test_lazy_and_full_comparisons_agree_for_nearly_equal_bounds() -> None:
    tally = np.zeros(5, np.int64)
    for seed in range(150):
        rng = np.random.default_rng(seed)
        weights, rewards = draw(LOGS[seed % 3], rng, int(rng.choice([1, 5, 50, 500])))
        evidence = np.zeros((2, 2, SIZE))
        compare(evidence, weights, rewards, 10**6, rule(alpha=1e-300), np.zeros(5, np.int64))
        test = ODD[seed % len(ODD)] if seed % 2 else rule()
        check_around(evidence[0], evidence[1], test, OFF, tally)
    assert tally[WRONG] == 0
    assert tally[: IN_FULL + 1].sum() == 150 * 5 * 2 * len(OFF)
    assert tally[[BY_MEANS, BY_WEALTH, IN_FULL, BETTER]].min() > 500


@pytest.mark.parametrize("test", ODD)
def test_lazy_and_full_comparisons_agree_for_extreme_settings(test: Rule) -> None:
    tally = np.zeros(5, np.int64)
    rng = np.random.default_rng(5)
    for log in LOGS:
        weights, rewards = draw(log, rng, 1000)
        compare(np.zeros((2, 2, SIZE)), weights, rewards, 300, test, tally)
    assert tally[WRONG] == 0
    if not test.alpha <= 1:  # bets may begin with what would prove a bound
        assert tally[BY_MEANS] == tally[BY_WEALTH] == 0


@settings(max_examples=300)
@given(PAIRS, PAIRS, TESTS)
def test_lazy_and_full_comparisons_agree_for_any_numbers(
    one: list[Pair], other: list[Pair], test: Rule
) -> None:
    challenger, champion = estimate(one), estimate(other)
    tally = np.zeros(5, np.int64)
    check(challenger, champion, test, tally)
    check(champion, challenger, test, tally)
    check(challenger, challenger, test, tally)
    if one and other:
        check_around(challenger, champion, test, OFF[::3], tally)
    assert tally[WRONG] == 0


def test_lazy_and_full_comparisons_agree_for_tiny_weights() -> None:
    tally = np.zeros(5, np.int64)
    rng = np.random.default_rng(0)
    for _ in range(300):
        evidence = np.zeros((2, 2, SIZE))
        for state in evidence.reshape(4, SIZE):
            for x in 10.0 ** rng.uniform(-3, rng.choice([12, 16, 38, 77]), rng.integers(1, 30)):
                add(state, x * rng.choice([0, 0, 1, 1, -1], p=[0.3, 0.1, 0.3, 0.29, 0.01]))
        test = rule(tol_x=float(rng.choice([1e-6, 0.1])))
        check_around(evidence[0], evidence[1], test, OFF[::2], tally)
    assert tally[WRONG] == 0
    assert tally[IN_FULL] > 1000


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("entry", range(4))
def test_states_with_nan_prove_nothing(entry: int, bad: float) -> None:
    """No observation leads to such a state; the comparison must end and prove nothing."""
    tally = np.zeros(5, np.int64)
    whole = estimate([(2.0, 0.9), (0.0, 0.0)] * 50)
    broken = whole.copy()
    broken[:, entry] = bad
    for pair in ((whole, broken), (broken, whole), (broken, broken)):
        check(*pair, rule(), tally)
    assert tally[WRONG] == 0


def test_fresh_estimators_are_never_better() -> None:
    fresh, told = np.zeros((2, SIZE)), estimate([(1.0, 1.0)] * 100)
    assert is_better(fresh, fresh, rule()) == (False, BY_MEANS)
    assert is_better(fresh, told, rule()) == (False, BY_MEANS)
    assert is_better(told, fresh, rule()) == (False, BY_MEANS)


def test_a_better_challenger_is_found() -> None:
    good, bad = estimate([(1.0, 1.0)] * 100), estimate([(1.0, 0.0)] * 100)
    assert is_better(good, bad, rule()) == (True, IN_FULL)
    assert is_better(bad, good, rule()) == (False, BY_MEANS)
    nearly = estimate([(1.0, float(i % 10 < 6)) for i in range(100)])
    half = estimate([(1.0, float(i % 2)) for i in range(100)])
    assert is_better(nearly, half, rule()) == (False, BY_WEALTH)


def test_the_first_promotion_equals_that_of_the_reference() -> None:
    """The first event with a proof is the same for kernels and reference."""
    weights, rewards = draw("uniform", np.random.default_rng(22), 600)
    test = rule(alpha=0.2)
    twins = [naive.Estimator(alpha=0.2) for _ in range(2)]
    estimators = np.zeros((2, 2, SIZE))
    found: list[int] = []
    for event, reward in enumerate(rewards.tolist()):
        for who in range(2):
            w = float(weights[event, who])
            twins[who].update(w, reward)
            add(estimators[who, LOWER], w * reward)
            add(estimators[who, UPPER], w * (1 - reward))
        better, _ = is_better(estimators[0], estimators[1], test)
        assert better == naive.is_better(*twins)
        found += [event] * better
    assert found
    assert found[0] > 10
