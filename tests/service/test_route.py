"""A router in front of local models: decisions, fallbacks, feedback, the judge, and bad input."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from onlineauto.cli.main import main
from onlineauto.errors import OptionError
from onlineauto.service.http.tokens import Tokens, add_token
from onlineauto.service.log.segment_log import read_record
from onlineauto.service.loop.front import Front
from onlineauto.service.options import Limits
from onlineauto.service.ranking import seed_of, uniform_of
from onlineauto.service.routing import handlers
from onlineauto.service.routing.endpoints import Judge, ModelEndpoint, RouteFile, read_route_file
from onlineauto.service.routing.handlers import RouteHandlers
from onlineauto.service.routing.prompt import context_of_prompt, read_prompt
from onlineauto.service.routing.upstream import _events_of, _pause_of
from tests.service.in_process import InProcessClient
from tests.service.language_models import LanguageModel
from tests.service.serving import Service
from tests.waiting import PATIENCE, until

ASK = {"model": "auto", "messages": [{"role": "user", "content": "Add 2 and 2"}]}


@pytest.fixture
def models() -> Iterator[Callable[..., LanguageModel]]:
    """Return a function that starts a model."""
    with ExitStack() as running:
        yield lambda *given, **named: running.enter_context(LanguageModel(*given, **named))


@pytest.fixture
def route(serve: Callable[..., InProcessClient]) -> Callable[..., InProcessClient]:
    """Return a function that starts a router in front of models by name."""

    def start(
        models: dict[str, LanguageModel],
        *,
        content: dict[str, Any] | None = None,
        keys: dict[str, str] | None = None,
        timeout: float = 5.0,
        prices: dict[str, float] | None = None,
        **given: Any,
    ) -> InProcessClient:
        endpoints = {}
        for name, model in models.items():
            price = (prices or {}).get(name, 1.0)
            endpoints[name] = ModelEndpoint(
                model.url, input_price=price, output_price=2 * price, timeout=timeout
            )
        rules = RouteFile(endpoints, **(content or {}))
        return serve(make_handlers=partial(RouteHandlers, content=rules, keys=keys or {}), **given)

    return start


def records_of(client: InProcessClient, kind: str) -> list[dict[str, Any]]:
    """Return the records of a kind in the log."""
    lines = b"".join(path.read_bytes() for path in sorted((client.loop.folder / "log").glob("*")))
    found = [json.loads(line) for line in lines.splitlines() if read_record(line + b"\n").kind == kind]
    return [record for record in found if record]


def model_status(client: InProcessClient, name: str) -> dict[str, Any]:
    """Return the status of a model."""
    models = client.get("/v1/status").json()["route"]["models"]
    return next(model for model in models if model["name"] == name)


def test_an_answer_names_its_model_and_its_decision(route: Any, models: Any) -> None:
    small, large = models(), models()
    client = route({"small": small, "large": large}, keys={"small": "s3cret"})
    body = ASK | {"temperature": 0.3, "onlineauto": {"features": {"user": {"plan": "free"}}, "unit": "u1"}}
    answer = client.post("/v1/chat/completions", json=body)
    about = answer.json()["onlineauto"]
    assert answer.status_code == 200
    assert answer.json()["choices"][0]["message"]["content"] == "an answer"
    assert answer.json()["model"] == answer.headers["onlineauto-model"] == about["model"]
    assert answer.headers["onlineauto-event-id"] == about["event_id"]
    assert about["fallback"] is False
    chosen, name = (small, "small") if about["model"] == "small" else (large, "large")
    sent = chosen.bodies[0]
    assert sent == {"path": "/v1/chat/completions", "model": name, "temperature": 0.3} | {
        "messages": ASK["messages"]
    }
    decision = records_of(client, "rank")[0]
    assert decision["DeferredAction"] is True
    assert decision["c"]["user"] == {"plan": "free"}
    assert "Add" not in json.dumps(decision["c"])  # words are hashes
    assert model_status(client, name)["dollars"] == pytest.approx((100 * 1.0 + 50 * 2.0) / 1e6)


def test_keys_go_to_their_models_and_tokens_stay_here(route: Any, models: Any, tmp_path: Path) -> None:
    small = models()
    token = add_token(tmp_path / "tokens", ["rank"])
    client = route({"small": small}, keys={"small": "s3cret"}, tokens=Tokens(tmp_path / "tokens"))
    assert client.post("/v1/chat/completions", json=ASK).status_code == 401
    answer = client.post("/v1/chat/completions", json=ASK, headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 200
    assert small.heads[0]["authorization"] == "Bearer s3cret"
    feedback = {"event_id": answer.headers["onlineauto-event-id"], "reward": 1.0}
    refused = client.post("/v1/feedback", json=feedback, headers={"Authorization": f"Bearer {token}"})
    assert refused.status_code == 403


@pytest.mark.parametrize("path", ["/v1/feedback", "/v1/reward"])
def test_only_decisions_with_feedback_are_learnt(route: Any, models: Any, path: str) -> None:
    client = route({"small": models(), "large": models()})
    ids = [client.post("/v1/chat/completions", json=ASK).headers["onlineauto-event-id"] for _ in range(3)]
    for _ in range(2):  # the second one repeats the first
        assert client.post(path, json={"event_id": ids[1], "reward": 0.5, "key": "k"}).status_code == 204
    status = client.learnt(1)
    assert (status["learnt"], status["joined"], status["defaulted"], status["pending"]) == (1, 1, 0, 2)
    assert status["duplicate"] == 1


def test_decisions_that_are_activated_are_learnt_without_feedback(route: Any, models: Any) -> None:
    bad = models()
    client = route({"bad": bad, "good": models()}, mode="apprentice", learn_at="wait", reward_wait=1.0)
    ids = [client.post("/v1/chat/completions", json=ASK).headers["onlineauto-event-id"] for _ in range(3)]
    bad.fault = "429"
    ids.append(client.post("/v1/chat/completions", json=ASK).headers["onlineauto-event-id"])
    for event_id in ids[1:]:  # not the first; nothing is learnt of the last one, which another model answered
        assert client.post(f"/v1/activate/{event_id}").status_code == 204
    client.post("/v1/feedback", json={"event_id": ids[1], "reward": 1.0})
    status = client.learnt(2)
    assert (status["learnt"], status["joined"], status["defaulted"]) == (2, 1, 1)
    activated = {record["EventId"] for record in records_of(client, "activate")}
    assert activated == {*ids[1:3]}


def test_the_endpoints_are_described(route: Any, models: Any) -> None:
    client = route({"small": models()})
    paths = client.get("/openapi.json").json()["paths"]
    assert paths.keys() >= {"/v1/chat/completions", "/v1/feedback", "/v1/models/history", "/v1/rank"}
    names = [operation["operationId"] for path in paths.values() for operation in path.values()]
    assert len(names) == len(set(names))


def test_a_model_is_learnt_from_feedback(route: Any, models: Any) -> None:
    client = route({"bad": models(), "good": models()})
    for _ in range(150):
        answer = client.post("/v1/chat/completions", json=ASK)
        reward = float(answer.headers["onlineauto-model"] == "good")
        client.post(
            "/v1/feedback", json={"event_id": answer.headers["onlineauto-event-id"], "reward": reward}
        )
    client.learnt(150)
    later = [client.post("/v1/chat/completions", json=ASK).headers["onlineauto-model"] for _ in range(30)]
    assert later.count("good") > 20


def test_spending_is_what_answers_cost_and_a_budget_is_held(route: Any, models: Any) -> None:
    cheap, dear = models(), models()
    client = route({"dear": dear, "cheap": cheap}, budget=0.001, prices={"dear": 20.0, "cheap": 1.0})
    for number in range(400):
        answer = client.post("/v1/chat/completions", json=ASK | {"stream": bool(number % 2)})
        reward = 1.0 if answer.headers["onlineauto-model"] == "dear" else 0.5
        client.post(
            "/v1/feedback", json={"event_id": answer.headers["onlineauto-event-id"], "reward": reward}
        )
    status = client.learnt(400)
    spent = sum(model["dollars"] for model in status["route"]["models"])
    assert status["costed"] == 400
    assert 400 * status["mean_cost"] == pytest.approx(spent)  # of each answer, 0.004 or 0.0002 dollars
    assert status["mean_cost"] == pytest.approx(0.001, rel=0.1)
    assert status["price"] > 0
    decision = records_of(client, "rank")[-1]
    assert decision["Price"] > 0
    assert decision["Costs"] == pytest.approx([0.004, 0.0002], rel=0.5)


def test_an_id_cannot_add_headers(route: Any, models: Any) -> None:
    client = route({"a b": models()})
    body: dict[str, Any] = ASK | {"onlineauto": {"event_id": "e\r\nx-evil: 1"}}
    answer = client.post("/v1/chat/completions", json=body)
    assert "x-evil" not in answer.headers
    assert answer.headers["onlineauto-event-id"] == "e%0D%0Ax-evil%3A%201"
    assert answer.headers["onlineauto-model"] == "a%20b"
    assert answer.json()["onlineauto"]["event_id"] == body["onlineauto"]["event_id"]


def test_a_named_model_is_asked_without_a_decision(route: Any, models: Any) -> None:
    small, large = models(), models(fault="500")
    client = route({"small": small, "large": large})
    answer = client.post("/v1/chat/completions", json=ASK | {"model": "small"})
    assert (answer.status_code, answer.json()["onlineauto"]["event_id"]) == (200, None)
    assert "onlineauto-event-id" not in answer.headers
    failed = client.post("/v1/chat/completions", json=ASK | {"model": "large"})
    assert failed.status_code == 502
    assert "large: it answers 500" in failed.json()["error"]["message"]
    assert client.get("/v1/status").json()["ranked"] == 0
    names = [row["id"] for row in client.get("/v1/models").json()["data"]]
    assert names == ["auto", "small", "large"]
    assert client.get("/v1/models/history").json() == []


def test_a_name_of_no_model_is_not_routed(route: Any, models: Any) -> None:
    small = models()
    client = route({"small": small})
    answer = client.post("/v1/chat/completions", json=ASK | {"model": "smal"})
    message = "model 'smal' is none of auto, small"
    assert (answer.status_code, answer.json()["error"]) == (
        404,
        {"code": "model_not_found", "message": message},
    )
    assert not small.bodies
    assert client.get("/v1/status").json()["ranked"] == 0
    for asked in ({"model": None}, {"model": ""}, {"model": "auto"}):
        assert client.post("/v1/chat/completions", json=ASK | asked).status_code == 200


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("hangs", "timeout"), ("500", "status"), ("404", "status"), ("nonsense", "nonsense")],
)
@pytest.mark.parametrize("stream", [False, True])
def test_the_next_model_answers_if_one_fails(
    route: Any, models: Any, caplog: Any, fault: str, reason: str, stream: bool
) -> None:
    good, bad = models(), models(fault=fault)
    client = route({"bad": bad, "good": good}, timeout=0.2, mode="apprentice")  # the first one decides
    answer = client.post("/v1/chat/completions", json=ASK | {"stream": stream})
    assert answer.status_code == 200
    assert answer.headers["onlineauto-model"] == "good"
    assert answer.headers["onlineauto-fallback"] == "true"
    assert model_status(client, "bad")["failures"] == {reason: 1}
    assert client.get("/v1/status").json()["route"]["fallbacks"] == 1
    warning = next(record for record in caplog.records if "has failed" in record.message)
    assert (warning.model, warning.decision) == ("bad", answer.headers["onlineauto-event-id"])
    status = client.learnt(1)  # the decision for the failed model, with the reward of a failure
    client.post("/v1/feedback", json={"event_id": answer.headers["onlineauto-event-id"], "reward": 1.0})
    rewards = records_of(client, "reward")
    assert [record["RewardValue"] for record in rewards] == [0.0, 1.0]
    assert client.get("/v1/status").json()["late"] == status["late"] + 1  # about another model's answer


@pytest.mark.parametrize(("status", "wait"), [(429, "30"), (429, ""), (503, "30"), (401, ""), (403, "")])
def test_a_model_that_is_not_available_is_left_alone_and_not_blamed(
    route: Any, models: Any, status: int, wait: str
) -> None:
    bad = models(fault=str(status), wait=wait)
    client = route({"bad": bad, "good": models()}, mode="apprentice")
    answers = [client.post("/v1/chat/completions", json=ASK) for _ in range(3)]
    assert [answer.headers["onlineauto-model"] for answer in answers] == ["good"] * 3
    assert len(bad.bodies) == 1
    assert model_status(client, "bad")["down"] is True
    feedback = {"event_id": answers[0].headers["onlineauto-event-id"], "reward": 1.0}
    assert client.post("/v1/feedback", json=feedback).status_code == 204
    assert records_of(client, "reward") == []  # it is feedback on another model's answer


@pytest.mark.parametrize(
    ("status", "wait", "pause"),
    [
        (429, "30", 30),
        (429, "1000000", 300),
        (429, "Wed, 21 Oct", 5),
        (401, "", 5),
        (503, "7", 7),
        (503, "", None),
        (500, "30", None),
    ],
)
def test_a_model_says_for_how_long_it_is_not_available(status: int, wait: str, pause: float | None) -> None:
    headers = {"Retry-After": wait} if wait else {}
    assert _pause_of(httpx.Response(status, headers=headers)) == pause


@pytest.mark.parametrize(
    "usage",
    [None, {"prompt_tokens": 5, "completion_tokens": None}, {"prompt_tokens": 5.5}]
    + [{"completion_tokens": tokens} for tokens in (-1, 2**62, 10**300)],
)
def test_an_answer_with_an_absurd_usage_is_passed_on_without_a_price(
    route: Any, models: Any, usage: Any
) -> None:
    client = route({"small": models(usage=usage)}, budget=0.001)
    for _ in range(2):
        assert client.post("/v1/chat/completions", json=ASK).status_code == 200
    status = model_status(client, "small")
    assert (status["unpriced"], status["failed"], status["dollars"]) == (2, 0, 0.0)


def test_one_long_answer_hardly_changes_what_the_next_ones_are_expected_to_cost(
    route: Any, models: Any
) -> None:
    small = models(usage={"prompt_tokens": 5, "completion_tokens": 10**8})
    client = route({"small": small})
    for _ in range(3):
        client.post("/v1/chat/completions", json=ASK)
        small.usage = {"prompt_tokens": 5, "completion_tokens": 300}
    costs = [record["Costs"][0] for record in records_of(client, "rank")]
    assert costs == pytest.approx([300 * 2e-6, 1650 * 2e-6, 1200 * 2e-6], rel=0.01)


NAMED = ASK | {"onlineauto": {"event_id": "e1"}}


def test_a_repeated_prompt_keeps_its_decision(route: Any, models: Any) -> None:
    """It is asked again, also after 502, when other models are down, and once its model was left alone."""
    first, second = models(fault="500"), models(fault="429", wait="1")
    client = route({"first": first, "second": second}, mode="apprentice")
    assert client.post("/v1/chat/completions", json=NAMED).status_code == 502
    assert records_of(client, "cost") == []  # the next answer has one
    first.fault = ""
    for _ in range(2):
        answer = client.post("/v1/chat/completions", json=NAMED)
        assert (answer.status_code, answer.headers["onlineauto-model"]) == (200, "first")
    assert len(records_of(client, "rank")) == model_status(client, "first")["chosen"] == 1
    assert records_of(client, "cost")[0]["Cost"] > 0.0
    assert client.post("/v1/feedback", json={"event_id": "e1", "reward": 1.0}).status_code == 204
    client.learnt(1)
    other = NAMED | {"messages": [{"role": "user", "content": "Another prompt"}]}
    refused = client.post("/v1/chat/completions", json=other)
    assert refused.status_code == 409
    assert "each decision needs its own id" in refused.json()["error"]["message"]


def test_feedback_on_a_repeated_prompt_is_about_the_model_that_answers(route: Any, models: Any) -> None:
    first = models(fault="429", wait="1")
    client = route({"first": first, "second": models()}, mode="apprentice")

    def ask() -> str:
        feedback = {"event_id": "e1", "reward": 1.0}
        model = client.post("/v1/chat/completions", json=NAMED).headers["onlineauto-model"]
        assert client.post("/v1/feedback", json=feedback).status_code == 204
        return str(model)

    assert [ask(), ask()] == ["second", "second"]
    assert len(first.bodies) == 1  # it is left alone
    assert records_of(client, "reward") == []
    first.fault = ""
    until(lambda: ask() == "first")
    assert len(records_of(client, "reward")) == 1


def test_a_restart_continues_tokens_and_dollars(
    route: Any, models: Any, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    small, path = models(), "/v1/chat/completions"
    client = route({"small": small, "old": models(fault="500")}, mode="apprentice")
    client.post(path, json=ASK)
    client.post(path, json=ASK | {"model": "old"})
    counts = model_status(client, "small")
    assert counts["dollars"] > 0.0
    client.__exit__()
    monkeypatch.setattr(handlers, "_SAVE", 0.01)
    client = route({"small": small, "new": models()}, mode="apprentice")
    assert model_status(client, "small") == counts
    assert model_status(client, "new")["requests"] == 0
    client.post(path, json=ASK)
    twice = model_status(client, "small")
    assert twice["dollars"] == pytest.approx(2 * counts["dollars"])
    file = client.loop.folder / "route.json"
    until(lambda: json.loads(file.read_bytes())["models"][0] == twice)  # without a stop, as before a kill
    client.__exit__()
    file.write_bytes(b"{")
    client = route({"small": small})
    assert model_status(client, "small")["dollars"] == 0.0
    assert "route.json cannot be read, and the counts begin at 0" in caplog.text


def test_an_id_is_answered_by_one_request_at_a_time(route: Any, models: Any) -> None:
    small = models(fault="hangs")
    client = route({"small": small}, timeout=PATIENCE)
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(client.post, "/v1/chat/completions", json=NAMED)
        until(lambda: small.bodies)
        refused = client.post("/v1/chat/completions", json=NAMED)
        assert (refused.status_code, refused.headers["retry-after"]) == (409, "1")
        assert "is being answered" in refused.json()["error"]["message"]
        small.goes_on.set()
        assert waiting.result().status_code == 502
    small.fault = ""
    assert client.post("/v1/chat/completions", json=NAMED).status_code == 200


@pytest.mark.parametrize(
    "first",
    [
        b'data: {"choices":[{"delta":\ndata: {"content":"hi"}}]}\n\n',
        b'data: {"choices":[{"delta":{"content":"hi"}}]}\nid: 3\n\n',
        b': wait\r\n\r\ndata: {"choices":[{"delta":{"content":"hi"}}]}\r\n\r\n',
    ],
)
def test_events_of_several_lines_are_read(route: Any, models: Any, first: bytes) -> None:
    client = route({"small": models(events=first + b"data: [DONE]\n\n")})
    answer = client.post("/v1/chat/completions", json=ASK | {"stream": True})
    assert answer.status_code == 200
    event, done, _ = answer.text.split("\n\n")
    assert "\n" not in event
    assert json.loads(event.removeprefix("data: "))["choices"][0]["delta"]["content"] == "hi"
    assert done == "data: [DONE]"


def test_an_event_is_read_in_linear_time_and_up_to_a_size() -> None:
    class Pieces:
        def __init__(self, size: int) -> None:
            self.size = size

        async def aiter_bytes(self) -> AsyncGenerator[bytes, None]:
            yield b"data: 1\r\n\r"
            yield b"\ndata: 2\n\ndata: "
            for _ in range(self.size // 10):
                yield b"y" * 10
            yield b"\n\n"

    async def read(size: int) -> list[bytes]:
        return [event async for event in _events_of(Pieces(size))]  # type: ignore[arg-type]

    began = time.process_time()
    events = asyncio.run(read(1_000_000))
    assert time.process_time() - began < 4.0  # quadratic work takes a minute
    assert events == [b"data: 1\r\n\r\n", b"data: 2\n\n", b"data: " + b"y" * 1_000_000 + b"\n\n"]
    with pytest.raises(ValueError, match="an event has more than 1048576 bytes"):
        asyncio.run(read(1_100_000))


def test_feedback_with_a_cost_is_recorded_whole_or_not_at_all(
    route: Any, models: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = route({"small": models()}, limits=Limits(queue=10))
    event_id = client.post("/v1/chat/completions", json=ASK).headers["onlineauto-event-id"]
    monkeypatch.setattr(Front, "queued", 8)
    feedback = {"event_id": event_id, "reward": 1.0, "cost": 0.1}
    assert client.post("/v1/reward", json=feedback).status_code == 429
    monkeypatch.undo()
    assert records_of(client, "reward") == []
    assert client.post("/v1/reward", json=feedback).status_code == 204


def test_a_refused_connection_and_all_models_failing_is_502(route: Any, models: Any) -> None:
    gone = LanguageModel()
    gone.server_close()
    client = route({"gone": gone, "broken": models(fault="503")})
    answer = client.post("/v1/chat/completions", json=ASK)
    assert answer.status_code == 502
    message = answer.json()["error"]["message"]
    assert "gone: the connection failed" in message
    assert "broken: it answers 503" in message
    assert records_of(client, "reward") == []  # no reason to prefer another model
    status = client.get("/v1/status").json()
    assert status["mean_cost"] == 0.0
    assert "no model has answered the latest prompt: " in status["warnings"][0]
    assert "broken: it answers 503" in client.get("/readyz").text


def test_warning_that_no_model_answers_ends_with_an_answer(route: Any, models: Any) -> None:
    model = models(fault="503")
    client = route({"only": model})
    assert client.post("/v1/chat/completions", json=ASK).status_code == 502
    assert len(client.get("/v1/status").json()["warnings"]) == 1
    model.fault = ""
    assert client.post("/v1/chat/completions", json=ASK).status_code == 200
    assert client.get("/v1/status").json()["warnings"] == []
    assert client.get("/readyz").text == "ready\n"


def test_failures_may_be_left_unlearnt(route: Any, models: Any) -> None:
    client = route(
        {"bad": models(fault="500"), "good": models()}, content={"failure_reward": False}, mode="apprentice"
    )
    event_id = client.post("/v1/chat/completions", json=ASK).headers["onlineauto-event-id"]
    client.post("/v1/feedback", json={"event_id": event_id, "reward": 1.0})  # about another model's answer
    assert records_of(client, "reward") == []


def test_a_model_that_fails_again_and_again_is_not_picked(route: Any, models: Any) -> None:
    good, bad = models(), models(fault="500")
    client = route({"bad": bad, "good": good}, mode="apprentice")
    answers = [client.post("/v1/chat/completions", json=ASK) for _ in range(5)]
    assert {answer.status_code for answer in answers} == {200}
    assert len(bad.bodies) == 3
    assert model_status(client, "bad")["down"] is True
    assert [record.get("Excluded") for record in records_of(client, "rank")] == [None] * 3 + [[1]] * 2
    assert 'onlineauto_route_down{model="bad"} 1.0' in client.get("/metrics").text


def test_a_request_that_a_model_rejects_is_not_sent_to_another(route: Any, models: Any) -> None:
    good, bad = models(), models(fault="400")
    client = route({"bad": bad, "good": good}, mode="apprentice")
    answer = client.post("/v1/chat/completions", json=ASK)
    assert (answer.status_code, answer.json()) == (400, {"error": {"message": "no"}})
    assert not good.bodies
    assert records_of(client, "reward") == []


def test_a_stream_is_passed_on(route: Any, models: Any) -> None:
    small = models(lambda _: "a b c")
    client = route({"small": small})
    with client.stream("POST", "/v1/chat/completions", json=ASK | {"stream": True}) as answer:
        events = "".join(answer.iter_text()).strip().split("\n\n")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert events[-1] == "data: [DONE]"
    parts = [json.loads(event.removeprefix("data: ")) for event in events[:-1]]
    assert "".join(part["choices"][0]["delta"]["content"] for part in parts) == "a b c"
    assert parts[0]["onlineauto"] == {
        "event_id": answer.headers["onlineauto-event-id"],
        "model": "small",
        "fallback": False,
    }
    assert all(part["choices"] for part in parts)  # the usage was asked for by the router
    assert model_status(client, "small")["dollars"] == pytest.approx(0.0002)


def test_a_stream_that_breaks_ends_with_an_error(route: Any, models: Any) -> None:
    client = route({"small": models(lambda _: "a b c", fault="breaks")})
    text = client.post("/v1/chat/completions", json=ASK | {"stream": True}).text
    assert "the stream has ended before [DONE]" in text
    assert model_status(client, "small")["failures"] == {"connection": 1}
    assert [record["RewardValue"] for record in records_of(client, "reward")] == [0.0]


def test_a_stream_with_an_error_is_a_failure(route: Any, models: Any) -> None:
    event = b'data: {"choices":[{"delta":{"content":"hi"}}]}\n\n'
    error = b'data: { "error": {"message": "overloaded"}}\n\n'
    client = route({"small": models(events=event + error + b"data: [DONE]\n\n")})
    text = client.post("/v1/chat/completions", json=ASK | {"stream": True}).text
    assert "the stream has the error {'message': 'overloaded'}" in text
    assert model_status(client, "small")["failures"] == {"status": 1}
    assert [record["RewardValue"] for record in records_of(client, "reward")] == [0.0]


def test_a_stream_that_does_not_end_behind_its_last_event_is_an_answer(route: Any, models: Any) -> None:
    model = models(lambda _: "a b c", fault="lingers")
    client = route({"small": model}, timeout=0.2)
    text = client.post("/v1/chat/completions", json=ASK | {"stream": True}).text
    assert text.endswith("data: [DONE]\n\n")
    assert model_status(client, "small")["failed"] == 0
    assert records_of(client, "reward") == []


def test_a_client_that_leaves_ends_the_request_to_the_model(route: Any, models: Any) -> None:
    small = models(fault="endless")
    client = route({"small": small})
    with client.stream("POST", "/v1/chat/completions", json=ASK | {"stream": True}) as answer:
        next(answer.iter_raw())
    assert small.goes_on.wait(10)
    assert model_status(client, "small")["failed"] == 0


def test_a_slow_reader_gets_all_of_a_stream(route: Any, models: Any) -> None:
    long = "word " * 20_000
    client = route({"small": models(lambda _: long)})
    with client.stream("POST", "/v1/chat/completions", json=ASK | {"stream": True}) as answer:
        pieces = answer.iter_raw()
        first = next(pieces)
        until(lambda: model_status(client, "small")["requests"] == 1)
        text = (first + b"".join(pieces)).decode()
    parts = [json.loads(event.removeprefix("data: ")) for event in text.strip().split("\n\n")[:-1]]
    assert "".join(part["choices"][0]["delta"]["content"] for part in parts) == long


def test_a_judge_grades_a_sample(route: Any, models: Any) -> None:
    judge = models(lambda body: "8" if "an answer" in body["messages"][0]["content"] else "?")
    content = {"judge": Judge("judge", rate=0.5, parameters={"temperature": 0})}
    client = route({"small": models(), "judge": judge}, content=content, mode="apprentice")
    ids = [f"e{number}" for number in range(20)]
    for event_id in ids:
        client.post("/v1/chat/completions", json=ASK | {"onlineauto": {"event_id": event_id}})
    sample = {event_id for event_id in ids if uniform_of(seed_of("judge", event_id)) < 0.5}
    assert 3 < len(sample) < 17
    assert client.learnt(len(sample))["learnt"] == len(sample)
    assert client.get("/v1/status").json()["route"]["judged"] == len(judge.bodies) == len(sample)
    rewards = records_of(client, "reward")
    assert {record["EventId"] for record in rewards} == sample
    assert {record["RewardValue"] for record in rewards} == {0.8}
    assert judge.bodies[0]["temperature"] == 0
    assert "Add 2 and 2" in judge.bodies[0]["messages"][0]["content"]


@pytest.mark.parametrize("grade", ["no idea", "11", "-3"])
def test_a_judge_that_gives_no_grade_is_counted(route: Any, models: Any, caplog: Any, grade: str) -> None:
    content = {"judge": Judge("judge", rate=1.0)}
    client = route({"small": models(), "judge": models(lambda _: grade)}, content=content, mode="apprentice")
    client.post("/v1/chat/completions", json=ASK)
    until(lambda: client.get("/v1/status").json()["route"]["not_judged"] == 1)
    assert records_of(client, "reward") == []
    assert any("is not judged: no number from 0 to 10" in record.message for record in caplog.records)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "messages: a chat has at least one message"),
        ({"messages": "hi"}, "messages: Expected"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content is text or a list of parts"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": 5}]}]}, "messages[0].content"),
        (ASK | {"model": 5}, "model: Expected"),
        (ASK | {"stream": "yes"}, "stream: Expected"),
        (ASK | {"onlineauto": {"vector": ["a"]}}, "onlineauto: Expected `float`"),
        (ASK | {"onlineauto": {"vectors": [1]}}, "onlineauto: Object contains unknown field"),
        (ASK | {"onlineauto": {"vector": [0.5] * 10_000}}, "onlineauto.vector has at most 8192"),
        (ASK | {"onlineauto": {"features": {"_x": {"a": 1}}}}, "begins with '_'"),
    ],
)
def test_a_prompt_that_cannot_be_routed_is_an_error(
    route: Any, models: Any, body: dict[str, Any], message: str
) -> None:
    small = models()
    client = route({"small": small})
    answer = client.post("/v1/chat/completions", json=body)
    assert answer.status_code in (400, 413)
    assert message in answer.json()["error"]["message"]
    assert not small.bodies


def test_tokens_instead_of_text_and_large_bodies_are_errors(route: Any, models: Any) -> None:
    client = route({"small": models()}, limits=Limits(body_bytes=1000))
    answer = client.post("/v1/completions", json={"prompt": [1, 2, 3]})
    assert "only text is routed" in answer.json()["error"]["message"]
    large = ASK | {"messages": [{"role": "user", "content": "x" * 65_000}]}
    assert client.post("/v1/chat/completions", json=large).status_code == 413


def test_a_text_is_completed(route: Any, models: Any) -> None:
    small = models()
    client = route({"small": small})
    answer = client.post("/v1/completions", json={"prompt": "Once", "model": ""})
    assert answer.status_code == 200
    assert small.bodies[0]["path"] == "/v1/completions"


def test_features_of_a_prompt() -> None:
    messages = [
        {"role": "system", "content": "You are kind."},
        {"role": "user", "content": [{"type": "text", "text": "What is it? It is"}, {"type": "image_url"}]},
        {"role": "assistant", "content": None},
    ]
    prompt = read_prompt(json.dumps({"messages": messages, "tools": []}).encode(), chat=True)
    rules = RouteFile({}, words=4)
    context = {name: json.loads(bytes(raw)) for name, raw in context_of_prompt(prompt, rules).items()}
    assert len(context["prompt"]) == 4  # what is it ?
    assert set(context["prompt"].values()) == {0.5}
    assert context["form"]["system"].startswith("h")
    assert context["form"].keys() >= {"image_url", "tools", "length", "turns", "digits"}
    other = {"messages": messages, "onlineauto": {"vector": [0.5, 1.0]}}
    context = context_of_prompt(read_prompt(json.dumps(other).encode(), chat=True), rules)
    assert bytes(context["vector"]) == b'{"v":[0.5,1.0]}'
    assert "prompt" not in context


GOOD = '[models.small]\nurl = "http://127.0.0.1:1/v1"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "missing required field `models`"),
        ("[models]\n", "Expected `object` of length >= 1"),
        (GOOD + GOOD, "Cannot declare ('models', 'small') twice (at line 3"),
        (GOOD + 'key = "NO_SUCH_KEY"\n', "[models.small]: the variable NO_SUCH_KEY of the environment"),
        (GOOD + "timeout = 0\n", "[models.small]: Expected `float` > 0.0 - at `$.timeout`"),
        (GOOD + "input_price = -1.0\n", "Expected `float` >= 0.0"),
        (GOOD + "output_price = inf\n", "Expected `float` <= 1000000.0"),
        (GOOD + "input_price = nan\n", "[models.small]"),
        (GOOD + "speed = 1\n", "[models.small]: Object contains unknown field `speed`"),
        (GOOD + "routed = false\n", "no model is routed"),
        ('[models.small]\nurl = "localhost:80"\n', "url 'localhost:80' is not like"),
        (GOOD.replace("small", "auto"), "'auto' is none"),
        (GOOD + '[judge]\nmodel = "x"\n', "model 'x' is none of small"),
        (GOOD + '[judge]\nmodel = "small"\nprompt = "Grade."\n', "must have {answer}"),
        (GOOD + '[judge]\nmodel = "small"\nlow = 5.0\nhigh = 5.0\n', "low 5 must be below high 5"),
        ("failure_reward = true\n" + GOOD, "failure_reward takes a number"),
        ("words = \n" + GOOD, "Invalid value (at line 1"),
        (GOOD + "# \xe9", "'utf-8' codec can't decode"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "models.toml"
    path.write_text(text, "latin-1")
    with pytest.raises(OptionError) as caught:
        read_route_file(str(path), {"EMPTY": ""})
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_keys_are_those_of_the_environment(tmp_path: Path) -> None:
    path = tmp_path / "models.toml"
    path.write_text(GOOD + 'key = "SMALL_KEY"\n')
    assert read_route_file(str(path), {"SMALL_KEY": " s3cret\n"})[1] == {"small": "s3cret"}


def test_the_command_needs_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["route", str(tmp_path / "router")]) == 2
    assert "--endpoints models.toml" in capsys.readouterr().err
    assert main(["route", str(tmp_path / "router"), "--endpoints", str(tmp_path / "none.toml")]) != 0
    assert "none.toml" in capsys.readouterr().err


def test_a_budget_needs_prices(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "models.toml"
    path.write_text(GOOD)
    words = ["route", str(tmp_path / "router"), "--endpoints", str(path), "--budget", "0.001"]
    assert main(words) == 2
    assert f"add input_price and output_price, in dollars per million tokens, to the tables of {path}" in (
        capsys.readouterr().err
    )
    assert not (tmp_path / "router").exists()


@pytest.mark.ci
def test_the_command_routes_and_a_kill_loses_nothing(models: Any, tmp_path: Path) -> None:
    path = tmp_path / "models.toml"
    path.write_text("".join(f'[models.{name}]\nurl = "{models().url}"\n' for name in ("small", "large")))
    router = Router(tmp_path / "router", "--endpoints", str(path), model=())
    ids = []
    with router, httpx.Client(base_url=router.url, timeout=30) as client:
        for number in range(50):
            answer = client.post("/v1/chat/completions", json=ASK)
            ids.append(answer.headers["onlineauto-event-id"])
            client.post("/v1/feedback", json={"event_id": ids[-1], "reward": number % 2}).raise_for_status()
        settings = client.get("/v1/status").json()["settings"]
        assert (settings["learn_at"], settings["reward_wait"]) == ("reward", 86400.0)
        assert settings["reward_range"] == [0.0, 1.0]
        refused = client.post("/v1/feedback", json={"event_id": ids[-1], "reward": 5})
        assert "not within the reward_range of 0 to 1" in refused.json()["error"]["message"]
        router.kill()
    again = Router(tmp_path / "router", "--endpoints", str(path), model=())
    with again, httpx.Client(base_url=again.url, timeout=30) as client:
        until(lambda: client.get("/v1/status").json()["learnt"] == 50)
        status = client.get("/v1/status").json()
        assert (status["ranked"], status["rewarded"], status["joined"]) == (50, 50, 50)


class Router(Service):
    """Runs ``onlineauto route``."""

    verb = "route"
