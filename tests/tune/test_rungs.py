"""Rung systems: the values of Syne Tune and of hpbandster, and laws; and the order of open brackets."""

from __future__ import annotations

import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from onlineauto.errors import OptionError
from onlineauto.tune.schedulers.brackets import Bracket, Brackets
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
def test_a_ladder_of_one_rung_is_rejected(system: object) -> None:
    with pytest.raises(OptionError, match="one rung"):
        geometric(9, 9, 3) if system is geometric else hpbandster(9, 9, 3)


def test_zero_brackets_are_rejected() -> None:
    with pytest.raises(OptionError, match="valid is 1 to 3"):
        geometric(1, 9, 3, 0)


def test_a_slot_that_is_not_pending_cannot_be_occupied() -> None:
    bracket = Bracket([(9, 1), (4, 3), (1, 9)])
    rung_slot = bracket.next_slot()
    assert rung_slot is not None
    with pytest.raises(ValueError, match="not pending"):
        bracket.on_result(rung_slot._replace(slot=1), 1.0)
    with pytest.raises(ValueError, match="not pending"):
        bracket.on_result(rung_slot._replace(rung=1), 1.0)
    bracket.on_result(rung_slot, 1.0)
    with pytest.raises(ValueError, match="not pending"):
        bracket.on_result(rung_slot, 1.0)


def test_the_primary_bracket_is_the_first_that_is_not_complete() -> None:
    brackets = Brackets([[(2, 1), (1, 3)], [(1, 3)]])
    slots = [brackets.next_slot() for _ in range(4)]
    assert [slot.bracket for slot in slots if slot] == [0, 0, 1, 2]
    assert slots[2] is not None
    brackets.on_result(slots[2], 1.0)
    assert brackets.primary == 0
    for slot in (slots[0], slots[1]):
        assert slot is not None
        brackets[0].assign(slot.rung_slot, slot.rung_slot.slot)
        brackets.on_result(slot, 1.0)
    promoted = brackets.next_slot()
    assert promoted is not None
    assert (promoted.bracket, promoted.rung_slot.trial) == (0, 0)
    brackets.on_result(promoted, 1.0)
    assert brackets.primary == 2
    with pytest.raises(ValueError, match="bracket 0 is complete"):
        brackets.on_result(promoted, 1.0)


def test_brackets_continue_from_their_state() -> None:
    first, second = (Brackets(geometric(1, 9, 3)) for _ in range(2))
    for _ in range(11):
        slot = first.next_slot()
        assert slot is not None
        first.on_result(slot, 1.0)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert second.next_slot() == first.next_slot()
    assert second.state_dict() == first.state_dict()
