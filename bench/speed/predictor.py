"""Predictions by many threads: one predictor for all of them, by number of threads.

    python -m bench.speed.predictor [--predictions 200000] [--threads 1 2 4 8] [--json FILE]

``--predictions`` counts all threads together; ten million take about 20 minutes a row. Events are asked for
one by one, as text, and in blocks that are parsed already. If ``--publish`` is given, one thread learns
meanwhile, and takes a new predictor every 10 ms.
"""

from __future__ import annotations

import itertools
import resource
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import kit
from datasets import generate
from onlineauto import Block, Predictor, Workspace

_EVENTS = 2000
_PAUSE = 0.01


@dataclass(frozen=True, slots=True)
class Row:
    """The speed of so many threads."""

    what: str
    threads: int
    predictions: int
    per_second: float
    peak_mebibytes: float


@dataclass(slots=True)
class _Published:
    """The latest predictor; one thread writes it, all read it."""

    predictor: Predictor


def _learnt() -> tuple[Workspace, list[str], Block]:
    """Return a workspace that has learnt some events, these as texts, and as a block."""
    text = generate.text("planted", events=_EVENTS)
    workspace = Workspace(cb_explore_adf=True, automl=4).fit(text)
    texts = [f"{event}\n\n" for event in text.decode().strip().split("\n\n")]
    return workspace, texts, next(iter(workspace.read(text)))


def _texts(published: _Published, texts: Sequence[str], predictions: int) -> None:
    for n in range(predictions):
        published.predictor.predict(texts[n % len(texts)])


def _blocks(published: _Published, block: Block, predictions: int) -> None:
    for begin in range(0, predictions, len(block)):
        published.predictor.predict_block(block.head(min(len(block), predictions - begin)))


def measure(*, predictions: int, threads: Sequence[int], publish: bool) -> list[Row]:
    """Return the speed for texts and for blocks, for each number of threads."""
    workspace, texts, block = _learnt()
    published, ended = _Published(workspace.predictor()), threading.Event()

    def go_on() -> None:
        for n in itertools.count():
            if ended.wait(_PAUSE):
                return
            workspace.learn(texts[n % len(texts)])
            published.predictor = workspace.predictor()

    publisher = threading.Thread(target=go_on, daemon=True)
    if publish:
        publisher.start()
    rows = []
    for what in ("texts", "blocks"):
        for number in threads:
            each = predictions // number
            job, of = (_texts, texts) if what == "texts" else (_blocks, block)
            askers = [threading.Thread(target=job, args=(published, of, each)) for _ in range(number)]
            begin = time.perf_counter()
            for asker in askers:
                asker.start()
            for asker in askers:
                asker.join()
            speed = each * number / (time.perf_counter() - begin)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            rows.append(Row(what, number, each * number, round(speed), round(peak, 1)))
    ended.set()
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table and write the file."""
    given = kit.parser(
        __doc__, predictions=200_000, threads=[1, 2, 4, 8], publish=False, json=Path
    ).parse_args(arguments)
    rows = measure(predictions=given.predictions, threads=given.threads, publish=given.publish)
    print(f"{'':8}{'threads':>8}{'predictions/s':>15}{'peak MiB':>10}")
    for row in rows:
        print(f"{row.what:8}{row.threads:8}{row.per_second:15.0f}{row.peak_mebibytes:10.1f}")
    kit.write_json(given.json, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
