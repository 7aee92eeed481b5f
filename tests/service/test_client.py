from __future__ import annotations

import asyncio
import datetime
import json
import logging
import math
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlineauto.errors import InputError
from onlineauto.service.client import AsyncClient, Client, Retry, ServiceDecision
from onlineauto.service.loop.rank_server import HttpUpstream
from tests.service.in_process import InProcessClient

pytestmark = pytest.mark.lane("quick")

ACTIONS = {"a": {"x": 1}, "b": {"y": 1}}

QUICK = Retry(wait=0.0)
DECISION = {"action": "b", "index": 1, "probability": 0.9, "pmf": {"a": 0.1, "b": 0.9}, "model": "m"}
JSON = {"Content-Type": "application/json"}


def decided(request: httpx.Request, **changes: Any) -> httpx.Response:
    """Answer a rank like the service, with some members changed."""
    event_id = json.loads(request.content or b"{}").get("event_id")
    return httpx.Response(200, json={"event_id": event_id} | DECISION | changes)


def recorded(request: httpx.Request) -> httpx.Response:
    """Answer a reward, a metric or an activation like the service."""
    del request
    return httpx.Response(204, headers={"Recorded-By": "onlineauto"})


def refused(status: int, message: str, **headers: str) -> httpx.Response:
    """Return an error of the service."""
    return httpx.Response(status, json={"error": {"code": "C", "message": message}}, headers=headers)


Step = httpx.Response | Exception | Callable[[httpx.Request], httpx.Response]


class Script:
    """Answers requests one after the other; an exception is raised."""

    def __init__(self, *answers: Step) -> None:
        self.answers, self.asked = list(answers), list[bytes]()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request.content)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, httpx.Response) else answer(request)


def client(script: Script) -> Client:
    return Client("http://service", token="t" * 3, retry=QUICK, transport=httpx.MockTransport(script))


def test_a_service_has_what_its_client_reports(serve: Callable[..., InProcessClient]) -> None:
    service = serve(control=0.3, guardrails=["basket"])
    with Client(str(service.base_url), timeout=30.0) as asking:
        decision = asking.rank({}, ACTIONS, deferred=True)
        assert not decision.fallback
        assert asking.activate(decision)
        assert asking.metric(decision, "basket", 1.0)
        assert asking.reward(decision, 1.0)
        assert asking.rank({}, ACTIONS, event_id=decision.event_id, deferred=True) == decision
        with pytest.raises(InputError, match="each decision needs its own id"):
            asking.rank({"u": {"x": 1}}, ACTIONS, event_id=decision.event_id, deferred=True)
    described = service.get("/openapi.json").json()["paths"]["/v1/metric"]["post"]["responses"]["204"]
    assert described["headers"]["recorded-by"]["schema"] == {"const": "onlineauto"}


def test_a_decision_is_ranked_and_rewarded() -> None:
    script = Script(decided, recorded)
    with client(script) as asking:
        decision = asking.rank({"u": {"x": 1}}, ACTIONS, event_id="e")
        assert decision == ServiceDecision("e", "b", 1, 0.9, {"a": 0.1, "b": 0.9}, "m")
        assert asking.reward(decision, 1.0)


def test_a_unit_and_a_metric_are_sent() -> None:
    script = Script(decided, recorded)
    with client(script) as asking:
        decision = asking.rank({}, ACTIONS, unit="user7", event_id="e")
        assert asking.metric(decision, "basket", 2.5, key="k")
        assert not asking.metric(ServiceDecision("e", "a", 0, 1.0, {}, "", fallback=True), "basket", 1.0)
    body, metric = map(json.loads, script.asked)
    assert body["unit"] == "user7"
    assert metric == {"event_id": "e", "metric": "basket", "value": 2.5, "key": "k"}


def test_values_of_every_library_are_converted() -> None:
    script = Script(decided, recorded)
    with client(script) as asking:
        context = {"u": {"x": Decimal("1.5"), "y": np.float32(0.5), "z": math.nan, "v": np.array([1, 2])}}
        decision = asking.rank(context, ACTIONS)
        assert asking.reward(decision, np.float32(0.5))  # type: ignore[arg-type]
        with pytest.raises(InputError, match=r"context: u: x: .* is a date or a time"):
            asking.rank({"u": {"x": datetime.date(2026, 1, 1)}}, ACTIONS)
        with pytest.raises(InputError, match=r"^context: u: \{1, 2\} is a set, which has no order"):
            asking.rank({"u": {1, 2}}, ACTIONS)
    body, reward = map(json.loads, script.asked)
    assert body["context"] == {"u": {"x": 1.5, "y": 0.5, "z": None, "v": [1, 2]}}
    assert reward["reward"] == 0.5


