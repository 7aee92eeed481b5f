from __future__ import annotations

import asyncio
import datetime
import json
import math
from decimal import Decimal

import httpx
import numpy as np
import pytest

from onlineauto.errors import InputError
from onlineauto.service.client import AsyncClient, Client, Retry, ServiceDecision

ACTIONS = {"a": {"x": 1}, "b": {"y": 1}}
ANSWER = b'{"event_id":"e","action":"b","index":1,"probability":0.9,"pmf":{"a":0.1,"b":0.9},"model":"m"}'
QUICK = Retry(wait=0.0)


class Script:
    """Answers requests one after the other; an exception is raised."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers, self.asked = list(answers), list[bytes]()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request.content)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def client(script: Script) -> Client:
    return Client("http://service", token="t" * 3, retry=QUICK, transport=httpx.MockTransport(script))


def test_a_decision_is_ranked_and_rewarded() -> None:
    script = Script(httpx.Response(200, content=ANSWER), httpx.Response(204))
    with client(script) as asking:
        decision = asking.rank({"u": {"x": 1}}, ACTIONS)
        assert decision == ServiceDecision("e", "b", 1, 0.9, {"a": 0.1, "b": 0.9}, "m")
        assert asking.reward(decision, 1.0)


def test_a_unit_and_a_metric_are_sent() -> None:
    script = Script(httpx.Response(200, content=ANSWER), httpx.Response(204))
    with client(script) as asking:
        decision = asking.rank({}, ACTIONS, unit="user7")
        assert asking.metric(decision, "basket", 2.5)
        assert not asking.metric(ServiceDecision("e", "a", 0, 1.0, {}, "", fallback=True), "basket", 1.0)
    body, metric = map(json.loads, script.asked)
    assert body["unit"] == "user7"
    assert metric == {"event_id": "e", "metric": "basket", "value": 2.5}


def test_values_of_every_library_are_sent_by_the_one_rule() -> None:
    script = Script(httpx.Response(200, content=ANSWER), httpx.Response(204))
    with client(script) as asking:
        context = {"u": {"x": Decimal("1.5"), "y": np.float32(0.5), "z": math.nan, "v": np.array([1, 2])}}
        decision = asking.rank(context, ACTIONS)
        assert asking.reward(decision, np.float32(0.5))  # type: ignore[arg-type]
        with pytest.raises(InputError, match=r"context: u: x: .* is a date or a time"):
            asking.rank({"u": {"x": datetime.date(2026, 1, 1)}}, ACTIONS)
    body, reward = map(json.loads, script.asked)
    assert body["context"] == {"u": {"x": 1.5, "y": 0.5, "z": None, "v": [1, 2]}}
    assert reward["reward"] == 0.5


def test_what_failed_is_sent_again_as_it_was() -> None:
    script = Script(
        httpx.ConnectError("away"),
        httpx.Response(503),
        httpx.Response(200, content=ANSWER),
        httpx.Response(204),
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


def test_refusals_say_why() -> None:
    problem = httpx.Response(400, json={"error": {"code": "BadArgument", "message": "no actions"}})
    with client(Script(problem)) as asking, pytest.raises(InputError, match=r"\(400\): no actions"):
        asking.rank({}, {})


def test_the_asynchronous_client_does_the_same() -> None:
    script = Script(
        httpx.ConnectError("away"),
        httpx.Response(200, content=ANSWER),
        httpx.Response(204),
        httpx.Response(204),
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
