"""The process that times onlineauto; it uses the public interface only, so that it can time any commit.

Reads one JSON object a line, ``{"task": "fit" | "read" | "predict", "options": {...}, "file": ...}``, and
answers each with one: numbers by name, or ``{"error": ...}``. What is compiled or loaded from the disk by a
first request of a kind is not excluded from its time: ask once and throw the answer away.
"""

from __future__ import annotations

import gc
import io
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO, cast

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

    from onlineauto.features.block import Block

EVENTS = 256
"""How many different events are predicted."""
CALLS = 20_000
"""How often `predict` is timed."""


def fit(options: dict[str, Any], *, file: str) -> dict[str, float]:
    """Seconds, and seconds of the processor, of making a workspace and learning a file; the average loss."""
    from onlineauto import Workspace

    begin, cpu, losses, events = time.perf_counter(), time.process_time(), 0.0, 0
    for _, outcomes in Workspace(**options).stream(file):
        losses, events = losses + float(outcomes.loss.sum()), events + len(outcomes)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    return {"seconds": seconds, "cpu": cpu, "loss": losses / max(events, 1)}


def read(options: dict[str, Any], *, file: str) -> dict[str, float]:
    """Seconds of reading a file into blocks, and megabytes (10^6 bytes) a second."""
    import onlineauto

    begin = time.perf_counter()
    for _ in onlineauto.read(file, **options):
        pass
    seconds = time.perf_counter() - begin
    return {"seconds": seconds, "mb_per_second": os.stat(file).st_size / 1e6 / seconds}  # noqa: PTH116


class OneByOne(io.RawIOBase):
    """A file that hands out one event at a time, like a pipe, so that each is a separate block."""

    def __init__(self, file: str) -> None:
        with open(file, "rb") as source:  # noqa: PTH123 - as short as it gets
            self._events = iter([event + b"\n\n" for event in source.read().split(b"\n\n") if event.strip()])
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        self._left = self._left or next(self._events, b"")
        room = memoryview(buffer).cast("B")
        part, self._left = self._left[: len(room)], self._left[len(room) :]
        room[: len(part)] = part
        return len(part)


def one_event_blocks(options: dict[str, Any], *, file: str) -> Iterator[Block]:
    """Yield the events of a file as blocks of one event each, over the same namespaces."""
    import onlineauto

    reading: dict[str, Any] = {name: value for name, value in options.items() if name.endswith("_adf")}
    for block in onlineauto.read(cast("BinaryIO", OneByOne(file)), **reading):
        if len(block) == 1:
            yield block


def predict(options: dict[str, Any], *, file: str, calls: int = CALLS) -> dict[str, float]:
    """Microseconds of ``Workspace.predict_block`` on a parsed event, by a model that has learnt the file."""
    from onlineauto import Workspace

    workspace = Workspace(**options).fit(file)
    blocks = list(islice(one_event_blocks(options, file=file), EVENTS))
    times = []
    for i in range(-len(blocks), calls):
        block = blocks[i % len(blocks)]
        begin = time.perf_counter_ns()
        workspace.predict_block(block)
        times.append(time.perf_counter_ns() - begin)
    warm = sorted(times[len(blocks) :])
    return {"p50": warm[len(warm) // 2] / 1e3, "p99": warm[len(warm) * 99 // 100] / 1e3}


TASKS: dict[str, Callable[..., dict[str, float]]] = {"fit": fit, "read": read, "predict": predict}
"""What can be asked for."""


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Answer a request after a garbage collection, so that no earlier garbage counts."""
    gc.collect()
    try:
        return TASKS[request.pop("task")](request.pop("options"), **request)
    except Exception:  # to be reported by who asked
        return {"error": traceback.format_exc()}


def main() -> None:
    """Say what the import took and whence it came, then answer requests until the standard input ends."""
    begin = time.perf_counter()
    import onlineauto

    seconds = time.perf_counter() - begin
    print(json.dumps({"import_seconds": seconds, "package": onlineauto.__file__}), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
