"""Many ranks in one request are the same decisions as one after the other, and each fails alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from onlineauto.service.log.record import read_record
from onlineauto.service.options import Limits
from onlineauto.service.ranking.answer import is_drawn
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.service.in_process import InProcessClient


def asked(event_id: str, number: int) -> dict[str, Any]:
    actions = {f"a{n}": {"item": {f"i{n}": 1, "price": n / 7}} for n in range(2 + number % 3)}
    return {"event_id": event_id, "context": {"user": {f"u{number % 5}": 1}}, "actions": actions}


def taught(client: InProcessClient) -> None:
    for number in range(40):
        action = client.post("/v1/rank", json=asked(f"t{number}", number)).json()["action"]
        client.post("/v1/reward", json={"event_id": f"t{number}", "reward": float(action == "a1")})
    until(lambda: client.loop.learner.learnt == 40 and client.loop.published.name == client.loop.learner.name)


@pytest.mark.parametrize("count", [5, 160])  # below and above the size from which they are one block
def test_a_batch_makes_the_decisions_of_single_ranks(
    serve: Callable[..., InProcessClient], count: int
) -> None:
    client = serve()
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
def test_each_decision_of_a_batch_fails_alone(serve: Callable[..., InProcessClient], count: int) -> None:
    client = serve()
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


def test_an_id_that_is_twice_in_a_batch_is_named(serve: Callable[..., InProcessClient]) -> None:
    client = serve()
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
    serve: Callable[..., InProcessClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = serve()
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
