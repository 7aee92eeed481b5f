"""Malformed bodies by the million, sent to a service over its sockets: no answer may be a 5xx.

    python -m bench.service.malformed --bodies 1000000 --seed 2

Half of the bodies are those of `tests.service.test_malformed`: requests of each endpoint with mutated bytes.
The other half is JSON with odd values in odd places, of which more pass the parsers. A seed determines all.
The service runs in a separate process, so that every byte passes its own HTTP stack. Printed at the end: the
number of answers of each status, the first bodies that were answered with a 5xx, the resident memory of the
service at the start and at the end, and the time. The command fails if there is a 5xx, if the service has
skipped a record or stopped learning, or if it no longer answers an ordinary rank.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections import Counter
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import httpx
import uvloop

from bench import kit
from bench.service.__main__ import resident_mb
from tests.service.serving import Service
from tests.service.test_malformed import PATHS, SEEDS, mutated
from tests.waiting import until

WORDS = ("--max_pending", "500", "--reward_wait", "0.5", "--max_namespaces", "64")
MODEL = ("--cb_explore_adf", "--automl", "2", "--bit_precision", "10")
_MOST_PRINTED = 20
_PATH_OF = (
    *("/v1/rank", "/personalizer/v1.0/rank", "/v1/reward", "/personalizer/v1.0/events/e/reward", "/v1/rank"),
    *("/v1/settings", "/v1/models/use", "/v1/rank/slots", "/personalizer/multislot/rank"),
    *(
        "/personalizer/v1.1-preview.2/multislot/events/e/reward",
        "/v1/metric",
        "/v1/models/canary",
        "/v1/settings",
    ),
)
"""The endpoint of each of `SEEDS`."""
_ODD: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        1.5,
        1e308,
        -1e-320,
        1 << 63,
        -(1 << 70),
        "",
        "e",
        "a",
        "s",
        "_tag",
        "\0",
        "\ud800",
    ),
    *(
        "9" * 400,
        "#",
        "e#s",
        "PT1S",
        "P9999999D",
        "2026-01-01T00:00:00Z",
        "\U0001f600" * 70,
        "online",
        "reward:rollback",
    ),
    *(
        [],
        {},
        [[]],
        [{}],
        {"": {}},
        {"_multi": []},
        {"a": {"b": [1, "x", None]}},
        [1, 2.5, "x"],
        [{"id": "a"}] * 3,
    ),
)


class Answers(NamedTuple):
    """The number of answers by status, and the path and the body of each 5xx."""

    statuses: Counter[int]
    errors: list[tuple[str, bytes, bytes]]


def odd_values(draw: Random) -> tuple[str, bytes]:
    """Return a path, mostly the right one, and a body in which a few values or names of JSON are replaced."""
    number = draw.randrange(len(SEEDS))
    path = _PATH_OF[number] if draw.random() < 0.8 else draw.choice(PATHS)
    body: Any = json.loads(SEEDS[number])
    for _ in range(draw.randrange(1, 4)):
        node, key = body, draw.choice(list(body))
        while isinstance(node[key], dict | list) and node[key] and draw.random() < 0.7:
            node = node[key]
            key = draw.choice(list(node)) if isinstance(node, dict) else draw.randrange(len(node))
        if isinstance(node, dict) and draw.random() < 0.2:
            node[str(draw.choice(_ODD))] = node.pop(key)
        else:
            node[key] = deepcopy(draw.choice(_ODD) if draw.random() < 0.7 else json.loads(draw.choice(SEEDS)))
        if not body:
            break
    return path, json.dumps(body).encode()


async def send_bodies(port: int, count: int, seed: int, *, connections: int = 16) -> Answers:
    """Send `count` malformed bodies over some connections, each with its own generator."""
    answers = Answers(Counter(), [])
    shares = [count // connections + (number < count % connections) for number in range(connections)]
    await asyncio.gather(
        *(
            _send_share(port, share, Random(f"{seed} {number}"), answers)
            for number, share in enumerate(shares)
        )
    )
    return answers


async def _send_share(port: int, count: int, draw: Random, answers: Answers) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(count):
        path, body = odd_values(draw) if draw.random() < 0.5 else (draw.choice(PATHS), mutated(draw))
        method = "PATCH" if path == "/v1/settings" else "POST"
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        lines = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
        status = int(lines[0].split()[1])
        length = next((int(each[15:]) for each in lines if each.startswith(b"content-length:")), 0)
        text = await reader.readexactly(length)
        answers.statuses[status] += 1
        if status >= 500:
            answers.errors.append((path, body, text))
        if b"connection: close" in lines:
            writer.close()
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.close()


def malformed(bodies: int, seed: int, *, connections: int = 16) -> Answers:
    """Send malformed bodies to a service, check and print what it has become; return its answers."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Service(Path(folder) / "loop", *WORDS, model=MODEL) as service,
    ):
        before, begin = resident_mb(service.process.pid), time.monotonic()
        answers = uvloop.run(send_bodies(service.port, bodies, seed, connections=connections))
        seconds = time.monotonic() - begin
        with httpx.Client(base_url=service.url, timeout=60) as client:
            until(lambda: client.get("/readyz").text == "ready\n")
            status = client.get("/v1/status").json()
            rank = client.post("/v1/rank", json={"actions": {"a": {"x": 1}, "b": {}}, "event_id": "fine"})
        print(f"bodies {bodies:,}, seed {seed}, {seconds:,.0f} s")
        for code, count in sorted(answers.statuses.items()):
            print(f"{code}  {count:,}")
        print(f"memory {before:.0f} MB, then {resident_mb(service.process.pid):.0f} MB")
        for error in answers.errors[:_MOST_PRINTED]:
            print(*error)
        assert (status["learning"], status["skipped"], status["faulty"]) == (True, 0, 0), status
        assert rank.status_code in (200, 429), rank.text
    return answers


def main() -> None:
    options = kit.parser(__doc__, bodies=1_000_000, seed=2, connections=16).parse_args()
    if malformed(options.bodies, options.seed, connections=options.connections).errors:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
