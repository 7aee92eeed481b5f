"""Events with several slots over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from onlineauto.service.http.tokens import Tokens
from onlineauto.service.learning.evaluate import join_log_lines
from onlineauto.service.options import Limits
from onlineauto.service.ranking import is_drawn
from tests.service.in_process import InProcessClient
from tests.waiting import until

ACTIONS = [{"id": name, "features": [{"topic": {name: 1}}]} for name in ("art", "news", "sport", "music")]
ASKED: dict[str, Any] = {
    "contextFeatures": [{"user": {"age": 30}}],
    "actions": ACTIONS,
    "slots": [
        {"id": "top", "features": [{"place": {"size": "large"}}], "baselineAction": "news"},
        {"id": "side", "features": [], "baselineAction": "art", "excludedActions": ["sport"]},
    ],
}
PATH = "/personalizer/v1.1-preview.3/multislot"


def test_slots_show_different_actions_and_have_their_own_rewards(client: InProcessClient) -> None:
    for number in range(40):
        answer = client.post(f"{PATH}/rank", json={**ASKED, "eventId": f"e{number}"})
        assert answer.status_code == 201, answer.text
        body = answer.json()
        assert (body["eventId"], [each["id"] for each in body["slots"]]) == (f"e{number}", ["top", "side"])
        top, side = (each["rewardActionId"] for each in body["slots"])
        assert top != side != "sport"
        again = client.post(f"{PATH}/rank", json={**ASKED, "eventId": f"e{number}"})
        assert again.json() == body
        rewards = [{"slotId": "top", "value": 1.0}, {"slotId": "side", "value": 0.25}]
        sent = client.post(f"{PATH}/events/e{number}/reward", json={"reward": rewards})
        assert sent.status_code == 204
        assert client.post(f"{PATH}/events/e{number}/activate").status_code == 204
    assert client.learnt(80)["joined"] == 80
    loop = client.loop
    lines = list(join_log_lines(loop.log))
    costs = {line.split(b'"EventId":"')[1].split(b'"')[0]: line.split(b",")[0] for line in lines}
    assert costs[b"e3#top"] == b'{"_label_cost":-1.0'
    assert costs[b"e3#side"] == b'{"_label_cost":-0.25'
    for _, line in loop.log.lines(0):
        if line.startswith(b'{"Type":"rank"'):
            assert is_drawn(line, app="default")


@pytest.mark.ci
def test_the_model_learns_a_preference_for_each_slot(client: InProcessClient) -> None:
    good = {"top": "news", "side": "music"}
    shown = []
    for number in range(600):
        asked = {
            "event_id": f"e{number}",
            "actions": {name: {"topic": {name: 1}} for name in ("art", "news", "sport", "music")},
            "slots": [{"id": "top"}, {"id": "side", "baseline": "art"}],
        }
        answer = client.post("/v1/rank/slots", json=asked).json()
        for slot in answer["slots"]:
            assert sum(slot["pmf"].values()) == pytest.approx(1.0)
            assert slot["pmf"][slot["action"]] == slot["probability"]
            right = slot["action"] == good[slot["id"]]
            shown.append(right)
            body = {"event_id": f"e{number}", "slot": slot["id"], "reward": float(right)}
            assert client.post("/v1/reward", json=body).status_code == 204
        if number % 50 == 0:
            client.learnt(2 * number)
    assert sum(shown[-200:]) / 200 > 0.7 > sum(shown[:40]) / 40


def test_the_baseline_of_each_slot_decides_in_apprentice_mode(serve: Callable[..., InProcessClient]) -> None:
    client = serve(mode="apprentice")
    body = client.post(f"{PATH}/rank", json=ASKED).json()
    assert [each["rewardActionId"] for each in body["slots"]] == ["news", "art"]
    swapped = {**ASKED, "slots": [{"id": "a", "baselineAction": "art"}, {"id": "b", "baselineAction": "art"}]}
    body = client.post("/personalizer/multislot/rank?api-version=2022-09-01-preview", json=swapped).json()
    assert [each["rewardActionId"] for each in body["slots"]] == ["art", "news"]


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        ({"slots": []}, 400, "no slots"),
        ({"slots": [{"id": "a#b", "baselineAction": "art"}]}, 400, "no '#'"),
        ({"slots": [{"id": "a", "baselineAction": "x"}]}, 400, "names 'x', which is none"),
        (
            {"slots": [{"id": "a", "baselineAction": "art", "excludedActions": ["art"]}]},
            400,
            "excludes its baseline",
        ),
        ({"slots": [{"id": "a", "baselineAction": "art"}] * 2}, 400, "the same id"),
        (
            {"actions": ACTIONS[:1], "slots": [{"id": c, "baselineAction": "art"} for c in "ab"]},
            400,
            "no action left",
        ),
        ({"slots": [{"id": c, "baselineAction": "art"} for c in "abcd"]}, 413, "at most 3"),
        (
            {"slots": [ASKED["slots"][0], {"id": "b", "baselineAction": "art", "features": [{"_x": 1}]}]},
            400,
            "begins with '_'",
        ),
    ],
)
def test_slots_that_cannot_be_filled_are_refused_and_nothing_is_logged(
    serve: Callable[..., InProcessClient],
    change: dict[str, Any],
    status: int,
    message: str,
) -> None:
    client = serve(limits=Limits(slots=3, pending=3))
    answer = client.post(f"{PATH}/rank", json={**ASKED, **change})
    assert (answer.status_code, message in answer.json()["error"]["message"]) == (status, True), answer.text
    assert client.get("/v1/status").json()["ranked"] == 0


@pytest.mark.parametrize("path", [f"{PATH}/events/e/activate", "/v1/activate/e"])
def test_deferred_slots_are_learnt_once_their_event_is_activated(
    serve: Callable[..., InProcessClient], path: str
) -> None:
    client = serve()
    assert (
        client.post(f"{PATH}/rank", json={**ASKED, "eventId": "e", "deferActivation": True}).status_code
        == 201
    )
    rewards = [{"slotId": "top", "value": 1.0}, {"slotId": "side", "value": 0.0}]
    assert client.post(f"{PATH}/events/e/reward", json={"reward": rewards}).status_code == 204
    assert client.get("/v1/status").json()["joined"] == 0
    client.__exit__()
    again = serve()
    assert [again.post(path).status_code for _ in range(2)] == [204, 204]
    assert again.learnt(2)["joined"] == 2


def test_deferred_slots_that_have_ended_are_forgotten(client: InProcessClient) -> None:
    loop = client.loop
    for number in range(1200):
        loop.deferred_slots.add(f"e{number}#top")
    assert len(loop.deferred_slots.ids_of("e5")) + len(loop.deferred_slots.ids_of("e1199")) == 1


def test_slots_beyond_the_limit_are_refused_together(serve: Callable[..., InProcessClient]) -> None:
    client = serve(limits=Limits(pending=3, only=("user", "topic", "place")), tokens=Tokens())
    assert client.post(f"{PATH}/rank", json=ASKED).status_code == 201
    full = client.post(f"{PATH}/rank", json=ASKED)
    assert (full.status_code, client.get("/v1/status").json()["ranked"]) == (429, 2)


def test_slots_are_learnt_again_from_the_log(serve: Callable[..., InProcessClient]) -> None:
    client = serve()
    for number in range(30):
        client.post(f"{PATH}/rank", json={**ASKED, "eventId": f"e{number}"})
        client.post("/v1/reward", json={"event_id": f"e{number}", "slot": "top", "reward": 1.0})
    client.learnt(30)
    loop = client.loop
    until(lambda: loop.learner.position >= loop.log.durable)
    before = loop.learner.workspace.predict(
        b'{"c":{"user":{"age":30},"slot":{"top":1},"_multi":[{"topic":{"art":1}},{"topic":{"news":1}}]}}\n'
    )
    client.__exit__()
    (loop.folder / "snapshot.oam").unlink()
    again = serve()
    again.learnt(30)
    other = again.loop
    after = other.learner.workspace.predict(
        b'{"c":{"user":{"age":30},"slot":{"top":1},"_multi":[{"topic":{"art":1}},{"topic":{"news":1}}]}}\n'
    )
    assert before.tolist() == after.tolist()


def test_a_reward_of_a_slot_that_its_event_does_not_have_is_rejected(client: InProcessClient) -> None:
    rank = {"actions": {"a": {"x": {"a": 1}}, "b": {"x": {"b": 1}}}, "slots": [{"id": "top"}, {"id": "side"}]}
    assert client.post("/v1/rank/slots", json={**rank, "event_id": "e1"}).status_code == 200
    for event_id, slot, status in (("e1", "tip", 422), ("e1", "side", 204), ("e2", "tip", 204)):
        answer = client.post("/v1/reward", json={"event_id": event_id, "slot": slot, "reward": 1})
        assert answer.status_code == status, answer.text
        sent = [{"slotId": slot, "value": 1.0}]
        assert client.post(f"{PATH}/events/{event_id}/reward", json={"reward": sent}).status_code == status
    forgotten = {**rank, "event_id": "e3", "slots": [{"id": "side"}]}  # as if "top" had been, and is over
    assert client.post("/v1/rank/slots", json=forgotten).status_code == 200
    late = client.post("/v1/reward", json={"event_id": "e3", "slot": "top", "reward": 1})
    assert late.status_code == 204, late.text
    message = client.post("/v1/reward", json={"event_id": "e1", "slot": "tip", "reward": 1}).json()["error"]
    assert message == {
        "code": "UnprocessableEntity",
        "message": "event 'e1' has no slot 'tip'; it has 'top', 'side'",
    }
