"""A load of ranks and rewards over HTTP, from a process that costs little beside the server that it loads.

Each connection sends a rank of 8 actions, waits for the answer, sends its reward, and goes on. The requests
are written before the load begins, but for their ids, so that on a machine of few cores the server is what is
measured. What an action earns depends on nothing but the action.
"""

from __future__ import annotations

import asyncio
import json
import time
from functools import partial
from random import Random
from typing import Any, NamedTuple, cast

ACTIONS = 8
_WRITTEN = 512
"""Number of different questions."""
_ID = b"0123456789abcdef"
"""Stands for an event id in what is written before; all ids are as long."""


class Load(NamedTuple):
    """Pairs of rank and reward a second, milliseconds of ranks, the processor time a pair.

    `learner_us` is that of the learner behind a rank server.
    """

    pairs_per_second: float
    p50: float
    p99: float
    failed: int
    cpu_us: float = 0.0
    learner_us: float = 0.0
    generator_us: float = 0.0


def question(draw: Random, event_id: str) -> bytes:
    """Return the body of a rank."""
    actions = {
        f"a{n}": {"item": {f"i{n}": 1, "price": round(draw.random(), 2)}, "kind": {f"k{n % 3}": 1}}
        for n in range(ACTIONS)
    }
    context = {
        "user": {f"u{draw.randrange(50)}": 1, "age": draw.randrange(80)},
        "time": {f"h{draw.randrange(24)}": 1},
    }
    return json.dumps({"event_id": event_id, "context": context, "actions": actions}).encode()


def _request(path: str, body: bytes) -> tuple[bytes, bytes]:
    """Return the parts of a request before and behind the event id."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    before, after = (head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body).split(_ID)
    return before, after


def _lines(body: dict[str, Any]) -> list[bytes]:
    """Return a question as lines of Vowpal Wabbit's text."""
    objects = [body["context"], *body["actions"].values()]
    texts = (
        " ".join(
            f"|{name} " + " ".join(f"{key}:{value}" for key, value in each.items()) for name, each in found
        )
        for found in (one.items() for one in objects)
    )
    shared, *actions = (text.encode() for text in texts)
    return [b"shared " + shared, *actions]


class _Requests:
    """Requests that were written before the load, to the paths below a prefix."""

    def __init__(self, prefix: str = "") -> None:
        draw, sign = Random(1), _ID.decode()
        self.ranks = [_request(f"{prefix}/v1/rank", question(draw, sign)) for _ in range(_WRITTEN)]
        self.lines = [_lines(json.loads(question(draw, sign))) for _ in range(_WRITTEN)]
        bodies = (json.dumps({"event_id": sign, "reward": float(each)}).encode() for each in (False, True))
        self.rewards = [_request(f"{prefix}/v1/reward", body) for body in bodies]


