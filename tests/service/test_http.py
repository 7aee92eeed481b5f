from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from onlineauto.service.http.app import application
from onlineauto.service.http.endpoint import Endpoint, Waiting
from onlineauto.service.http.tokens import Tokens, add_token
from onlineauto.service.loop.loop import Every, Loop
from onlineauto.service.options import Limits
from onlineauto.workspace.options import REGISTRY
from tests.service.in_process import InProcessClient
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CONFIGURATION = REGISTRY.parse("--cb_explore_adf --automl 4 --bit_precision 12 --epsilon 0.2")
RANK = {
    "contextFeatures": [{"user": {"age": 30, "city": "Oslo"}}, {"hour": 9}],
    "actions": [
        {"id": "politics", "features": [{"topic": "politics", "text": {"words": 300}}]},
        {"id": "sports", "features": [{"topic": "sports"}]},
        {"id": "music", "features": []},
    ],
}
OWN = {"context": {"user": {"age": 30}}, "actions": {"a": {"x": {"one": 1}}, "b": {"x": {"two": 1}}}}

Serve = "Callable[..., InProcessClient]"


def learnt(client: InProcessClient, count: int) -> dict[str, Any]:
    """Return the status once so many decisions are learnt."""
    status: dict[str, Any] = {}

    def is_learnt() -> bool:
        status.update(client.get("/v1/status").json())
        return bool(status["learnt"] >= count)

    until(is_learnt, what=lambda: status)
    return status


def test_personalizer_ranks_rewards_and_activates(serve: Callable[..., InProcessClient]) -> None:
    client = serve()
    answer = client.post("/personalizer/v1.0/rank", json={**RANK, "eventId": "e1"})
    assert answer.status_code == 201
    body = answer.json()
    assert body["eventId"] == "e1"
    assert {each["id"] for each in body["ranking"]} == {"politics", "sports", "music"}
    assert body["rewardActionId"] == body["ranking"][0]["id"]
    assert sum(each["probability"] for each in body["ranking"]) == pytest.approx(1.0)
    assert client.post("/personalizer/v1.0/events/e1/reward", json={"value": 1}).status_code == 204
    assert learnt(client, 1)["joined"] == 1
    deferred = client.post("/personalizer/v1.0/rank", json={**RANK, "eventId": "e2", "deferActivation": True})
    assert deferred.status_code == 201
    client.post("/personalizer/v1.0/events/e2/reward", json={"value": 1})
    assert client.get("/v1/status").json()["joined"] == 1
    assert client.post("/personalizer/v1.0/events/e2/activate").status_code == 204
    assert learnt(client, 2)["joined"] == 2


def test_the_same_event_has_the_same_answer(serve: Callable[..., InProcessClient]) -> None:
    client = serve()
    first = client.post("/personalizer/v1.0/rank", json={**RANK, "eventId": "e"})
    again = client.post("/personalizer/v1.0/rank", json={**RANK, "eventId": "e"})
    other = client.post("/personalizer/v1.0/rank", json={**RANK, "eventId": "e", "contextFeatures": []})
    assert (first.status_code, again.status_code, other.status_code) == (201, 201, 409)
    assert first.json() == again.json()
    assert client.get("/v1/status").json()["ranked"] == 1


def test_rewards_are_idempotent_by_key(serve: Callable[..., InProcessClient]) -> None:
    client = serve(aggregation="sum", reward_wait=1000.0)
    client.post("/v1/rank", json={**OWN, "event_id": "e"})
    one = {"event_id": "e", "reward": 1.0, "key": "k"}
    assert [client.post("/v1/reward", json=one).status_code for _ in range(3)] == [204] * 3
    assert client.post("/v1/reward", json={**one, "reward": 2.0}).status_code == 422
    header = client.post(
        "/v1/reward", json={"event_id": "e", "reward": 1.0}, headers={"Idempotency-Key": "k"}
    )
    assert header.status_code == 204
    status = client.get("/v1/status").json()
    assert (status["rewarded"], status["duplicate"]) == (4, 3)


