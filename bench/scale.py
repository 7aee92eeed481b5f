"""Learning in partitions: speed with worker processes here, and a simulation of more workers.

``python -m bench.scale`` learns a generated stream of 8 actions with the single learner and with 1, 2
and 4 workers, and prints events per second of wall clock and of CPU. Then it measures what the parts of a
round cost, and replays these costs for 1 to 64 workers on as many cores. The simulation is no measurement: it
assumes that cores do not slow each other down, and that a machine's messages cost what they cost here.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench import kit
from datasets.generate import write
from onlineauto import Workspace
from onlineauto.cluster.partitions.coordinator import Coordinator, RoundSchedule
from onlineauto.cluster.partitions.messages import (
    Chunk,
    base_of_tree,
    chunk_to_tree,
    end_of_tree,
    pack,
    unpack,
)
from onlineauto.cluster.partitions.pool import InlinePool
from onlineauto.cluster.partitions.run import PARTITIONS, PartitionedRun
from onlineauto.cluster.partitions.worker import ChunkEnd, Worker
from onlineauto.engine.report.progress import ProgressTable
from onlineauto.workspace.run import Run

OPTIONS: dict[str, Any] = {"cb_explore_adf": True, "live_configs": 4}


@dataclass(frozen=True, slots=True)
class Speed:
    """The time to learn a stream, and its progressive loss."""

    events: int
    wall: float
    cpu: float
    loss: float
    later: float  # CPU seconds of an event after the first ones, which every learner learns alone


class Costs(NamedTuple):
    """Measured CPU seconds of the parts of a round."""

    event: float  # of a worker, for each event: read, learn, pack the outcome
    chunk: float  # of a worker, for each chunk: adopt the base, find and pack what has changed
    found: float  # of the coordinator, for each event, while workers learn: find where it ends
    counted: float  # of the coordinator, for each event: count it
    head: float  # of the coordinator, for each round: learn the first events
    base: float  # of the coordinator, for each round: find and pack the base
    merge: float  # of the coordinator, for each round
    merged_end: float  # of the coordinator, for each chunk: read its end and merge it


def measure(path: Path, workers: int) -> Speed:
    """Return the speed of learning a file, with 0 workers that of the single learner."""
    children, wall, cpu = _children(), time.perf_counter(), time.process_time()
    losses, events = 0.0, 0
    alone = 0, 0.0
    workspace = Workspace(**OPTIONS)
    run = PartitionedRun(workspace, path, workers=workers) if workers else Run(workspace, path)
    with run if isinstance(run, PartitionedRun) else nullcontext():
        for block, outcomes in run:
            events, losses = events + len(block), losses + float(outcomes.loss.sum(dtype=np.float64))
            if not alone[0] and events >= RoundSchedule().alone:
                alone = events, time.process_time()
    own = time.process_time()
    seconds = own - cpu + _children() - children
    later = (own - alone[1]) / (events - alone[0]) if 0 < alone[0] < events else seconds / events
    return Speed(events, time.perf_counter() - wall, seconds, losses / events, later)


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class _Timer:
    """Adds up the CPU seconds of the calls of a method."""

    def __init__(self, owner: object, name: str) -> None:
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
        self.unpacked = self.looked = 0.0

    def learn(self, coordinator: Coordinator, chunks: Sequence[Chunk]) -> list[ChunkEnd]:
        """Return the ends of the chunks."""
        begin = time.process_time()
        base = coordinator.next_base()
        message = b"".join(pack(base))
        self.bases.append(time.process_time() - begin)
        if self._worker is None:
            self._worker = Worker(coordinator.workspace.configuration)
            message = b"".join(pack(coordinator.full_base()))
        times = [time.process_time()]
        coordinator.look_ahead()
        times.append(time.process_time())
        self._worker.adopt(base_of_tree(unpack(message)))
        times.append(time.process_time())
        looked, adopted = np.diff(times).tolist()
        self.looked += looked
        ends = []
        for chunk in chunks:
            times = [time.process_time()]
            unpack(b"".join(pack(chunk_to_tree(chunk))))
            data = b"".join(pack(self._worker.learn(chunk.block, chunk.seed)))
            times.append(time.process_time())
            ends.append(end_of_tree(unpack(data)))
            times.append(time.process_time())
            learnt, unpacked = np.diff(times).tolist()
            self.unpacked += unpacked
            self.chunks.append((len(chunk.block), adopted + learnt))
        return ends


def measure_costs(path: Path, *, schedule: RoundSchedule, partitions: Sequence[int] = (2, 4)) -> Costs:
    """Return the costs of the parts of a round, measured in this process with several numbers of chunks."""
    chunks, bases, ends, heads = [], list[float](), [], list[float]()
    found, counted = list[float](), list[float]()
    for n in partitions:
        run = PartitionedRun(Workspace(**OPTIONS), path, partitions=n, schedule=schedule)
        run.pool = messages = _Messages()
        of_heads, counts = _Timer(run.workspace, "learn_block"), _Timer(ProgressTable, "update")
        merges = _Timer(Coordinator, "merge")
        events = sum(len(block) for block, _ in run)
        for timer in (of_heads, counts, merges):
            timer.restore()
        chunks += messages.chunks
        bases += messages.bases[1:]
        heads += of_heads.seconds[1:]
        found.append(messages.looked / events)
        counted.append(sum(counts.seconds) / events)
        seconds = float(np.median(merges.seconds)) + messages.unpacked / len(merges.seconds)
        ends.append((n, seconds))
    of_chunk, of_event = _line(chunks)
    of_merge, of_end = _line(ends)
    return Costs(
        event=of_event,
        chunk=of_chunk,
        found=float(np.mean(found)),
        counted=float(np.mean(counted)),
        head=float(np.median(heads)),
        base=float(np.median(bases)),
        merge=of_merge,
        merged_end=of_end,
    )


def _line(points: Sequence[tuple[int, float]]) -> tuple[float, float]:
    """Return a and b of the least-squares line a + b·x; neither is negative."""
    table = np.array([[1.0, x] for x, _ in points])
    first, slope = np.linalg.lstsq(table, np.array([y for _, y in points]), rcond=None)[0].tolist()
    return max(first, 0.0), max(slope, 0.0)


def simulate(costs: Costs, workers: int, *, events: int) -> float:
    """Return events per second of rounds of `events` events, each cut into one chunk for each worker.

    The coordinator learns the head, packs the base, merges the ends and counts events while workers wait. It
    finds the events of the next round while they learn.
    """
    alone = costs.head + costs.base + costs.merge + workers * costs.merged_end + events * costs.counted
    learning = costs.chunk + events / workers * costs.event
    return events / (alone + max(learning, events * costs.found))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the measured speeds and the simulation."""
    stream = kit.Option("planted", "a stream of datasets.generate")
    given = kit.parser(__doc__, events=400_000, stream=stream, workers=[1, 2, 4]).parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "events.txt")
        write(path, kind=given.stream, events=given.events)
        measure(path, 0)  # compiled kernels
        print(kit.table(["learner", "events/s of wall", "events/s of CPU", "CPU per event", "loss"]))
        single = measure(path, 0)
        for workers in (0, *given.workers):
            speed = single if workers == 0 else measure(path, workers)
            name = f"{workers} workers" if workers else "single"
            ratio = speed.cpu / speed.events / (single.cpu / single.events)
            print(
                f"| {name} | {speed.events / speed.wall:,.0f} | {speed.events / speed.cpu:,.0f} "
                f"| {1e6 * speed.cpu / speed.events:.1f} µs, {ratio:.2f}x | {speed.loss:.5f} |"
            )
        costs = measure_costs(path, schedule=RoundSchedule())
    print(f"\nCosts of a round, in CPU time: {costs}")
    longest, one = RoundSchedule().longest, 1.0 / single.later
    print("\n" + kit.table(["workers (simulated)", "events of a round", "events/s", "efficiency"]))
    for workers in (1, 2, 4, 8, 16, 32, 64):
        length = longest * max(workers, PARTITIONS)
        rate = simulate(costs, workers, events=length)
        print(f"| {workers} | {length:,} | {rate:,.0f} | {rate / workers / one:.2f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
