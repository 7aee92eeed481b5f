"""Malformed and odd bodies are refused or answered; none raises an unexpected error."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from onlineauto.service.http.app import Application, application
from onlineauto.service.http.endpoint import Waiting
from onlineauto.service.http.http_protocol import HttpProtocol
from onlineauto.service.loop.loop import Loop
from onlineauto.service.options import Limits
from onlineauto.workspace.options import REGISTRY
from tests.service.endurance import resident_bytes
from tests.service.in_process import InProcessClient

CONFIGURATION = REGISTRY.parse("--cb_explore_adf --automl 2 --bit_precision 10")
PATHS = (
    *("/v1/rank", "/personalizer/v1.0/rank", "/v1/reward", "/personalizer/v1.0/events/e/reward"),
    *("/v1/settings", "/v1/models/use", "/v1/evaluate", "/personalizer/v1.0/events/x%00y/activate"),
    *("/v1/rank/slots", "/personalizer/multislot/rank", "/v1/metric", "/v1/models/canary"),
    *("/personalizer/v1.1-preview.2/multislot/events/e/reward", "/personalizer/multislot/events/e/activate"),
)
SEEDS = (
    b'{"context":{"user":{"age":30}},"actions":{"a":{"x":{"one":1}},"b":{"x":{"two":1}}},"event_id":"e"}',
    b'{"contextFeatures":[{"user":{"a":[1,2.5]}}],"actions":[{"id":"a","features":[{"t":"x"}]}],"eventId":"f"}',
    b'{"event_id":"e","reward":1.5,"key":"k"}',
    b'{"value":-1e3}',
    b'{"actions":[{"n":{"_label_cost":1}},{"n":{"_tag":"x"}}]}',
    b'{"reward_wait":5}',
    b'{"name":"000000000000"}',
    b'{"actions":{"a":{"x":{"one":1}},"b":{}},"slots":[{"id":"s"},{"id":"t"}],"event_id":"e","unit":"u"}',
    b'{"actions":[{"id":"a"},{"id":"b"}],"slots":[{"id":"s","baselineAction":"a"}],"deferActivation":true}',
    b'{"reward":[{"slotId":"s","value":1}]}',
    b'{"event_id":"e","metric":"basket","value":1}',
    b'{"name":"000000000000","share":0.1}',
    b'{"control":0.1,"guardrails":["basket","reward:rollback"]}',
)
WORDS = (
    *(
        b'"',
        b"{",
        b"}",
        b"[",
        b"]",
        b":",
        b",",
        b"\\",
        b"\x00",
        b"\n",
        b"\xff",
        b"\xc3",
        b"\\ud800",
        b"\\u0000",
    ),
    *(
        b"1e999",
        b"-0",
        b"NaN",
        b"null",
        b"true",
        b'"_multi":[{}],',
        b'"_slots":[{}],',
        b'"_label":1,',
        b"[" * 300,
    ),
    *(
        b'"_label_cost":1,',
        b'"\\u005flabel_cost":1,',
        b'"c":{',
        b'"crc":"0"',
        b'{"a":' * 200,
        b"9" * 400,
        b"'",
    ),
)


def mutated(draw: Random) -> bytes:
    body = bytearray(draw.choice(SEEDS))
    for _ in range(draw.randrange(1, 6)):
        place = draw.randrange(len(body) + 1)
        how = draw.randrange(4)
        if how == 0:
            body[place:place] = draw.choice(WORDS)
        elif how == 1:
            del body[place : place + draw.randrange(1, 9)]
        elif how == 2 and body:
            body[place % len(body)] = draw.randrange(256)
        else:
            other = draw.choice(SEEDS)
            begin = draw.randrange(len(other))
            body[place:place] = other[begin : begin + draw.randrange(1, 30)]
    return bytes(body)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[InProcessClient]:
    waiting = Waiting()
    limits = Limits(pending=500, namespaces=64)
    settings = {"reward_wait": 0.5}
    loop = Loop(tmp_path / "loop", CONFIGURATION, settings=settings, limits=limits, deliver=waiting.deliver)
    with InProcessClient(application(loop, waiting), loop) as made:
        yield made


def pelted(client: InProcessClient, count: int, seed: int) -> dict[int, int]:
    draw, statuses = Random(seed), dict[int, int]()
    for _ in range(count):
        path, body = draw.choice(PATHS), mutated(draw)
        method = "PATCH" if path == "/v1/settings" else "POST"
        answer = client.request(method, path, content=body)
        statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1
        assert answer.status_code < 500, (path, body, answer.text)
        if answer.status_code >= 400:
            assert answer.json()["error"]["message"]
    return statuses


class Sent(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: asyncio.Queue[bytes] = asyncio.Queue()

    def write(self, data: Any) -> None:
        self.written.put_nowait(bytes(data))

    def is_closing(self) -> bool:
        return False


async def pelted_directly(app: Application, count: int, seed: int) -> dict[int, int]:
    """Pass bodies to the protocol itself, which is faster than a client."""
    draw, statuses = Random(seed), dict[int, int]()
    protocol, sent = HttpProtocol(app), Sent()
    protocol.connection_made(sent)
    for number in range(count):
        path, body = draw.choice(PATHS), mutated(draw)
        method = "PATCH" if path == "/v1/settings" else "POST"
        head = f"{method} {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n"
        protocol.data_received(head.encode() + body)
        answer = await asyncio.wait_for(sent.written.get(), 30)
        status = int(answer[9:12])
        statuses[status] = statuses.get(status, 0) + 1
        assert status < 500, (path, body, answer)
        if number % 64 == 0:
            await asyncio.sleep(0)
    protocol.connection_lost(None)
    return statuses


def in_order(client: InProcessClient) -> None:
    loop = client.loop
    answer = client.post("/v1/rank", json={"actions": {"a": {"x": 1}, "b": {}}, "event_id": "fine"})
    assert answer.status_code in (200, 429)
    assert loop.failed is None
    assert loop.learner.faulty == 0
    assert client.get("/readyz").text == "ready\n"


@pytest.mark.ci
def test_malformed_bodies_are_refused(client: InProcessClient) -> None:
    statuses = pelted(client, 3000, seed=1)
    assert statuses.get(400, 0) > 500
    in_order(client)


@pytest.mark.fuzz
def test_a_million_malformed_bodies_are_refused(client: InProcessClient) -> None:
    count, seed = int(os.environ.get("BODIES", "1000000")), int(os.environ.get("BODIES_SEED", "2"))
    before = resident_bytes()
    statuses = client.call(pelted_directly, client.app, count, seed)
    assert statuses[400] > count // 5
    assert resident_bytes() - before < 100 << 20
    in_order(client)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'{"actions":' + b"[" * 5000 + b"]" * 5000 + b"}",
        b'{"actions":[{"n":' + b'{"a":' * 300 + b"1" + b"}" * 300 + b"}]}",
        b'{"actions":[{"n":{"a":"\\ud800"}}]}',
        b'{"actions":[{"n":{"\\u0000":1}}]}',
        b'{"actions":[{"n":{"a":1}}],"event_id":"\\u0000\\n"}',
        json.dumps({"actions": {"": {}}}).encode(),
        b'{"actions":[{"a":1,"a":{"b":2}}],"actions":[{}]}',
    ],
)
def test_odd_bodies_are_answered(client: InProcessClient, body: bytes) -> None:
    assert client.post("/v1/rank", content=body).status_code in (200, 400)
    in_order(client)


@pytest.mark.ci
def test_memory_is_flat_under_a_flood_of_ids_and_names(client: InProcessClient) -> None:
    loop = client.loop
    for number in range(1500):
        client.post("/v1/rank", json={"actions": [{f"hostile{number}": {"a": 1}}], "event_id": f"e{number}"})
        client.post("/v1/reward", json={"event_id": f"nobody{number}", "reward": 1})
        assert loop.join.waiting <= 500
        assert loop.join.early <= 500
    assert len(loop.learner.workspace.layout.keys()) <= 70
