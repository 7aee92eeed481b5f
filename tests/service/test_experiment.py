"""The control arm, its lift, guardrails and sample-ratio check: the statistics, and over HTTP."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from onlineauto.service.join.settings import JoinSettings
from onlineauto.service.learning.evaluate import join_log_lines
from onlineauto.service.learning.experiment import (
    BUCKETS,
    CONTROL,
    TREATMENT,
    Experiment,
    LabelledDecision,
    arm_of,
    bucket_of,
)
from onlineauto.service.loop.loop import Loop
from onlineauto.service.options import Limits
from onlineauto.workspace.workspace import Workspace
from tests.service.in_process import InProcessClient
from tests.waiting import until

ACTIONS = {"bad": {"topic": {"bad": 1}}, "good": {"topic": {"good": 1}}}


def labelled(arm: str, bucket: int, epoch: int = 0, *, position: int = -1) -> LabelledDecision:
    return LabelledDecision(position, b"", True, arm, bucket, epoch)


def simulated(seed: int, decisions: int, *, visits: int = 1, effect: float = 0.0) -> Experiment:
    """Return an experiment of units that return, and that differ in how often they click."""
    random = np.random.default_rng(seed)
    settings = JoinSettings(control=0.2, guardrails=("reward:rollback", "basket"))
    made, count = Experiment(settings), 0
    for unit in range(decisions):
        bucket = bucket_of(str(seed), str(unit))
        arm = arm_of(bucket, settings)
        likes = random.beta(1.0, 4.0)
        for _ in range(int(random.geometric(1.0 / visits))):
            count += 1
            chance = min(max(likes + effect * (arm == TREATMENT), 0.0), 1.0)
            made.take(labelled(arm, bucket), float(random.random() < chance), float(count))
            if random.random() < 0.3:
                made.take_metric("basket", float(random.lognormal()), labelled(arm, bucket), float(count))
        if count >= decisions:
            break
    return made


def test_units_keep_their_arm_and_arms_have_their_share() -> None:
    settings = JoinSettings(control=0.05, canary="m", canary_share=0.1)
    arms = [arm_of(bucket_of("default", f"user{number}"), settings) for number in range(20_000)]
    assert arms == [arm_of(bucket_of("default", f"user{number}"), settings) for number in range(20_000)]
    for arm, share in (("control", 0.05), ("treatment", 0.85), ("canary", 0.1)):
        assert arms.count(arm) / len(arms) == pytest.approx(share, abs=0.01)
    draws = {bucket_of("a", f"user{number}") != bucket_of("b", f"user{number}") for number in range(100)}
    assert draws == {True}


@pytest.mark.ci
@pytest.mark.parametrize("visits", [1, 10])
def test_intervals_and_guardrails_seldom_err_without_an_effect(visits: int) -> None:
    missed = alarms = mismatches = 0
    for seed in range(60):
        made = simulated(seed, 3000, visits=visits)
        report = made.report()
        low, high = report.lift.low, report.lift.high
        assert low is not None
        assert high is not None
        missed += not low <= 0.0 <= high
        alarms += bool(report.alarms)
        mismatches += not report.sample_ratio.matches
    assert missed <= 4
    assert alarms <= 4
    assert mismatches <= 2


def test_lift_and_a_broken_guardrail_are_found() -> None:
    better = simulated(1, 6000, effect=0.15).report()
    assert better.lift.low is not None
    assert 0.0 < better.lift.low < 0.15 < (better.lift.high or 0.0)
    assert better.lift.relative == pytest.approx(0.15 / 0.2, abs=0.3)
    assert better.alarms == []
    worse = simulated(2, 6000, effect=-0.15)
    (alarm,) = worse.report().alarms
    assert (alarm.quantity, alarm.arm, alarm.rolls_back) == ("reward", "treatment", True)
    assert alarm.decisions < 4000
    assert worse.failed_arm() == TREATMENT
    worse.follow(JoinSettings(control=0.2, guardrails=("reward:rollback", "basket")), 1, 1e9)
    assert worse.failed_arm() == ""
    assert worse.report().lift_since_change.difference is None
    assert worse.report().lift.difference is not None


def test_a_metric_that_falls_raises_its_own_alarm() -> None:
    settings = JoinSettings(control=0.3, guardrails=("basket:rollback",))
    made = Experiment(settings)
    for unit in range(4000):
        bucket = bucket_of("default", str(unit))
        arm = arm_of(bucket, settings)
        made.take(labelled(arm, bucket), 1.0 + unit % 2, float(unit))
        made.take_metric("basket", 2.0 + unit % 3 - (arm == TREATMENT), labelled(arm, bucket), float(unit))
    (alarm,) = made.report().alarms
    assert (alarm.quantity, alarm.rolls_back) == ("basket", True)
    made.take_metric("basket", 1.0, None, 4000.0)
    made.take_metric("basket", 1.0, labelled("", 1), 4000.0)  # of apprentice mode: known, and in no arm
    assert made.report().unmatched == 1


def test_lost_decisions_of_one_arm_are_found_by_the_sample_ratio() -> None:
    settings = JoinSettings(control=0.1)
    whole, lost = Experiment(settings), Experiment(settings)
    for unit in range(30_000):
        bucket = bucket_of("default", str(unit))
        arm = arm_of(bucket, settings)
        whole.take(labelled(arm, bucket), float(unit % 2), 0.0)
        if arm == CONTROL or unit % 6:
            lost.take(labelled(arm, bucket), float(unit % 2), 0.0)
    assert whole.report().sample_ratio.matches
    ratio = lost.report().sample_ratio
    assert not ratio.matches
    assert ratio.observed > ratio.expected == pytest.approx(0.1, abs=0.001)


def test_an_experiment_is_restored_and_begins_again_with_other_arms() -> None:
    made = simulated(3, 2000, visits=3, effect=-0.2)
    settings = JoinSettings(control=0.2, guardrails=("reward:rollback", "basket"))
    made.follow(settings, 1, 5000.0)
    again = Experiment.of(made.state())
    assert again.report() == made.report()
    for each in (made, again):
        for unit in range(2000):
            bucket = unit % BUCKETS
            each.take(labelled(arm_of(bucket, settings), bucket, 1), float(unit % 3), 6000.0)
    assert again.report() == made.report()
    again.follow(settings.next_epoch(JoinSettings(control=0.1)), 1, 7000.0)
    report = again.report()
    assert (report.began, report.lift.difference, report.control) == (7000.0, None, 0.1)


def visit(client: InProcessClient, number: int, reward: Callable[..., float], **more: Any) -> str:
    """Rank for a user, reward the decision, and return the action."""
    body = {"event_id": f"e{number}", "actions": ACTIONS, "unit": f"user{number % 700}", **more}
    action = str(client.post("/v1/rank", json=body).json()["action"])
    sent = client.reward(f"e{number}", reward(action))
    assert sent.status_code == 204
    return action


def test_what_is_reported_without_an_arm_is_restored() -> None:
    made = Experiment(JoinSettings())
    made.follow(JoinSettings(control=0.1), 1, 100.0)
    made.take_metric("basket", 1.0, None, 150.0)
    again = Experiment.of(made.state())
    assert again.report() == made.report()
    assert (again.report().unmatched, again.report().began) == (1, 100.0)


@pytest.mark.ci
def test_the_control_arm_gets_the_baseline_and_is_not_learnt(serve: Callable[..., InProcessClient]) -> None:
    client = serve(control=0.25, guardrails=["basket"])
    settings = JoinSettings(control=0.25)
    for number in range(1200):
        arm = arm_of(bucket_of("default", f"user{number % 700}"), settings)
        action = visit(client, number, lambda action: float(action == "good"))
        assert action == "bad" or arm == TREATMENT
    in_control = sum(arm_of(bucket_of("default", f"user{n % 700}"), settings) == CONTROL for n in range(1200))
    status = client.learnt(1200 - in_control)
    assert (status["learnt"], status["held_out"]) == (1200 - in_control, in_control)
    metric = {"event_id": "e0", "metric": "basket", "value": 3.0}
    assert client.post("/v1/metric", json=metric).status_code == 204
    assert client.post("/v1/metric", json={**metric, "event_id": "unknown"}).status_code == 204
    refused = client.post("/v1/metric", json={**metric, "metric": "sales"})
    assert "--guardrails, which names basket" in refused.json()["error"]["message"]
    until(lambda: client.get("/v1/experiment").json()["unmatched"] == 1)
    report = client.get("/v1/experiment").json()
    assert report == client.get("/v1/status").json()["experiment"]
    assert {each["name"]: each["decisions"] for each in report["arms"]} == {
        "control": in_control,
        "treatment": 1200 - in_control,
    }
    assert report["lift"]["mean_against"] == 0.0
    assert report["lift"]["low"] > 0.5
    assert report["sample_ratio"]["matches"]
    basket = next(each for each in report["guardrails"] if each["quantity"] == "basket")
    assert basket["mean"] + basket["mean_against"] > 0.0
    loop = client.loop
    lines = list(join_log_lines(loop.log))
    assert len(lines) == 1200 - in_control
    client.__exit__()
    (loop.folder / "snapshot.oam").unlink()
    again = serve()
    again.learnt(1200 - in_control)
    until(lambda: again.get("/v1/experiment").json() == report)


def test_a_broken_guardrail_rolls_back_once(serve: Callable[..., InProcessClient]) -> None:
    client = serve(control=0.3, guardrails=["reward:rollback"])
    arms, number = JoinSettings(control=0.3), 0
    while client.get("/v1/status").json()["settings"]["mode"] == "online":
        arm = arm_of(bucket_of("default", f"user{number % 700}"), arms)
        visit(client, number, lambda _, lost=arm == TREATMENT, odd=number % 2: 1.0 - lost - 0.1 * odd)
        number += 1
        assert number < 2000
    settings = client.get("/v1/status").json()["settings"]
    assert settings["mode"] == "apprentice"
    assert visit(client, 10_000, lambda _: 1.0) == "bad"
    until(lambda: client.get("/v1/experiment").json()["alarms"])  # the report follows the roll-back
    (alarm,) = client.get("/v1/experiment").json()["alarms"]
    assert alarm["rolls_back"]
    assert client.patch("/v1/settings", json={"mode": "online"}).status_code == 200
    for more in range(20_000, 20_020):
        visit(client, more, lambda _: 1.0)
    loop = client.loop
    until(lambda: loop.learner.position >= loop.log.durable)
    client.__exit__()
    (loop.folder / "snapshot.oam").unlink()
    again = serve()  # the alarm of the log is history: nothing is rolled back again
    other = again.loop
    until(lambda: other.learner.position >= other.log.durable)
    visit(again, 30_000, lambda _: 1.0)
    assert again.get("/v1/status").json()["settings"]["mode"] == "online"


@pytest.mark.ci
def test_a_bad_canary_is_rolled_back_within_some_decisions(serve: Callable[..., InProcessClient]) -> None:
    client = serve(guardrails=["reward:rollback"])
    for number in range(300):
        visit(client, number, lambda action: float(action == "good"))
    client.learnt(300)
    loop = client.loop
    liked = b'"_label_cost":-1.0'
    swapped = [
        line.replace(liked, b"?").replace(b'"_label_cost":0.0', liked) for line in join_log_lines(loop.log)
    ]
    wrong = Workspace(configuration=loop.learner.workspace.configuration)
    wrong.fit(io.BytesIO(b"".join(line.replace(b"?", b'"_label_cost":0.0') for line in swapped)))
    file = io.BytesIO()
    wrong.save(file)
    loop.learner.models.put("wrong", file.getvalue())
    assert client.post("/v1/models/canary", json={"name": "none", "share": 0.2}).status_code == 400
    assert client.post("/v1/models/canary", json={"name": "wrong", "share": 0.7}).status_code == 422
    assert client.post("/v1/models/canary", json={"name": "wrong", "share": 0.3}).status_code == 200
    arms, number, shown = JoinSettings(canary="wrong", canary_share=0.3), 1000, dict[str, set[str]]()
    while client.get("/v1/status").json()["settings"]["canary"]:
        unit = f"user{number % 700}"
        body = {"event_id": f"e{number}", "actions": ACTIONS, "unit": unit}
        answer = client.post("/v1/rank", json=body).json()
        arm = arm_of(bucket_of("default", unit), arms)
        shown.setdefault(arm, set()).add(answer["model"])
        reward = float(answer["action"] == "good")
        client.reward(f"e{number}", reward)
        number += 1
        assert number < 3000
    until(lambda: client.get("/v1/experiment").json()["alarms"])  # its report follows the roll-back
    (alarm,) = client.get("/v1/experiment").json()["alarms"]
    assert (alarm["arm"], alarm["against"], alarm["rolls_back"]) == ("canary", "treatment", True)
    assert alarm["decisions"] < 1000
    assert shown["canary"] == {"wrong"}
    assert len(shown["treatment"]) > 1
    assert client.get("/v1/status").json()["settings"]["mode"] == "online"


def test_a_canary_survives_a_restart_and_ends_when_it_is_used_for_all(
    serve: Callable[..., InProcessClient],
) -> None:
    client = serve()
    visit(client, 1, lambda _: 1.0)
    client.learnt(1)
    name = client.post("/v1/models").json()["name"]
    assert client.post("/v1/models/canary", json={"name": name, "share": 0.5}).status_code == 200
    client.__exit__()
    again = serve()
    loop: Any = again.loop
    assert loop.canary.name == name
    assert again.post("/v1/models/use", json={"name": name}).status_code == 200
    assert (loop.canary, again.get("/v1/status").json()["settings"]["canary"]) == (None, "")
    (loop.folder / "models" / f"{name}.oam").unlink()
    assert again.post("/v1/models/canary", json={"share": 0.0}).status_code == 200


def metric_sum(loop: Loop, name: str) -> float:
    """Return the sum of all values of a metric that the experiment has counted."""
    until(lambda: loop.learner.position >= loop.log.durable)
    return float(loop.learner.experiment.state()["whole"][1][name][0].sum())


def test_a_metric_with_a_key_counts_once_over_restarts_and_replays(
    serve: Callable[..., InProcessClient],
) -> None:
    client = serve(control=0.3, guardrails=["basket", "sales"])
    visit(client, 1, lambda _: 1.0)
    visit(client, 2, lambda _: 1.0)

    def send(client: InProcessClient, status: int = 204, **changes: Any) -> None:
        body = {"event_id": "e1", "metric": "basket", "value": 3.0, "key": "k", **changes}
        assert client.post("/v1/metric", json=body).status_code == status

    for _ in range(3):
        send(client)
    others: list[dict[str, Any]] = [{"event_id": "e2"}, {"metric": "sales"}, {"key": "l"}, *[{"key": ""}] * 2]
    for changes in others:
        send(client, **changes)
    send(client, 422, value=4.0)
    send(client, 400, key="k" * 129)
    for _ in range(2):
        body = {"event_id": "e2", "metric": "sales", "value": 1.0}
        assert client.post("/v1/metric", json=body, headers={"Idempotency-Key": "h"}).status_code == 204
    assert client.reward("e1", 1.0, key="k").status_code == 204
    sums = [metric_sum(client.loop, name) for name in ("basket", "sales")]
    assert sums == [15.0, 4.0]
    client.__exit__()
    again = serve()  # from the snapshot
    send(again)
    send(again, 422, value=4.0)
    assert [metric_sum(again.loop, name) for name in ("basket", "sales")] == sums
    report = again.loop.learner.experiment.report()
    again.__exit__()
    (again.loop.folder / "snapshot.oam").unlink()
    last = serve()  # from the log
    assert [metric_sum(last.loop, name) for name in ("basket", "sales")] == sums
    assert last.loop.learner.experiment.report() == report


def test_keys_of_metrics_are_bounded_and_take_no_room_of_rewards(
    serve: Callable[..., InProcessClient],
) -> None:
    client = serve(control=0.3, guardrails=["basket"], aggregation="sum", limits=Limits(parts=3))
    body = {"event_id": "e1", "actions": ACTIONS, "unit": "user1"}
    assert client.post("/v1/rank", json=body).status_code == 200
    metric = {"event_id": "e1", "metric": "basket", "value": 1.0}
    statuses = [client.post("/v1/metric", json={**metric, "key": key}).status_code for key in "abcda"]
    assert statuses == [204, 204, 204, 429, 204]
    assert client.post("/v1/metric", json=metric).status_code == 204
    rewards = [{"event_id": "e1", "reward": 1.0, "key": key} for key in "abcd"]
    statuses = [client.post("/v1/reward", json=reward).status_code for reward in rewards]
    assert statuses == [204, 204, 204, 429]
    assert metric_sum(client.loop, "basket") == 0.0  # it counts with its decision, which waits
    ((_, (_, values)),) = client.loop.learner.experiment.state()["held"]
    assert values == {"basket": 4.0}


def test_guardrails_that_nothing_is_compared_with_are_rejected(client: InProcessClient) -> None:
    for changes in ({"guardrails": ["sales"]}, {"guardrails": ["sales"], "control": 0.01}):
        refused = client.patch("/v1/settings", json=changes)
        assert refused.status_code == 422
        assert "give --control 5%" in refused.json()["error"]["message"]
    assert client.patch("/v1/settings", json={"guardrails": ["sales"], "control": 0.05}).status_code == 200
    assert client.patch("/v1/settings", json={"control": 0.01}).status_code == 422
    assert client.patch("/v1/settings", json={"control": 0.0}).status_code == 200  # the experiment ends
    assert client.patch("/v1/settings", json={"guardrails": []}).status_code == 200
