"""A soak: a service for an hour at a steady load, with hostile requests beside; its memory and its lag.

    python -m bench.service.soak --seconds 3600 --pairs 300

Connections send ranks and rewards at that rate, each with its own id; a tenth of the decisions get no
reward. Beside them a client sends, ten times a second, what a hostile one would: new names of namespaces
without end, names that are too long, contain controls or begin with an underscore, thousands of features,
rewards of decisions that never were, keys without end, half a JSON. None may be answered with a 500.

The slope of the memory is that of a least-squares line through the second half, in MB an hour, with its
standard error; once of all of it, and once without the model, which grows and shrinks as configs wait for
their turn with the weights that they have learnt. Its bound is that of `-b`.
"""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import httpx
import numpy as np
import uvloop

from bench import kit
from bench.service.__main__ import resident_mb
from bench.service.load import loaded
from tests.service.serving import Service

REPORTED = ("ranked", "learnt", "faulty", "pending", "lag_seconds", "log_bytes", "champion_changes")
MODEL = ("--cb_explore_adf", "--automl", "4", "--epsilon", "0.1")


def hostile(draw: Random) -> tuple[str, bytes]:
    """Return the path and the body of a request that should do no harm."""
    name = "".join(
        chr(draw.choice([draw.randrange(1, 0x250), 0x1F600])) for _ in range(draw.randrange(1, 40))
    )
    kind = draw.randrange(9)
    actions: dict[str, Any] = {"a": {"x": {"one": 1}}, "b": {"x": {"two": 1}}}
    if kind == 0:
        body: Any = {"context": {name: {"f": 1}}, "actions": actions}
    elif kind == 1:
        body = {"context": {name * 20: {"f": 1}}, "actions": actions}
    elif kind == 2:
        body = {"context": {"_" + name: 1}, "actions": actions}
    elif kind == 3:
        body = {"context": {f"{name}{i}": {"f": 1} for i in range(60)}, "actions": actions}
    elif kind == 4:
        body = {"context": {"u": {f"f{draw.getrandbits(40)}": 1 for _ in range(1500)}}, "actions": actions}
    elif kind == 5:
        return "/v1/reward", json.dumps({"event_id": f"never-{draw.getrandbits(60)}", "reward": 1}).encode()
    elif kind == 6:
        found = {"event_id": "keys", "reward": 1, "key": f"k{draw.getrandbits(60)}"}
        return "/v1/reward", json.dumps(found).encode()
    elif kind == 7:
        body = {"context": {"u": {"f": 1}}, "actions": {f"{name}{i}": {} for i in range(300)}}
    else:
        text = json.dumps({"context": {"u": {name: 1}}, "actions": actions}).encode()
        return "/v1/rank", text[: draw.randrange(len(text))]
    return "/v1/rank", json.dumps(body).encode()


def slope(times: list[float], values: list[float]) -> tuple[float, float]:
    """Return the slope of a line through points, for an hour, and its standard error."""
    x, y = np.array(times) / 3600.0, np.array(values)
    if len(x) < 3:
        return 0.0, float("inf")
    (found, _), covariance = np.polyfit(x, y, 1, cov=True)
    return float(found), float(np.sqrt(covariance[0, 0]))


def soak(*, seconds: float, pairs: float, connections: int = 64, every: float = 30.0) -> list[dict[str, Any]]:
    """Load a service; print and return its state every `every` seconds."""
    words = ("--reward_wait", "60", "--snapshot_every", "30", "--keep_log", "0.02")
    statuses: Counter[int] = Counter()
    with (
        tempfile.TemporaryDirectory() as folder,
        Service(Path(folder) / "loop", *words, model=MODEL) as serving,
        httpx.Client(base_url=serving.url, timeout=30.0) as client,
    ):
        stop, draw = threading.Event(), Random(1)

        def harm() -> None:
            with httpx.Client(base_url=serving.url, timeout=30.0) as hostile_client:
                while not stop.wait(0.1):
                    path, body = hostile(draw)
                    statuses[hostile_client.post(path, content=body).status_code] += 1

        def states() -> Iterator[dict[str, Any]]:
            while time.perf_counter() - began < seconds:
                given = {"connections": connections, "seconds": every, "pause": connections / pairs}
                load = uvloop.run(loaded(serving.port, **given, unrewarded=0.1))  # type: ignore[arg-type]
                status = client.get("/v1/status").json()
                snapshot = Path(folder) / "loop" / "snapshot.oam"
                yield {name: status[name] for name in REPORTED} | {
                    "snapshot_mb": snapshot.stat().st_size / 1e6 if snapshot.exists() else 0.0,
                    "seconds": time.perf_counter() - began,
                    "mb": resident_mb(serving.process.pid),
                    "pairs": load.pairs_per_second,
                    "p50": load.p50,
                    "p99": load.p99,
                    "failed": load.failed,
                    "hostile": dict(sorted(statuses.items())),
                }

        harming = threading.Thread(target=harm)
        harming.start()
        began = time.perf_counter()
        try:
            rows = kit.printed(states())
        finally:
            stop.set()
            harming.join()
    half = [row for row in rows if row["seconds"] > rows[-1]["seconds"] / 2]
    rise, error = slope([row["seconds"] for row in half], [row["mb"] for row in half])
    print(f"memory of the second half: {rise:+.2f} MB an hour, standard error {error:.2f}")
    rise, error = slope([row["seconds"] for row in half], [row["mb"] - row["snapshot_mb"] for row in half])
    print(f"without the model, by its snapshot: {rise:+.2f} MB an hour, standard error {error:.2f}")
    lag, failed = max(row["lag_seconds"] for row in rows), sum(row["failed"] for row in rows)
    print(f"largest lag: {lag:.2f} s; failed: {failed}")
    print(f"statuses of hostile requests: {dict(sorted(statuses.items()))}", flush=True)
    assert not any(status >= 500 for status in statuses)
    return rows


def main() -> None:
    options = kit.parser(
        __doc__,
        seconds=3600.0,
        pairs=kit.Option(300.0, "pairs of rank and reward a second"),
        connections=64,
        every=30.0,
        json=Path,
    ).parse_args()
    rows = soak(
        seconds=options.seconds, pairs=options.pairs, connections=options.connections, every=options.every
    )
    kit.write_json(options.json, rows)


if __name__ == "__main__":
    main()
