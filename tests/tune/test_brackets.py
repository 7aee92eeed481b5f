"""Brackets: the golden trace, the soak of many open brackets, and what is refused."""

from __future__ import annotations

import json
from math import nan
from random import Random

import pytest

from onlineauto.tune.schedulers.bracket import Bracket, RungSlot, best_slots
from onlineauto.tune.schedulers.brackets import Brackets, Slot
from onlineauto.tune.schedulers.rungs import geometric

RUNGS = [(9, 1), (4, 3), (1, 9)]
FIRST = [3.0, 5.0, 1.0, 4.0, 9.0, 6.0, 2.0, 7.0, 8.0]


def handed_out(bracket: Bracket, count: int) -> list[RungSlot]:
    rung_slots = [bracket.next_slot() for _ in range(count)]
    return [rung_slot for rung_slot in rung_slots if rung_slot is not None]


def test_the_golden_trace() -> None:
    bracket = Bracket(RUNGS)

    def fills(rung_slots: list[RungSlot]) -> list[list[int] | None]:
        return [bracket.on_result(rung_slot, FIRST[rung_slot.slot]) for rung_slot in rung_slots]

    def begins(count: int) -> list[RungSlot]:
        rung_slots = handed_out(bracket, count)
        for rung_slot in rung_slots:
            assert rung_slot.trial is None
            bracket.assign(rung_slot, rung_slot.slot)
        return rung_slots

    rung_slots = begins(3)
    assert [rung_slot.slot for rung_slot in rung_slots] == [0, 1, 2]
    assert bracket.pending == 3
    assert fills(rung_slots) == [None, None, None]
    assert bracket.pending == 0
    pending = begins(3)
    assert bracket.pending == 3
    assert fills(pending[:2]) == [None, None]
    assert bracket.pending == 1
    pending = [pending[2], *begins(3)]
    assert bracket.pending == 4
    assert fills(pending[:2]) == [None, None]
    assert bracket.pending == 2
    assert bracket.next_slot() is None
    assert fills(pending[2:]) == [None, [1, 4, 5, 7, 8]]
    rung_slots = handed_out(bracket, 9)
    assert [rung_slot.trial for rung_slot in rung_slots] == [2, 6, 0, 3]
    assert {rung_slot.level for rung_slot in rung_slots} == {3}
    losses = [3.1, 3.0, 2.9, 3.0]
    assert [bracket.on_result(*each) for each in zip(rung_slots, losses, strict=True)] == [
        None,
        None,
        None,
        [2, 3, 6],
    ]
    (last,) = handed_out(bracket, 9)
    assert (last.trial, last.level) == (0, 9)
    assert bracket.on_result(last, 1.0) is None
    assert bracket.is_complete
    assert bracket.next_slot() is None


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


def test_the_soak_of_many_brackets() -> None:
    system = geometric(2, 200, 3, 6)
    brackets = Brackets(system)
    random = Random(31415927)
    waiting: list[Slot] = []
    trials = 0
    for _ in range(5000):
        for _ in range(4):
            slot = brackets.next_slot()
            assert slot is not None
            assert slot.rung_slot.level in {level for _, level in system[slot.bracket % 6]}
            if slot.rung_slot.trial is None:
                brackets[slot.bracket].assign(slot.rung_slot, trials)
                trials += 1
            waiting.append(slot)
        for slot in waiting[:3]:
            brackets.on_result(slot, random.random())
        del waiting[:3]
        assert pending(brackets) == counted(waiting)
        if len(waiting) >= 200:
            random.shuffle(waiting)
            for slot in waiting:
                brackets.on_result(slot, random.random())
            waiting.clear()
            assert not pending(brackets)


def pending(brackets: Brackets) -> dict[int, int]:
    return {number: count for number, count in brackets.pending.items() if count}


def counted(slots: list[Slot]) -> dict[int, int]:
    numbers = [slot.bracket for slot in slots]
    return {number: numbers.count(number) for number in set(numbers)}


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
