"""The robust confidence sequence: reference implementation, VW's own numbers, and guarantees of bounds."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from onlineauto.estimators import robust_kernels
from onlineauto.estimators.robust_kernels import (
    LIMIT,
    LOWER,
    SIZE,
    SUM,
    UPPER,
    USED,
    T,
    add,
    lower_bound,
    lower_root,
    observe,
    upper_bound,
)
from onlineauto.jit import kernel
from tests.naive.confidence_sequence import Estimator, Sequence

Pair = tuple[float, float]
"""Importance weight and reward."""

Rule = robust_kernels.Test
RULE = Rule(np.float64(0.05), np.float64(1e-6))


def rule(*, alpha: float = 0.05, tol_x: float = 1e-6) -> Rule:
    return Rule(np.float64(alpha), np.float64(tol_x))


def estimate(pairs: Iterable[Pair]) -> NDArray[np.float64]:
    estimator = np.zeros((2, SIZE))
    for w, r in pairs:
        observe(estimator, w, r)
    return estimator


@kernel
def deciding_sum(challenger: NDArray[np.float64], champion: NDArray[np.float64], test: Rule) -> float:
    """Set a sum of the champion to about the least one with which the challenger wins; return that sum."""
    low, high = 0.0, 4.0 * champion[UPPER, T] + 2.0 * champion[UPPER, SUM]
    for _ in range(80):
        champion[UPPER, SUM] = (low + high) / 2
        if lower_bound(challenger, test) > upper_bound(champion, test):
            high = champion[UPPER, SUM]
        else:
            low = champion[UPPER, SUM]
    return float(high)


def bounds(pairs: Iterable[Pair], test: Rule = RULE) -> Pair:
    estimator = estimate(pairs)
    return lower_bound(estimator, test), upper_bound(estimator, test)


def naive_bounds(pairs: Iterable[Pair], test: Rule) -> Pair:
    twin = Estimator(alpha=float(test.alpha), tol_x=float(test.tol_x))
    for w, r in pairs:
        twin.update(w, r)
    return twin.lower_bound(), twin.upper_bound()


def heavy(seed: int, n: int, *, least: float, low: float = 0.0, high: float = 1.0) -> list[Pair]:
    """Return events whose weights average 1, with propensities down to `least`."""
    rng = np.random.default_rng(seed)
    p = least ** rng.random(n)
    w = np.where(rng.random(n) < p, 1 / p, 0.0)
    r = np.where(rng.random(n) < 0.5, rng.uniform(low, high, n), np.where(rng.random(n) < 0.7, high, low))
    return list(zip(w.tolist(), r.tolist(), strict=True))


_NUMBERS = """
0.265260433 0.4  0.210534972 0  0.183917071 1  0.559713528 1  0.595640365 1  7.180584551 0.9
0.138659127 0.9  0.663108867 0  0.678420014 0.1  0.123112832 0.9  0.703156298 1  0.713376195 0.1
0.722519043 1  0.730768415 0.6  0.107544107 1  0.745132612 1  0.751442272 0.9  4.986560376 0.4
0.099391065 1  37.85031381 0.9  0.096127937 0.9  0.094648809 0.6  0.78106104 0.9  0.784993688 0.9
0.090697586 0.6  0.792238169 0.4  0.088398536 1  0.798782221 0.6  0.801821345 0.3  0.804722505 0.9
0.807496314 0.9  0.810154443 0.1  0.082674622 1  0.815150197 0.6  0.081068034 0.4  0.080309513 0.1
0.079578481 0.4  0.078873344 1  0.82609249 1  0.828055494 0.7  0.076898241 1  0.076283066 1
0.075686285 1  0.075107653 0.4  0.074546428 1  0.074001442 1  0.073472059 0.9  0.072958202 0.9
0.072457789 1  0.844657383 0.9  0.071496447 0.9  0.071034351 1  0.070584037 0.9  0.070145612 0.6
0.069717158 1  0.069298895 0.5  0.853830002 0.3  0.855015059 1  0.068101742 1  0.067721242 0.9
0.067348406 0.1  0.066983637 0.3  0.860565217 0  0.066277134 0.6  42.83659821 0.4  0.863622193 0.3
0.864597097 1  0.064949207 0.1  0.064633158 0.6  0.867408224 0.9  0.868308821 0.9  0.063721357 0.9
0.870070408 0.4  0.063140739 1  0.062858233 0.6  0.872580081 1  0.062307872 0.9  0.062040461 1
0.874968456 0.6  0.061517802 0.9  0.876488363 1  0.061012235 0.6  0.060765504 0.9  43.75649419 0.4
0.879389936 1  0.880083546 1  0.8807676 1  43.91880613 0.9
"""

UNIT_TEST: list[Pair] = [(w, r) for w, r in np.array(_NUMBERS.split(), np.float64).reshape(-1, 2).tolist()]
"""VW's own test; alpha is 0.05 / 16 there."""


