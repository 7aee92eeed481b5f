"""Kernels of the explorers, compared bit for bit with slow reference implementations."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from onlineauto.engine.policies.visit_kernels import normal_of
from onlineauto.explorers import EXPLORERS
from onlineauto.explorers.cost_range_kernels import highest_cost, largest_weight, lowest_cost
from onlineauto.explorers.exploration import kernel_of, make_exploration, merge_errors
from onlineauto.explorers.pmf_kernels import hold_floor, softmax
from onlineauto.explorers.quirks import NO_EXPLORING_QUIRKS
from onlineauto.explorers.ranking_kernels import (
    LEARNT,
    ROWS,
    learnt_probability,
    note_error,
    rank_by_probability,
)
from onlineauto.explorers.sample_kernels import number_of, step_on
from onlineauto.workspace.options import REGISTRY
from tests.naive import explorers as naive
from tests.naive.explorers import normal

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


@pytest.mark.parametrize(
    ("regresses", "weighs_last", "expected"),
    [
        (False, False, [0.25, 0.25, 0.25]),
        (False, True, [0.25, 0.25, 0.25]),
        (True, False, [1, 1, 1]),
        (True, True, [1, 1, 0.25]),
    ],
)
def test_regression_weights_only_the_last_action_and_only_in_vw(
    regresses: bool, weighs_last: bool, expected: list[float]
) -> None:
    quirks = NO_EXPLORING_QUIRKS._replace(weighs_last_action=weighs_last)
    exploration = make_exploration(REGISTRY.parse(["--cb_explore_adf"]), quirks=quirks)
    at = exploration._replace(regresses=regresses)
    found = [learnt_probability(at, np.float32(0.25), action, 3) for action in range(3)]
    assert found == expected


def expf(x: np.float32) -> np.float32:
    return F(_LIBM.expf(float(x)))


def column(values: object) -> np.ndarray:
    return np.array(values, np.float32)


PLAIN = make_exploration(REGISTRY.parse("--cb_explore_adf --epsilon 0"))


def explored(
    name: str,
    scores: list[np.float32],
    numbers: tuple[float, ...],
    *,
    order: Sequence[int] | None = None,
    rows: Sequence[object] = (),
    learnt: int = 0,
    costs: tuple[float, float] = (0.0, 0.0),
    errors: ArrayLike = (0.0, 0.0, 0.0, 0.0, 0.0),
    first_only: bool = False,
) -> np.ndarray:
    """Return probabilities of an explorer by rank, or by action with `order`; `rows` are its scratch."""
    n = len(scores)
    scratch = np.full((ROWS, n), np.nan, np.float32)
    scratch[: len(rows)] = column(rows).reshape(len(rows), n)
    at = PLAIN._replace(
        numbers=np.array(numbers, np.float64),
        counts=np.zeros(2, np.int64),
        costs=column(costs),
        errors=np.array(errors, np.float64),
        first_only=first_only,
        quirks=NO_EXPLORING_QUIRKS,
    )
    at.counts[LEARNT] = learnt
    pmf, actions = column(scores), np.array(range(n) if order is None else order, np.int32)
    kernel_of(type(EXPLORERS[name]))(at, actions, pmf, scratch)
    return pmf if order is not None else pmf[np.argsort(actions)]


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
    pmf = explored("first", scores, (tau,), learnt=learnt)
    assert list(pmf) == naive.first(scores, tau=tau, learnt=learnt)


@given(RANKED, st.floats(0, 20, width=32).map(F))
def test_softmax(scores: list[np.float32], lambda_: np.float32) -> None:
    pmf = explored("softmax", scores, (float(lambda_),))
    assert list(pmf) == naive.softmax(scores, lambda_, expf)


def test_softmax_of_vws_own_test() -> None:
    pmf = column([-8, -3, -2, -1])
    softmax(pmf, 4, F(0.2))
    assert np.abs(pmf[::-1] - [0.128, 0.157, 0.192, 0.522]).max() < 0.001


@given(
    RANKED, st.floats(0, 100, width=32).map(F), st.sampled_from([0.0, 0.3, 0.5, 1.0]), st.integers(0, 10**6)
)
def test_squarecb(scores: list[np.float32], scale: np.float32, exponent: float, learnt: int) -> None:
    pmf = explored("squarecb", scores, (float(scale), exponent, False), learnt=learnt)
    assert list(pmf) == naive.squarecb(scores, F(naive.gamma_of(scale, F(exponent), learnt)))


@given(st.data(), RANKED, st.floats(0, 20), st.lists(st.floats(-9, 9), max_size=20), st.integers(0, 10**9))
def test_scaled_squarecb(
    data: st.DataObject, scores: list[np.float32], scale: float, costs: list[float], learnt: int
) -> None:
    unsure = data.draw(st.lists(st.sampled_from([0.0, 0.5, 9.0]), min_size=len(scores), max_size=len(scores)))
    at = make_exploration(REGISTRY.parse("--cb_explore_adf --scaled_squarecb"))
    for cost in costs:
        note_error(at, F(cost), F(cost / 2 + 1), F(1))
    rounded = [float(F(cost)) for cost in costs]
    error = naive.typical_error(rounded, [float(F(cost / 2 + 1)) for cost in costs])
    error = 1.0 if error == 0 and learnt > len(costs) else error  # events whose errors are unknown
    pmf = explored("scaled_squarecb", scores, (scale,), rows=[unsure], learnt=learnt, errors=at.errors)
    expected = naive.scaled_squarecb(scores, scale, error, unsure, learnt)
    np.testing.assert_allclose(pmf, np.array(expected), rtol=1e-4, atol=1e-6)


def test_scaled_squarecb_of_infinite_scores() -> None:
    for scores in ([F(0), F(np.inf)], [F(np.inf), F(np.inf)], [F(-np.inf), F(1)]):
        pmf = explored("scaled_squarecb", scores, (4.0,), learnt=9, errors=(9.0, 0.0, 1.0, 9.0, 1.0))
        assert pmf.sum() == 1
        assert (pmf >= 0).all()


def test_merged_errors_are_those_of_all_events() -> None:
    everything, parts = np.random.default_rng(3).normal(5, 2, 300), []
    for costs in (everything, everything[:100], everything[100:], everything[:0]):
        at = make_exploration(REGISTRY.parse("--cb_explore_adf --scaled_squarecb"))
        for cost in costs:
            note_error(at, F(cost), F(5), F(1))
        parts.append(at.errors)
    np.testing.assert_allclose(merge_errors(parts[1:])[:3], parts[0][:3], rtol=1e-9)


@given(st.data(), RANGES, st.floats(0, 100, width=32).map(F))
def test_elimination(data: st.DataObject, ranges: list[list[np.float32]], gamma: np.float32) -> None:
    n = len(ranges)
    order = data.draw(st.permutations(range(n)))
    scores = sorted(data.draw(st.lists(SMALL, min_size=n, max_size=n)))
    by_rank = [(ranges[action][0], ranges[action][1]) for action in order]
    given: dict[str, Any] = {"order": order, "rows": list(column(ranges).T)}
    pmf = explored("squarecb", scores, (float(gamma), 0.0, True), **given)
    np.testing.assert_array_equal(pmf, naive.squarecb_elim(scores, by_rank, gamma))
    pmf = explored("regcb", scores, (False,), **given)
    assert list(pmf) == naive.regcb(by_rank)
    for first_only in (False, True):
        pmf = explored("regcb", scores, (True,), first_only=first_only, **given)
        assert list(pmf) == naive.regcb_optimistic(by_rank, order, first_only=first_only)


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
    lowest = lowest_cost(prediction, sensitivities[0], allowed, low, high, False)
    highest = highest_cost(prediction, sensitivities[1], allowed, low, high, False)
    expected = naive.cost_range(prediction, sensitivities, allowed, low, high)
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
    pmf = explored("synthcover", scores, (float(psi), size), costs=(float(low), float(high)))
    assert list(pmf) == naive.synthcover(scores, low, high, psi=psi, size=size)


@given(st.lists(st.tuples(TIED, TIED), min_size=1, max_size=60))
def test_the_most_probable_actions_are_first(rows: list[tuple[np.float32, np.float32]]) -> None:
    order = np.full(len(rows), -1, np.int32)
    rank_by_probability(column([row[0] for row in rows]), column([row[1] for row in rows]), len(rows), order)
    expected = sorted(range(len(rows)), key=lambda action: (-rows[action][0], rows[action][1], action))
    assert list(order) == expected


@given(st.data(), RANKED)
def test_rnd(data: st.DataObject, scores: list[np.float32]) -> None:
    n = len(scores)
    order = data.draw(st.permutations(range(n)))
    bonuses = data.draw(st.lists(st.floats(0, 3, width=32).map(F), min_size=n, max_size=n))
    pmf = explored("rnd", scores, (0.0, 0.0), order=order, rows=[bonuses])
    assert list(pmf) == naive.rnd(scores, [bonuses[action] for action in order], expf)


@given(st.integers(0, 2**64 - 1))
def test_normal_numbers(seed: int) -> None:
    assert normal_of(np.uint64(seed)) == normal(seed)


def test_the_generator_of_vw_draws_the_numbers_of_its_own_test() -> None:
    state, drawn = np.uint64(10), []
    for _ in range(3):
        state = np.uint64(step_on(state))
        drawn.append(round(float(number_of(state)), 9))
    assert drawn == [0.017016649, 0.370730162, 0.166691661]
