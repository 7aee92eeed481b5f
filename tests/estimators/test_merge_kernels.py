"""Merged tests: the wealth is that of one bettor, errors stay at the level, and capital is added once."""

from __future__ import annotations

import numpy as np
import pytest

from onlineauto.estimators.difference_kernels import RESTARTS, SPREAD_SIZE, observe_any_difference, share
from onlineauto.estimators.interval_kernels import POLICY_SIZE, observe_policy
from onlineauto.estimators.merge import merge_difference_tests, merge_sums, merge_tests
from onlineauto.estimators.paired_kernels import (
    BETTER,
    LANES,
    RESERVE,
    SIZE,
    WORSE,
    N,
    T,
    is_better,
    observe_difference,
    observe_predicted,
)
from onlineauto.estimators.scale_kernels import make_scale

State = np.ndarray[tuple[int], np.dtype[np.float64]]


def settle(
    state: State, draw: np.random.Generator, n: int, *, floor: float | None, gain: float = 0.1
) -> None:
    """Add events of two actions with propensities of 0.5 to a test."""
    scale = make_scale(0.0, 1.0, floor=floor)
    if floor is None:
        scale[2] = 0.5
    for _ in range(n):
        logged, reward = draw.integers(2), draw.random()
        reward = min(max(reward + (gain if logged else -gain), 0.0), 1.0)
        observe_predicted(state, scale, 2.0 * logged, 2.0 * (1 - logged), reward, (0.5, 0.5), 0.0)


@pytest.mark.parametrize("floor", [0.0, 0.5, None])
def test_merged_evidence_is_that_of_one_bettor(floor: float | None) -> None:
    draw, known = np.random.default_rng(1), floor is None or floor > 0
    base, whole = np.zeros(SIZE), np.zeros(SIZE)
    for state in (base, whole):
        settle(state, np.random.default_rng(7), 50, floor=floor)
    for _ in range(3):
        ends, seeds = [base.copy() for _ in range(3)], draw.integers(2**32, size=3)
        for end, seed, n in zip(ends, seeds, (40, 0, 90), strict=True):
            settle(end, np.random.default_rng(seed), n, floor=floor)
            settle(whole, np.random.default_rng(seed), n, floor=floor)
        base = merge_tests(base, ends, floor=known)
        np.testing.assert_allclose(base, whole, rtol=1e-9)
    assert whole[BETTER] > 1.5


@pytest.mark.parametrize("floor", [0.0, 0.5, None])
def test_a_fresh_base_adds_its_capital_once(floor: float | None) -> None:
    whole, ends = np.zeros(SIZE), [np.zeros(SIZE) for _ in range(4)]
    for seed, end in enumerate(ends[:3]):
        settle(end, np.random.default_rng(seed), 60, floor=floor)
        settle(whole, np.random.default_rng(seed), 60, floor=floor)
    merged = merge_tests(np.zeros(SIZE), ends, floor=floor is None or floor > 0)
    np.testing.assert_allclose(merged, whole, rtol=1e-9)


@pytest.mark.parametrize("began", [0, 900, 1500])
def test_a_branch_that_learnt_nothing_changes_nothing(began: int) -> None:
    base = np.zeros(SIZE)
    settle(base, np.random.default_rng(3), began, floor=0.5, gain=0.01)
    end = base.copy()
    settle(end, np.random.default_rng(4), 1200, floor=0.5, gain=0.01)
    for ends in ([end], [end, base], [base, end]):
        np.testing.assert_allclose(merge_tests(base, ends, floor=True), end, rtol=1e-9)
    np.testing.assert_array_equal(merge_tests(base, [base, base], floor=True), base)


