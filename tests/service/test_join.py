from __future__ import annotations

from collections import defaultdict
from random import Random
from statistics import fmean

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlineauto.errors import InputError
from onlineauto.service.join.aggregation import AGGREGATIONS
from onlineauto.service.join.join import Ended, Join, JoinSettings
from onlineauto.service.log.record import read_record
from tests.service.traffic import decision, record, reward

WAIT = 10.0


def taken(
    lines: list[bytes], settings: JoinSettings, *, cuts: frozenset[int] = frozenset()
) -> tuple[Join, list[Ended]]:
    """Join lines; at `cuts`, by way of the state of a snapshot."""
    join, ended, position = Join(settings), [], 0
    for number, line in enumerate(lines):
        if number in cuts:
            join = Join.of(
                msgspec.msgpack.decode(msgspec.msgpack.encode(join.state(), order="deterministic"))
            )
        ended += join.take(read_record(line), position, len(line))
        position += len(line)
    return join, ended


Event = tuple[str, str, float, str, bool]  # kind, id, value, key, deferred

EVENTS = st.lists(
    st.tuples(
        st.floats(0, 4),  # seconds since the one before
        st.sampled_from(["rank", "rank", "reward", "reward", "activate", "tick"]),
        st.sampled_from("abc"),
        st.sampled_from([-2.0, -1.0, 0.0, 0.5, 3.0]),
        st.sampled_from(["", "", "k", "l"]),
        st.booleans(),
    ),
    max_size=40,
)


def lines_of(events: list[tuple[float, str, str, float, str, bool]]) -> list[bytes]:
    time, lines = 0.0, []
    for wait, kind, event_id, value, key, deferred in events:
        time += wait
        if kind == "rank":
            lines.append(decision(event_id, time, DeferredAction=deferred))
        elif kind == "reward":
            lines.append(reward(event_id, time, value, key))
        else:
            lines.append(record(kind, time, **({"EventId": event_id} if kind == "activate" else {})))
    lines.append(record("tick", time + 3 * WAIT))
    return lines


def naive(lines: list[bytes], how: str) -> dict[int, float | None]:
    """Look through the whole log for each decision: its line's number, and its reward, None if inactive."""
    records = [read_record(line) for line in lines]
    times = [each.time.timestamp() for each in records]
    found: dict[int, float | None] = {}
    begun: dict[str, int] = {}
    early_until: dict[str, tuple[int, float]] = {}
    for number, each in enumerate(records):
        over = [key for key, (_, end) in early_until.items() if end <= times[number]]
        for key in over:
            del early_until[key]
        for key in [key for key, at in begun.items() if times[at] + WAIT <= times[number]]:
            del begun[key]
        if each.kind in ("reward", "activate") and each.event_id not in begun:
            early_until.setdefault(each.event_id, (number, times[number] + WAIT))
        if each.kind != "rank" or each.event_id in begun:
            continue
        begun[each.event_id] = number
        first = early_until.pop(each.event_id, (number, 0.0))[0]
        window = [
            other
            for at, other in enumerate(records)
            if first <= at and times[at] < times[number] + WAIT and other.event_id == each.event_id
        ]
        keys: set[str] = set()
        values = []
        for other in window:
            if other.kind == "reward" and not (other.key and other.key in keys):
                keys.add(other.key)
                values.append(other.reward)
        if each.deferred and not any(other.kind == "activate" for other in window):
            found[number] = None
        else:
            combine = {
                "first": lambda values: values[0],
                "last": lambda values: values[-1],
                "sum": sum,
                "mean": fmean,
                "min": min,
                "max": max,
            }[how]
            found[number] = float(combine(values)) if values else 7.0  # type: ignore[operator]
    return found


@given(events=EVENTS, how=st.sampled_from(AGGREGATIONS), cuts=st.frozensets(st.integers(0, 40)))
def test_every_decision_ends_once_as_the_whole_log_says(
    events: list[tuple[float, str, str, float, str, bool]], how: str, cuts: frozenset[int]
) -> None:
    lines = lines_of(events)
    settings = JoinSettings(reward_wait=WAIT, default_reward=7.0, aggregation=how)
    join, ended = taken(lines, settings, cuts=cuts)
    wanted = naive(lines, how)
    number_of, position = {}, 0
    for number, line in enumerate(lines):
        number_of[position] = number
        position += len(line)
    assert {number_of[each.position]: pytest.approx(each.reward) for each in ended} == {
        number: reward for number, reward in wanted.items() if reward is not None
    }
    assert len(ended) == len({each.position for each in ended})
    counts = join.counts
    assert counts.ranked == len(wanted) == counts.joined + counts.defaulted + counts.inactive
    assert counts.inactive == sum(reward is None for reward in wanted.values())
    assert len(join) == join.waiting == join.early == 0


