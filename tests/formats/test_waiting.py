from __future__ import annotations

import math
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlineauto.formats.decisions.waiting import Finished, Timed

pytestmark = pytest.mark.lane("quick")

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "pop", "expire", "first"]),
        st.sampled_from("abcdefgh"),
        st.sampled_from([0.0, 0.5, 3.0]),  # seconds since the previous step
        st.sampled_from([1.0, 2.0, 5.0, math.inf]),  # the wait of an entry
    ),
    max_size=60,
)


@given(steps=STEPS)
def test_entries_are_removed_at_their_deadlines_the_earliest_first(
    steps: list[tuple[str, str, float, float]],
) -> None:
    table: Timed[tuple[float]] = Timed(lambda entry: entry[0])
    deadlines: dict[str, float] = {}
    now = 0.0
    for action, event_id, seconds, wait in steps:
        now += seconds
        if action == "add" and event_id not in deadlines:
            deadlines[event_id] = now + wait
            table.add(event_id, (now + wait,), wait=wait)
        elif action == "pop":
            entry, deadline = table.pop(event_id), deadlines.pop(event_id, None)
            assert entry == (None if deadline is None else (deadline,))
        elif action in ("expire", "first"):  # a caller may stop after the first entry
            due = table.pop_due(now)
            removed = list(due) if action == "expire" else [row for row in [next(due, None)] if row]
            expected = sorted(deadline for deadline in deadlines.values() if deadline <= now)
            assert [entry[0] for _, entry in removed] == expected[: len(removed)]
            assert len(removed) == (len(expected) if action == "expire" else min(len(expected), 1))
            for removed_id, _ in removed:
                del deadlines[removed_id]
        earliest = min(deadlines.values(), default=math.inf)
        assert table.earliest <= earliest
        assert sorted(table.items()) == sorted((key, (deadline,)) for key, deadline in deadlines.items())
        assert bool(table.longest_wait) == bool(deadlines)
    assert table.next_deadline == min(deadlines.values(), default=math.inf)


def test_an_id_that_is_added_again_with_an_equal_deadline_is_listed_once() -> None:
    table: Timed[float] = Timed(lambda deadline: deadline)
    table.add("a", 5.0, wait=5.0)
    table.pop("a")
    assert table.longest_wait == 0.0
    table.add("a", 5.0, wait=5.0)
    table.pop("a")
    table.add("a", 5.0, wait=2.0)
    assert (len(table), table.columns()) == (1, (["a"], [5.0]))


class _Entry:
    """An entry that can be counted while it lives."""


def test_removed_entries_are_released() -> None:
    table: Timed[_Entry] = Timed(lambda _: 10.0)
    living: weakref.WeakSet[_Entry] = weakref.WeakSet()
    for number in range(2_000):
        entry = _Entry()
        living.add(entry)
        table.add(f"e{number}", entry, wait=10.0)
        table.pop(f"e{number}")
    assert len(living) < 100


def test_at_most_one_ended_entry_is_remembered() -> None:
    ended: Finished[int] = Finished()
    assert [ended.add(name, 0, deadline=1.0, most=1) for name in "abc"] == [0, 1, 1]
    assert (len(ended), ended.get("c")) == (1, 0)


def test_only_the_first_entry_of_a_queue_computes_its_deadline() -> None:
    computed: list[float] = []

    def deadline_of(deadline: float) -> float:
        computed.append(deadline)
        return deadline

    table: Timed[float] = Timed(deadline_of)
    for number in range(5):
        table.add(f"e{number}", 10.0 + number, wait=10.0)
    assert (computed, table.earliest) == ([10.0], 10.0)
