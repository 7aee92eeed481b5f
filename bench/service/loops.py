"""Many loops in one service: its memory, the first answer of an idle loop, and a rank beside the only loop.

    python -m bench.service.loops --loops 1000 --busy 10

Every loop has learnt 500 decisions with `--automl 4`, and is a copy of the first one. One service has all of
them; another has a copy as its default loop. The first part asks each loop once, in random order, one request
at a time: all but the latest `--open` loops are closed then, so the answer waits for the model. The second
part sends ranks to some busy loops at a steady rate, and in turns loads one more loop of this service and the
other service, with one connection. Latencies are those that the client sees; `cpu_us` is the processor time
of the process for a pair of rank and reward.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random

import httpx
import numpy as np
import uvloop

from bench import kit
from bench.service.__main__ import cpu_seconds, resident_mb
from bench.service.load import Load, loaded, question
from tests.service.serving import Service

MODEL = ("--cb_explore_adf", "--automl", "4", "--epsilon", "0.1")
_LEARNT = 500
_ID = "0123456789abcdef"


def first_loop(folder: Path) -> None:
    """Make the folder of a loop that has learnt some decisions."""
    draw = Random(1)
    with Service(folder, model=MODEL) as service, httpx.Client(base_url=service.url, timeout=60) as client:
        for number in range(_LEARNT):
            event_id = f"e{number:015d}"
            answer = client.post("/v1/rank", content=question(draw, event_id)).json()
            client.post("/v1/reward", json={"event_id": event_id, "reward": float(answer["index"] == 3)})
        service.stop()
    options = " ".join([*MODEL, "--learn_at reward"])
    (folder / "loop.json").write_text(json.dumps({"options": options}))
    end = sum(path.stat().st_size for path in (folder / "log").iterdir())
    (folder / "closed.json").write_text(json.dumps({"end": end}))


def first_answers(service: Service, names: list[str]) -> list[float]:
    """Return the milliseconds of one rank of each loop."""
    draw, taken = Random(2), []
    with httpx.Client(base_url=service.url, timeout=60) as client:
        for name in draw.sample(names, len(names)):
            body = question(draw, _ID)
            began = time.perf_counter()
            assert client.post(f"/v1/loops/{name}/rank", content=body).status_code == 200
            taken.append(1e3 * (time.perf_counter() - began))
    return taken


async def busy(port: int, names: list[str], pairs: float, seconds: float) -> None:
    """Send pairs of rank and reward at a steady rate to some loops, each over its connection."""
    await asyncio.gather(
        *(
            loaded(port, connections=1, seconds=seconds, pause=1.0 / pairs, prefix=f"/v1/loops/{name}")
            for name in names
        )
    )


async def beside(port: int, prefix: str, seconds: float, others: list[str], pairs: float, of: int) -> Load:
    """Load a loop with one connection, while the busy loops of the service at `of` have their rate."""
    steady = asyncio.create_task(busy(of, others, pairs, seconds + 1.0))
    await asyncio.sleep(0.5)
    found = await loaded(port, connections=1, seconds=seconds, prefix=prefix)
    await steady
    return found


def main(argv: Sequence[str] | None = None) -> None:
    options = kit.parser(
        __doc__, loops=1000, busy=10, pairs=5.0, seconds=2.0, rounds=6, open=12, json=Path
    ).parse_args(argv)
    names = [f"loop{number}" for number in range(options.loops)]
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root) / "many"
        folder.mkdir()
        first_loop(folder / names[0])
        for name in names[1:]:
            shutil.copytree(folder / names[0], folder / name)
        shutil.copytree(folder / names[0], Path(root) / "one")
        words = ("--max_open_loops", str(options.open))
        begin = time.perf_counter()
        with (
            Service(folder, *words, model=MODEL) as many,
            Service(Path(root) / "one", model=MODEL) as one,
        ):
            row: dict[str, float] = {"start_seconds": time.perf_counter() - begin}
            row["mb_at_start"] = resident_mb(many.process.pid)
            taken = first_answers(many, names)
            row |= {f"first_ms_p{at}": float(np.percentile(taken, at)) for at in (50, 90, 99)}
            row["mb_after_all"] = resident_mb(many.process.pid)
            others, last = names[: options.busy - 1], names[-1]
            samples = []
            sides = {"one": (one, ""), "many": (many, f"/v1/loops/{last}")}
            for number, name in kit.turns(sides, options.rounds):
                service, prefix = sides[name]
                run = partial(beside, service.port, prefix, options.seconds, others, options.pairs, many.port)
                before = cpu_seconds(service.process.pid)
                found = uvloop.run(run())
                spent = cpu_seconds(service.process.pid) - before
                if number:
                    pairs = max(found.pairs_per_second * options.seconds, 1.0)
                    steady = options.pairs * len(others) * (options.seconds + 1.0) * (name == "many")
                    samples.append(
                        {
                            "who": name,
                            "pairs_per_second": found.pairs_per_second,
                            "p50": found.p50,
                            "p99": found.p99,
                            "failed": found.failed,
                            "cpu_us": 1e6 * spent / (pairs + steady),
                        }
                    )
            row["mb_busy"] = resident_mb(many.process.pid)
            medians = {
                name: {
                    key: float(np.median([each[key] for each in samples if each["who"] == name]))
                    for key in ("p50", "p99", "cpu_us")
                }
                for name in sides
            }
            row |= {f"{key}_{name}": value for name, each in medians.items() for key, value in each.items()}
            row |= {
                f"{key}_ratio": medians["many"][key] / medians["one"][key] for key in ("p50", "p99", "cpu_us")
            }
            kit.printed([row])
            kit.write_json(options.json, [row, *samples])


if __name__ == "__main__":
    main()
