"""Learning in partitions: speed with worker processes here, and a simulation of more workers.

``python -m tests.bench.scale`` learns a generated stream of 8 actions with the single learner and with 1, 2
and 4 workers, and prints events per second of wall clock and of CPU. Then it measures what the parts of a
round cost, and replays these costs for 1 to 64 workers on as many cores. The simulation is no measurement: it
assumes that cores do not slow each other down, and that a machine's messages cost what they cost here.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from datasets.generate import stream
from onlineauto import Workspace
from onlineauto.cluster.partitions.coordinator import Coordinator, Schedule
from onlineauto.cluster.partitions.local import InlinePool
from onlineauto.cluster.partitions.messages import (
    base_of_tree,
    base_to_tree,
    chunk_to_tree,
    end_of_tree,
    end_to_tree,
    pack,
    unpack,
)
from onlineauto.cluster.partitions.run import PartitionedRun
from onlineauto.cluster.partitions.worker import Worker
from onlineauto.engine.report.progress import ProgressTable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from onlineauto.cluster.partitions.messages import Chunk
    from onlineauto.cluster.partitions.worker import End

OPTIONS: dict[str, Any] = {"cb_explore_adf": True, "live_configs": 4}


@dataclass(frozen=True, slots=True)
class Speed:
    """What learning a stream has cost, and its progressive loss."""

    events: int
    wall: float
    cpu: float
    loss: float


@dataclass(frozen=True, slots=True)
class Costs:
    """Measured CPU seconds of the parts of a round."""

    event: float  # of a worker, for each event
    chunk: float  # of a worker, for each chunk: return to the base, find and pack what has changed
    handed: float  # of the coordinator, for each event: read, cut, pack, count
    base: float  # of the coordinator, for each round: find and pack the base
    merge: float  # of the coordinator, for each round
    merged_end: float  # of the coordinator, for each chunk: read its end and merge it


def write_stream(path: Path, *, name: str, events: int) -> None:
    """Write a generated stream to a file."""
    with path.open("wb") as file:
        for chunk in stream(name, events=events, seed=7):
            file.write(chunk.text)


def measure(path: Path, workers: int) -> Speed:
    """Return the speed of learning a file, with 0 workers that of the single learner."""
    children, wall, cpu = _children(), time.perf_counter(), time.process_time()
    losses, events = 0.0, 0
    if workers == 0:
        for block, outcomes in Workspace(**OPTIONS).stream(path):
            events, losses = events + len(block), losses + float(outcomes.loss.sum(dtype=np.float64))
    else:
        with PartitionedRun(Workspace(**OPTIONS), path, workers=workers) as run:
            for block, outcomes in run:
                events, losses = events + len(block), losses + float(outcomes.loss.sum(dtype=np.float64))
    seconds = time.process_time() - cpu + _children() - children
    return Speed(events, time.perf_counter() - wall, seconds, losses / events)


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class _Timer:
    """Adds up the CPU seconds of the calls of a method."""

    def __init__(self, owner: type, name: str) -> None:
        self.seconds: list[float] = []
        self._owner, self._name, self._method = owner, name, getattr(owner, name)
        setattr(owner, name, self._timed(self._method))

    def _timed(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            begin = time.process_time()
            try:
                return method(*arguments, **keywords)
            finally:
                self.seconds.append(time.process_time() - begin)

        return call

    def restore(self) -> None:
        """Put the method back."""
        setattr(self._owner, self._name, self._method)


class _Messages(InlinePool):
    """Learns chunks in this process, with the messages of processes, and notes what each part costs."""

    def __init__(self) -> None:
        super().__init__()
        self.chunks: list[tuple[int, float]] = []  # events and seconds of a worker
        self.bases: list[float] = []
        self.packed = self.unpacked = 0.0

    def learn(self, coordinator: Coordinator, chunks: Sequence[Chunk]) -> list[End]:
        """Return the ends of the chunks."""
        begin = time.process_time()
        base = coordinator.next_base()
        message = b"".join(pack(base_to_tree(base)))
        self.bases.append(time.process_time() - begin)
        if self._worker is None:
            self._worker = Worker(coordinator.workspace.configuration)
            message = b"".join(pack(base_to_tree(coordinator.full_base())))
        self._worker.adopt(base_of_tree(unpack(message)))
        ends = []
        for chunk in chunks:
            times = [time.process_time()]
            data = b"".join(pack(chunk_to_tree(chunk)))
            times.append(time.process_time())
            unpack(data)
            message = b"".join(pack(end_to_tree(self._worker.learn(chunk.block, chunk.seed))))
            times.append(time.process_time())
            ends.append(end_of_tree(unpack(message)))
            times.append(time.process_time())
            packed, learnt, unpacked = np.diff(times).tolist()
            self.packed, self.unpacked = self.packed + packed, self.unpacked + unpacked
            self.chunks.append((len(chunk.block), learnt))
        return ends


def measure_costs(path: Path, *, schedule: Schedule, partitions: Sequence[int] = (2, 4)) -> Costs:
    """Return the costs of the parts of a round, measured in this process with several numbers of chunks."""
    chunks, bases, ends, handed = [], list[float](), [], []
    for n in partitions:
        run = PartitionedRun(Workspace(**OPTIONS), path, partitions=n, schedule=schedule)
        run.pool = messages = _Messages()
        methods = ((PartitionedRun, "_read"), (Coordinator, "cut"), (ProgressTable, "update"))
        timers = [_Timer(*method) for method in methods]
        merges = _Timer(Coordinator, "merge")
        events = sum(len(block) for block, _ in run)
        for timer in (*timers, merges):
            timer.restore()
        chunks += messages.chunks
        bases += messages.bases[1:]
        seconds = float(np.median(merges.seconds)) + messages.unpacked / len(merges.seconds)
        ends.append((n, seconds))
        handed.append((sum(sum(timer.seconds) for timer in timers) + messages.packed) / events)
    of_chunk, of_event = _line(chunks)
    of_merge, of_end = _line(ends)
    return Costs(of_event, of_chunk, float(np.mean(handed)), float(np.median(bases)), of_merge, of_end)


def _line(points: Sequence[tuple[int, float]]) -> tuple[float, float]:
    """Return a and b of the least-squares line a + b·x; neither is negative."""
    table = np.array([[1.0, x] for x, _ in points])
    first, slope = np.linalg.lstsq(table, np.array([y for _, y in points]), rcond=None)[0].tolist()
    return max(first, 0.0), max(slope, 0.0)


def simulate(costs: Costs, workers: int, *, events: int, head: int) -> float:
    """Return events per second of rounds of `events` events, each cut into one chunk for each worker.

    The coordinator reads and cuts, learns the head, packs the base, and merges the ends, while workers wait.
    """
    alone = events * costs.handed + head * costs.event + costs.base
    alone += costs.merge + workers * costs.merged_end
    return events / (alone + costs.chunk + (events - head) / workers * costs.event)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the measured speeds and the simulation."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.scale", description=__doc__)
    parser.add_argument("--events", type=int, default=400_000)
    parser.add_argument("--stream", default="planted", help="a stream of datasets.generate")
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2, 4])
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "events.txt")
        write_stream(path, name=given.stream, events=given.events)
        measure(path, 0)  # compiled kernels
        print(
            "| learner | events/s of wall | events/s of CPU | CPU per event | loss |\n|---|---|---|---|---|"
        )
        single = measure(path, 0)
        for workers in (0, *given.workers):
            speed = single if workers == 0 else measure(path, workers)
            name = f"{workers} workers" if workers else "single"
            ratio = speed.cpu / speed.events / (single.cpu / single.events)
            print(
                f"| {name} | {speed.events / speed.wall:,.0f} | {speed.events / speed.cpu:,.0f} "
                f"| {1e6 * speed.cpu / speed.events:.1f} µs, {ratio:.2f}x | {speed.loss:.5f} |"
            )
        costs = measure_costs(path, schedule=Schedule())
    print(f"\nCosts of a round, in CPU time: {costs}")
    schedule = Schedule()
    length = schedule.longest
    one = single.events / single.cpu
    print(f"\n| workers (simulated, rounds of {length:,}) | events/s | efficiency |\n|---|---|---|")
    for workers in (1, 2, 4, 8, 16, 32, 64):
        rate = simulate(costs, workers, events=length, head=schedule.head)
        print(f"| {workers} | {rate:,.0f} | {rate / workers / one:.2f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