def test_our_own_rank_and_status(serve: Callable[..., InProcessClient]) -> None:
    client = serve()
    for number in range(60):
        answer = client.post("/v1/rank", json={**OWN, "event_id": f"e{number}"}).json()
        assert answer["action"] == ["a", "b"][answer["index"]]
        assert answer["pmf"][answer["action"]] == pytest.approx(answer["probability"])
        client.post("/v1/reward", json={"event_id": answer["event_id"], "reward": float(answer["index"])})
    status = learnt(client, 60)
    assert status["ranked"] == status["rewarded"] == status["learnt"] == 60
    assert status["lag_seconds"] == 0
    assert status["champion"]["interactions"] == ["user*x"]
    assert status["champion_changes"] == 0
    assert {each["policy"] for each in status["values"]} == {"live", "model", "baseline", "uniform"}
    listed = client.post("/v1/rank", json={"actions": [{"x": 1}, {"y": 1}], "excluded": ["0"]}).json()
    assert (listed["action"], listed["pmf"]) == ("1", {"0": 0.0, "1": 1.0})


def test_the_latest_decision_is_explained(serve: Callable[..., InProcessClient]) -> None:
    client = serve()
    assert client.get("/v1/explanation").status_code == 404
    answer = client.post("/v1/rank", json=OWN | {"event_id": "e1"}).json()
    found = client.get("/v1/explanation").json()
    assert found["event_id"] == "e1"
    chances = {row["action_id"]: row["probability"] for row in found["actions"]}
    assert chances == pytest.approx({"a": 0.5, "b": 0.5})
    assert answer["action"] in chances


def test_the_baseline_decides_until_the_model_may(serve: Callable[..., InProcessClient]) -> None:
    client = serve(mode="apprentice")
    answers = [client.post("/personalizer/v1.0/rank", json=RANK).json() for _ in range(20)]
    assert {each["rewardActionId"] for each in answers} == {"politics"}
    for each in answers:
        client.post(f"/personalizer/v1.0/events/{each['eventId']}/reward", json={"value": 1})
    assert learnt(client, 20)["agreement"]["events"] == 20
    changed = client.patch("/v1/settings", json={"mode": "online"})
    assert changed.json()["mode"] == "online"
    assert client.patch("/v1/settings", json={"mode": "never"}).status_code == 422
    assert client.patch("/v1/settings", json={"reward_wait": -1}).status_code == 422
    assert client.patch("/v1/settings", json={"reward_wait": "ten minutes"}).status_code == 422
    assert client.patch("/v1/settings", json={"reward_wait": "PT10M"}).json()["reward_wait"] == 600.0
    answers = [client.post("/personalizer/v1.0/rank", json=RANK).json() for _ in range(50)]
    assert all(each["ranking"][0]["probability"] < 1 for each in answers)


def test_models_are_kept_used_and_exchanged(serve: Callable[..., InProcessClient]) -> None:
    client = serve()
    name = client.post("/v1/models").json()["name"]
    client.post("/v1/rank", json={**OWN, "event_id": "e"})
    client.post("/v1/reward", json={"event_id": "e", "reward": 1.0})
    learnt(client, 1)
    assert [each["name"] for each in client.get("/v1/models").json()] == [name]
    model = client.get("/v1/model")
    assert client.get("/v1/model", headers={"If-None-Match": model.headers["etag"]}).status_code == 304
    assert client.post("/v1/models/use", json={"name": name}).status_code == 200
    assert client.post("/v1/models/use", json={"name": "../x"}).status_code == 400
    assert client.put("/v1/model", content=b"nothing").status_code == 400
    kept = client.post("/v1/models").json()["name"]
    content = (client.loop.folder / "models" / f"{kept}.oam").read_bytes()
    assert client.put("/v1/model", content=content).status_code == 201


def test_policies_are_evaluated(serve: Callable[..., InProcessClient]) -> None:
    client = serve()
    for number in range(30):
        client.post("/v1/rank", json={**OWN, "event_id": f"e{number}"})
        client.post("/v1/reward", json={"event_id": f"e{number}", "reward": 1.0})
    learnt(client, 30)
    found = client.post("/v1/evaluate", json={"policies": ["--cb_explore_adf -q ::"]}).json()
    assert found["(as logged)"]["snips"]["events"] == 30
    assert found["--cb_explore_adf -q ::"]["snips"]["reward"] == pytest.approx(1.0)
    assert client.post("/v1/evaluate", json={"policies": ["--cb_explore_adf -f x"]}).status_code == 422


