"""The endpoints of a service over HTTP, and their description."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from onlineauto.errors import InputError
from onlineauto.service.http.app import RankServerHandlers
from onlineauto.service.http.endpoint import Endpoint, RequestGuard
from onlineauto.service.http.loops import ServiceHandlers
from onlineauto.service.http.routes import ROUTES, openapi_document
from onlineauto.service.http.tokens import Tokens, add_token
from onlineauto.service.log.segment_log import read_record
from onlineauto.service.options import VERSION, Limits
from onlineauto.service.ranking import is_drawn
from tests.service.in_process import RANK, InProcessClient
from tests.waiting import until

PERSONALIZER = {
    "contextFeatures": [{"user": {"age": 30, "city": "Oslo"}}, {"hour": 9}],
    "actions": [
        {"id": "politics", "features": [{"topic": "politics", "text": {"words": 300}}]},
        {"id": "sports", "features": [{"topic": "sports"}]},
        {"id": "music", "features": []},
    ],
}


def test_personalizer_ranks_rewards_and_activates(client: InProcessClient) -> None:
    answer = client.post("/personalizer/v1.0/rank", json={**PERSONALIZER, "eventId": "e1"})
    assert answer.status_code == 201
    body = answer.json()
    assert body["eventId"] == "e1"
    assert {each["id"] for each in body["ranking"]} == {"politics", "sports", "music"}
    assert body["rewardActionId"] == body["ranking"][0]["id"]
    assert sum(each["probability"] for each in body["ranking"]) == pytest.approx(1.0)
    assert client.post("/personalizer/v1.0/events/e1/reward", json={"value": 1}).status_code == 204
    assert client.learnt(1)["joined"] == 1
    deferred = client.post(
        "/personalizer/v1.0/rank", json={**PERSONALIZER, "eventId": "e2", "deferActivation": True}
    )
    assert deferred.status_code == 201
    client.post("/personalizer/v1.0/events/e2/reward", json={"value": 1})
    assert client.get("/v1/status").json()["joined"] == 1
    assert client.post("/personalizer/v1.0/events/e2/activate").status_code == 204
    assert client.learnt(2)["joined"] == 2


def test_the_same_event_has_the_same_answer(client: InProcessClient) -> None:
    first = client.post("/personalizer/v1.0/rank", json={**PERSONALIZER, "eventId": "e"})
    again = client.post("/personalizer/v1.0/rank", json={**PERSONALIZER, "eventId": "e"})
    other = client.post(
        "/personalizer/v1.0/rank", json={**PERSONALIZER, "eventId": "e", "contextFeatures": []}
    )
    assert (first.status_code, again.status_code, other.status_code) == (201, 201, 409)
    assert first.json() == again.json()
    assert client.get("/v1/status").json()["ranked"] == 1


def test_rewards_are_idempotent_by_key(serve: Callable[..., InProcessClient]) -> None:
    client = serve(aggregation="sum", reward_wait=1000.0)
    client.rank("e")
    one = {"event_id": "e", "reward": 1.0, "key": "k"}
    assert [client.post("/v1/reward", json=one).status_code for _ in range(3)] == [204] * 3
    assert client.post("/v1/reward", json={**one, "reward": 2.0}).status_code == 422
    header = client.post(
        "/v1/reward", json={"event_id": "e", "reward": 1.0}, headers={"Idempotency-Key": "k"}
    )
    assert header.status_code == 204
    status = client.get("/v1/status").json()
    assert (status["rewarded"], status["duplicate"]) == (4, 3)


def test_our_own_rank_and_status(client: InProcessClient) -> None:
    for number in range(60):
        answer = client.rank(f"e{number}").json()
        assert answer["action"] == ["a", "b"][answer["index"]]
        assert answer["pmf"][answer["action"]] == pytest.approx(answer["probability"])
        client.reward(answer["event_id"], float(answer["index"]))
    status = client.learnt(60)
    assert status["ranked"] == status["rewarded"] == status["learnt"] == 60
    assert status["lag_seconds"] == 0
    assert status["champion"]["interactions"] == ["user*x"]
    assert status["champion_changes"] == 0
    assert {each["policy"] for each in status["values"]} == {"live", "model", "baseline", "uniform"}
    listed = client.post("/v1/rank", json={"actions": [{"x": 1}, {"y": 1}], "excluded": ["0"]}).json()
    assert (listed["action"], listed["pmf"]) == ("1", {"0": 0.0, "1": 1.0})


def test_the_latest_decision_is_explained(client: InProcessClient) -> None:
    assert client.get("/v1/explanation").status_code == 404
    answer = client.rank("e1").json()
    found = client.get("/v1/explanation").json()
    assert found["event_id"] == "e1"
    chances = {row["action_id"]: row["probability"] for row in found["actions"]}
    assert chances == pytest.approx({"a": 0.5, "b": 0.5})
    assert answer["action"] in chances
    draw = Random(1)
    for number in range(1000):  # a number tells which action pays, which no live config can learn
        x = draw.gauss(0.0, 1.0)
        chosen = client.rank(f"f{number}", context={"hour": {"of": x}}).json()
        client.reward(chosen["event_id"], float((abs(x) > 0.7) == (chosen["index"] == 0)))
    client.learnt(1000)
    client.rank("last")
    found = client.get("/v1/explanation").json()
    assert (found["event_id"], found["predicts"]) == ("last", "ensemble")
    for row in found["actions"]:
        assert row["reward"] == pytest.approx(row["level"] + sum(row["members"].values()))


def test_the_baseline_decides_until_the_model_may(serve: Callable[..., InProcessClient]) -> None:
    client = serve(mode="apprentice")
    answers = [client.post("/personalizer/v1.0/rank", json=PERSONALIZER).json() for _ in range(20)]
    assert {answer["rewardActionId"] for answer in answers} == {"politics"}
    for answer in answers:
        client.post(f"/personalizer/v1.0/events/{answer['eventId']}/reward", json={"value": 1})
    assert client.learnt(20)["agreement"]["events"] == 20
    changed = client.patch("/v1/settings", json={"mode": "online"})
    assert changed.json()["mode"] == "online"
    assert client.patch("/v1/settings", json={"mode": "never"}).status_code == 422
    assert client.patch("/v1/settings", json={"reward_wait": -1}).status_code == 422
    assert client.patch("/v1/settings", json={"reward_wait": "ten minutes"}).status_code == 422
    assert client.patch("/v1/settings", json={"reward_wait": "PT10M"}).json()["reward_wait"] == 600.0
    answers = [client.post("/personalizer/v1.0/rank", json=PERSONALIZER).json() for _ in range(50)]
    assert all(answer["ranking"][0]["probability"] < 1 for answer in answers)


def test_models_are_kept_used_and_exchanged(client: InProcessClient) -> None:
    name = client.post("/v1/models").json()["name"]
    client.rank("e")
    client.reward("e")
    client.learnt(1)
    assert [each["name"] for each in client.get("/v1/models").json()] == [name]
    model = client.get("/v1/model")
    assert client.get("/v1/model", headers={"If-None-Match": model.headers["etag"]}).status_code == 304
    assert client.post("/v1/models/use", json={"name": name}).status_code == 200
    assert client.rank("used").json()["model"].endswith("-1")  # the answer waits until the model ranks
    assert client.post("/v1/models/use", json={"name": "../x"}).status_code == 400
    assert client.put("/v1/model", content=b"nothing").status_code == 400
    kept = client.post("/v1/models").json()["name"]
    content = (client.loop.folder / "models" / f"{kept}.oam").read_bytes()
    assert client.put("/v1/model", content=content).status_code == 201
    assert client.get("/v1/status").json()["model"].endswith("-2")


def test_a_switch_is_answered_at_once_if_learning_has_failed(
    client: InProcessClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = client.post("/v1/models").json()["name"]
    monkeypatch.setattr(client.loop, "learn", lambda: 0)
    monkeypatch.setattr(client.loop, "failed", RuntimeError("the disk is full"))
    begin = time.monotonic()
    assert client.post("/v1/models/use", json={"name": name}).status_code == 200
    assert time.monotonic() - begin < 5
    assert client.loop.published.name == name


def test_policies_are_evaluated(client: InProcessClient) -> None:
    for number in range(30):
        client.rank(f"e{number}")
        client.reward(f"e{number}")
    client.learnt(30)
    found = client.post("/v1/evaluate", json={"policies": ["--cb_explore_adf -q ::"]}).json()
    assert found["(as logged)"]["snips"]["events"] == 30
    assert found["--cb_explore_adf -q ::"]["snips"]["reward"] == pytest.approx(1.0)
    assert client.post("/v1/evaluate", json={"policies": ["--cb_explore_adf -f x"]}).status_code == 422


def test_a_service_is_ready_once_it_has_learnt_its_log(
    client: InProcessClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        client.rank(f"e{number}")
        client.reward(f"e{number}")
    client.learnt(20)
    loop = client.loop
    with monkeypatch.context() as changed:
        changed.setattr(loop, "_behind_at_first", loop.log.end + 1000)
        answer = client.get("/readyz")
        assert (answer.status_code, answer.text) == (503, "no: the log is being learnt\n")
        assert client.rank().status_code == 200
        changed.setattr(loop, "failed", RuntimeError("the disk is full"))
        assert client.get("/readyz").text.startswith("stale")
    assert client.get("/readyz").text == "ready\n"


def test_health_metrics_page_and_document(client: InProcessClient) -> None:
    client.rank()
    assert client.get("/healthz").text == "ok\n"
    assert client.get("/readyz").text == "ready\n"
    metrics = client.get("/metrics").text
    assert "onlineauto_ranked_total 1.0" in metrics
    assert 'onlineauto_requests_total{endpoint="rank",status="200"} 1.0' in metrics
    assert "\nprocess_resident_memory_bytes " in metrics
    document = client.get("/openapi.json").json()
    assert "/v1/rank" in document["paths"]
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert "http" not in page.headers["content-security-policy"]


def test_tokens_grant_their_scopes(serve: Callable[..., InProcessClient], tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    rank, reward = add_token(path, ["rank"]), add_token(path, ["reward"])
    admin = add_token(path, ["admin"])
    assert rank not in path.read_text()
    client = serve(tokens=Tokens(path))

    def asked(token: str) -> int:
        headers = {"Authorization": f"Bearer {token}".strip()}
        return int(client.post("/v1/rank", json=RANK, headers=headers).status_code)

    assert [asked(each) for each in (rank, reward, admin, "wrong", "")] == [200, 403, 200, 401, 401]
    key = client.post(
        "/personalizer/v1.0/rank", json=PERSONALIZER, headers={"Ocp-Apim-Subscription-Key": rank}
    )
    assert key.status_code == 201
    assert client.get("/v1/status").status_code == 401
    assert client.get("/healthz").status_code == 200
    assert client.get("/").status_code == 200


def test_pages_of_other_sites_are_refused(client: InProcessClient) -> None:
    for origin in ("https://evil.example", "null", "http://[bad", ""):
        assert client.post("/v1/rank", json=RANK, headers={"Origin": origin}).status_code == 403
    assert client.post("/v1/rank", json=RANK, headers={"Origin": str(client.base_url)}).status_code == 200


def test_requests_beyond_a_limit_are_refused_with_a_reason(serve: Callable[..., InProcessClient]) -> None:
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
    bodies = [{"actions": [{f"n{number}": {"a": 1}}], "event_id": f"e{number}"} for number in range(5)]
    assert [client.post("/v1/rank", json=body).status_code for body in bodies] == [200] * 4 + [413]
    assert client.post("/v1/rank", json={"actions": [{}], "event_id": "e5"}).status_code == 200
    full = client.post("/v1/rank", json={"actions": [{}], "event_id": "e6"})
    assert (full.status_code, full.headers["retry-after"] != "0") == (429, True)
    for key in "ab":
        assert client.reward("e5", key=key).status_code == 204
    refused({"event_id": "e5", "reward": 1, "key": "c"}, 429, "2 rewards already", "/v1/reward")
    for number in range(5):
        assert client.reward(f"x{number}").status_code == 204
    refused({"event_id": "x5", "reward": 1}, 429, "no more are accepted", "/v1/reward")
    refused(b'{"event_id":"e","reward":1e39}', 400, "finite", "/v1/reward")
    refused(b'{"event_id":"e","reward":"1"}', 400, "Expected `float`", "/v1/reward")


def test_only_named_namespaces_are_taken(serve: Callable[..., InProcessClient]) -> None:
    client = serve(limits=Limits(only=("user", "topic")))
    taken = {"context": {"user": {"age": 3}, "hour": 7}, "actions": [{"topic": {"art": 1}}]}
    assert client.post("/v1/rank", json=taken).status_code == 200
    refused = client.post("/v1/rank", json={**taken, "context": {"users": {"age": 3}}})
    assert (refused.status_code, "'users' is not one of user, topic" in refused.text) == (413, True)


def test_answers_are_the_same_after_a_restart(serve: Callable[..., InProcessClient]) -> None:
    client = serve()
    answer = client.rank("e").json()
    client.rank("f")
    client.reward("f")
    client.learnt(1)
    client.__exit__()
    client = serve()
    status = client.get("/v1/status").json()
    assert (status["ranked"], status["rewarded"], status["learnt"], status["pending"]) == (2, 1, 1, 1)
    assert client.rank("e").json() == answer
    client.reward("e")
    assert client.learnt(2)["pending"] == 0


def test_unknown_paths_and_methods_are_reported(client: InProcessClient) -> None:
    nowhere = client.get("/v2/rank")
    assert (nowhere.status_code, "/openapi.json" in nowhere.json()["error"]["message"]) == (404, True)
    refused = client.get("/v1/rank")
    assert (refused.status_code, refused.headers["allow"]) == (405, "POST")
    assert refused.json()["error"]["code"] == "MethodNotAllowed"
    client.rank("a/b", deferred=True)
    assert client.post("/personalizer/v1.0/events/a%2Fb/reward", json={"value": 1}).status_code == 204
    assert client.post("/v1/activate/a%2Fb").status_code == 204
    assert client.learnt(1)["joined"] == 1


def test_health_reports_the_reason_of_a_failure(
    client: InProcessClient, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        assert client.rank().status_code == 503
    with loop._learning, monkeypatch.context() as changed:  # a restart would lose the model
        changed.setattr(loop, "_again_at", 1e18)
        changed.setattr(loop, "unsaved", OSError(28, "No space left on device"))
        reason = "the model cannot be saved: [Errno 28] No space left on device"
        assert client.get("/healthz").text == "ok\n"
        assert client.get("/readyz").text == f"stale: {reason}\n"
        assert client.get("/v1/status").json()["error"] == reason
        assert "\nonlineauto_saving 0.0\n" in client.get("/metrics").text
    assert client.get("/healthz").text == "ok\n"


def test_health_is_answered_however_many_requests_are_served(client: InProcessClient) -> None:
    endpoint, _ = client.app.find(b"POST", b"/v1/rank")
    assert isinstance(endpoint, Endpoint)
    guard = endpoint.guard
    guard.served = guard.most
    assert [client.get(path).status_code for path in ("/healthz", "/readyz")] == [200, 200]
    assert client.rank().status_code == 429
    guard.served = 0


def test_a_change_of_the_token_file_takes_effect(
    serve: Callable[..., InProcessClient], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onlineauto.service.http.tokens._LOOK", 0.0)
    path = tmp_path / "tokens"
    tokens = Tokens(path)
    client = serve(tokens=tokens)
    assert client.rank().status_code == 200
    token = add_token(path, ["rank"])
    headers = {"Authorization": f"Bearer {token}"}
    assert client.rank().status_code == 401
    assert client.post("/v1/rank", json=RANK, headers=headers).status_code == 200
    path.write_text("damaged\n")
    assert client.post("/v1/rank", json=RANK, headers=headers).status_code == 200
    assert "the earlier ones hold" in tokens.problem
    path.write_bytes(b"\xff")
    assert client.post("/v1/rank", json=RANK, headers=headers).status_code == 200
    with pytest.raises(InputError, match="no file of tokens"):
        Tokens(path)
    path.unlink()
    path.mkdir()  # it exists, and cannot be read
    answer = client.post("/v1/rank", json=RANK, headers=headers)
    assert (answer.status_code, answer.json()["error"]["message"]) == (
        401,
        "the service cannot read its tokens: its log has the reason",
    )
    path.rmdir()
    path.write_text("")  # withdraws all, and opens the service to nobody
    answer = client.post("/v1/rank", json=RANK, headers=headers)
    assert (answer.status_code, answer.json()["error"]["message"]) == (
        401,
        "this token is not known, or was revoked",
    )
    assert client.rank().status_code == 401
    path.unlink()
    assert client.rank().status_code == 401
    headers = {"Authorization": f"Bearer {add_token(path, ['rank'])}"}
    assert client.post("/v1/rank", json=RANK, headers=headers).status_code == 200


def test_tokens_that_cannot_be_read_do_not_open_a_service_without_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("onlineauto.service.http.tokens._LOOK", 0.0)
    tokens = Tokens(tmp_path / "tokens")
    assert tokens.scopes({})
    (tmp_path / "tokens").mkdir()
    assert not any(tokens.scopes({}) for _ in range(3))
    assert "all are rejected" in tokens.problem
    assert [each.levelname for each in caplog.records] == ["ERROR"]
    (tmp_path / "tokens").rmdir()
    token = add_token(tmp_path / "tokens", ["rank"])
    assert tokens.scopes({"authorization": f"Bearer {token}"}) == {"rank"}
    assert not tokens.problem


def test_a_new_token_file_belongs_to_the_owner_of_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owners: list[tuple[int, int]] = []
    stat = os.stat

    def of_another(path: Any, **options: Any) -> os.stat_result:
        found = stat(path, **options)
        is_ours = str(path) != str(tmp_path)
        return found if is_ours else os.stat_result((*found[:4], 1234, 99, *found[6:]))

    monkeypatch.setattr("os.stat", of_another)
    monkeypatch.setattr("os.chown", lambda _, uid, gid: owners.append((uid, gid)))
    for _ in range(2):
        add_token(tmp_path / "tokens", ["rank"])
        assert owners == [(1234, 99)]


def account_twice(monkeypatch: pytest.MonkeyPatch, *, times: int, status: int, reason: str) -> None:
    """Account requests that fail at once, and one more of them a minute later."""
    now = 1000.0
    monkeypatch.setattr("onlineauto.service.http.endpoint.time.monotonic", lambda: now)
    guard = RequestGuard(Tokens(), lambda *_: None)
    for _ in range(times):
        guard.account("rank", status, 0.001, reason)
    now += 61.0
    guard.account("rank", status, 0.001, reason)


def test_answers_503_are_logged_once_a_minute(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    account_twice(monkeypatch, times=5, status=503, reason="the disk is full")
    lines = [(vars(each)["count"], vars(each)["reason"]) for each in caplog.records]
    assert lines == [(1, "the disk is full"), (5, "the disk is full")]


def test_a_probe_of_a_service_that_is_not_ready_is_no_error(
    client: InProcessClient, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("INFO", logger="onlineauto.service")
    monkeypatch.setattr(client.loop, "_behind_at_first", client.loop.log.end + 1000)
    assert {client.get("/readyz").status_code for _ in range(3)} == {503}
    lines = [(each.levelname, vars(each)["reason"]) for each in caplog.records if each.msg == "request"]
    assert lines == [("INFO", "no: the log is being learnt")]


@pytest.mark.parametrize(
    "body",
    [
        b'{"actions":[{"n":{"a\xff":1}}]}',
        b'{"actions":[{"n\xc3":{"a":1}}]}',
        b'{"context":{"u":{"a":"\xed\xa0\x80"}},"actions":[{}]}',
    ],
)
def test_features_that_are_not_utf_8_are_refused(client: InProcessClient, body: bytes) -> None:
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
    assert asked({"v": [0.5] * 384}, {"v": [0.5, None] * 100}).status_code == 200
    for wide in (
        asked({"u": many}, {}, {"t": many}),
        asked({"u": {"v": ["a"] * 60}}, {}, {"t": [*range(59), "b"]}),
        asked({"_text": "w " * 60}, {"a": 1}, {"t": many}),
    ):
        assert wide.status_code == 413
        assert "action '1' have 120 features together; at most 100" in wide.json()["error"]["message"]


def test_rewards_beyond_the_declared_range_are_refused(serve: Callable[..., InProcessClient]) -> None:
    client = serve(reward_range=[0.0, 1.0])

    def rewarded(value: float) -> Any:
        return client.reward("e", value)

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
        assert client.rank(f"e{number}").status_code == 200
        assert client.reward(f"e{number}").status_code == 204
    for number in range(3):
        assert client.rank(f"w{number}").status_code == 200
    full = client.rank("w3")
    assert full.status_code == 429
    assert "3 decisions wait for their rewards" in full.json()["error"]["message"]
    status = client.get("/v1/status").json()
    assert (status["pending"], status["max_pending"], status["max_finished"]) == (3, 3, 10)
    assert 5 <= status["finished"] <= 10
    assert status["forgotten"] >= 30
    metrics = client.get("/metrics").text
    assert "onlineauto_pending 3.0" in metrics
    assert "onlineauto_max_finished 10.0" in metrics
    assert client.reward("w0", key="k").status_code == 204


def test_rewards_of_known_decisions_are_accepted_when_dangling_rewards_are_full(
    serve: Callable[..., InProcessClient],
) -> None:
    client = serve(limits=Limits(pending=3))
    client.rank("e")
    for number in range(3):
        assert client.reward(f"nobody{number}").status_code == 204
    refused = client.reward("nobody4")
    assert refused.status_code == 429
    assert "3 rewards wait for their decisions" in refused.json()["error"]["message"]
    assert client.reward("e", key="k").status_code == 204


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


def references(value: Any) -> set[str]:
    return set(re.findall(r'"\$ref": "#/components/schemas/([^"]+)"', json.dumps(value)))


def test_the_document_is_whole() -> None:
    document = openapi_document(ServiceHandlers)
    schemas = document["components"]["schemas"]
    assert references(document) <= schemas.keys()
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    assert len(operations) == len(ROUTES)
    assert len({operation["operationId"] for operation in operations}) == len(operations)
    assert all(operation["summary"].endswith(".") for operation in operations)
    for path, methods in document["paths"].items():
        for operation in methods.values():
            named = {parameter["name"] for parameter in operation.get("parameters", ())}
            assert named == set(re.findall(r"\{(\w+)\}", path))
    rank = document["paths"]["/v1/rank"]["post"]
    assert rank["requestBody"]["content"]["application/json"]["schema"] == {
        "$ref": "#/components/schemas/Rank"
    }
    assert {"200", "400", "413", "429"} <= rank["responses"].keys()


def test_a_rank_server_describes_its_state() -> None:
    paths = openapi_document(RankServerHandlers)["paths"]
    assert "/v1/rank" in paths
    assert "/v1/model" not in paths


def asked(event_id: str, number: int) -> dict[str, Any]:
    actions = {f"a{n}": {"item": {f"i{n}": 1, "price": n / 7}} for n in range(2 + number % 3)}
    return {"event_id": event_id, "context": {"user": {f"u{number % 5}": 1}}, "actions": actions}


def taught(client: InProcessClient) -> None:
    for number in range(40):
        action = client.post("/v1/rank", json=asked(f"t{number}", number)).json()["action"]
        client.post("/v1/reward", json={"event_id": f"t{number}", "reward": float(action == "a1")})
    until(lambda: client.loop.learner.learnt == 40 and client.loop.published.name == client.loop.learner.name)


@pytest.mark.parametrize("count", [5, 160])  # below and above the size from which they are one block
def test_a_batch_makes_the_decisions_of_single_ranks(client: InProcessClient, count: int) -> None:
    taught(client)
    ids = [f"e{number}" for number in range(count)]
    batch = client.post(
        "/v1/rank:batch", json={"decisions": [asked(*each) for each in zip(ids, range(count), strict=True)]}
    )
    assert batch.status_code == 200
    rows = batch.json()["decisions"]
    for number, (event_id, row) in enumerate(zip(ids, rows, strict=True)):
        answer = client.post("/v1/rank", json=asked(event_id, number))  # the answer in the log
        assert row == {"status": 200, "answer": answer.json()}
        other = client.post("/v1/rank", json=asked(f"other-{event_id}", number)).json()
        assert other["pmf"] == row["answer"]["pmf"]
    lines = [line for _, line in client.loop.log.lines(0) if read_record(line).event_id in set(ids)]
    assert [read_record(line).event_id for line in lines] == ids
    assert all(is_drawn(line, app="default") for line in lines)
    client.post("/v1/reward", json={"event_id": ids[-1], "reward": 1})
    until(lambda: client.loop.learner.learnt == 41)


@pytest.mark.parametrize("count", [4, 160])
def test_each_decision_of_a_batch_fails_alone(client: InProcessClient, count: int) -> None:
    decisions = [asked(f"e{number}", number) for number in range(count)]
    decisions[1] = {"actions": []}
    decisions[2]["context"] = {"user": {"far": 1e50}}
    decisions[3] = {**decisions[0], "actions": {"b": {"x": 1}}}  # an id that is in use
    rows = client.post("/v1/rank:batch", json={"decisions": decisions}).json()["decisions"]
    assert [row["status"] for row in rows] == [200, 400, 400, 409, *[200] * (count - 4)]
    for index in (1, 2):
        single = client.post("/v1/rank", json=decisions[index])
        assert rows[index] == {"status": single.status_code, **single.json()}
    assert client.loop.join.counts.ranked == count - 3
    none = client.post("/v1/rank:batch", json={"decisions": [{"actions": []}, 5]}).json()["decisions"]
    assert [row["status"] for row in none] == [400, 400]


def test_an_id_that_is_twice_in_a_batch_is_named(client: InProcessClient) -> None:
    same, other = asked("e0", 0), asked("e1", 1)
    rows = client.post(
        "/v1/rank:batch", json={"decisions": [same, other, same, {"actions": []}, same]}
    ).json()
    assert [row["status"] for row in rows["decisions"]] == [200, 200, 409, 400, 409]
    message = "event 'e0' is twice in this batch: each decision needs its own id"
    assert rows["decisions"][2]["error"] == rows["decisions"][4]["error"]
    assert rows["decisions"][2]["error"]["message"] == message
    assert client.loop.join.counts.ranked == 2
    again = client.post("/v1/rank:batch", json={"decisions": [same]}).json()["decisions"]
    assert again == rows["decisions"][:1]  # in a later batch, it is the same decision


def test_a_batch_has_limits(serve: Callable[..., InProcessClient]) -> None:
    client = serve(limits=Limits(decisions=3))
    for count, status in ((0, 400), (3, 200), (4, 413)):
        decisions = [asked(f"{count}-{number}", number) for number in range(count)]
        assert client.post("/v1/rank:batch", json={"decisions": decisions}).status_code == status
    assert client.post("/v1/rank:batch", json={"decisions": {}}).status_code == 400
    assert client.post("/v1/rank:batch", json=[]).status_code == 400
    large = client.post("/v1/rank:batch", content=b" " * (17 * 65_536))
    assert large.status_code == 413


def test_a_batch_is_refused_if_the_log_cannot_be_written(
    client: InProcessClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    until(lambda: not client.loop.unwritten)

    def full(lines: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as changed:
        changed.setattr(client.loop.log, "append", full)
        answer = client.post("/v1/rank:batch", json={"decisions": [asked("a", 0), asked("b", 1)]})
        assert answer.status_code == 503
        later = client.post("/v1/rank:batch", json={"decisions": [asked("c", 0)]}).json()["decisions"]
        assert later[0]["status"] == 503
    until(lambda: client.loop.writable)


def test_rejected_requests_are_logged_with_a_reason_and_without_their_data(
    client: InProcessClient, caplog: pytest.LogCaptureFixture
) -> None:
    unknown = {**RANK, "excluded": ["tom's secret"]}
    for _ in range(20):
        assert client.post("/v1/rank", json=unknown).status_code == 400
    client.post("/v1/rank", json=RANK, headers={"origin": "http://secret.example"})
    client.post("/v1/rank", json={**RANK, "secret": 1}, headers={"content-encoding": "secret"})
    client.post("/v1/reward", json={"event_id": "e" * 70_000, "reward": 1})
    client.post("/v1/reward", json={"event_id": "secret", "reward": 1, "secret": 2})
    client.post("/v1/rank", json={"actions": {"a": {"secret": {"secret": [[]]}}, "b": {}}})
    fields = ("endpoint", "status", "count", "reason")
    lines = [tuple(vars(each)[name] for name in fields) for each in caplog.records if each.msg == "request"]
    excluded = ("rank", 400, 1, "excluded names '…', which is none of the actions")
    assert lines == [
        *[excluded] * 5,
        ("rank", 403, 1, "this is a request of a page of another site"),
        ("rank", 415, 1, "Content-Encoding '…': send the body as it is"),
        ("reward", 413, 1, "the body has 70026 bytes; at most 65536 are accepted"),
        ("reward", 400, 1, "unknown field '…'; the known fields are event_id, reward, key, slot, cost"),
    ]
    guard = RequestGuard(Tokens(), lambda *_: None)
    caplog.clear()
    guard.account("rank", 400, 0.001, "namespace 'x' is \"it's\" a loop's 'secret' thing")
    assert vars(caplog.records[0])["reason"] == "namespace '…' is '…' a loop's '…' thing"


def test_lines_about_rejected_requests_count_those_without_a_line(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    account_twice(monkeypatch, times=8, status=400, reason="no")
    assert [vars(each)["count"] for each in caplog.records] == [1, 1, 1, 1, 1, 4]


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/v1/rank", b"", "the body is empty: send JSON"),
        ("/v1/settings", b"", "the body is empty: send JSON"),
        ("/v1/rank", b'{"actions": {"a": {', "the body is no complete JSON: it ends after 19 bytes"),
        ("/v1/rank", b'{"actions": [{"id": "a"}, {"id": "b"}]}', '{"actions": {"a": {}, "b": {}}}'),
        ("/v1/rank", b'{"actions": [{"id": "a", "price": 3}]}', "has its features only, and no id"),
        ("/v1/rank", b'{"actions": [{"x": 1}, {"id": 7, "x": 1}]}', "has its features only, and no id"),
        ("/v1/reward", b'{"id": "e", "reward": 1}', "unknown field 'id'; the known fields are event_id, "),
        (
            "/v1/rank/slots",
            b'{"actions": {"a": {}}, "slots": [{"id": "top", "size": 1}]}',
            "unknown field 'size' of $.slots[0]; the known fields are id, features, baseline, excluded",
        ),
    ],
)
def test_messages_about_bodies_name_the_right_spelling(
    client: InProcessClient, path: str, body: bytes, message: str
) -> None:
    answer = client.request("PATCH" if path == "/v1/settings" else "POST", path, content=body)
    assert answer.status_code == 400
    assert message in answer.json()["error"]["message"]


def test_a_list_of_actions_may_have_a_namespace_called_id(client: InProcessClient) -> None:
    actions = [{"id": {"a": 1}}, {"id": ["a"], "topic": {"art": 1}}]
    assert client.post("/v1/rank", json={"actions": actions}).json()["pmf"].keys() == {"0", "1"}


def test_the_version_is_in_the_status_and_in_the_metrics(client: InProcessClient) -> None:
    assert client.get("/v1/status").json()["version"] == VERSION
    assert f'onlineauto_build_info{{version="{VERSION}"}} 1.0' in client.get("/metrics").text


def test_each_answer_503_says_when_to_repeat_the_request(
    client: InProcessClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("onlineauto.service.log.segment_log.os.write", full)
    for number in range(3):
        answer = client.rank(f"e{number}")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
