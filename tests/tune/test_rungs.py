"""Rung systems: the values of Syne Tune and of hpbandster, and laws."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from onlineauto.errors import OptionError
from onlineauto.tune.schedulers.rungs import geometric, hpbandster

pytestmark = pytest.mark.lane("quick")

GEOMETRIC = {
    (1, 9, 3): [[(9, 1), (3, 3), (1, 9)], [(5, 3), (2, 9)], [(3, 9)]],
    (1, 27, 3): [
        [(27, 1), (9, 3), (3, 9), (1, 27)],
        [(12, 3), (4, 9), (2, 27)],
        [(6, 9), (2, 27)],
        [(4, 27)],
    ],
    (1, 81, 3): [
        [(81, 1), (27, 3), (9, 9), (3, 27), (1, 81)],
        [(34, 3), (12, 9), (4, 27), (2, 81)],
        [(15, 9), (5, 27), (2, 81)],
        [(8, 27), (3, 81)],
        [(5, 81)],
    ],
    (1, 50, 3): [
        [(81, 1), (27, 3), (9, 9), (3, 27), (1, 50)],
        [(34, 3), (12, 9), (4, 27), (2, 50)],
        [(15, 9), (5, 27), (2, 50)],
        [(8, 27), (3, 50)],
        [(5, 50)],
    ],
    (1, 64, 4): [
        [(64, 1), (16, 4), (4, 16), (1, 64)],
        [(22, 4), (6, 16), (2, 64)],
        [(8, 16), (2, 64)],
        [(4, 64)],
    ],
    (1, 10, 2): [
        [(16, 1), (8, 2), (4, 4), (2, 8), (1, 10)],
        [(10, 2), (5, 4), (3, 8), (2, 10)],
        [(7, 4), (4, 8), (2, 10)],
        [(5, 8), (3, 10)],
        [(5, 10)],
    ],
}


@pytest.mark.parametrize("ladder", GEOMETRIC)
def test_geometric_brackets_are_those_of_syne_tune(ladder: tuple[int, int, int]) -> None:
    assert geometric(*ladder) == GEOMETRIC[ladder]


def test_a_ladder_that_does_not_end_on_a_power() -> None:
    system = geometric(2, 200, 3)
    assert system[0] == [(243, 2), (81, 6), (27, 18), (9, 54), (3, 162), (1, 200)]
    assert system[1] == [(98, 6), (33, 18), (11, 54), (4, 162), (2, 200)]
    assert system[-2:] == [[(9, 162), (3, 200)], [(6, 200)]]


def test_hpbandster_sizes() -> None:
    sizes = [[size for size, _ in rungs] for rungs in hpbandster(1, 27, 3)]
    assert sizes == [[27, 9, 3, 1], [9, 3, 1], [6, 2], [4]]
    sizes = [[size for size, _ in rungs] for rungs in hpbandster(1, 81, 3)]
    assert sizes == [[81, 27, 9, 3, 1], [27, 9, 3, 1], [9, 3, 1], [6, 2], [5]]


@pytest.mark.parametrize("system", [geometric, hpbandster])
@pytest.mark.parametrize(
    ("ladder", "rungs"), [((1, 243, 3), 6), *(((1, 10**k, 10), k + 1) for k in range(1, 7))]
)
def test_no_rung_is_lost_to_a_logarithm(system: object, ladder: tuple[int, int, int], rungs: int) -> None:
    brackets = geometric(*ladder) if system is geometric else hpbandster(*ladder)
    assert len(brackets) == len(brackets[0]) == rungs
    assert brackets[0][0][1] == 1


@given(st.integers(1, 50), st.integers(2, 5000), st.integers(2, 6), st.integers(1, 9))
def test_sizes_fall_and_levels_rise(least: int, most: int, eta: int, count: int) -> None:
    assume(most >= least * eta and most <= least * eta**7)
    for system in (geometric(least, most, eta, count), hpbandster(least, most, eta, count)):
        assert 1 <= len(system) <= count
        for rungs in system:
            sizes, levels = zip(*rungs, strict=True)
            assert list(sizes) == sorted(set(sizes), reverse=True)
            assert list(levels) == sorted(set(levels))
            assert min(sizes) >= 1
            assert least <= levels[0]
            assert levels[-1] == most


@pytest.mark.parametrize("system", [geometric, hpbandster])
def test_a_ladder_of_one_rung_is_refused(system: object) -> None:
    with pytest.raises(OptionError, match="one rung"):
        geometric(9, 9, 3) if system is geometric else hpbandster(9, 9, 3)


def test_no_brackets_are_refused() -> None:
    with pytest.raises(OptionError, match="valid is 1 to 3"):
        geometric(1, 9, 3, 0)
