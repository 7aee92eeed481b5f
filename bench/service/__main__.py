"""Ranks and rewards a second: the service beside FastAPI and Vowpal Wabbit, and its daemon, in alternation.

A rank server (`--follow`) is measured with its learner, each as a separate process.

    python -m bench.service --peer /path/of/an/environment/bin/python

`load.py` is the load. The service has `--automl 4`, and an answer waits for the disk. The peers
(`peer.py`, `peer_daemon.py`) have Vowpal Wabbit's `--automl 4`: FastAPI without a log,
FastAPI with a log for whose flush an answer waits too, and a daemon that has neither HTTP nor log nor ids.
Latencies are those of ranks, seen by the client, on the same machine. Where the load and the server share few
cores, the processor time a pair is the steadier figure.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import uvloop

from bench import kit
from bench.service.load import Connection, LineConnection, Load, loaded
from tests.service.serving import Service

MODEL = ("--cb_explore_adf", "--automl", "4", "--epsilon", "0.1")


def cpu_seconds(process: int) -> float:
    """Return the processor time that a process has had."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(
    port: int,
    process: int,
    *,
    connections: int,
    seconds: float,
    connection: type[Connection] = Connection,
    learner: int = 0,
) -> Load:
    """Load a server, and return the processor time of its process and of its learner, if it has one."""
    uvloop.run(loaded(port, connections=connections, seconds=1.0, connection=connection))
    before = [cpu_seconds(each) for each in (process, learner) if each]
    found = uvloop.run(loaded(port, connections=connections, seconds=seconds, connection=connection))
    time.sleep(1.0)  # until the last decisions are learnt
    pairs = max(found.pairs_per_second * seconds, 1.0)
    after = [cpu_seconds(each) for each in (process, learner) if each]
    spent = [1e6 * (end - begin) / pairs for begin, end in zip(before, after, strict=True)]
    return found._replace(cpu_us=spent[0], learner_us=sum(spent[1:]))


def peer(python: str, *, connections: int, seconds: float, log: bool = False) -> Load:
    """Load the FastAPI application, with a log whose answers wait for the disk or without one."""
    with tempfile.TemporaryDirectory() as folder:
        words = [str(Path(folder) / "log")] if log else []
        return _peer(python, "peer.py", *words, connections=connections, seconds=seconds)


def daemon(python: str, *, connections: int, seconds: float) -> Load:
    """Load Vowpal Wabbit's daemon, which is asked and taught by lines of text."""
    return _peer(
        python, "peer_daemon.py", connections=connections, seconds=seconds, connection=LineConnection
    )


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _peer(
    python: str,
    name: str,
    *words: str,
    connections: int,
    seconds: float,
    connection: type[Connection] = Connection,
) -> Load:
    port = free_port()
    process = subprocess.Popen([python, str(Path(__file__).with_name(name)), str(port), *words])
    try:
        for _ in range(200):
            try:
                asyncio.run(asyncio.wait_for(ready(port), 1.0))
                break
            except OSError:
                time.sleep(0.1)
        return measured(port, process.pid, connections=connections, seconds=seconds, connection=connection)
    finally:
        process.terminate()
        process.wait()


async def ready(port: int) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.close()


def service(*, connections: int, seconds: float) -> Load:
    with tempfile.TemporaryDirectory() as folder, Service(Path(folder) / "loop", model=MODEL) as serving:
        return measured(serving.port, serving.process.pid, connections=connections, seconds=seconds)


def rank_server(*, connections: int, seconds: float) -> Load:
    with (
        tempfile.TemporaryDirectory() as folder,
        Service(Path(folder) / "loop", model=MODEL) as learner,
        Service(Path(folder) / "rank", "--follow", learner.url, model=()) as serving,
    ):
        return measured(
            serving.port,
            serving.process.pid,
            connections=connections,
            seconds=seconds,
            learner=learner.process.pid,
        )


def resident_mb(process: int) -> float:
    """Return the memory that a process has now."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> None:
    options = kit.parser(
        __doc__,
        peer=kit.Option(str, "the interpreter of the environment of the peer"),
        connections=[1, 8, 32, 128],
        seconds=5.0,
        rounds=3,
        json=Path,
    ).parse_args()
    contestants: dict[str, Callable[..., Load]] = {"service": service, "rank server": rank_server}
    if options.peer:
        contestants["fastapi"] = partial(peer, options.peer)
        contestants["fastapi+log"] = partial(peer, options.peer, log=True)
        contestants["daemon"] = partial(daemon, options.peer)
    turns = kit.turns(itertools.product(contestants, options.connections), options.rounds)
    samples = kit.printed(
        {"who": who, "connections": count}
        | contestants[who](connections=count, seconds=options.seconds)._asdict()
        for number, (who, count) in turns
        if number
    )
    kit.write_json(options.json, samples)


if __name__ == "__main__":
    main()
