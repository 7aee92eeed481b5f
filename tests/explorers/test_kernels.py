"""Kernels of the explorers beside their slow twins, bit for bit."""

from __future__ import annotations

import ctypes

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from onlineauto.explorers._kernels import rank_by_probability
from onlineauto.explorers.cost_range_kernels import highest_cost, largest_weight, lowest_cost
from onlineauto.explorers.first_kernels import first
from onlineauto.explorers.floor_kernels import hold_floor
from onlineauto.explorers.regcb_kernels import regcb, regcb_optimistic
from onlineauto.explorers.rnd_kernels import normal_of, rnd
from onlineauto.explorers.sample_kernels import number_of, step_on
from onlineauto.explorers.softmax_kernels import softmax
from onlineauto.explorers.squarecb_kernels import greediness, squarecb, squarecb_elim
from onlineauto.explorers.synthcover_kernels import synthcover
from tests.naive import explorers as naive
from tests.naive.guesses import normal

F = np.float32
SMALL = st.floats(-3, 3, width=32).map(F)
TIED = st.sampled_from([0.0, 0.25, 0.5, 1.0]).map(F)
SCORES = st.lists(st.one_of(SMALL, TIED), min_size=1, max_size=40)
RANKED = SCORES.map(sorted)
EPSILON = st.one_of(st.sampled_from([0.0, 1.0, 0.5]), st.floats(0, 1, width=32)).map(F)
NO_RANGE = st.just([F(np.nan), F(np.nan)])
RANGES = st.lists(st.tuples(TIED | SMALL, TIED | SMALL).map(sorted) | NO_RANGE, min_size=1, max_size=12)

_LIBM = ctypes.CDLL("libm.so.6")
_LIBM.expf.restype, _LIBM.expf.argtypes = ctypes.c_float, [ctypes.c_float]


def expf(x: np.float32) -> np.float32:
    return F(_LIBM.expf(float(x)))


def column(values: object) -> np.ndarray:
    return np.array(values, np.float32)


@given(st.lists(st.floats(0, 1, width=32), min_size=1, max_size=60), EPSILON)
def test_floor(chances: list[float], epsilon: np.float32) -> None:
    total = sum(chances)
    pmf = column([chance / total for chance in chances] if total > 0 else [1 / len(chances)] * len(chances))
    expected = naive.floored(list(pmf), epsilon)
    hold_floor(pmf, len(pmf), epsilon, True, np.empty(len(pmf), np.float32))
    assert list(pmf) == expected


def test_floors_of_vws_own_tests() -> None:
    pmf = column([1, 0, 0])
    hold_floor(pmf, 3, F(0.3), True, np.empty(3, np.float32))
    assert pmf.round(6).tolist() == column([0.8, 0.1, 0.1]).round(6).tolist()


@given(RANKED, st.integers(0, 3), st.integers(0, 3))
def test_first(scores: list[np.float32], tau: int, learnt: int) -> None:
    pmf = column(scores)
    first(pmf, len(pmf), learnt < tau)
    assert list(pmf) == naive.first(scores, tau=tau, learnt=learnt)


@given(RANKED, st.floats(0, 20, width=32).map(F))
def test_softmax(scores: list[np.float32], lambda_: np.float32) -> None:
    pmf = column(scores)
    softmax(pmf, len(pmf), lambda_)
    assert list(pmf) == naive.softmax(scores, lambda_, expf)


def test_softmax_of_vws_own_test() -> None:
    pmf = column([-8, -3, -2, -1])
    softmax(pmf, 4, F(0.2))
    assert np.abs(pmf[::-1] - [0.128, 0.157, 0.192, 0.522]).max() < 0.001


@given(
    RANKED, st.floats(0, 100, width=32).map(F), st.sampled_from([0.0, 0.3, 0.5, 1.0]), st.integers(0, 10**6)
)
def test_squarecb(scores: list[np.float32], scale: np.float32, exponent: float, learnt: int) -> None:
    gamma = greediness(scale, F(exponent), learnt)
    assert gamma == naive.gamma_of(scale, F(exponent), learnt)
    pmf = column(scores)
    squarecb(pmf, len(pmf), F(gamma))
    assert list(pmf) == naive.squarecb(scores, F(gamma))


