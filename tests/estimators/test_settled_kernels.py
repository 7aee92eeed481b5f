"""A point between two bounds makes further comparisons unnecessary until a weight is positive."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlineauto.estimators.robust_kernels import (
    IN_FULL,
    LOW,
    LOWER,
    SIZE,
    SUM,
    UPPER,
    T,
    is_better,
    lower_bound,
    observe,
    observe_nothing,
    upper_bound,
)
from onlineauto.jit import kernel, local_array
from tests.estimators.lazy_streams import LOGS, draw
from tests.estimators.test_robust_kernels import (
    PAIRS,
    REWARDS,
    SANE_PAIRS,
    TESTS,
    Pair,
    Rule,
    deciding_sum,
    estimate,
    rule,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

OFF = np.array([0.0, 1e-15, 1e-12, 1e-9, 1e-7, 1e-6, 1e-4, 1e-2])
_one, _other = (local_array((2, SIZE), np.float64) for _ in range(2))

SETTLED, OPEN, BROKEN = range(3)
"""Entries of a tally: settled comparisons, other comparisons, and wrongly settled ones."""


@kernel
def nothing(evidence: Numbers, slot: int, who: int, times: int) -> None:
    for _ in range(times):
        observe_nothing(evidence, slot, who)


@kernel
def hold(
    challenger: Numbers, champion: Numbers, test: Rule, rewards: Numbers, tally: NDArray[np.int64]
) -> None:
    """Compare; if that settles it, observe these rewards with a weight of 0, and compare in full."""
    better, effort = is_better(challenger, champion, test)
    if better or effort == IN_FULL:
        tally[OPEN] += 1
        return
    tally[SETTLED] += 1
    one, other = _one(), _other()
    for bound in range(2):
        for i in range(SIZE):
            one[bound, i], other[bound, i] = challenger[bound, i], champion[bound, i]
    for reward in rewards:
        observe(one, 0.0, reward)
        observe(other, 0.0, reward)
        if lower_bound(one, test) > upper_bound(other, test):
            tally[BROKEN] += 1
            return


@kernel
def hold_around(
    challenger: Numbers,
    champion: Numbers,
    test: Rule,
    rewards: Numbers,
    off: Numbers,
    tally: NDArray[np.int64],
) -> None:
    """Call `hold` around sums of the champion at which the decision changes, and means are equal."""
    original, n = champion[UPPER, SUM], champion[UPPER, T]
    high = deciding_sum(challenger, champion, test)
    for center in (high, n * (1.0 - challenger[LOWER, SUM] / challenger[LOWER, T])):
        for by in off:
            for sign in (-1.0, 1.0):
                champion[UPPER, SUM] = center * (1.0 + sign * by)
                hold(challenger, champion, test, rewards, tally)
    champion[UPPER, SUM] = original


@pytest.mark.ci
@settings(max_examples=200)
@given(PAIRS, PAIRS, TESTS, st.lists(REWARDS, min_size=1, max_size=30))
def test_a_settled_comparison_stays_settled_while_weights_are_zero(
    one: list[Pair], other: list[Pair], test: Rule, rewards: list[float]
) -> None:
    tally = np.zeros(3, np.int64)
    hold(estimate(one), estimate(other), test, np.array(rewards), tally)
    hold(estimate(other), estimate(one), test, np.array(rewards), tally)
    assert tally[BROKEN] == 0
    assert tally.sum() == 2


@given(SANE_PAIRS.filter(len), SANE_PAIRS.filter(len), TESTS, st.lists(REWARDS, min_size=1, max_size=12))
def test_nearly_equal_bounds_stay_settled_while_weights_are_zero(
    one: list[Pair], other: list[Pair], test: Rule, rewards: list[float]
) -> None:
    tally = np.zeros(3, np.int64)
    hold_around(estimate(one), estimate(other), test, np.array(rewards), OFF, tally)
    assert tally[BROKEN] == 0


@pytest.mark.parametrize("log", LOGS)
def test_a_settled_comparison_stays_settled_for_many_events(log: str) -> None:
    tally = np.zeros(3, np.int64)
    rng = np.random.default_rng(3)
    for n in (50, 200, 800):
        weights, rewards = draw(log, rng, n)
        one, other = (
            estimate(zip(weights[:, who].tolist(), rewards.tolist(), strict=True)) for who in range(2)
        )
        hold_around(one, other, rule(), rng.uniform(-1, 2, 400), OFF, tally)
    assert tally[BROKEN] == 0
    assert tally[SETTLED] > 10
    assert tally[OPEN] > 10


@given(PAIRS, st.lists(REWARDS, max_size=9))
def test_an_event_without_weight_equals_a_weight_of_zero(pairs: list[Pair], rewards: list[float]) -> None:
    """The law holds for any reward, and for negative sums."""
    evidence = np.zeros((3, 2, 2, SIZE))
    evidence[1, 0], evidence[2, 1] = estimate(pairs), estimate([(w, -r) for w, r in pairs])
    expected = evidence.copy()
    for slot, who in ((1, 0), (2, 1)):
        nothing(evidence, slot, who, len(rewards))
        for reward in rewards:
            observe(expected[slot, who], 0.0, reward)
    assert evidence.tobytes() == expected.tobytes()


def test_no_weight_after_negative_sums_changes_only_the_upper_side() -> None:
    """This case is covered by the law above."""
    evidence = np.zeros((1, 1, 2, SIZE))
    evidence[0, 0] = estimate([(5.0, -3.0)] * 4)
    before = evidence.copy()
    nothing(evidence, 0, 0, 1)
    assert evidence[0, 0, LOWER, SUM] < 0
    assert evidence[0, 0, LOWER, LOW] == before[0, 0, LOWER, LOW]
    assert evidence[0, 0, UPPER, LOW] > before[0, 0, UPPER, LOW]
