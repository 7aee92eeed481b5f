"""The champion test: kernels compared with a slow reference implementation, and its guarantees."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from onlineauto.estimators.interval_kernels import POLICY_SIZE, interval, observe_policy
from onlineauto.estimators.paired_kernels import (
    BETTER,
    LANES,
    SIZE,
    WORSE,
    N,
    T,
    is_better,
    level,
    observe,
    observe_difference,
    observe_predicted,
)
from onlineauto.estimators.scale_kernels import FLOOR, HIGH, LOW, OUTSIDE, SCALE_SIZE, make_scale, widen
from onlineauto.jit import kernel, local_array
from tests.naive.champion_test import ChampionTest as Twin


def scale_of(
    floor: float, low: float = 0.0, high: float = 1.0, *, learnt: bool = False
) -> NDArray[np.float64]:
    return np.array([low, high, floor, 0.0, 0.0, float(learnt)])


def evidence(state: NDArray[np.float64]) -> tuple[float, float]:
    return float(state[BETTER]), float(state[WORSE])


FLOORS = st.sampled_from([0.0, 0.001, 0.05, 0.3, 0.5, 1.0])
UNIT = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1))
EVENTS = st.lists(st.tuples(st.integers(0, 2), st.floats(0, 1), UNIT, UNIT, UNIT), max_size=30)
"""Policy of the logged action (2: neither), probability above the floor, reward, predictions."""


def weights(who: int, likely: float, floor: float) -> tuple[float, float]:
    least = max(floor, 1e-4)
    w = 1 / (least + likely * (1 - least))
    return (w if who == 1 else 0.0), (w if who == 0 else 0.0)


@given(EVENTS, FLOORS, st.booleans())
def test_evidence_equals_the_reference(
    events: list[tuple[int, float, float, float, float]], floor: float, learnt: bool
) -> None:
    learnt = learnt and floor > 0.0
    state, predicted = np.zeros((2, SIZE))
    twins = Twin(floor, learnt=learnt), Twin(floor, learnt=learnt)
    for who, likely, r, q1, q0 in events:
        w1, w0 = weights(who, likely, floor)
        observe(state, scale_of(floor, learnt=learnt), w1, w0, r)
        twins[0].update(w1, w0, r)
        observe_predicted(predicted, scale_of(floor, learnt=learnt), w1, w0, r, (q1, q0), 0.0)
        twins[1].update_predicted(w1, w0, r, q1, q0)  # which sees to it that no bet loses more than ¾
    if events:
        assert evidence(state) == pytest.approx(twins[0].evidence(), rel=1e-9)
        assert evidence(predicted) == pytest.approx(twins[1].evidence(), rel=1e-9)


@pytest.mark.parametrize(("floor", "learnt"), [(0.0, False), (0.1, False), (0.1, True)])
def test_restarts_equal_the_reference(floor: float, learnt: bool) -> None:
    """The reference has a number for each bet of each start; kernels have one per stake."""
    rng = np.random.default_rng(1)
    state, twin = np.zeros(SIZE), Twin(floor, learnt=learnt)
    for t in range(4200):
        w1, w0 = weights(int(rng.integers(2)), float(rng.random()), 0.1)
        r = float(rng.random() < (0.4 if (w1 > 0) == (t < 2500) else 0.6))
        observe(state, scale_of(floor, learnt=learnt), w1, w0, r)
        twin.update(w1, w0, r)
    assert len(twin.bets[0]) == 24 * 4
    assert evidence(state) == pytest.approx(twin.evidence(), rel=1e-8)


@given(EVENTS, FLOORS)
def test_roles_mirror_each_other(events: list[tuple[int, float, float, float, float]], floor: float) -> None:
    one, other = np.zeros((2, SIZE))
    for who, likely, r, _, _ in events:
        w1, w0 = weights(who, likely, floor)
        observe(one, scale_of(floor), w1, w0, r)
        observe(other, scale_of(floor), w0, w1, r)
    assert evidence(one) == pytest.approx(evidence(other)[::-1], rel=1e-9)
    assert interval(one, 0.05) == pytest.approx(tuple(-x for x in interval(other, 0.05)[::-1]))


ODD = st.sampled_from([0.0, 1.0, -3.0, 1e300, -1e300, math.inf, -math.inf, math.nan])


@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from([1.0, 50.0, 2.0**40]), ODD), max_size=40), FLOORS
)
def test_evidence_is_positive_for_any_numbers(events: list[tuple[int, float, float]], floor: float) -> None:
    state = np.zeros(SIZE)
    for who, w, r in events:
        observe(state, scale_of(floor), w * (who == 1), w * (who == 0), r)
    if events:
        assert (state[LANES : LANES + 2 * N] > 0).all()
        assert np.isfinite(state[LANES : LANES + 2 * N]).all()


def test_a_state_of_zeros_is_fresh_and_proves_nothing() -> None:
    state = np.zeros(SIZE)
    assert not is_better(state, 0.999)
    assert interval(state, 0.05) == (-math.inf, math.inf)


def test_levels_add_up() -> None:
    shares = [level(0.05, k) for k in range(1, 1000)]
    assert shares[0] == 0.025
    assert 0.0499 < sum(shares) < 0.05
    assert shares == sorted(shares, reverse=True)


def test_evidence_does_not_underflow() -> None:
    """An underflow would end a bet, and subnormal numbers are slow."""
    state = np.zeros(SIZE)
    for _ in range(3000):
        observe_difference(state, -1.0, 1.0, 0.0)
    assert state[BETTER] > 0
    assert state[WORSE] >= 1e200
    assert (state[LANES : LANES + 2 * N] >= 1e-200).all()


def test_differences_are_clipped_to_the_bound() -> None:
    states = np.zeros((2, SIZE))
    for d in (0.5, -3.0, 7.0, math.inf, 0.25):
        observe_difference(states[0], d, 1.0, 0.0)
        observe_difference(states[1], min(max(d, -1.0), 1.0), 1.0, 0.0)
    assert np.array_equal(states[0], states[1])


def test_a_difference_of_zero_changes_nothing() -> None:
    state = np.zeros(SIZE)
    for d, bound in ((0.0, 1.0), (math.nan, 1.0), (1.0, 0.0)):
        observe_difference(state, d, bound, 0.0)
    assert not state.any()


@pytest.mark.parametrize("floor", [0.0, 0.1])
def test_any_range_is_a_unit(floor: float) -> None:
    rng = np.random.default_rng(2)
    unit, other = np.zeros((2, SIZE))
    for _ in range(200):
        w1, w0 = weights(int(rng.integers(3)), float(rng.random()), 0.1)
        r = float(rng.integers(9)) / 8
        observe(unit, scale_of(floor), w1, w0, r)
        observe(other, scale_of(floor, -4.0, 12.0), w1, w0, 16 * r - 4)
    assert evidence(other) == pytest.approx(evidence(unit))
    assert np.array(interval(other, 0.1)) / 16 == pytest.approx(np.array(interval(unit, 0.1)))


def test_a_reward_out_of_range_counts_fully_only_against_the_side_it_hurts() -> None:
    """A reward out of range is unlimited against one side, and clipped for the other."""
    for who in (0, 1):
        for reward, end in ((9.0, 1.0), (-9.0, 0.0)):
            within, beyond = np.zeros((2, SIZE))
            for state in (within, beyond):
                for i in range(20):
                    observe(state, scale_of(0.1), 2.0 * (i % 2), 2.0 * (1 - i % 2), float(i % 3 == 0))
            observe(within, scale_of(0.1), 5.0 * who, 5.0 * (1 - who), end)
            observe(beyond, scale_of(0.1), 5.0 * who, 5.0 * (1 - who), reward)
            for side in (BETTER, WORSE):
                helps = (side == BETTER) == ((who == 1) == (end == 1.0))
                assert beyond[side] == within[side] if helps else beyond[side] < within[side]


def test_widening_the_range_keeps_the_wealth() -> None:
    scale = make_scale(0.0, 0.0, floor=0.2)
    state = np.zeros(SIZE)
    observe(state, scale, 2.0, 0.0, 5.0)
    assert not state.any()  # a range without a width tells nothing
    widen(scale, 5.0, 0.5, 1)
    assert scale.tolist() == [0.0, 5.0, 0.2, 1.0, 0.0, 0.0]
    observe(state, scale, 2.0, 0.0, 5.0)
    before = evidence(state)
    widen(scale, -5.0, 0.1, 1)
    assert scale.tolist() == [-5.0, 5.0, 0.1, 2.0, 1.0, 0.0]
    assert evidence(state) == before
    widen(scale, 1.0, 0.3, 1)
    assert scale[OUTSIDE] == 2
    unknown = np.zeros(SCALE_SIZE)
    widen(unknown, 1.0, 0.3, 1)
    assert (unknown[LOW], unknown[HIGH], unknown[FLOOR]) == (0.0, 1.0, 0.0)


_scale, _state, _policy = (local_array(size, np.float64) for size in (SCALE_SIZE, SIZE, POLICY_SIZE))


@kernel
def run(
    which: int, draws: NDArray[np.float64], period: int, scale: NDArray[np.float64]
) -> tuple[float, bool, bool]:
    """Return the largest evidence of a stream, and whether an interval ever misses, with alpha = 0.05."""
    known, state, policy = _scale(), _state(), _policy()
    for i in range(SCALE_SIZE):
        known[i] = scale[i]
    state[:] = policy[:] = 0.0
    bound, top, gained, missed, missed_policy = 0.01, 0.0, 0.0, False, False
    for t in range(len(draws)):
        gap = 0.0 if period == 0 else -0.3 if 2 * (t % period) < period else 0.3
        if which == 0:  # full information, with a bound learnt meanwhile
            d = (draws[t, 0] + draws[t, 1] - 1.0) ** 3 + gap
            observe_difference(state, d, bound, 0.0)
            bound = max(bound, abs(d))
            gained += gap
        else:
            hit = draws[t, 0] < 0.2
            reward = -2.0 if draws[t, 1] < 0.5 - (gap / 2 if hit else -gap / 2) else 3.0
            observe(state, known, 5.0 * hit, 1.25 * (not hit), reward)
            observe_policy(policy, known, 1.25 * (not hit), reward, 1.0)
            widen(known, reward, 0.2 if hit else 0.8, 1)
            gained += 5.0 * gap
        top = max(top, state[BETTER])
        if t % 100 == 99:
            low, high = interval(state, 0.05)
            missed = missed or not low <= gained <= high
            low, high = interval(policy, 0.05)
            missed_policy = missed_policy or not low <= 0.5 * (t + 1) - gained / 2 <= high
    return top, missed, missed_policy


@pytest.mark.parametrize("period", [0, 256])
@pytest.mark.parametrize(
    ("which", "scale"),
    [
        (0, scale_of(0.0)),
        (1, scale_of(0.2, -2.0, 3.0)),
        (1, scale_of(0.0, -2.0, 3.0)),
        (1, scale_of(0.25)),  # both the range and the floor are learnt
    ],
    ids=["differences", "floor", "unknown", "learnt"],
)
def test_false_promotions_stay_below_the_level(which: int, scale: NDArray[np.float64], period: int) -> None:
    done = [run(which, np.random.default_rng(seed).random((3000, 2)), period, scale) for seed in range(400)]
    most, missed, missed_policy = np.array(done).T
    assert (most >= 20).mean() <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / 400)
    assert (most > 1).any()
    if scale[HIGH] == 3:  # else intervals are about clipped rewards
        assert missed.mean() <= 0.05
        assert missed_policy.mean() <= 0.05


@pytest.mark.parametrize("floor", [0.0, 0.5])
def test_unknown_floors_are_safe_where_wrong_ones_are_not(floor: float) -> None:
    """In one context of ten the challenger's action is never logged, and the champion's reward is low."""
    wrong = 0
    for seed in range(50):
        state = np.zeros(SIZE)
        for hidden, hit, u in np.random.default_rng(seed).random((2000, 3)):
            w1 = 2.0 * (hidden > 0.1 and hit < 0.5)
            w0 = 1.0 if hidden <= 0.1 else 2.0 - w1
            observe(state, scale_of(floor), w1, w0, float(u < (0.1 if hidden <= 0.1 else 0.8)))
        wrong += is_better(state, 0.05)
    assert wrong <= 3 if floor == 0 else wrong >= 25


@settings(max_examples=20)
@given(st.integers(0, 1000))
def test_a_smaller_level_gives_wider_intervals(seed: int) -> None:
    rng = np.random.default_rng(seed)
    state = np.zeros(POLICY_SIZE)
    for _ in range(100):
        observe_policy(state, scale_of(0.5), 2.0 * float(rng.random() < 0.5), float(rng.random()), 1.0)
    bounds = [interval(state, alpha) for alpha in (0.001, 0.05, 0.5)]
    assert bounds[0][0] < bounds[1][0] < bounds[2][0] < bounds[2][1] < bounds[1][1] < bounds[0][1]


def test_an_event_without_weights_counts_towards_restarts() -> None:
    """Callers skip events without the action of either policy; these still count towards restarts."""
    state = np.zeros(SIZE)
    observe(state, scale_of(0.1), 0.0, 0.0, 1.0)
    assert state[T] == 1