@given(st.data(), RANGES, st.floats(0, 100, width=32).map(F), st.booleans())
def test_elimination(
    data: st.DataObject, ranges: list[list[np.float32]], gamma: np.float32, exact: bool
) -> None:
    n = len(ranges)
    order = data.draw(st.permutations(range(n)))
    scores = sorted(data.draw(st.lists(SMALL, min_size=n, max_size=n)))
    plausible = column(ranges).T.copy()
    by_rank = [(ranges[action][0], ranges[action][1]) for action in order]
    numbers = np.array(order, np.int32)
    pmf = column(scores)
    squarecb_elim(pmf, numbers, n, gamma, plausible, exact)
    np.testing.assert_array_equal(pmf, naive.squarecb_elim(scores, by_rank, gamma, exact=exact))
    regcb(pmf, numbers, n, plausible)
    assert list(pmf) == naive.regcb(by_rank)
    for first_only in (False, True):
        regcb_optimistic(pmf, numbers, n, plausible, first_only, exact)
        assert list(pmf) == naive.regcb_optimistic(by_rank, order, first_only=first_only, exact=exact)


@given(
    SMALL,
    st.tuples(*2 * [st.floats(0, 10, width=32).map(F) | st.sampled_from([np.nan, np.inf]).map(F)]),
    st.floats(0, 5, width=32).map(F) | st.just(F(-np.inf)),
    st.tuples(SMALL, SMALL).map(sorted),
)
def test_plausible_costs(
    prediction: np.float32,
    sensitivities: tuple[np.float32, np.float32],
    allowed: np.float32,
    limits: list[np.float32],
) -> None:
    low, high = limits
    for exact in (True, False):
        lowest = lowest_cost(prediction, sensitivities[0], allowed, low, high, exact)
        highest = highest_cost(prediction, sensitivities[1], allowed, low, high, exact)
        expected = naive.cost_range(prediction, sensitivities, allowed, low, high, exact=exact)
        np.testing.assert_array_equal([lowest, highest], expected)
    assert low <= lowest <= high
    assert low <= highest <= high


@given(
    st.floats(0.125, 5, width=32).map(F), st.floats(0, 5, width=32).map(F), st.floats(0, 3, width=32).map(F)
)
def test_largest_weight(distance: np.float32, allowed: np.float32, sensitivity: np.float32) -> None:
    expected = naive.largest_weight(distance, allowed, sensitivity)
    assert largest_weight(distance, allowed, sensitivity) == expected


@given(
    st.lists(SMALL | TIED, min_size=2, max_size=12),
    st.tuples(SMALL, SMALL).map(sorted),
    st.floats(0.015625, 2, width=32).map(F),
    st.integers(1, 150),
)
def test_synthcover(scores: list[np.float32], limits: list[np.float32], psi: np.float32, size: int) -> None:
    low, high = min(limits[0], F(0)), max(limits[1], F(0))
    pmf = np.empty(len(scores), np.float32)
    synthcover(pmf, column(scores), len(scores), column([low, high]), psi, size)
    assert list(pmf) == naive.synthcover(scores, low, high, psi=psi, size=size)


@given(st.lists(st.tuples(TIED, TIED), min_size=1, max_size=60))
def test_the_likeliest_come_first(rows: list[tuple[np.float32, np.float32]]) -> None:
    order = np.full(len(rows), -1, np.int32)
    rank_by_probability(column([row[0] for row in rows]), column([row[1] for row in rows]), len(rows), order)
    expected = sorted(range(len(rows)), key=lambda action: (-rows[action][0], rows[action][1], action))
    assert list(order) == expected


@given(st.data(), RANKED)
def test_rnd(data: st.DataObject, scores: list[np.float32]) -> None:
    n = len(scores)
    order = data.draw(st.permutations(range(n)))
    bonuses = data.draw(st.lists(st.floats(0, 3, width=32).map(F), min_size=n, max_size=n))
    pmf = column(scores)
    rnd(pmf, np.array(order, np.int32), n, column(bonuses))
    assert list(pmf) == naive.rnd(scores, [bonuses[action] for action in order], expf)


@given(st.integers(0, 2**64 - 1))
def test_normal_numbers(seed: int) -> None:
    assert normal_of(np.uint64(seed)) == normal(seed)


@given(st.integers(0, 2**64 - 1))
def test_vws_generator(seed: int) -> None:
    expected, state = naive.merand48(seed)
    assert int(step_on(np.uint64(seed))) == state
    assert number_of(np.uint64(state)) == expected


def test_vws_generator_in_its_own_test() -> None:
    state, drawn = np.uint64(10), []
    for _ in range(3):
        state = np.uint64(step_on(state))
        drawn.append(round(float(number_of(state)), 9))
    assert drawn == [0.017016649, 0.370730162, 0.166691661]