def test_capital_added_in_several_branches_is_taken_from_the_reserve_once() -> None:
    base = np.zeros(SIZE)
    settle(base, np.random.default_rng(3), 1000, floor=0.5, gain=0.0)
    ends = [base.copy() for _ in range(4)]
    for seed, end in enumerate(ends):
        settle(end, np.random.default_rng(seed), 100, floor=0.5, gain=0.0)
    merged = merge_tests(base, ends, floor=True)
    assert merged[T] == 1400
    assert merged[RESERVE] == pytest.approx(0.05)
    product = base[LANES : LANES + N] + 0.05 * 0.4 * 0.6 ** np.arange(N) / (1 - 0.6**N)
    for end in ends:
        own = base[LANES : LANES + N] + 0.05 * 0.4 * 0.6 ** np.arange(N) / (1 - 0.6**N)
        product = product * end[LANES : LANES + N] / own
    np.testing.assert_allclose(merged[LANES : LANES + N], product, rtol=1e-9)
    assert merged[BETTER] == pytest.approx(0.05 + product.sum())
    settle(merged, np.random.default_rng(9), 1, floor=0.5)  # it goes on
    assert merged[T] == 1401


@pytest.mark.ci
def test_false_promotions_of_merged_tests_stay_below_the_level() -> None:
    """Two equal policies in four branches, merged every 150 events, while capital is added twice."""
    draw, runs, wrong = np.random.default_rng(11), 200, 0
    for _ in range(runs):
        base = np.zeros(SIZE)
        for _ in range(4):
            ends = [base.copy() for _ in range(4)]
            for end in ends:
                for d in draw.choice([-1.0, 1.0], size=150):
                    observe_difference(end, d, 1.0, 0.0)
            base = merge_tests(base, ends, floor=True)
            if is_better(base, 0.05):
                wrong += 1
                break
    assert wrong <= 0.05 * runs + 2 * np.sqrt(0.05 * 0.95 * runs)


def test_merged_tests_prove_what_no_branch_proves() -> None:
    ends = [np.zeros(SIZE) for _ in range(4)]
    for seed, end in enumerate(ends):
        settle(end, np.random.default_rng(seed), 100, floor=0.5, gain=0.1)
    merged = merge_tests(np.zeros(SIZE), ends, floor=True)
    assert not any(is_better(end, 0.001) for end in ends)
    assert is_better(merged, 0.001)
    assert merged[WORSE] < 1.0


def test_sums_of_policies_add_up() -> None:
    scale, draw = make_scale(0.0, 1.0, floor=0.5), np.random.default_rng(0)
    whole, ends = np.zeros(POLICY_SIZE), [np.zeros(POLICY_SIZE) for _ in range(3)]
    for at in range(90):
        reward = draw.random()
        observe_policy(ends[at % 3], scale, 2.0, reward, 1.0)
        observe_policy(whole, scale, 2.0, reward, 1.0)
    merged = merge_sums(np.zeros(POLICY_SIZE), ends)
    np.testing.assert_allclose(merged[4:], whole[4:], rtol=1e-9)
    np.testing.assert_allclose(merged, whole, rtol=0.2)  # sums are centred on the mean so far, of the branch


def test_a_test_restarted_in_a_branch_restarts_with_half_of_the_level() -> None:
    state, spread, draw = np.zeros(SIZE), np.zeros(SPREAD_SIZE), np.random.default_rng(1)
    for d in draw.normal(size=200):
        observe_any_difference(state, spread, 50.0 * d, 0.0)
    ends = [(state.copy(), spread.copy()) for _ in range(3)]
    for (end, of), size in zip(ends, (0.5, 50.0, 0.0), strict=True):
        for d in draw.normal(size=1500) if size else []:
            observe_any_difference(end, of, size * (d + 0.3), 0.0)
    assert [of[RESTARTS] for _, of in ends] == [pytest.approx(ends[0][1][RESTARTS]), 0.0, 0.0]
    assert ends[0][1][RESTARTS] > 0
    merged, of = merge_difference_tests((state, spread), ends)
    assert share(of) == share(ends[0][1])
    assert of[3] >= 0.0
    assert merged[BETTER] > ends[0][0][BETTER]  # and what the second branch has won since the base
    alone, own = merge_difference_tests((state, spread), [ends[0], (state, spread)])
    np.testing.assert_allclose(alone, ends[0][0], rtol=1e-9)
    np.testing.assert_array_equal(own[RESTARTS], ends[0][1][RESTARTS])
    same, _ = merge_difference_tests((state, spread), [(state, spread)] * 2)
    np.testing.assert_array_equal(same, state)