@pytest.mark.parametrize("value", [math.nan, -math.inf, Decimal("NaN"), np.float32("inf")])
def test_values_that_are_not_finite_are_not_sent(value: Any) -> None:
    with client(Script()) as asking:
        with pytest.raises(InputError, match=r"^reward is .*: give a finite number$"):
            asking.reward("e", value)
        with pytest.raises(InputError, match=r"^cost is .*: give a finite number$"):
            asking.reward("e", cost=value)
        with pytest.raises(InputError, match=r"^basket is .*: give a finite number$"):
            asking.metric("e", "basket", value)


def test_failed_requests_are_repeated_unchanged() -> None:
    script = Script(
        httpx.ConnectError("away"),
        httpx.Response(503),
        decided,
        recorded,
    )
    with client(script) as asking:
        assert asking.rank({}, ACTIONS).action == "b"
        assert len(set(script.asked)) == 1
        assert asking.activate("e/1")


def test_the_client_decides_when_the_service_is_away() -> None:
    with client(Script(*[httpx.ConnectError("away")] * 3)) as asking:
        decision = asking.rank({}, ACTIONS, excluded=["a"])
        assert (decision.action, decision.fallback, decision.probability) == ("b", True, 1.0)
        assert not asking.reward(decision, 1.0)  # nobody is asked
    with client(Script(*[httpx.ReadTimeout("slow")] * 3)) as asking:
        assert not asking.reward("e", 1.0)


def test_a_rejection_has_the_message_of_the_service() -> None:
    problem = httpx.Response(400, json={"error": {"code": "BadArgument", "message": "no actions"}})
    with client(Script(problem)) as asking, pytest.raises(InputError, match=r"\(400\): no actions"):
        asking.rank({}, {})


def test_the_asynchronous_client_does_the_same() -> None:
    script = Script(
        httpx.ConnectError("away"),
        decided,
        recorded,
        recorded,
        *[httpx.Response(429, headers={"Retry-After": "0"})] * 3,
    )

    async def ask() -> tuple[ServiceDecision, bool, bool, ServiceDecision]:
        transport = httpx.MockTransport(script)
        async with AsyncClient("http://service", retry=QUICK, transport=transport) as asking:
            decision = await asking.rank({}, ACTIONS)
            return (
                decision,
                await asking.reward(decision, 1.0),
                await asking.activate(decision),
                await asking.rank({}, ACTIONS),
            )

    decision, rewarded, activated, away = asyncio.run(ask())
    assert (decision.action, rewarded, activated, away.fallback) == ("b", True, True, True)


HTML = b"<html>We are back soon</html>"
LOGIN = {"Location": "http://login/", "Content-Type": "text/html"}
STRANGE: dict[str, Step] = {
    **{
        f"a page with {status}": httpx.Response(status, html=HTML.decode()) for status in (200, 201, 203, 400)
    },
    **{f"a proxy's {status}": httpx.Response(status, html="no") for status in (401, 403, 404, 407, 413, 429)},
    **{f"a redirect {status}": httpx.Response(status, headers=LOGIN) for status in (301, 302, 303, 307, 308)},
    **{f"nothing with {status}": httpx.Response(status) for status in (200, 202, 204, 205, 304)},
    "an incomplete error": httpx.Response(400, json={"error": "no"}),
    "an error of something else": httpx.Response(404, json={"detail": "Not Found"}),
    "an error as a page": httpx.Response(409, text='{"error":{"code":"C","message":"no"}}'),
    "not gzip": httpx.DecodingError("incorrect header check"),
    "half an answer": httpx.RemoteProtocolError("closed"),
    "no address": httpx.ConnectError("refused"),
    "an empty object": httpx.Response(200, json={}),
    "a list": httpx.Response(200, json=[DECISION]),
    "null": httpx.Response(200, json=None),
    "no JSON": httpx.Response(200, content=b"\xff", headers=JSON),
    "deep JSON": httpx.Response(200, content=b"[" * 100_000, headers=JSON),
    "no type": lambda request: httpx.Response(200, content=decided(request).content),
    "another event": lambda request: decided(request, event_id="other"),
    "another action": lambda request: decided(request, action="c"),
    "another index": lambda request: decided(request, index=0),
    "an index out of range": lambda request: decided(request, index=2),
    "a negative index": lambda request: decided(request, index=-1),
    "other probabilities": lambda request: decided(request, pmf={"a": 0.1}),
    "no probabilities": lambda request: decided(request, pmf=None),
    "a probability out of range": lambda request: decided(request, pmf={"a": -1.0, "b": 2.0}),
    "probabilities without a sum of 1": lambda request: decided(request, pmf={"a": 0.6, "b": 0.9}),
    "another probability than the action's": lambda request: decided(request, probability=0.1),
    "a text as a probability": lambda request: decided(request, probability="0.9"),
    "its own fallback": lambda request: decided(request, fallback=True),
    "a wait that is no number": httpx.Response(503, headers=[(b"Retry-After", b"\xc2\xb2")]),
}


