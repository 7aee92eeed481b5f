"""What a watch reports of choices, names of features and rewards."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from onlineauto.formats.decisions.dsjson import LogRecord
from onlineauto.service.learning.traffic import TrafficWatch

pytestmark = pytest.mark.lane("quick")

DAY = 86400.0
ACTIONS = [
    {"_tag": "a", "topic": {"x": 1}},
    {"_tag": "b", "topic": {"y": 1}},
    {"_tag": "c", "topic": {"z": 1}},
]


def run(
    watch: TrafficWatch,
    begin: float,
    end: float,
    context: Callable[[float], dict[str, Any]],
    *,
    every: float = 30.0,
    pmf: tuple[float, ...] = (0.8, 0.1, 0.1),
    best: Callable[[int], int] = lambda number: number % 3,
    explored: bool = True,
) -> None:
    """Take decisions at an interval, from one hour to another."""
    count = round((end - begin) * 3600 / every)
    for number in range(count):
        time = begin * 3600 + (number ^ 1) * every  # decisions end in another order than they were made
        text = msgspec.Raw(msgspec.json.encode({**context(time / 3600 % 24), "_multi": ACTIONS}))
        ranked = [(best(number) + offset) % 3 + 1 for offset in range(3)]
        made = datetime.fromtimestamp(time, UTC)
        watch.take(LogRecord("rank", made, f"{number}", ranked, list(pmf), text), explored=explored)


def with_device(_: float) -> dict[str, Any]:
    return {"user": {"age": 3}, "device": {"phone": 1}, "city": "Rome"}


def names_of(watch: TrafficWatch) -> list[str]:
    return [each.name for each in watch.summary().vanished]


def test_a_steady_feature_that_vanishes_is_named_with_its_time() -> None:
    watch = TrafficWatch()
    run(watch, 0, 25, with_device)
    assert names_of(watch) == []
    run(watch, 25, 26, lambda _: {"user": {"age": 3}})
    assert names_of(watch) == []  # 120 decisions may be chance
    run(watch, 26, 28, lambda _: {"user": {"age": 3}})
    assert names_of(watch) == ["city", "device", "device.phone"]
    assert watch.summary().vanished[0].since == pytest.approx(25 * 3600, abs=60)
    assert (
        watch.summary().warnings[0].startswith("city was in the decisions of each hour, and is missing since")
    )
    run(watch, 28, 28.1, with_device)
    assert names_of(watch) == []


def test_a_namespace_of_actions_that_vanishes_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = TrafficWatch()
    run(watch, 0, 25, with_device)
    monkeypatch.setattr("tests.service.test_traffic.ACTIONS", [{"_tag": each["_tag"]} for each in ACTIONS])
    run(watch, 25, 28, with_device)
    assert names_of(watch) == ["actions.topic"]


def test_actions_that_cannot_be_told_apart_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = TrafficWatch()
    run(watch, 0, 1, with_device)
    assert not any("told apart" in warning for warning in watch.summary().warnings)
    actions = [{"_tag": each["_tag"], "topic": {"x": 1}} for each in ACTIONS]
    monkeypatch.setattr("tests.service.test_traffic.ACTIONS", actions)
    run(watch, 1, 1.1, with_device)
    [warning] = [each for each in TrafficWatch(watch.state()).summary().warnings if "told apart" in each]
    assert "in the latest 12 decisions" in warning
    monkeypatch.undo()
    run(watch, 2, 2.01, with_device)
    assert not any("told apart" in warning for warning in watch.summary().warnings)


def test_features_of_some_hours_or_of_few_users_are_not_reported() -> None:
    watch = TrafficWatch()

    def context(hour: float) -> dict[str, Any]:
        evening = {"time": {"evening": 1}} if hour >= 16 else {}
        return {"user": {f"id{hour:.3f}": 1}, **evening}

    for day in range(4):
        run(watch, 24 * day, 24 * day + 24, context)
        assert names_of(watch) == []


def test_a_feature_of_weekends_is_reported_twice_at_most() -> None:
    watch, reports = TrafficWatch(), 0
    for week in range(4):
        for day in range(7):
            weekend: dict[str, Any] = {"time": {"weekend": 1}} if day >= 5 else {}
            begin = 24.0 * (7 * week + day)
            run(watch, begin, begin + 24, lambda _, more=weekend: {"user": {"age": 3}, **more}, every=60.0)  # type: ignore[misc]
            reports += day == 1 and names_of(watch) != []
    assert reports == 2


def test_a_vanished_feature_survives_a_restart_and_a_person_does_not() -> None:
    watch = TrafficWatch()
    run(watch, 0, 25, with_device)
    run(watch, 25, 25.2, lambda hour: {"user": {f"id{hour:.3f}": 1}})
    stored = msgspec.json.decode(msgspec.json.encode(watch.state()))
    assert not any("id" in name for name in stored["names"])
    again = TrafficWatch(stored)
    for each in (watch, again):
        run(each, 26, 28, lambda _: {"user": {"age": 3}})
    assert names_of(watch) == names_of(again) == ["city", "device", "device.phone"]
    assert watch.summary() == again.summary()


@pytest.mark.parametrize(
    ("pmf", "best", "entropy", "floor", "warning"),
    [
        ((0.8, 0.1, 0.1), lambda number: number % 3, 1.0, 0.0, ""),
        (
            (0.8, 0.1, 0.1),
            lambda _: 1,
            0.0,
            0.0,
            "the model prefers 'b' in 100 % of the decisions: it is the best",
        ),
        ((1.0, 0.0, 0.0), lambda _: 1, 0.0, 0.0, "of the decisions: nothing is explored (--epsilon)"),
        (
            (0.3, 0.4, 0.3),
            lambda number: number % 3,
            1.0,
            1.0,
            "100 % of the choices have the lowest probability",
        ),
        ((1 / 3, 1 / 3, 1 / 3), lambda number: number % 3, 1.0, 0.0, ""),
    ],
)
def test_choices(
    pmf: tuple[float, ...], best: Callable[[int], int], entropy: float, floor: float, warning: str
) -> None:
    watch = TrafficWatch()
    run(watch, 0, 10, with_device, pmf=pmf, best=best)
    found = watch.summary()
    assert found.choice_entropy == pytest.approx(entropy, abs=0.01)
    assert found.floor_share == floor
    assert (warning in found.warnings[0]) if warning else not found.warnings


def test_each_decision_may_prefer_a_new_action() -> None:
    watch = TrafficWatch()
    for second in range(1200):
        made = datetime.fromtimestamp(1e9 + second, UTC)
        actions = [{"_tag": tag, "id": tag} for tag in (f"news {second}", "a", "b")]
        context = msgspec.Raw(msgspec.json.encode({"_multi": actions}))
        watch.take(LogRecord("rank", made, "e", [1, 2, 3], [0.8, 0.1, 0.1], context), explored=True)
        found = watch.summary()
        assert found.warnings == []
        assert found.choice_entropy > 0.9


def test_choices_of_the_baseline_are_not_those_of_the_model() -> None:
    watch = TrafficWatch()
    run(watch, 0, 10, with_device, best=lambda _: 1, explored=False)
    assert watch.summary().choice_entropy == 1.0


@pytest.mark.parametrize(("every", "share"), [(0.06, 1.0), (0.001, 1 / 32)])
def test_of_many_decisions_few_are_read(every: float, share: float) -> None:
    watch = TrafficWatch()
    run(watch, 0, 16_000 * every / 3600, with_device, every=every)
    assert watch.state()["counted"] == pytest.approx(16_000 * share, rel=0.05)


def test_a_context_that_cannot_be_read_is_left_out() -> None:
    watch = TrafficWatch()
    made = datetime.fromtimestamp(1e9, UTC)
    for context in (b"[]", b'{"_multi":1}', b'{"_multi":[{"x":1},{"y":2}]}', b"{"):
        watch.take(LogRecord("rank", made, "e", [1, 2], [0.5, 0.5], msgspec.Raw(context)), explored=True)
    assert watch.state()["names"] == {}


@pytest.mark.parametrize("rate", [0.5, 0.01])
def test_lost_rewards_are_noticed_however_rare_they_are(rate: float) -> None:
    watch, number = TrafficWatch(), 0
    lowest = 1.0
    for number in range(30_000):
        watch.take_reward(1.0, rewarded=number % round(1 / rate) == 0)
        if number > 5000:
            lowest = min(lowest, watch.summary().reward_share) if number % 100 == 0 else lowest
    assert lowest > 0.5 * rate
    assert not watch.summary().warnings
    for _ in range(max(round(60 / rate), 1000)):
        watch.take_reward(1.0, rewarded=False)
    assert "rewards are not sent" in watch.summary().warnings[0]


def test_rewards_that_are_all_equal_are_reported() -> None:
    watch = TrafficWatch()
    for _ in range(299):
        watch.take_reward(1.0, rewarded=True)
    assert watch.summary().warnings == []
    watch.take_reward(1.0, rewarded=True)
    assert watch.summary().warnings[0].startswith("all 300 rewards are 1: no choice is bad.")
    again = TrafficWatch(watch.state())
    assert again.summary().warnings == watch.summary().warnings
    watch.take_reward(0.0, rewarded=True)
    again.take_reward(1.0, rewarded=False)
    assert watch.summary().warnings == again.summary().warnings == []
