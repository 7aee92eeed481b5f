"""What a router costs beside a direct request: CPU microseconds, and latency over one connection.

``python -m bench.service.route`` starts a model that answers at once, and a router in front of it.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import numpy as np

from bench import kit
from tests.service.language_models import completion
from tests.service.serving import Service

REQUESTS = 2000
_TICKS = os.sysconf("SC_CLK_TCK")
_WORDS = ("write", "a", "short", "story", "about", "the", "sea", "and", "those", "who", "live", "near", "it")


class _Model(asyncio.Protocol):
    """Answers each request, whose head and body arrive together or one after the other, at once."""

    body = json.dumps(completion("an answer")).encode()
    answer = (
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body
    )

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport, self.data = transport, b""

    def data_received(self, data: bytes) -> None:
        self.data += data
        head, end, body = self.data.partition(b"\r\n\r\n")
        size = next(
            (int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")),
            0,
        )
        if end and len(body) >= size:
            self.data = b""
            assert isinstance(self.transport, asyncio.Transport)
            self.transport.write(self.answer)


def _model() -> int:
    """Start a model in a thread, and return its port."""
    ports: list[int] = []
    ready = threading.Event()

    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(_Model, "127.0.0.1", 0)
        ports.append(server.sockets[0].getsockname()[1])
        ready.set()
        await server.serve_forever()

    threading.Thread(target=lambda: asyncio.run(main()), daemon=True).start()
    ready.wait()
    return ports[0]


def _seconds(pid: int) -> float:
    """Return the CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _latencies(url: str, words: int, model: str, feedback: str, requests: int) -> list[float]:
    """Return the seconds of requests, one after the other."""
    seconds = []
    with httpx.Client(timeout=30) as client:
        for number in range(requests):
            text = " ".join(
                _WORDS[(number + index) % len(_WORDS)] + str(index // 9) for index in range(words)
            )
            body = {"model": model, "messages": [{"role": "user", "content": text}]}
            began = time.perf_counter()
            answer = client.post(f"{url}/chat/completions", json=body)
            seconds.append(time.perf_counter() - began)
            if feedback:
                client.post(
                    feedback, json={"event_id": answer.headers["onlineauto-event-id"], "reward": number % 2}
                )
    return seconds[requests // 10 :]


def measure(requests: int = REQUESTS) -> Iterator[dict[str, object]]:
    """Yield the milliseconds of each kind of request, and the CPU microseconds of the router for it."""
    port = _model()
    with TemporaryDirectory() as folder:
        models = Path(folder) / "models.toml"
        models.write_text(
            "".join(f'[models.m{index}]\nurl = "http://127.0.0.1:{port}/v1"\n' for index in range(3))
        )
        router = Service(Path(folder) / "router", "--endpoints", str(models), model=())
        router.verb = "route"
        with router:
            for words in (20, 200):
                for name, url, model, feedback in (
                    ("direct", f"http://127.0.0.1:{port}/v1", "m0", ""),
                    ("a named model", f"{router.url}/v1", "m0", ""),
                    ("routed", f"{router.url}/v1", "auto", ""),
                    ("routed, with feedback", f"{router.url}/v1", "auto", f"{router.url}/v1/feedback"),
                ):
                    before = _seconds(router.process.pid)
                    found = _latencies(url, words, model, feedback, requests)
                    used = (_seconds(router.process.pid) - before) / requests * 1e6
                    middle, high = np.percentile(found, [50, 99]) * 1e3
                    row = {"words": words, "request": name, "median ms": middle, "p99 ms": high}
                    yield row | {"CPU µs of the router": used}


def main() -> None:
    kit.printed(measure(kit.parser(__doc__, requests=REQUESTS).parse_args().requests))


if __name__ == "__main__":
    main()
