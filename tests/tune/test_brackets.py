"""Brackets: failed trials, equal losses, the order of open brackets, and what is refused."""

from __future__ import annotations

import json
from math import nan

import pytest

from onlineauto.tune.schedulers.brackets import Bracket, Brackets, RungSlot, best_slots
from onlineauto.tune.schedulers.rungs import geometric

pytestmark = pytest.mark.lane("quick")

RUNGS = [(9, 1), (4, 3), (1, 9)]


def handed_out(bracket: Bracket, count: int) -> list[RungSlot]:
    rung_slots = [bracket.next_slot() for _ in range(count)]
    return [rung_slot for rung_slot in rung_slots if rung_slot is not None]


def test_only_pending_slots_are_filled() -> None:
    bracket = Bracket(RUNGS)
    rung_slot = bracket.next_slot()
    assert rung_slot is not None
    with pytest.raises(ValueError, match="not pending"):
        bracket.on_result(rung_slot._replace(slot=1), 1.0)
    with pytest.raises(ValueError, match="not pending"):
        bracket.on_result(rung_slot._replace(rung=1), 1.0)
    bracket.on_result(rung_slot, 1.0)
    with pytest.raises(ValueError, match="not pending"):
        bracket.on_result(rung_slot, 1.0)


def test_failed_trials_are_not_promoted() -> None:
    bracket = Bracket(RUNGS)
    for rung_slot in handed_out(bracket, 9):
        bracket.assign(rung_slot, rung_slot.slot)
        bracket.on_result(rung_slot, nan if rung_slot.slot not in (5, 7) else float(rung_slot.slot))
    assert [rung_slot.trial for rung_slot in handed_out(bracket, 9)] == [5, 7]


def test_a_rung_that_fails_as_a_whole_ends_its_bracket() -> None:
    bracket = Bracket(RUNGS)
    ended = [bracket.on_result(rung_slot, nan) for rung_slot in handed_out(bracket, 9)]
    assert ended == [None] * 8 + [[]]
    assert bracket.is_complete


def test_of_equal_losses_the_first_slot_is_better() -> None:
    assert best_slots([2.0, 1.0, nan, 1.0, None, 2.0], 3) == [1, 3, 0]


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


def test_brackets_go_on_from_their_state() -> None:
    first, second = (Brackets(geometric(1, 9, 3)) for _ in range(2))
    for _ in range(11):
        slot = first.next_slot()
        assert slot is not None
        first.on_result(slot, 1.0)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert second.next_slot() == first.next_slot()
    assert second.state_dict() == first.state_dict()