def test_it_is_ready_once_it_has_learnt_what_the_log_had(
    serve: Callable[..., InProcessClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = serve()
    for number in range(20):
        client.post("/v1/rank", json={**OWN, "event_id": f"e{number}"})
        client.post("/v1/reward", json={"event_id": f"e{number}", "reward": 1.0})
    learnt(client, 20)
    loop = client.loop
    with monkeypatch.context() as changed:
        changed.setattr(loop, "_behind_at_first", loop.log.end + 1000)
        answer = client.get("/readyz")
        assert (answer.status_code, answer.text) == (503, "no: the log is being learnt\n")
        assert client.post("/v1/rank", json=OWN).status_code == 200
        changed.setattr(loop, "failed", RuntimeError("the disk is full"))
        assert client.get("/readyz").text.startswith("stale")
    assert client.get("/readyz").text == "ready\n"


def test_health_metrics_page_and_document(serve: Callable[..., InProcessClient]) -> None:
    client = serve()
    client.post("/v1/rank", json=OWN)
    assert client.get("/healthz").text == "ok\n"
    assert client.get("/readyz").text == "ready\n"
    metrics = client.get("/metrics").text
    assert "onlineauto_ranked_total 1.0" in metrics
    assert 'onlineauto_requests_total{endpoint="rank",status="200"} 1.0' in metrics
    document = client.get("/openapi.json").json()
    assert "/v1/rank" in document["paths"]
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert "http" not in page.headers["content-security-policy"]


def test_tokens_open_what_they_are_for(serve: Callable[..., InProcessClient], tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    rank, reward = add_token(path, ["rank"]), add_token(path, ["reward"])
    admin = add_token(path, ["admin"])
    assert rank not in path.read_text()
    client = serve(tokens=Tokens(path))

    def asked(token: str) -> int:
        headers = {"Authorization": f"Bearer {token}".strip()}
        return int(client.post("/v1/rank", json=OWN, headers=headers).status_code)

    assert [asked(each) for each in (rank, reward, admin, "wrong", "")] == [200, 403, 200, 401, 401]
    key = client.post("/personalizer/v1.0/rank", json=RANK, headers={"Ocp-Apim-Subscription-Key": rank})
    assert key.status_code == 201
    assert client.get("/v1/status").status_code == 401
    assert client.get("/healthz").status_code == 200
    assert client.get("/").status_code == 200


def test_pages_of_other_sites_are_refused(serve: Callable[..., InProcessClient]) -> None:
    client = serve()
    for origin in ("https://evil.example", "null", "http://[bad", ""):
        assert client.post("/v1/rank", json=OWN, headers={"Origin": origin}).status_code == 403
    assert client.post("/v1/rank", json=OWN, headers={"Origin": str(client.base_url)}).status_code == 200


def test_limits_have_reasons(serve: Callable[..., InProcessClient]) -> None:
    limits = Limits(body_bytes=2000, actions=3, members=3, name_bytes=32, namespaces=4, pending=5, parts=2)
    client = serve(limits=limits, aggregation="sum")

    def refused(body: Any, status: int, reason: str, path: str = "/v1/rank") -> None:
        answer = client.post(path, content=body if isinstance(body, bytes) else json.dumps(body).encode())
        assert answer.status_code == status, answer.text
        assert reason in answer.json()["error"]["message"]

    refused(b"x" * 3000, 413, "at most 2000")
    refused({"actions": [{}, {}, {}, {}]}, 413, "at most 3 are accepted")
    refused({"actions": []}, 400, "no actions")
    refused({"actions": [{}], "context": {"a": 1, "b": 2, "c": 3, "d": 4}}, 413, "at most 3")
    refused({"actions": [{}], "context": {"n" * 33: {}}}, 413, "at most 32 bytes")
    refused({"actions": [{}], "event_id": "e" * 33}, 400, "1 to 32 bytes")
    refused({"actions": [{}], "event_id": ""}, 400, "1 to 32 bytes")
    refused({"actions": {"a": {}}, "excluded": ["a"]}, 400, "all actions are excluded")
    refused({"actions": [{}, {}], "excluded": ["2"]}, 400, "excluded names '2', which is none of the actions")
    refused({"actions": [{"_label_cost": 1}]}, 400, "begins with '_'")
    refused({"actions": [{"x": {"_label_cost": 1}}]}, 400, "begins with '_'")
    refused(b'{"actions":[{"x":{"\\u005flabel_cost":1}}]}', 400, "begins with '_'")
    refused({"actions": [{}], "unknown": 1}, 400, "unknown")
    refused(b'{"actions":[{"x":1e999}]}', 400, "cannot be read")
    names = [{"actions": [{f"n{number}": {"a": 1}}], "event_id": f"e{number}"} for number in range(5)]
    assert [client.post("/v1/rank", json=each).status_code for each in names] == [200] * 4 + [413]
    assert client.post("/v1/rank", json={"actions": [{}], "event_id": "e5"}).status_code == 200
    full = client.post("/v1/rank", json={"actions": [{}], "event_id": "e6"})
    assert (full.status_code, full.headers["retry-after"] != "0") == (429, True)
    for key in "ab":
        assert client.post("/v1/reward", json={"event_id": "e5", "reward": 1, "key": key}).status_code == 204
    refused({"event_id": "e5", "reward": 1, "key": "c"}, 429, "2 rewards already", "/v1/reward")
    for number in range(5):
        body = {"event_id": f"x{number}", "reward": 1}
        assert client.post("/v1/reward", json=body).status_code == 204
    refused({"event_id": "x5", "reward": 1}, 429, "no more are accepted", "/v1/reward")
    refused(b'{"event_id":"e","reward":1e39}', 400, "finite", "/v1/reward")
    refused(b'{"event_id":"e","reward":"1"}', 400, "Expected `float`", "/v1/reward")


def test_only_named_namespaces_are_taken(serve: Callable[..., InProcessClient]) -> None:
    client = serve(limits=Limits(only=("user", "topic")))
    taken = {"context": {"user": {"age": 3}, "hour": 7}, "actions": [{"topic": {"art": 1}}]}
    assert client.post("/v1/rank", json=taken).status_code == 200
    refused = client.post("/v1/rank", json={**taken, "context": {"users": {"age": 3}}})
    assert (refused.status_code, "'users' is not one of user, topic" in refused.text) == (413, True)


def test_what_was_answered_is_there_after_a_restart(tmp_path: Path) -> None:
    def started() -> InProcessClient:
        waiting = Waiting()
        loop = Loop(
            tmp_path / "loop",
            CONFIGURATION,
            settings={"learn_at": "reward"},
            every=Every(publish=0.0),
            deliver=waiting.deliver,
        )
        return InProcessClient(application(loop, waiting), loop)

    with started() as client:
        answer = client.post("/v1/rank", json={**OWN, "event_id": "e"}).json()
        client.post("/v1/rank", json={**OWN, "event_id": "f"})
        client.post("/v1/reward", json={"event_id": "f", "reward": 1.0})
        learnt(client, 1)
    with started() as client:
        status = client.get("/v1/status").json()
        assert (status["ranked"], status["rewarded"], status["learnt"], status["pending"]) == (2, 1, 1, 1)
        assert client.post("/v1/rank", json={**OWN, "event_id": "e"}).json() == answer
        client.post("/v1/reward", json={"event_id": "e", "reward": 1.0})
        assert learnt(client, 2)["pending"] == 0


def test_what_is_not_there_is_named(serve: Callable[..., InProcessClient]) -> None:
    client = serve()
    nowhere = client.get("/v2/rank")
    assert (nowhere.status_code, "/openapi.json" in nowhere.json()["error"]["message"]) == (404, True)
    refused = client.get("/v1/rank")
    assert (refused.status_code, refused.headers["allow"]) == (405, "POST")
    client.post("/v1/rank", json={**OWN, "event_id": "a/b", "deferred": True})
    assert client.post("/personalizer/v1.0/events/a%2Fb/reward", json={"value": 1}).status_code == 204
    assert client.post("/v1/activate/a%2Fb").status_code == 204
    assert learnt(client, 1)["joined"] == 1


def test_health_says_what_is_wrong(
    serve: Callable[..., InProcessClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = serve()
    loop = client.loop
    until(lambda: not loop.unwritten)
    with loop._learning, monkeypatch.context() as changed:
        changed.setattr(loop, "_again_at", 1e18)
        changed.setattr(loop, "failed", RuntimeError("a bug"))
        answer = client.get("/healthz")
        assert (answer.status_code, answer.text) == (503, "no: learning has stopped: a bug\n")
        assert client.get("/v1/status").json()["error"] == "learning has stopped: a bug"
    with monkeypatch.context() as changed:
        changed.setattr(loop._commit, "failed", OSError(28, "No space left on device"))
        for path in ("/healthz", "/readyz"):
            answer = client.get(path)
            assert answer.status_code == 503
            assert answer.text == "no: the log cannot be written: [Errno 28] No space left on device\n"
        assert client.post("/v1/rank", json=OWN).status_code == 503
    assert client.get("/healthz").text == "ok\n"


def test_health_is_answered_however_many_requests_are_served(serve: Callable[..., InProcessClient]) -> None:
    client = serve()
    endpoint, _ = client.app.find(b"POST", b"/v1/rank")
    assert isinstance(endpoint, Endpoint)
    guard = endpoint.guard
    guard.served = guard.most
    assert [client.get(path).status_code for path in ("/healthz", "/readyz")] == [200, 200]
    assert client.post("/v1/rank", json=OWN).status_code == 429
    guard.served = 0


def test_tokens_that_are_made_meanwhile_hold(
    serve: Callable[..., InProcessClient], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onlineauto.service.http.tokens._LOOK", 0.0)
    path = tmp_path / "tokens"
    client = serve(tokens=Tokens(path))
    assert client.post("/v1/rank", json=OWN).status_code == 200
    token = add_token(path, ["rank"])
    headers = {"Authorization": f"Bearer {token}"}
    assert client.post("/v1/rank", json=OWN).status_code == 401
    assert client.post("/v1/rank", json=OWN, headers=headers).status_code == 200
    path.write_text("damaged\n")
    assert client.post("/v1/rank", json=OWN, headers=headers).status_code == 200
    path.write_text("")  # withdraws all, and opens the service to nobody
    assert client.post("/v1/rank", json=OWN, headers=headers).status_code == 401
    assert client.post("/v1/rank", json=OWN).status_code == 401
    path.unlink()
    assert client.post("/v1/rank", json=OWN).status_code == 401
    headers = {"Authorization": f"Bearer {add_token(path, ['rank'])}"}
    assert client.post("/v1/rank", json=OWN, headers=headers).status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        b'{"actions":[{"n":{"a\xff":1}}]}',
        b'{"actions":[{"n\xc3":{"a":1}}]}',
        b'{"context":{"u":{"a":"\xed\xa0\x80"}},"actions":[{}]}',
    ],
)
def test_features_that_are_not_utf_8_are_refused(serve: Callable[..., InProcessClient], body: bytes) -> None:
    client = serve()
    answer = client.post("/v1/rank", content=body)
    assert answer.status_code == 400
    assert client.post("/v1/rank", json={"actions": [{"n": {"été": "Ж"}}]}).status_code == 200
    loop = client.loop
    until(lambda: not loop.unwritten)
    for _, line in loop.log.lines(0):
        json.loads(line.decode())


def test_the_number_of_features_is_bounded_and_named(serve: Callable[..., InProcessClient]) -> None:
    client = serve(limits=Limits(features=100))

    def asked(shared: Any, *actions: Any) -> Any:
        return client.post("/v1/rank", json={"context": shared, "actions": list(actions)})

    many = {f"f{number}": 1 for number in range(60)}
    assert asked({"u": many}, {"t": {"a": 1}}, {"t": {"b": 1}}).status_code == 200
    assert asked({}, *[{"t": {f"g{number}": number}} for number in range(200)]).status_code == 200
    for wide in (
        asked({"u": many}, {}, {"t": many}),
        asked({"u": {"v": [1] * 60}}, {}, {"t": list(range(60))}),
        asked({"_text": "w " * 60}, {"a": 1}, {"t": many}),
    ):
        assert wide.status_code == 413
        assert "action '1' have 120 features together; at most 100" in wide.json()["error"]["message"]


def test_rewards_beyond_the_declared_range_are_refused(serve: Callable[..., InProcessClient]) -> None:
    client = serve(reward_range=[0.0, 1.0])

    def rewarded(value: float) -> Any:
        return client.post("/v1/reward", json={"event_id": "e", "reward": value})

    assert rewarded(1.0).status_code == 204
    for value in (-0.01, 1.01, -1e25):
        answer = rewarded(value)
        assert answer.status_code == 422
        assert "not within the reward_range of 0 to 1" in answer.json()["error"]["message"]
    for change in (
        {"reward_range": [1.0, 0.0]},
        {"default_reward": 2.0},
        {"max_finished": 0},
        {"max_finished": 2 * 10**22},
    ):
        assert client.patch("/v1/settings", json=change).status_code == 422
    assert client.patch("/v1/settings", json={"reward_range": None}).json()["reward_range"] is None
    assert rewarded(5.0).status_code == 204


def test_finished_decisions_are_not_pending(serve: Callable[..., InProcessClient]) -> None:
    client = serve(limits=Limits(pending=3), max_finished=10)
    for number in range(40):
        assert client.post("/v1/rank", json={**OWN, "event_id": f"e{number}"}).status_code == 200
        assert client.post("/v1/reward", json={"event_id": f"e{number}", "reward": 1.0}).status_code == 204
    for number in range(3):
        assert client.post("/v1/rank", json={**OWN, "event_id": f"w{number}"}).status_code == 200
    full = client.post("/v1/rank", json={**OWN, "event_id": "w3"})
    assert full.status_code == 429
    assert "3 decisions wait for their rewards" in full.json()["error"]["message"]
    status = client.get("/v1/status").json()
    assert (status["pending"], status["max_pending"], status["max_finished"]) == (3, 3, 10)
    assert 5 <= status["finished"] <= 10
    assert status["forgotten"] >= 30
    metrics = client.get("/metrics").text
    assert "onlineauto_pending 3.0" in metrics
    assert "onlineauto_max_finished 10.0" in metrics
    assert client.post("/v1/reward", json={"event_id": "w0", "reward": 1.0, "key": "k"}).status_code == 204


def test_rewards_of_known_decisions_are_taken_however_many_are_for_nobody(
    serve: Callable[..., InProcessClient],
) -> None:
    client = serve(limits=Limits(pending=3))
    client.post("/v1/rank", json={**OWN, "event_id": "e"})
    for number in range(3):
        body = {"event_id": f"nobody{number}", "reward": 1.0}
        assert client.post("/v1/reward", json=body).status_code == 204
    refused = client.post("/v1/reward", json={"event_id": "nobody4", "reward": 1.0})
    assert refused.status_code == 429
    assert "3 rewards wait for their decisions" in refused.json()["error"]["message"]
    assert client.post("/v1/reward", json={"event_id": "e", "reward": 1.0, "key": "k"}).status_code == 204


@pytest.mark.parametrize(
    ("body", "path", "what"),
    [
        (
            '{"context":{"user":{"age":1e999}},"actions":[{"x":1}]}',
            "context.user.age",
            "number '1e999' is",
        ),
        ('{"context":{"age":1e200},"actions":[{"x":1}]}', "context.age", "value '1e200' of a feature is inf"),
        ('{"actions":{"a":{"x":1},"b":{"y":{"z":[1, 1e50]}}}}', "action 'b'.y.z[1]", "value '1e50' of a"),
        ('{"actions":[{"x":1},{"y":%s}]}' % ("1" * 400), "action '1'.y", "number '1111"),
        ('{"context":{"q,\\"}":"{[,","b":1e99},"actions":[{"x":1}]}', "context.b", "value '1e99' of"),
    ],
)
def test_a_feature_that_cannot_be_read_is_named_by_its_path(
    body: str, path: str, what: str, serve: Callable[..., InProcessClient]
) -> None:
    answer = serve().post("/v1/rank", content=body)
    assert answer.status_code == 400
    message = answer.json()["error"]["message"]
    assert message.startswith(f"the features cannot be read: {path}: {what}")
    assert "<bytes>" not in message
