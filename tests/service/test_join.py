from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from random import Random
from statistics import fmean

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlineauto.api.decisions.joining import Joined
from onlineauto.api.decisions.pending import Pending
from onlineauto.errors import InputError
from onlineauto.formats.mappings.encoded_event import EncodedEvent
from onlineauto.service.join.join import BYTES_PER_DECISION, EndedDecision, Join, JoinSettings
from onlineauto.service.join.settings import AGGREGATIONS
from onlineauto.service.log.segment_log import read_record
from tests.service.endurance import simulate
from tests.service.traffic import BEGIN, decision, record, reward

pytestmark = pytest.mark.lane("quick")

WAIT = 10.0
AT_ONCE = {"learn_at": "reward"}


def taken(
    lines: list[bytes], settings: JoinSettings, *, cuts: frozenset[int] = frozenset()
) -> tuple[Join, list[EndedDecision]]:
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
def test_every_decision_ends_once_like_in_a_search_of_the_whole_log(
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
    assert join.waiting == join.early == 0


@given(events=EVENTS, how=st.sampled_from(AGGREGATIONS), cuts=st.frozensets(st.integers(0, 40)))
def test_snapshots_between_records_change_nothing(
    events: list[tuple[float, str, str, float, str, bool]], how: str, cuts: frozenset[int]
) -> None:
    lines = lines_of(events)
    settings = JoinSettings(reward_wait=WAIT, aggregation=how)
    one, ended = taken(lines[:-1], settings)
    other, again = taken(lines[:-1], settings, cuts=cuts)
    assert (one.state(), ended) == (other.state(), again)


@given(events=EVENTS, how=st.sampled_from(AGGREGATIONS))
def test_when_a_decision_is_learnt_does_not_depend_on_its_outcome(
    events: list[tuple[float, str, str, float, str, bool]], how: str
) -> None:
    rules = JoinSettings(reward_wait=WAIT, aggregation=how)
    active = [(*event[:5], False) for event in events if event[1] != "activate"]
    found = []
    for is_rewarded in (True, False):
        join, ends = Join(rules), list[tuple[int, float]]()
        for number, line in enumerate(lines_of(active)):
            item = read_record(line)
            if item.kind == "reward" and not is_rewarded:
                item = read_record(record("tick", item.time.timestamp() - BEGIN))
            ends += [(each.position, join.now) for each in join.take(item, number, len(line))]
        found.append(ends)
    assert found[0] == found[1]
    assert [position for position, _ in found[0]] == sorted(position for position, _ in found[0])


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


@given(
    rewards=st.lists(st.tuples(st.sampled_from("abcx"), st.integers(-3, 3)), max_size=8),
    learn_at=st.sampled_from(["wait", "reward"]),
)
def test_a_bandit_a_log_and_a_service_learn_the_first_reward_of_a_decision(
    tmp_path_factory: pytest.TempPathFactory, rewards: list[tuple[str, int]], learn_at: str
) -> None:
    lines = [decision(event_id, 0.0) for event_id in "abc"]
    bandit, expected, learnt = Pending(limit=10, time_to_live=WAIT), dict[str, int](), dict[str, int]()
    for event_id in "abc":
        bandit.add(event_id, EncodedEvent({}, [{}]), 0, 1.0)
    for event_id, value in rewards:
        lines.append(reward(event_id, 1.0, value))
        if event_id != "x":  # no decision has this id
            expected.setdefault(event_id, value)
        with suppress(InputError):
            bandit.find(event_id)
            learnt[event_id] = value
            if learn_at == "wait":
                bandit.settle(event_id, -value)
            else:
                bandit.end(event_id)
    assert learnt == expected
    _, ended = taken([*lines, record("tick", 2 * WAIT)], JoinSettings(reward_wait=WAIT, learn_at=learn_at))
    assert {"abc"[row.position // len(lines[0])]: row.reward for row in ended if row.rewarded} == expected
    (path := tmp_path_factory.mktemp("log") / "log.dsjson").write_bytes(b"".join(lines))
    labelled = [msgspec.json.decode(line) for line in Joined(path) if line.startswith(b'{"_label_cost"')]
    assert {row["EventId"]: -row["_label_cost"] for row in labelled} == expected


def test_early_late_and_dangling_rewards() -> None:
    settings = JoinSettings(reward_wait=WAIT)
    for rules, end in (
        (settings, [record("tick", 16.0)]),
        (msgspec.structs.replace(settings, **AT_ONCE), []),
    ):
        early, ended = taken([reward("e", 0.0, 2.0), decision("e", 5.0), *end], rules)
        assert [each.reward for each in ended] == [2.0]
        lines = [decision("e", 0.0), reward("e", 5.0, 1.0), reward("e", 6.0, 9.0), *end]
        late, ended = taken(lines, rules)
        assert ([each.reward for each in ended], late.counts.late) == ([1.0], 1)
    nobody, ended = taken([reward("x", 0.0, 1.0), record("tick", 11.0)], settings)
    assert (ended, nobody.counts.dangling, early.counts.dangling) == ([], 1, 0)


def test_time_does_not_run_back() -> None:
    lines = [decision("a", 5.0), decision("b", 0.0), record("tick", 14.9), record("tick", 15.0)]
    _, ended = taken(lines[:3], JoinSettings(reward_wait=WAIT))
    assert ended == []
    _, ended = taken(lines, JoinSettings(reward_wait=WAIT))
    assert len(ended) == 2


def test_settings_apply_to_later_decisions() -> None:
    changed = record("settings", 1.0, Settings={"reward_wait": 100.0, "default_reward": 5.0})
    lines = [decision("a", 0.0), changed, decision("b", 2.0), record("tick", 11.0), record("tick", 200.0)]
    join, ended = taken(lines, JoinSettings(reward_wait=WAIT))
    assert [each.reward for each in ended] == [0.0, 5.0]
    assert join.settings.reward_wait == 100.0


def test_only_waiting_decisions_take_memory() -> None:
    draw = Random(0)
    kept: dict[str, int] = defaultdict(int)
    join, position = Join(JoinSettings(reward_wait=WAIT)), 0
    for number in range(3000):
        line = decision(f"{draw.random()}", number * 0.1)
        join.take(read_record(line), position, len(line))
        position += len(line)
        kept["most"] = max(kept["most"], join.waiting)
    assert kept["most"] <= 101


def test_settings_of_a_later_program_are_refused() -> None:
    later = record("settings", 0.0, Settings={"reward_wait": 1.0, "unheard_of": True})
    with pytest.raises(InputError, match="unheard_of"):
        taken([later], JoinSettings())


def test_a_change_of_the_wait_affects_later_decisions_only() -> None:
    def waits(seconds: float, time: float) -> bytes:
        return record("settings", time, Settings={"reward_wait": seconds})

    lines = [
        *(waits(1.0, 0.0), decision("short", 0.0), waits(30 * 86400.0, 1.0), decision("long", 2.0)),
        *(waits(1.0, 3.0), decision("after", 4.0), reward("early", 4.0, 1.0), record("tick", 5.5)),
    ]
    for cuts in (frozenset[int](), frozenset(range(9))):
        join, ended = taken(lines, JoinSettings(), cuts=cuts)
        assert (join.counts.defaulted, join.counts.dangling, join.waiting) == (2, 1, 1)
        assert [each.waited for each in ended] == [1.0, 1.5]
        last = [*lines, decision("more", 6.0), reward("long", 7.0, 1.0), record("tick", 8.0)]
        join, ended = taken(last, JoinSettings(), cuts=cuts)
        assert (join.counts.joined, join.counts.defaulted, join.waiting) == (0, 3, 1)  # "long" still waits
        assert all(0 <= each.waited < 10 for each in ended)


@given(
    waits=st.lists(st.sampled_from([1.0, 5.0, 60.0]), min_size=1, max_size=8),
    steps=st.lists(st.floats(0, 8), min_size=1, max_size=40),
)
def test_each_decision_ends_at_its_own_deadline(waits: list[float], steps: list[float]) -> None:
    join, time, due, ends = Join(JoinSettings()), 0.0, dict[int, float](), dict[int, float]()
    for number, step in enumerate(steps):
        time += step
        wait = waits[number % len(waits)]
        for line in (
            record("settings", time, Settings={"reward_wait": wait}),
            decision(f"e{number}", time),
        ):
            for ended in join.take(read_record(line), number, len(line)):
                ends[ended.position] = join.now
        due[number] = join.now + wait
    tick = record("tick", time + 100.0)
    for ended in join.take(read_record(tick), 0, len(tick)):
        ends[ended.position] = join.now
    assert ends.keys() == due.keys()
    assert all(ends[number] >= due[number] for number in due)
    assert join.waiting == 0


@pytest.mark.parametrize("jump", [10 * 365 * 86400.0, -86400.0, 5 * 86400.0, -3600.0])
def test_a_clock_jump_neither_ends_decisions_nor_stops_the_join(jump: float) -> None:
    lines = [
        *(decision("before", 0.0), decision("jumped", 1.0 + jump), record("tick", 5.0 + jump)),
        *(record("tick", 5.5), decision("after", 6.0), record("tick", 13.0), record("tick", 30.0)),
    ]
    for cuts in (frozenset[int](), frozenset({2, 3, 4, 5})):
        join, ended = taken(lines[:4], JoinSettings(reward_wait=WAIT), cuts=cuts)
        assert (ended, join.counts.clock_jumps) == ([], 2)
        join, ended = taken(lines, JoinSettings(reward_wait=WAIT), cuts=cuts)
        assert len(ended) == 3
        assert max(each.waited for each in ended) < 30
        stays = [*lines[:2], record("tick", 20.0 + jump)]  # a clock that stays as it is goes on, too
        _, ended = taken(stays, JoinSettings(reward_wait=WAIT), cuts=cuts)
        assert len(ended) == 2


def test_a_service_that_was_stopped_for_hours_ends_what_has_waited() -> None:
    lines = [decision("a", 0.0), record("tick", 20 * 3600.0)]
    join, ended = taken(lines, JoinSettings(reward_wait=WAIT))
    assert (len(ended), join.counts.clock_jumps) == (1, 0)


def test_finished_decisions_are_remembered_within_a_bound() -> None:
    join, position = Join(JoinSettings(reward_wait=1000.0, max_finished=100, **AT_ONCE)), 0  # type: ignore[arg-type]

    def take(line: bytes) -> None:
        nonlocal position
        join.take(read_record(line), position, len(line))
        position += len(line)

    for number in range(1000):
        take(decision(f"e{number}", number * 0.1))
        take(reward(f"e{number}", number * 0.1, 1.0))
        assert join.finished <= 100
        assert join.waiting == 0
    assert join.counts.joined == 1000
    assert join.counts.forgotten >= 850
    take(reward("e999", 100.0, 1.0))
    take(reward("e960", 100.0, 1.0))
    assert (join.counts.late, join.early) == (2, 0)
    take(reward("e0", 100.0, 1.0))  # forgotten: as if it had never been
    assert (join.counts.late, join.early) == (2, 1)
    take(record("tick", 1200.0))
    assert (join.finished, join.early, join.counts.dangling) == (0, 0, 1)


def test_rewards_count_within_the_range_that_is_declared_or_learnt() -> None:
    def rewards_of(values: list[float], **settings: object) -> tuple[list[float], int]:
        lines = []
        for number, value in enumerate(values):
            lines += [decision(f"e{number}", number), reward(f"e{number}", number, value)]
        lines.append(record("tick", 2000.0))
        join, ended = taken(lines, JoinSettings(**settings), cuts=frozenset({7, 50}))  # type: ignore[arg-type]
        return [each.reward for each in ended], join.counts.clipped

    ordinary = [Random(number).choice([0.0, 0.5, 1.0]) for number in range(100)]
    assert rewards_of(ordinary) == (ordinary, 0)
    for poison in (-2.9e38, 1e25, -1e6):
        found, clipped = rewards_of([*ordinary, poison, *ordinary])
        assert (found[:100], found[101:], clipped) == (ordinary, ordinary, 1)
        assert abs(found[100]) <= 4.0
        found, clipped = rewards_of([poison, *ordinary])  # the very first one
        assert (found[1:], clipped) == (ordinary, 1)
        assert abs(found[0]) <= 100.0
    sales = [0.0] * 97 + [100.0] * 3
    found, clipped = rewards_of([*ordinary, *sales, *sales])
    assert (found[-3:], clipped) == ([100.0] * 3, 2)
    declared, clipped = rewards_of([0.5, 7.0, -3.0], reward_range=(0.0, 1.0))
    assert (declared, clipped) == ([0.5, 1.0, 0.0], 2)


def test_hours_of_traffic_take_memory_for_waiting_decisions_only() -> None:
    """Simulate 50 hours at 2,000 decisions a second and a wait of an hour, at 1/10,000 of the rate."""
    found = simulate(rate=20.0, wait=36.0, hours=0.5, rewarded=0.5)
    assert (found.refused, found.forgotten) == (0, 0)
    assert found.ranked == 36_000
    assert found.most_waiting <= 20 * 36 + 1
    assert found.most_finished <= 2 * 20 * 36


@pytest.mark.slow
def test_a_waiting_decision_takes_at_most_the_stated_memory() -> None:
    found = simulate(rate=2000.0, wait=360.0, hours=0.25, rewarded=0.3)
    assert (found.refused, found.forgotten) == (0, 0)
    assert found.most_waiting <= 2000 * 360 + 1
    assert found.bytes_per_decision <= 1.1 * BYTES_PER_DECISION


@given(
    st.lists(
        st.tuples(
            st.floats(0, 4), st.sampled_from("ab"), st.sampled_from("mn"), st.sampled_from(["", "k", "l"])
        ),
        max_size=30,
    ),
    st.frozensets(st.integers(0, 60)),
)
def test_a_key_of_a_metric_counts_once_while_its_decision_is_known(
    metrics: list[tuple[float, str, str, str]], cuts: frozenset[int]
) -> None:
    lines = [decision("a", 0.0), reward("a", 0.0, 1.0, "k"), decision("b", 0.0)]
    time, known, wanted = 0.0, set[tuple[str, str, str]](), [False, False, False]
    for wait, event_id, name, key in metrics:
        time += wait
        lines.append(
            record(
                "metric", time, EventId=event_id, Metric=name, Value=2.0, **({"RewardId": key} if key else {})
            )
        )
        is_known = read_record(lines[-1]).time.timestamp() < BEGIN + WAIT
        wanted.append(is_known and (event_id, name, key) in known)
        if key:
            known.add((event_id, name, key))
    join, position, found = Join(JoinSettings(reward_wait=WAIT)), 0, list[bool]()
    for number, line in enumerate(lines):
        if number in cuts:
            join = Join.of(msgspec.msgpack.decode(msgspec.msgpack.encode(join.state())))
        join.take(read_record(line), position, len(line))
        position += len(line)
        found.append(join.is_repeated)
    assert found == wanted
    assert join.counts.duplicate == 0