class Connection(asyncio.Protocol):
    """One connection: sends the next request as soon as it has the answer to the last one."""

    def __init__(
        self,
        requests: _Requests,
        number: int,
        until: float,
        *,
        pause: float,
        latencies: list[float],
        unrewarded: float,
    ) -> None:
        self.requests, self.until, self.latencies = requests, until, latencies
        self.draw, self.prefix = Random(time.time_ns() + number), b"%04x" % (number % 65536)
        self.pause, self.unrewarded, self.due = pause, unrewarded, time.perf_counter()
        self.done = self.failed = 0
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ranking, self.data, self.began, self.event_id = False, b"", 0.0, b""
        self.event: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._next()

    def data_received(self, data: bytes) -> None:
        self.data += data
        end = self.data.find(b"\r\n\r\n")
        if end < 0:
            return
        head, size = self.data[:end].lower(), 0
        at = head.find(b"content-length:")
        if at >= 0:
            size = int(head[at + 15 :].split(b"\r\n", 1)[0])
        if len(self.data) < end + 4 + size:
            return
        status, body, self.data = head[9:12], self.data[end + 4 :], b""
        if self.ranking:
            self.latencies.append(time.perf_counter() - self.began)
            if status == b"200" and self.draw.random() >= self.unrewarded:
                self._reward(body)
                return
            self.failed += status != b"200"
        elif status == b"204":
            self.done += 1
        else:
            self.failed += 1
        self._next()

    def connection_lost(self, error: Exception | None) -> None:
        del error
        if not self.ended.done():
            self.failed += 1
            self.ended.set_result(None)

    def _next(self) -> None:
        """Send the next rank when it is due; one that is late is sent at once, so the rate is held."""
        if not self.pause:
            self._rank()
            return
        self.due += self.pause * 2 * self.draw.random()
        delay = max(self.due - time.perf_counter(), 0.0)
        asyncio.get_running_loop().call_later(delay, self._rank)

    def _rank(self) -> None:
        self.began = time.perf_counter()
        if self.began >= self.until or self.transport.is_closing():
            if not self.ended.done():
                self.ended.set_result(None)
            self.transport.close()
            return
        self.ranking, self.event_id = True, self.prefix + b"%012x" % self.draw.getrandbits(48)
        before, after = self.requests.ranks[self.draw.getrandbits(9)]
        self.transport.write(before + self.event_id + after)

    def _reward(self, body: bytes) -> None:
        at = body.index(b'"index":') + 8
        earned = self.draw.random() < (0.6 if body[at : at + 1] == b"3" else 0.2)
        self.ranking = False
        before, after = self.requests.rewards[earned]
        self.transport.write(before + self.event_id + after)


class LineConnection(Connection):
    """One connection to a daemon of Vowpal Wabbit: an event is lines up to an empty one."""

    def data_received(self, data: bytes) -> None:
        self.data += data
        if not self.data.endswith(b"\n"):
            return
        answer, self.data = self.data, b""
        if not self.ranking:
            self.done += 1
            self._rank()
            return
        self.latencies.append(time.perf_counter() - self.began)
        chances = [float(each.partition(b":")[2]) for each in answer.split(b",")]
        chosen = self.draw.choices(range(len(chances)), chances)[0]
        earned = self.draw.random() < (0.6 if chosen == 3 else 0.2)
        self.ranking, lines = False, self.event
        lines = [*lines[: chosen + 1], b"0:%d:%f %b" % (-earned, chances[chosen], lines[chosen + 1])]
        self.transport.write(b"\n".join((*lines, *self.event[chosen + 2 :])) + b"\n\n")

    def _rank(self) -> None:
        self.began = time.perf_counter()
        if self.began >= self.until:
            self.ended.set_result(None)
            self.transport.close()
            return
        self.ranking, self.event = True, self.requests.lines[self.draw.getrandbits(9)]
        self.transport.write(b"\n".join(self.event) + b"\n\n")


def _identity(connection: Connection) -> Connection:
    return connection


async def loaded(
    port: int,
    *,
    connections: int,
    seconds: float,
    pause: float = 0.0,
    unrewarded: float = 0.0,
    connection: type[Connection] = Connection,
    prefix: str = "",
) -> Load:
    """Load a server for a number of seconds.

    `pause` is the mean time in seconds between two ranks of a connection; without it, a rank follows the last
    answer at once. `unrewarded` is the share of ranks without a reward.
    """
    requests, latencies = _Requests(prefix), [0.0]
    began, spent = time.perf_counter(), time.process_time()
    loop, found = asyncio.get_running_loop(), []
    for number in range(connections):
        made = connection(
            requests, number, began + seconds, pause=pause, latencies=latencies, unrewarded=unrewarded
        )
        await loop.create_connection(partial(_identity, made), "127.0.0.1", port)
        found.append(made)
    await asyncio.gather(*(each.ended for each in found))
    took, spent = time.perf_counter() - began, time.process_time() - spent
    done = sum(each.done for each in found)
    latencies.sort()
    return Load(
        done / took,
        1000 * latencies[len(latencies) // 2],
        1000 * latencies[int(len(latencies) * 0.99)],
        sum(each.failed for each in found),
        generator_us=1e6 * spent / max(done, 1),
    )