def test_numbers_of_vws_unit_test() -> None:
    lower, upper = bounds(UNIT_TEST, rule(alpha=0.05 / 16))
    assert lower == pytest.approx(0.30209151281846858, abs=1e-4)
    assert upper == pytest.approx(0.90219143188334106, abs=1e-4)


def test_root_of_vws_unit_test() -> None:
    """VW's test supplies the variances, which only the reference accepts."""
    twin = Sequence()
    for w, r in UNIT_TEST:
        twin.add(w * r)
    memo = dict(enumerate([39.016179559463588, 20.509121588503511, 10.821991705197142]))
    root = twin.root(139.8326745448, 6.46147, memo)
    assert root == pytest.approx(0.30209143008131789, abs=1e-4)
    assert twin.log_wealth(root, 139.8326745448, 6.46147, memo) == pytest.approx(6.46147, abs=1e-2)


def test_numbers_of_vws_test_of_another_confidence_sequence() -> None:
    """The bounds are of the same kind, so the numbers are close."""
    lower, upper = bounds([(r, r) for r in (0.5, 0.6, 0.7, 0.8)] * 1000)
    assert lower == pytest.approx(0.4215480, abs=0.1)
    assert upper == pytest.approx(0.7907692, abs=0.1)


LEVEL = float(np.float32(0.05) / np.float32(2))
VW_BOUNDS = [
    (rule(alpha=LEVEL, tol_x=float(np.float32(1e-6))), 0.3825559616088867, 0.5394182205200195),
    (rule(alpha=LEVEL, tol_x=float(np.float32(0.1))), 0.4375, 0.5625),
    (rule(alpha=0.5, tol_x=float(np.float32(1e-6))), 0.4207906723022461, 0.5006551742553711),
]
"""Bounds of VW 9.11.9, as float32, of a challenger on 300 events of one action."""


