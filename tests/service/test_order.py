"""Decisions are learnt in the order of their waits, and count in the epoch in which they were made."""

from __future__ import annotations

from heapq import heappop, heappush
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlineauto import Workspace
from onlineauto.estimators.evaluation_kernels import Logged, evaluate_events, make_evidence
from onlineauto.service.join.settings import JoinSettings
from onlineauto.service.learning.evaluate import label_line
from onlineauto.service.learning.experiment import BUCKETS, CANARY, CONTROL, arm_of
from onlineauto.service.learning.learner import LogLearner
from onlineauto.service.learning.values import _value
from onlineauto.service.log.segment_log import SegmentLog, read_record
from onlineauto.service.loop.front import ignore_completion
from onlineauto.service.loop.loop import Every, Loop
from onlineauto.service.ranking import RankRequest
from tests.service.traffic import CONFIGURATION, decision, record, reward
from tests.waiting import until

TOPICS = ("politics", "sports", "music")
CLICKS = dict(zip(TOPICS, (0.05, 0.12, 0.19), strict=True))
"""The click rates: 12 % of uniform choices."""
WAIT = 600.0


class Traffic:
    """A service with a simulated clock, in front of users who click within some seconds."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.now, self.count, self._random = 1.7e9, 0, np.random.default_rng(7)
        self.rewards: dict[str, float] = {}
        self._due: list[tuple[float, str]] = []
        self.loop = Loop(
            folder,
            CONFIGURATION,
            settings={"reward_wait": WAIT, **settings},
            every=Every(publish=0.0, snapshot=1e9, keep=1e9),
            clock=lambda: self.now,
        )

    def visits(self, seconds: int) -> None:
        """Simulate a visit of a user every second, and learn."""
        for _ in range(seconds):
            self.now += 1.0
            self.rank()
            self.send_rewards()
        self.learn()

    def rank(self) -> None:
        event_id = f"e{self.count}"
        self.count += 1
        actions = [[{"article": msgspec.Raw(b'{"%b":1}' % topic.encode())}] for topic in TOPICS]
        context = [{"user": msgspec.Raw(b'{"u%d":1}' % (self.count % 2))}]
        asked = RankRequest(event_id, context, TOPICS, actions, unit=f"u{self.count}")
        answer = self.loop.rank(asked, ignore_completion)
        if self._random.random() < CLICKS[answer.ids[0]]:
            heappush(self._due, (self.now + float(self._random.exponential(20.0)), event_id))

    def send_rewards(self) -> None:
        while self._due and self._due[0][0] <= self.now:
            _, event_id = heappop(self._due)
            self.loop.reward(event_id, 1.0, ignore_completion)
            self.rewards[event_id] = 1.0

    def learn(self) -> None:
        self.loop.tick()
        until(lambda: self.loop.log.durable == self.loop._commit.position)
        while self.loop.learn():
            pass

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.send_rewards()
        self.learn()

    def values(self) -> dict[str, Any]:
        return {value.policy: value for value in self.loop.board.values}


def test_early_clicks_are_not_learnt_before_decisions_without_clicks(tmp_path: Path) -> None:
    traffic = Traffic(tmp_path / "loop")
    loop, truth, displayed = traffic.loop, {"baseline": 0.05, "uniform": 0.12}, 0
    for minute in range(35):
        traffic.visits(60)
        assert loop.board.learnt == max(60 * (minute - 9), 0)
        assert loop.join.waiting == min(60 * (minute + 1), 600)
        for name, value in traffic.values().items():
            if value.low is not None and value.high is not None:
                displayed += 1
                assert value.low <= value.reward <= value.high
                assert name not in truth or value.low <= truth[name] <= value.high
                assert value.reward < 0.5
    assert displayed > 50
    lines = []
    for _, line in loop.log.lines(0):
        item = read_record(line)
        if item.kind == "rank" and item.time.timestamp() + WAIT <= traffic.now:
            lines.append(label_line(line, item, traffic.rewards.get(item.event_id, 0.0)))
    twin = Workspace(configuration=loop.learner.workspace.configuration)
    twin.fit(iter(lines))
    event = lines[-1].replace(b'"_label_cost"', b'"other"')
    assert (twin.predict(event) == loop.learner.workspace.predict(event)).all()
    loop.close()


@pytest.mark.ci
def test_late_rewards_raise_no_alarm_for_a_later_model_or_canary(tmp_path: Path) -> None:
    rules = {"control": 0.2, "guardrails": ["reward:rollback"]}
    for_canary = {"canary": True, "model": False}
    for what, is_canary in for_canary.items():
        traffic = Traffic(tmp_path / what, **rules)
        loop = traffic.loop
        name = loop.keep_model()
        if is_canary:
            loop.start_canary(name, 0.3, ignore_completion)
        arms = []
        for _ in range(4000):
            traffic.now += 0.01
            traffic.rank()
        traffic.learn()
        for _, line in loop.log.lines(0):
            item = read_record(line)
            if item.kind == "rank":
                arms.append((item.event_id, item.arm))
                assert item.epoch == loop.join.settings.epoch
        if is_canary:
            loop.start_canary("", 0.0, ignore_completion)
            loop.start_canary(name, 0.3, ignore_completion)
        else:
            loop.use_model(name, ignore_completion)
        traffic.learn()
        accused = CANARY if is_canary else "treatment"
        for event_id, arm in arms:
            loop.reward(event_id, float(arm != accused), ignore_completion)
        traffic.pass_time(WAIT + 60.0)
        report = loop.learner.experiment.report()
        assert loop.learner.learnt > 2500
        assert (report.alarms, [each.decisions for each in report.arms]) == ([], [0] * len(report.arms))
        assert report.lift.mean_against == 1.0  # they count in the whole of the experiment
        assert loop.join.settings.mode == "online"
        assert bool(loop.join.settings.canary) == is_canary
        for _ in range(4000):  # the accused one is found by its own decisions
            traffic.now += 0.01
            traffic.rank()
        for number in range(4000, 8000):
            packed = loop.join.find(f"e{number}", traffic.now)
            assert packed is not None
            until(lambda end=packed.position + packed.size: loop.log.durable >= end)  # type: ignore[misc] # noqa: B023
            found = read_record(loop.log.line_at(packed.position, packed.size))
            loop.reward(f"e{number}", float(found.arm != accused), ignore_completion)
        traffic.pass_time(WAIT + 60.0)
        alarms = loop.learner.experiment.alarms
        assert {(alarm.arm, alarm.epoch, alarm.rolls_back) for alarm in alarms} == {
            (accused, report.epoch, True)
        }
        assert (loop.join.settings.mode == "online") == is_canary
        assert loop.join.settings.canary == ""
        loop.close()


def test_an_alarm_about_an_earlier_model_does_not_roll_back_the_current_one(tmp_path: Path) -> None:
    traffic = Traffic(tmp_path / "loop", control=0.2, guardrails=["reward:rollback"])
    loop = traffic.loop
    name = loop.keep_model()
    for _ in range(4000):
        traffic.now += 0.01
        traffic.rank()
    traffic.learn()
    for _, line in loop.log.lines(0):
        item = read_record(line)
        if item.kind == "rank":
            loop.reward(item.event_id, float(item.arm == CONTROL), ignore_completion)
    traffic.now += WAIT + 60.0
    loop.tick()
    loop.use_model(name, ignore_completion)  # before the alarm is found, which is about the old model
    traffic.learn()
    assert [alarm.epoch for alarm in loop.learner.experiment.alarms] == [loop.join.settings.epoch]
    assert (loop.join.settings.mode, loop.learner.experiment.failed_arm()) == ("online", "")
    loop.close()


def test_a_metric_counts_with_its_decision(tmp_path: Path) -> None:
    traffic = Traffic(tmp_path / "loop", control=0.5, guardrails=["basket"])
    loop = traffic.loop
    for _ in range(300):
        traffic.now += 0.01
        traffic.rank()
    for number in range(300):
        loop.metric(f"e{number}", "basket", 2.0, ignore_completion)
        loop.metric(f"e{number}", "basket", 1.0, ignore_completion)
    traffic.learn()
    experiment = loop.learner.experiment

    def basket() -> tuple[float | None, float | None]:
        found = next(
            guardrail for guardrail in experiment.report().guardrails if guardrail.quantity == "basket"
        )
        return found.mean, found.mean_against

    assert basket() == (None, None)  # no decision counts yet
    loop.learner.snapshot()
    stored = experiment.state()
    traffic.pass_time(WAIT)
    assert basket() == (3.0, 3.0)
    assert (len(stored["held"]), experiment.state()["held"]) == (300, [])
    loop.metric("e0", "basket", 2.0, ignore_completion)  # too late
    traffic.learn()
    assert (basket(), experiment.unmatched) == ((3.0, 3.0), 1)
    again = LogLearner(tmp_path / "loop", loop.log, CONFIGURATION)
    while again.step():
        pass
    assert again.experiment.report() == experiment.report()
    again.close(snapshot=False)
    loop.close()


class _NoModel(LogLearner):
    """A learner that joins and counts, and learns nothing."""

    def _learn(self, decided: Any, mode: str) -> None:
        pass

    def _use(self, name: str, position: int) -> None:  # noqa: ARG002
        self._used += 1
        self.experiment.follow(self.join.settings, self._used, self.join.now)


def null_alarms(folder: Path, seed: int, *, decisions: int = 6000, bad: bool = False) -> int:
    """Return the number of false alarms, with late rewards, and changes of models, arms, modes and canaries.

    With `bad`, the first model earns less than the baseline, and the service changes before its rewards are
    known. Alarms of its epoch are right.
    """
    random = np.random.default_rng(seed)
    rules = JoinSettings(reward_wait=WAIT, control=0.2, guardrails=("reward:rollback", "basket:rollback"))
    lines: list[tuple[float, bytes]] = [
        (0.0, record("settings", 0.0, Settings=msgspec.to_builtins(rules))),
    ]
    time, switched, published = 1.0, 0, 0
    changes = sorted(random.uniform(0.2, 0.9, 5) * decisions)
    likes = random.beta(1.0, 4.0, BUCKETS)
    for number in range(decisions):
        time += float(random.exponential(0.25))
        if changes and number >= changes[0]:
            changes.pop(0)
            kind = random.integers(4)
            if kind == 0:
                switched += 1
                lines.append((time, record("model", time, Model="other")))
            else:
                canary = rules.canary_share == 0.0
                changed: dict[str, Any] = (
                    {"control": 0.3 if rules.control == 0.2 else 0.2}
                    if kind == 1
                    else {"mode": "apprentice" if rules.mode == "online" else "online"}
                    if kind == 2
                    else {"canary": "c" * canary, "canary_share": 0.2 * canary}
                )
                rules = rules.next_epoch(msgspec.structs.replace(rules, **changed))
                lines.append((time, record("settings", time, Settings=msgspec.to_builtins(rules))))
        if random.random() < 0.05:
            published = switched  # a moment after the switch
        bucket = int(random.integers(BUCKETS))
        arm = arm_of(bucket, rules) if rules.mode == "online" else ""
        members: dict[str, Any] = {"Arm": arm, "Bucket": bucket} if arm else {}
        epoch, event_id = rules.epoch + published, f"e{number}"
        lines.append((time, decision(event_id, time, Epoch=epoch, **members)))
        season = 1.0 + 0.5 * np.sin(time / 500.0)
        harm = bad and epoch == 0 and arm == "treatment"
        if random.random() < min(likes[bucket] * season, 1.0) * (0.05 if harm else 1.0):
            late = time + float(random.exponential(WAIT / 2))
            lines.append((late, reward(event_id, late, 1.0)))
        if random.random() < 0.3:
            late = time + float(random.exponential(WAIT / 2))
            value = float(random.lognormal()) * (0.05 if harm else 1.0)
            lines.append((late, record("metric", late, EventId=event_id, Metric="basket", Value=value)))
    lines.append((time + 2 * WAIT, record("tick", time + 2 * WAIT)))
    log = SegmentLog(folder / "log")
    log.append([line for _, line in sorted(lines, key=lambda each: each[0])])
    log.sync()
    learner = _NoModel(folder, log, CONFIGURATION)
    while learner.step():
        pass
    learner.close(snapshot=False)
    log.close()
    assert learner.join.counts.ranked == decisions
    assert learner.experiment.epoch == rules.epoch + switched
    return sum(not bad or alarm.epoch > 0 for alarm in learner.experiment.alarms)


def test_late_rewards_and_changes_raise_no_false_alarms(tmp_path: Path) -> None:
    assert sum(null_alarms(tmp_path / str(seed), seed, bad=seed > 1) for seed in range(4)) == 0


@pytest.mark.slow
@pytest.mark.parametrize("bad", [False, True])
def test_at_most_one_in_twenty_null_experiments_raises_an_alarm(tmp_path: Path, bad: bool) -> None:
    false = sum(null_alarms(tmp_path / str(seed), seed, bad=bad) > 0 for seed in range(200))
    assert false <= 10


@given(
    rewards=st.lists(st.sampled_from([0.0, 1.0, -1.0, 5.0, 100.0]), min_size=1, max_size=40),
    repeats=st.integers(1, 20),
    probability=st.sampled_from([0.01, 0.1, 0.5, 1.0]),
    weight=st.sampled_from([0.0, 0.3, 1.0, 5.0, 90.0]),
)
def test_a_point_estimate_lies_in_its_interval(
    rewards: list[float], repeats: int, probability: float, weight: float
) -> None:
    earned = np.repeat(rewards, repeats)  # in whatever order, such as the clicks first
    n = len(earned)
    evidence = make_evidence(np.inf, -np.inf, floor=None)
    events = Logged(
        weight=np.where(np.arange(n) % 3, weight, 1.0),
        reward=earned,
        probability=np.full(n, probability),
        action=2 * np.arange(n),
        start=np.column_stack([2 * np.arange(n), 2 * np.arange(n) + 2]),
        predicted=np.zeros(2 * n),
        pmf=np.zeros(2 * n),
    )
    evaluate_events(evidence, events, 0.05, np.empty((0, 3, 2)))
    found = _value("model", evidence)
    assert (found.low is None) == (found.high is None)
    if found.low is not None and found.high is not None:
        assert found.reward is not None
        assert found.low <= found.reward <= found.high