@given(events=EVENTS, how=st.sampled_from(AGGREGATIONS), cuts=st.frozensets(st.integers(0, 40)))
def test_snapshots_between_records_change_nothing(
    events: list[tuple[float, str, str, float, str, bool]], how: str, cuts: frozenset[int]
) -> None:
    lines = lines_of(events)
    settings = JoinSettings(reward_wait=WAIT, aggregation=how)
    one, ended = taken(lines[:-1], settings)
    other, again = taken(lines[:-1], settings, cuts=cuts)
    assert (one.state(), ended) == (other.state(), again)


@pytest.mark.parametrize("how", AGGREGATIONS)
def test_a_repeated_reward_changes_nothing(how: str) -> None:
    settings = JoinSettings(reward_wait=WAIT, aggregation=how)
    parts = [reward("e", 1.0, -3.0, "a"), reward("e", 2.0, -1.0, "b"), reward("e", 3.0, -2.0, "c")]
    end = record("tick", 50.0)
    _, once = taken([decision("e", 0.0), *parts, end], settings)
    join, twice = taken([decision("e", 0.0), *parts, *parts, end], settings)
    assert [each.reward for each in once] == [each.reward for each in twice]
    assert join.counts.duplicate == 3
    wanted = {"first": -3.0, "last": -2.0, "sum": -6.0, "mean": -2.0, "min": -3.0, "max": -1.0}
    assert once[0].reward == wanted[how]  # max of negative rewards is one of them


def test_rewards_that_are_early_late_or_for_nobody() -> None:
    settings = JoinSettings(reward_wait=WAIT)
    early, ended = taken([reward("e", 0.0, 2.0), decision("e", 5.0)], settings)
    assert [each.reward for each in ended] == [2.0]
    late, ended = taken([decision("e", 0.0), reward("e", 5.0, 1.0), reward("e", 6.0, 9.0)], settings)
    assert ([each.reward for each in ended], late.counts.late) == ([1.0], 1)
    nobody, ended = taken([reward("x", 0.0, 1.0), record("tick", 11.0)], settings)
    assert (ended, nobody.counts.dangling, early.counts.dangling) == ([], 1, 0)


def test_time_does_not_run_back() -> None:
    lines = [decision("a", 5.0), decision("b", 0.0), record("tick", 14.9), record("tick", 15.0)]
    _, ended = taken(lines[:3], JoinSettings(reward_wait=WAIT))
    assert ended == []
    _, ended = taken(lines, JoinSettings(reward_wait=WAIT))
    assert len(ended) == 2


def test_settings_of_the_log_hold_from_there_on() -> None:
    changed = record("settings", 1.0, Settings={"reward_wait": 100.0, "default_reward": 5.0})
    lines = [decision("a", 0.0), changed, decision("b", 2.0), record("tick", 11.0), record("tick", 200.0)]
    join, ended = taken(lines, JoinSettings(reward_wait=WAIT))
    assert [each.reward for each in ended] == [5.0, 5.0]
    assert join.settings.reward_wait == 100.0


def test_many_decisions_take_memory_for_those_of_the_window_only() -> None:
    draw = Random(0)
    kept: dict[str, int] = defaultdict(int)
    join, position = Join(JoinSettings(reward_wait=WAIT)), 0
    for number in range(3000):
        line = decision(f"{draw.random()}", number * 0.1)
        join.take(read_record(line), position, len(line))
        position += len(line)
        kept["most"] = max(kept["most"], len(join))
    assert kept["most"] <= 101


def test_settings_of_a_later_program_are_refused() -> None:
    later = record("settings", 0.0, Settings={"reward_wait": 1.0, "unheard_of": True})
    with pytest.raises(InputError, match="unheard_of"):
        taken([later], JoinSettings())