def repeated(step: Step) -> Script:
    """Return a script that gives the same answer again and again."""

    def answer(request: httpx.Request) -> httpx.Response:
        if isinstance(step, httpx.Response):
            return httpx.Response(step.status_code, headers=step.headers, content=step.content)
        return step(request)  # type: ignore[operator]

    return Script(*[step if isinstance(step, Exception) else answer] * 3)


CALLS: dict[str, tuple[Any, ...]] = {"reward": ("e", 1.0), "metric": ("e", "m", 1.0), "activate": ("e",)}


@pytest.mark.parametrize("name", STRANGE)
def test_an_answer_of_another_server_is_ignored(name: str) -> None:
    async def ask(method: str, *values: Any, **more: Any) -> Any:
        transport = httpx.MockTransport(repeated(STRANGE[name]))
        async with AsyncClient("http://service", retry=QUICK, transport=transport) as asking:
            return await getattr(asking, method)(*values, **more)

    script = repeated(STRANGE[name])
    with client(script) as asking:
        decision = asking.rank({}, ACTIONS, event_id="e", excluded=["a"])
    assert (decision.action, decision.fallback, len(script.asked)) == ("b", True, 3)
    assert asyncio.run(ask("rank", {}, ACTIONS, event_id="e", excluded=["a"])) == decision
    for method, values in CALLS.items():
        with client(repeated(STRANGE[name])) as asking:
            assert getattr(asking, method)(*values) is False
        assert asyncio.run(ask(method, *values)) is False


@given(
    st.integers(200, 599),
    st.sampled_from(
        [{}, JSON, {"Content-Type": "text/html"}, {"Content-Type": "application/json; charset=x"}]
    ),
    st.one_of(
        st.binary(max_size=40),
        st.recursive(
            st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=4),
            lambda each: (
                st.lists(each, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["event_id", "error", "message", "code", "pmf"]), each, max_size=4
                )
            ),
        ).map(lambda value: json.dumps(value).encode()),
    ),
)
def test_no_answer_raises_another_error(status: int, headers: dict[str, str], content: bytes) -> None:
    for method, values in {"rank": ({}, ACTIONS), **CALLS}.items():
        with client(repeated(httpx.Response(status, headers=headers, content=content))) as asking:
            with suppress(InputError):
                found = getattr(asking, method)(*values)
                assert found is False or found.fallback
                continue
            assert 400 <= status < 500
            assert isinstance(json.loads(content)["error"]["message"], str)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 415, 422, 429])
def test_a_rejection_of_the_service_is_raised_with_its_message(status: int) -> None:
    for method, values in {"rank": ({}, ACTIONS), **CALLS}.items():
        script = Script(refused(status, "each decision needs its own id"))
        with client(script) as asking, pytest.raises(InputError, match=f"{status}.*its own id"):
            getattr(asking, method)(*values)
        assert len(script.asked) == 1


@pytest.mark.parametrize("status", [409, 429, 503])
def test_a_temporary_rejection_is_retried(status: int) -> None:
    later = {"Retry-After": "1"}
    with client(Script(refused(status, "later", **later), decided)) as asking:
        assert not asking.rank({}, ACTIONS).fallback
    for again in (refused(500, "failed"), refused(507, "full"), refused(408, "slow")):
        with client(Script(again, recorded)) as asking:
            assert asking.reward("e", 1.0)


def test_each_reward_has_its_own_key_which_is_sent_again() -> None:
    script = Script(httpx.ReadTimeout("lost"), recorded, recorded, recorded)
    with client(script) as asking:
        assert asking.reward("e", 1.0)
        assert asking.reward("e", 1.0)
        assert asking.reward("e", 1.0, key="mine")
    lost, again, other, named = (json.loads(body)["key"] for body in script.asked)
    assert lost == again != other
    assert named == "mine"


def test_each_metric_has_its_own_key_which_is_sent_again() -> None:
    script = Script(httpx.ReadTimeout("lost"), httpx.Response(502), recorded, recorded, recorded)
    with client(script) as asking:
        assert asking.metric("e", "basket", 1.0)
        assert asking.metric("e", "basket", 1.0)
        assert asking.metric("e", "basket", 1.0, key="mine")
    keys = [json.loads(body)["key"] for body in script.asked]
    assert keys[0] == keys[1] == keys[2] != keys[3]
    assert keys[4] == "mine"


