"""Ranking and ε-greedy: kernels compared with slow reference implementations, and properties of the pmf."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlineauto.explorers.pmf_kernels import greedy
from onlineauto.explorers.ranking_kernels import count_tied, rank
from tests.naive import bandit

F = np.float32
SCORE = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, 1.00009, 1.0001, 1.0002, 1.0003, -1.0, -1.0002]),
    st.floats(-3, 3, width=32),
    st.floats(width=32, allow_nan=False, allow_infinity=False),
).map(F)
SCORES = st.lists(SCORE, min_size=1, max_size=40)
EPSILON = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1, width=32)).map(F)


def ranked(scores: list[np.float32]) -> list[int]:
    order = np.full(len(scores), -1, np.int32)
    rank(np.array(scores, np.float32), len(scores), order)
    return list(order)


def pmf(scores: list[np.float32], epsilon: np.float32, *, first_only: bool) -> list[np.float32]:
    """Return probabilities by rank."""
    column = np.array(sorted(scores), np.float32)
    greedy(column, len(column), epsilon, first_only)
    return list(column)


@given(SCORES)
def test_rank(scores: list[np.float32]) -> None:
    assert ranked(scores) == bandit.rank(scores)


@pytest.mark.parametrize("n", [31, 32, 33, 34, 200])
def test_long_and_short_lists_are_ranked_equally(n: int) -> None:
    """Long lists are ranked by another algorithm than short ones."""
    scores = [F((7 * action * action) % 11) for action in range(n)]
    assert ranked(scores) == bandit.rank(scores)


@given(
    st.lists(SCORE, min_size=33, max_size=90)
    | st.lists(SCORE, min_size=3, max_size=5).map(lambda few: few * 12)
)
def test_ties_of_many_actions_are_ranked_by_number(scores: list[np.float32]) -> None:
    assert ranked(scores) == bandit.rank(scores)


def test_rank_uses_only_the_first_n() -> None:
    order = np.full(3, -1, np.int32)
    rank(np.array([3, 1, 0], np.float32), 2, order)
    assert list(order) == [1, 0, -1]


@given(SCORES, EPSILON, st.booleans())
def test_greedy(scores: list[np.float32], epsilon: np.float32, first_only: bool) -> None:
    with np.errstate(over="ignore"):
        expected = bandit.greedy(sorted(scores), epsilon, first_only=first_only)
    assert pmf(scores, epsilon, first_only=first_only) == expected


@given(SCORES, EPSILON, st.booleans())
def test_probabilities_sum_to_one_above_the_floor(
    scores: list[np.float32], epsilon: np.float32, first_only: bool
) -> None:
    probabilities = np.array(pmf(scores, epsilon, first_only=first_only))
    assert probabilities.sum(dtype=float) == pytest.approx(1, abs=1e-5)
    assert probabilities.min() >= epsilon / F(len(scores))
    assert list(probabilities) == sorted(probabilities, reverse=True)


@given(st.lists(SCORE, min_size=2, max_size=4), EPSILON)
def test_renumbering_the_actions_renumbers_the_probabilities(
    scores: list[np.float32], epsilon: np.float32
) -> None:
    def by_action(numbered: list[np.float32]) -> list[np.float32]:
        chances = dict(zip(ranked(numbered), pmf(numbered, epsilon, first_only=False), strict=True))
        return [chances[action] for action in range(len(numbered))]

    here = by_action(scores)
    for order in itertools.permutations(range(len(scores))):
        there = by_action([scores[action] for action in order])
        assert there == [here[action] for action in order]


def test_ties_share_the_lead() -> None:
    assert pmf([F(1), F(1), F(2)], F(0), first_only=False) == [F(0.5), F(0.5), F(0)]
    assert pmf([F(1), F(1), F(2)], F(0), first_only=True) == [F(1), F(0), F(0)]


def test_ties_are_relative_to_the_scores() -> None:
    assert count_tied(np.array([1, 1.00019, 1.0003], np.float32), 3) == 2
    assert count_tied(np.array([0, 1e-30], np.float32), 2) == 1
    assert count_tied(np.array([0, 0, 0], np.float32), 3) == 3
    assert count_tied(np.array([-1, -0.99985], np.float32), 2) == 2


def test_ties_are_with_the_first_not_with_the_one_before() -> None:
    chain = np.array([1 + 1.5e-4 * step for step in range(4)], np.float32)
    assert count_tied(chain, 4) == 2


def test_no_action_at_all() -> None:
    greedy(np.zeros(0, np.float32), 0, F(0.5), False)
    rank(np.zeros(0, np.float32), 0, np.zeros(0, np.int32))