@pytest.mark.parametrize(("test", "lower", "upper"), VW_BOUNDS)
def test_bounds_of_the_vowpalwabbit_package(test: Rule, lower: float, upper: float) -> None:
    pairs = [
        (2.0 if i * 7 % 23 == 0 else 1.0, (0.0, 0.5, 1.0)[(i * i // 3 + i) % 3 if i % 5 else 2])
        for i in range(300)
    ]
    actual = bounds(pairs, test)
    assert (np.float32(actual[0]), np.float32(actual[1])) == (np.float32(lower), np.float32(upper))


TESTS = st.builds(
    rule,
    alpha=st.sampled_from([0.05, LEVEL, 0.05 / 128, 0.5, 0.999, 1e-12]),
    tol_x=st.sampled_from([1e-6, 1e-6, 1e-9, 1e-3, 0.1, 0.5, 1.0, 2.0]),
)
WEIGHTS = st.one_of(
    st.sampled_from([0.0, 1.0, 2.0, 1.5**4, 1e6, 3.4e38]),
    st.floats(1e-6, 1).map(lambda p: 1 / p),
    st.floats(0, 100),
)
REWARDS = st.one_of(st.sampled_from([0.0, 1.0, 0.5]), st.floats(0, 1), st.floats(-3, 3), st.floats(-1e6, 1e6))
PAIRS = st.lists(st.tuples(WEIGHTS, REWARDS), max_size=12).flatmap(
    lambda pairs: st.integers(1, 12).map(lambda times: pairs * times)
)
SANE_PAIRS = st.lists(
    st.tuples(
        st.one_of(st.sampled_from([0.0, 1.0, 2.0]), st.floats(1e-6, 1).map(lambda p: 1 / p)),
        st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1)),
    ),
    max_size=12,
).flatmap(lambda pairs: st.integers(1, 12).map(lambda times: pairs * times))


@given(PAIRS, TESTS)
def test_bounds(pairs: list[Pair], test: Rule) -> None:
    assert bounds(pairs, test) == pytest.approx(naive_bounds(pairs, test), abs=1e-9)


@pytest.mark.parametrize("tol_x", [1e-6, 1e-3, 0.1])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-0.5, 1.5)])
@pytest.mark.parametrize("least", [0.5, 0.1, 1e-6])
def test_bounds_of_long_streams(*, least: float, low: float, high: float, tol_x: float) -> None:
    test = rule(tol_x=tol_x)
    pairs = heavy(7, 800, least=least, low=low, high=high)
    for n in (1, 2, 10, 100, 300, 800):
        assert bounds(pairs[:n], test) == pytest.approx(naive_bounds(pairs[:n], test), abs=1e-9)


def test_bounds_of_long_streams_are_informative() -> None:
    said = [bounds(heavy(7, 800, least=least)) for least in (0.5, 0.1, 1e-6)]
    assert all(lower > 0 for lower, _ in said)
    assert sum(upper < 1 for _, upper in said) >= 2


@given(st.lists(st.floats(-LIMIT, LIMIT), max_size=20))
def test_state(observations: list[float]) -> None:
    state, twin = np.zeros(SIZE), Sequence()
    for x in observations:
        add(state, x)
        twin.add(x)
    sums = [twin.g.t, twin.g.sum_x, twin.g.sum_low_v, twin.g.sum_mid_v]
    assert list(state[:4]) == pytest.approx(sums, rel=1e-12)
    histogram = np.zeros(SIZE)
    for (n, strong), weight in twin.g.histogram.items():
        histogram[robust_kernels.HISTOGRAM + 2 * n + strong] = weight
    assert state[robust_kernels.HISTOGRAM :] == pytest.approx(histogram[robust_kernels.HISTOGRAM :], abs=1e-9)
    assert state[USED] == max((n + 1 for n, _ in twin.g.histogram), default=0)


@pytest.mark.parametrize("tol_x", [0.0, 1e-300, 1e-17, math.inf, math.nan])
def test_any_precision_gives_valid_bounds(*, tol_x: float) -> None:
    pairs = heavy(3, 500, least=0.3)
    near = bounds(pairs, rule())
    found = bounds(pairs, rule(tol_x=tol_x))
    if tol_x < 1:
        assert found == pytest.approx(near, abs=2e-6)
    else:
        assert found == (0.0, 1.0)  # no step is taken


@pytest.mark.parametrize("x", [math.inf, 1.7e308, LIMIT * 1.01])
def test_observations_out_of_range_count_as_the_largest(x: float) -> None:
    states = np.zeros((2, SIZE))
    for sign in (1, -1):
        add(states[0], sign * x)
        add(states[1], sign * LIMIT)
    assert np.array_equal(states[0], states[1])


def test_nan_counts_as_zero() -> None:
    states = np.zeros((2, SIZE))
    add(states[0], 3.0)
    add(states[1], 3.0)
    add(states[0], math.nan)
    add(states[1], 0.0)
    assert np.array_equal(states[0], states[1])


EXTREMES = st.sampled_from([0.0, 1.0, -1.0, 1e-300, 1e77, -1e77, 1.7e308, -1.7e308, math.inf, math.nan])


