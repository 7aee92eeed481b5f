"""A decision keeps the settings in force when it was made; the join equals a reference implementation."""

from __future__ import annotations

import itertools
from math import inf, nan
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlineauto.errors import InputError
from onlineauto.formats.decisions.waiting import LEARN_AT
from onlineauto.service.join.join import EndedDecision, Join, JoinSettings
from onlineauto.service.join.settings import AGGREGATIONS
from onlineauto.service.learning.learner import LogLearner
from onlineauto.service.log.segment_log import SegmentLog, read_record, taken_over
from tests.naive.join import NaiveJoin
from tests.service.traffic import BEGIN, CONFIGURATION, decision, record, records, reward

WAIT = 10.0
VALUES = [3.0, -1.0, 2.0]
WANTED = {"first": 3.0, "last": 2.0, "sum": 4.0, "mean": 4 / 3, "min": -1.0, "max": 3.0}


def settings(time: float, **changed: Any) -> bytes:
    return record("settings", time, Settings={"reward_wait": WAIT, **changed})


def stored(join: Join) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.msgpack.decode(
        msgspec.msgpack.encode(join.state(), order="deterministic")
    )
    return found


def taken(
    lines: list[bytes], first: JoinSettings, *, cuts: frozenset[int]
) -> tuple[Join, list[EndedDecision]]:
    join, ended, position = Join(first), [], 0
    for number, line in enumerate(lines):
        if number in cuts:
            join = Join.of(stored(join))
        ended += join.take(read_record(line), position, len(line))
        position += len(line)
    return join, ended


@pytest.mark.parametrize(("before", "after"), [*itertools.permutations(AGGREGATIONS, 2)])
def test_a_decision_keeps_the_aggregation_in_force_when_it_was_made(before: str, after: str) -> None:
    lines = [
        decision("old", 0.0),
        reward("old", 1.0, VALUES[0]),
        settings(2.0, aggregation=after),
        decision("new", 2.0),
        *(reward("old", 3.0, value) for value in VALUES[1:]),
        *(reward("new", 3.0, value) for value in VALUES),
        settings(4.0, aggregation=before),
        record("tick", 50.0),
    ]
    for cuts in (frozenset[int](), frozenset(range(len(lines)))):
        _, ended = taken(lines, JoinSettings(reward_wait=WAIT, aggregation=before), cuts=cuts)
        found = {each.position: each.reward for each in ended}
        assert found == pytest.approx({0: WANTED[before], sum(map(len, lines[:3])): WANTED[after]})


def test_a_decision_keeps_the_range_and_default_reward_in_force_when_it_was_made() -> None:
    lines = [
        *(decision("a", 0.0), decision("b", 0.0)),
        settings(1.0, default_reward=-9.0, reward_range=[-10.0, 10.0]),
        *(decision("c", 2.0), decision("d", 2.0)),
        *(reward("a", 3.0, 7.0), reward("c", 3.0, 7.0), record("tick", 50.0)),
    ]
    for cuts in (frozenset[int](), frozenset(range(len(lines)))):
        join, ended = taken(lines, JoinSettings(reward_wait=WAIT, reward_range=(0.0, 1.0)), cuts=cuts)
        assert [each.reward for each in ended] == [1.0, 0.0, 7.0, -9.0]
        assert join.counts.clipped == 1


@given(
    how=st.sampled_from(AGGREGATIONS),
    bounds=st.tuples(st.floats(-100, 0), st.floats(0, 100)).filter(lambda both: both[0] < both[1]),
    values=st.lists(st.floats(-200, 200), min_size=1, max_size=8),
)
def test_a_joined_reward_is_within_the_declared_range(
    how: str, bounds: tuple[float, float], values: list[float]
) -> None:
    lines = [decision("e", 0.0), *(reward("e", 1.0, value) for value in values), record("tick", 50.0)]
    rules = JoinSettings(reward_wait=WAIT, aggregation=how, reward_range=bounds)
    join, ended = taken(lines, rules, cuts=frozenset())
    assert bounds[0] <= ended[0].reward <= bounds[1]
    if how == "sum":
        parts = [min(max(value, bounds[0]), bounds[1]) for value in values]
        beyond = [value for value in values if not bounds[0] <= value <= bounds[1]]
        assert join.counts.clipped == len(beyond) + (not bounds[0] <= sum(parts, 0.0) <= bounds[1])


def test_rules_that_were_replaced_are_forgotten_when_no_decision_has_them() -> None:
    join, day = Join(JoinSettings()), 86400.0
    for number in range(200):
        line = settings(number * day, default_reward=float(number))
        join.take(read_record(line), 0, len(line))
    assert len(join.state()["rules"][1]) <= 32
    for number in range(200):  # to and fro
        line = settings(200 * day + number, default_reward=float(number % 2))
        join.take(read_record(line), 0, len(line))
    assert len(join.state()["rules"][1]) <= 34