@pytest.mark.parametrize(
    "url",
    ["localhost:8001", "service", "//service", "", "http://", "ftp://h", "http://a b", "http://h:99999"],
)
def test_an_invalid_address_is_rejected_at_once(url: str) -> None:
    for kind in (Client, AsyncClient, HttpUpstream):
        with pytest.raises(InputError, match="give http://HOST:PORT"):
            kind(url)
        with pytest.raises(InputError, match="the token has a space, a line end"):
            kind("http://service", token="a" + chr(10) + "b")


@pytest.mark.parametrize("name", STRANGE)
def test_a_rank_server_rejects_answers_of_other_servers(name: str) -> None:
    for method, values in (("model", ("m",)), ("model", ("",)), ("settings", ()), ("take", ("s", 5, b"{}"))):
        if name == "nothing with 304" and values == ("m",):
            continue
        upstream = HttpUpstream("http://learner", transport=httpx.MockTransport(repeated(STRANGE[name])))
        with pytest.raises(InputError, match=r"is no learner|is away|rejects (GET|POST) /v1/"):
            getattr(upstream, method)(*values)
        upstream.close()


@pytest.mark.parametrize("position", [-1, 4, 7])
def test_a_rank_server_skips_no_record_because_of_a_strange_position(position: int) -> None:
    answer = httpx.Response(200, json={"position": position})
    upstream = HttpUpstream("http://learner", transport=httpx.MockTransport(lambda _: answer))
    with pytest.raises(InputError, match=f"wants the records from {position}"):
        upstream.take("s", 5, b"x")
    upstream.close()


def test_a_client_is_closed_without_a_with_block() -> None:
    asking = client(Script())
    asking.close()
    with pytest.raises(RuntimeError, match="closed"):
        asking.reward("e", 1.0)
    other = AsyncClient("http://service")
    asyncio.run(other.aclose())


def test_without_an_action_there_is_no_fallback() -> None:
    for actions, excluded in (({}, []), (ACTIONS, ["a", "b"])):
        with (
            client(Script(*[httpx.ConnectError("away")] * 3)) as asking,
            pytest.raises(InputError, match="at least one must remain"),
        ):
            asking.rank({}, actions, excluded=excluded)


@pytest.mark.parametrize("excluded", ["a", "b", "ab", ["nobody"], ["a", ""], {"a": 1, "c": 2}])
def test_only_ids_of_actions_are_excluded(excluded: Any) -> None:
    script = Script()
    with client(script) as asking, pytest.raises(InputError, match="give a list of ids of the actions"):
        asking.rank({}, ACTIONS, excluded=excluded)
    assert script.asked == []


def test_text_that_is_not_unicode_is_rejected_in_every_argument() -> None:
    bad = "a" + chr(0xD800)
    calls: list[Callable[[Client], object]] = [
        lambda asking: asking.rank({"u": {"x": bad}}, ACTIONS),
        lambda asking: asking.rank({bad: {"x": 1}}, ACTIONS),
        lambda asking: asking.rank({}, {bad: {"x": 1}}),
        lambda asking: asking.rank({}, ACTIONS, event_id=bad),
        lambda asking: asking.rank({}, ACTIONS, unit=bad),
        lambda asking: asking.reward(bad, 1.0),
        lambda asking: asking.reward("e", 1.0, key=bad),
        lambda asking: asking.metric("e", bad, 1.0),
        lambda asking: asking.activate(bad),
    ]
    for call in calls:
        with client(Script()) as asking, pytest.raises(InputError, match="is not Unicode: it has half"):
            call(asking)


def test_an_outage_is_logged_once_with_its_reason_and_its_proxy(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.WARNING)
    monkeypatch.setenv("HTTP_PROXY", "http://user:secret@127.0.0.1:9")
    script = Script(*[httpx.ConnectError("refused")] * 6, recorded, recorded)
    with client(script) as asking:
        assert [asking.reward("e", 1.0) for _ in range(4)] == [False, False, True, True]
    away, back = [record.getMessage() for record in caplog.records]
    assert "asked through the proxy of HTTP_PROXY" in away
    assert away.endswith("ConnectError: refused")
    assert "secret" not in away
    assert "answers again" in back
    upstream = HttpUpstream("http://127.0.0.1:1")
    with pytest.raises(InputError, match=r"the learner is away \(asked through the proxy of HTTP_PROXY"):
        upstream.settings()
    upstream.close()


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_line_end_of_a_file_is_no_part_of_a_token(end: str) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert request.headers["authorization"] == "Bearer secret"
        return recorded(request)

    with Client("http://service", token=f"secret{end}", transport=httpx.MockTransport(answer)) as asking:
        assert asking.reward("e", 1.0)
    with pytest.raises(InputError, match="a line end"):
        Client("http://service", token=f"secret{end}{end}")