@given(st.lists(st.tuples(st.one_of(EXTREMES, WEIGHTS), st.one_of(EXTREMES, REWARDS)), max_size=20), TESTS)
def test_bounds_are_between_0_and_1_for_any_numbers(pairs: list[Pair], test: Rule) -> None:
    estimator = estimate(pairs)
    assert np.isfinite(estimator).all()
    assert 0 <= lower_bound(estimator, test) <= 1
    assert 0 <= upper_bound(estimator, test) <= 1


@given(PAIRS, TESTS)
def test_a_root_is_not_above_the_mean(pairs: list[Pair], test: Rule) -> None:
    """The shortest comparison relies on this."""
    estimator = estimate(pairs)
    for state in estimator:
        mean = max(0.0, state[1] / state[0]) if state[0] else 0.0
        assert lower_root(state, test) <= mean + test.tol_x + 1e-9 * (1 + mean)


@given(PAIRS, st.floats(1e-9, 0.395), st.floats(1e-9, 0.395))
def test_variance_is_convex_in_the_stake_and_not_negative(pairs: list[Pair], a: float, b: float) -> None:
    """The other comparisons rely on this, and so do the bounds of all stakes but the first ones."""
    state = estimate(pairs)[LOWER]

    def v(stake: float) -> float:
        root = math.sqrt(state[0] + 1)
        return float(robust_kernels._variance(state, stake * root, root))

    scale = v(0.395)
    assert scale >= 0
    assert v(a) >= -1e-12 * scale
    assert v((a + b) / 2) <= (v(a) + v(b)) / 2 + 1e-12 * scale


@given(SANE_PAIRS)
def test_bounds_overlap_only_if_weights_average_more_than_1(pairs: list[Pair]) -> None:
    mean = max(1.0, sum(w for w, _ in pairs) / max(len(pairs), 1))
    lower, upper = bounds([(w / mean, r) for w, r in pairs])
    assert lower <= upper + 2e-6


@given(SANE_PAIRS)
def test_a_smaller_level_gives_wider_bounds(pairs: list[Pair]) -> None:
    found = [bounds(pairs, rule(alpha=alpha)) for alpha in (0.001, 0.05, 0.5)]
    assert found[0][0] <= found[1][0] <= found[2][0]
    assert found[0][1] >= found[1][1] >= found[2][1]


@given(SANE_PAIRS, st.integers(1, 30))
def test_events_without_information_narrow_no_bound(pairs: list[Pair], times: int) -> None:
    before, after = bounds(pairs), bounds(pairs + [(0.0, 0.5)] * times)
    assert after[0] <= before[0]
    assert after[1] >= before[1]


@given(st.lists(st.tuples(WEIGHTS, st.integers(0, 8)), max_size=30), TESTS)
def test_bounds_of_rewards_and_of_one_minus_rewards_mirror_each_other(
    pairs: list[tuple[float, int]], test: Rule
) -> None:
    one, other = estimate((w, r / 8) for w, r in pairs), estimate((w, 1 - r / 8) for w, r in pairs)
    assert np.array_equal(one, other[::-1])
    assert upper_bound(one, test) == 1 - lower_bound(other, test)


@given(PAIRS, PAIRS, TESTS)
def test_a_state_of_zeros_is_fresh(before: list[Pair], pairs: list[Pair], test: Rule) -> None:
    assert bounds([], test) == (0.0, 1.0)
    estimator = estimate(before)
    estimator[:] = 0
    for w, r in pairs:
        observe(estimator, w, r)
    assert np.array_equal(estimator, estimate(pairs))


def test_bounds_hold_at_all_times() -> None:
    """Of 400 streams of a known mean, far fewer than alpha / 2 ever have it below the lower bound."""
    test = rule(alpha=0.5)
    wrong = 0
    for seed in range(400):
        estimator, missed = np.zeros((2, SIZE)), False
        for i, (w, r) in enumerate(heavy(seed, 300, least=0.01)):
            observe(estimator, w, r)
            if i % 10 == 9:
                missed |= lower_bound(estimator, test) > 0.6 or upper_bound(estimator, test) < 0.6
        wrong += missed
    assert 0 < wrong < 0.5 * 400