STEP = st.floats(0, 6)
IDS = st.sampled_from("abcd")
SETTINGS = st.builds(
    JoinSettings,
    reward_wait=st.sampled_from([1.0, WAIT, 25.0]),
    default_reward=st.sampled_from([0.0, 0.5]),
    aggregation=st.sampled_from(AGGREGATIONS),
    learn_at=st.sampled_from(LEARN_AT),
    reward_range=st.sampled_from([(-1.0, 1.0), (-5.0, 5.0), (0.0, 2.0)]),
)
RECORDS = st.one_of(
    st.tuples(st.just("rank"), STEP, IDS, st.booleans()),
    st.tuples(
        st.just("reward"), STEP, IDS, st.sampled_from([-9.0, -1.0, 0.5, 1.5, 3.0]), st.sampled_from("kl")
    ),
    st.tuples(st.just("reward"), STEP, IDS, st.sampled_from([-9.0, -1.0, 0.5, 1.5, 3.0]), st.just("")),
    st.tuples(st.just("activate"), STEP, IDS),
    st.tuples(st.just("tick"), STEP),
    st.tuples(st.just("settings"), STEP, SETTINGS),
)


def line_of(drawn: tuple[Any, ...], time: float) -> bytes:
    kind, *rest = drawn
    if kind == "rank":
        return decision(rest[1], time, DeferredAction=rest[2])
    if kind == "reward":
        return reward(rest[1], time, rest[2], rest[3])
    if kind == "activate":
        return record(kind, time, EventId=rest[1])
    return record(kind, time, **({"Settings": msgspec.to_builtins(rest[1])} if kind == "settings" else {}))


@given(
    first=SETTINGS,
    drawn=st.lists(RECORDS, max_size=60),
    origins=st.lists(st.tuples(st.sampled_from(["", "r1", "r2"]), st.booleans(), st.booleans())),
    repeats=st.frozensets(st.integers(0, 60)),
    cuts=st.frozensets(st.integers(0, 120)),
)
def test_the_join_equals_its_reference_implementation(
    first: JoinSettings,
    drawn: list[tuple[Any, ...]],
    origins: list[tuple[str, bool, bool]],
    repeats: frozenset[int],
    cuts: frozenset[int],
) -> None:
    lines, time, behind = [], 0.0, {"r1": 0, "r2": 0}
    for number, each in enumerate(drawn):
        time += each[1]
        line = line_of(each, time)
        source, no_room, _ = origins[number] if number < len(origins) else ("", False, False)
        if source and each[0] in ("rank", "reward", "activate"):
            behind[source] += len(line)
            full = no_room and each[0] != "rank"
            line = taken_over(line, source=source, behind=behind[source], time=BEGIN + time, no_room=full)
        lines += [line] * (2 if number in repeats else 1)
    lines.append(record("tick", time + 100.0))
    join, ended = taken(lines, first, cuts=cuts)
    twin, position = NaiveJoin(first), 0
    for line in lines:
        twin.take(read_record(line), position)
        position += len(line)
    assert {each.position: each.reward for each in ended} == pytest.approx(twin.ended)
    assert len(ended) == len(twin.ended)
    counts = msgspec.structs.asdict(join.counts)
    assert {name: counts[name] for name in twin.counts} == twin.counts
    assert join.waiting == join.early == 0
    assert join.sources == twin.sources


DAMAGE: dict[str, Any] = {
    "a wait that never ends": ("settings", "reward_wait", inf),
    "no wait": ("settings", "reward_wait", nan),
    "a default reward without end": ("settings", "default_reward", 1e300),
    "another aggregation": ("settings", "aggregation", "median"),
    "another time of learning": ("settings", "learn_at", "never"),
    "another mode": ("settings", "mode", "off"),
    "a range that is upside down": ("settings", "reward_range", [1.0, -1.0]),
    "nothing to remember": ("settings", "max_finished", 0),
    "no time": ("now", nan),
    "a clock without end": ("clock", inf),
    "a bound of rewards that is none": ("scale", [{}, nan]),
    "rules of another aggregation": ("rules", [0, [[0, 0.0, ["median", 0.0, None]]]]),
    "rules of no decision": ("rules", [1, [[1, 0.0, ["first", 0.0, None]]]]),
    "half a decision": ("waiting", "entries", b"half a decision"),
    "no rules": ("rules", [0, []]),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_snapshot_with_settings_out_of_range_is_learnt_again(
    tmp_path: Path, damage: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log = SegmentLog(tmp_path / "log")
    log.append([*list(records(20))[:-1], decision("last", 30.0)])
    log.sync()
    state = Join.state

    def damaged(join: Join) -> dict[str, Any]:
        found = state(join)
        *path, name, value = damage
        inner = found
        for each in path:
            inner = inner[each]
        inner[name] = value
        if value == b"half a decision":
            inner["sizes"] = len(value).to_bytes(4, "little")
        return found

    (tmp_path / "loop").mkdir()
    learner = LogLearner(tmp_path / "loop", log, CONFIGURATION)
    while learner.step():
        pass
    wanted = learner.join.state()
    with monkeypatch.context() as changed:
        changed.setattr(Join, "state", damaged)
        with pytest.raises((InputError, ValueError, KeyError)):
            Join.of(learner.join.state())
        learner.close()
    again = LogLearner(tmp_path / "loop", log, CONFIGURATION)
    assert "the snapshot is damaged, and learnt again from the log" in caplog.text
    while again.step():
        pass
    assert again.join.state() == wanted
    again.close()
