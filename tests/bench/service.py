"""A load generator: ranks and rewards over HTTP, the service beside a FastAPI application, in alternation.

    python -m tests.bench.service --peer /path/of/an/environment/bin/python

Each connection sends a rank of 8 actions, waits for the answer, sends its reward, and goes on. The service
has `--automl 4`, and an answer waits for the disk; the peer (`service_peer.py`) has Vowpal Wabbit's
`--automl 4` and no log. Latencies are those of ranks, seen by the client, on the same machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import httpx

from tests.service.serving import Service, free_port

ACTIONS = 8


class Load(NamedTuple):
    """Pairs of rank and reward a second, milliseconds of ranks, the server's processor time a pair."""

    pairs_per_second: float
    p50: float
    p99: float
    failed: int
    cpu_us: float = 0.0


def cpu_seconds(process: int) -> float:
    """Return the processor time that a process has had."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def question(draw: Random, event_id: str) -> bytes:
    actions = {
        f"a{n}": {"item": {f"i{n}": 1, "price": round(draw.random(), 2)}, "kind": {f"k{n % 3}": 1}}
        for n in range(ACTIONS)
    }
    context = {
        "user": {f"u{draw.randrange(50)}": 1, "age": draw.randrange(80)},
        "time": {f"h{draw.randrange(24)}": 1},
    }
    return json.dumps({"event_id": event_id, "context": context, "actions": actions}).encode()


async def ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, body: bytes
) -> tuple[int, bytes]:
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    answer = await reader.readuntil(b"\r\n\r\n")
    length = 0
    for line in answer.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            length = int(line[15:])
    content = await reader.readexactly(length) if length else b""
    return int(answer[9:12]), content


async def one(port: int, number: int, until: float, latencies: list[float]) -> tuple[int, int]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    draw, done, failed = Random(time.time_ns()), 0, 0
    while time.perf_counter() < until:
        event_id = f"{number}-{draw.getrandbits(60)}"
        body = question(draw, event_id)
        began = time.perf_counter()
        status, content = await ask(reader, writer, "/v1/rank", body)
        latencies.append(time.perf_counter() - began)
        if status != 200:
            failed += 1
            continue
        index = json.loads(content)["index"]
        reward = json.dumps(
            {"event_id": event_id, "reward": float(draw.random() < (0.6 if index == 3 else 0.2))}
        )
        status, _ = await ask(reader, writer, "/v1/reward", reward.encode())
        failed += status != 204
        done += 1
    writer.close()
    return done, failed


async def load(port: int, *, connections: int, seconds: float) -> Load:
    latencies: list[float] = []
    began = time.perf_counter()
    found = await asyncio.gather(
        *(one(port, number, began + seconds, latencies) for number in range(connections))
    )
    spent = time.perf_counter() - began
    latencies.sort()
    return Load(
        sum(done for done, _ in found) / spent,
        1000 * latencies[len(latencies) // 2],
        1000 * latencies[int(len(latencies) * 0.99)],
        sum(failed for _, failed in found),
    )


def measured(port: int, process: int, *, connections: int, seconds: float) -> Load:
    asyncio.run(load(port, connections=connections, seconds=1.0))
    before = cpu_seconds(process)
    found = asyncio.run(load(port, connections=connections, seconds=seconds))
    pairs = found.pairs_per_second * seconds
    return found._replace(cpu_us=1e6 * (cpu_seconds(process) - before) / pairs)


def peer(python: str, *, connections: int, seconds: float) -> Load:
    port = free_port()
    program = Path(__file__).with_name("service_peer.py")
    process = subprocess.Popen([python, str(program), str(port)])
    try:
        for _ in range(200):
            try:
                asyncio.run(asyncio.wait_for(ready(port), 1.0))
                break
            except OSError:
                time.sleep(0.1)
        return measured(port, process.pid, connections=connections, seconds=seconds)
    finally:
        process.terminate()
        process.wait()


async def ready(port: int) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.close()


def service(*, connections: int, seconds: float) -> Load:
    model = ("--cb_explore_adf", "--automl", "4", "--epsilon", "0.1")
    with tempfile.TemporaryDirectory() as folder, Service(Path(folder) / "loop", model=model) as serving:
        return measured(serving.port, serving.process.pid, connections=connections, seconds=seconds)


def resident_mb(process: int) -> float:
    """Return the memory that a process has now."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def soak(*, connections: int, seconds: float) -> None:
    """Load a service for long, and print its memory and its lag every so often."""
    model = ("--cb_explore_adf", "--automl", "4", "--epsilon", "0.1")
    words = ("--reward_wait", "20", "--snapshot_every", "10")
    with (
        tempfile.TemporaryDirectory() as folder,
        Service(Path(folder) / "loop", *words, model=model) as serving,
    ):
        began = time.perf_counter()
        while time.perf_counter() - began < seconds:
            found = asyncio.run(load(serving.port, connections=connections, seconds=min(30.0, seconds)))
            status = json.loads(httpx.get(f"{serving.url}/v1/status").content)
            print(
                f"{time.perf_counter() - began:6.0f} s  {status['ranked']:9} ranked  "
                f"{status['learnt']:9} learnt  {resident_mb(serving.process.pid):7.1f} MB  "
                f"lag {status['lag_seconds']:.2f} s  "
                f"{found.pairs_per_second:6.0f} a second  p99 {found.p99:.1f} ms  {found.failed} failed",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", help="the interpreter of the environment of the peer")
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", help="a file for every sample")
    parser.add_argument(
        "--soak", type=float, help="load the service for so many seconds, and watch its memory"
    )
    options = parser.parse_args()
    if options.soak:
        soak(connections=options.connections, seconds=options.soak)
        return
    given: dict[str, Any] = {"connections": options.connections, "seconds": options.seconds}
    samples: dict[str, list[Load]] = {"service": []}
    for _ in range(options.rounds):
        samples["service"].append(service(**given))
        if options.peer:
            samples.setdefault("peer", []).append(peer(options.peer, **given))
        for name, found in samples.items():
            last = found[-1]
            print(
                f"{name:8} {last.pairs_per_second:8.0f} rank + reward a second, rank p50 {last.p50:.1f} ms, "
                f"p99 {last.p99:.1f} ms, {last.cpu_us:.0f} us of processor time a pair, {last.failed} failed",
                flush=True,
            )
    if options.json:
        Path(options.json).write_text(json.dumps(samples))


if __name__ == "__main__":
    main()
