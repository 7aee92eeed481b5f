"""Learning in partitions: speed with threads here, and a simulation of more workers.

``python -m bench.scale`` learns a generated stream of 8 actions with the single learner and with 1, 2
and 4 workers, and prints events per second of wall clock and of CPU. Then it measures what the parts of a
round cost, with ``--partitions``, as threads of one process and as actors with ``--servers``, and replays
these costs for one worker for each partition. Efficiency is the share of a round in which all workers learn
events. The simulation is no measurement: it assumes that cores do not slow each other down, that a machine's
messages cost what they cost here, and that no new member is on trial. Servers take turns with workers, so
they need no cores of their own.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench import kit
from datasets.generate import write
from onlineauto import Workspace
from onlineauto.cluster.partitions.coordinator import Coordinator, RoundSchedule
from onlineauto.cluster.partitions.messages import Chunk, pack, unpack
from onlineauto.cluster.partitions.pool import CrewPool, RemoteServer, RemoteWorker, ThreadPool
from onlineauto.cluster.partitions.run import PartitionedRun
from onlineauto.cluster.partitions.worker import ChunkEnd, Worker, one_blas_thread
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


class Costs(NamedTuple):
    """Measured CPU seconds of the parts of a round, with a number of chunks and of servers."""

    event: float  # of a worker, for each event: read, learn, pack the outcome
    chunk: float  # of a worker, for each chunk: adopt the base, find and pack what has changed
    found: float  # of the coordinator, for each event, while workers learn: find where it ends
    counted: float  # of the coordinator, for each event: count it
    counts: float  # of the coordinator, for each chunk: count its events
    head: float  # of the coordinator, for each round: learn the first events
    round: float  # of the coordinator, for each round: all the rest
    share: float  # of the server or thread that merges longest, for each round

    @property
    def coordinator(self) -> float:
        """Seconds of the coordinator for a round, but for what grows with its events."""
        return self.head + self.round


def measure(path: Path, workers: int) -> Speed:
    """Return the speed of learning a file, with 0 workers that of the single learner."""
    wall, cpu = time.perf_counter(), time.process_time()
    losses, events = 0.0, 0
    workspace = Workspace(**OPTIONS)
    run = PartitionedRun(workspace, path, workers=workers) if workers else Run(workspace, path)
    with run if isinstance(run, PartitionedRun) else nullcontext():
        for block, outcomes in run:
            events, losses = events + len(block), losses + float(outcomes.loss.sum(dtype=np.float64))
    return Speed(events, time.perf_counter() - wall, time.process_time() - cpu, losses / events)


class _Timer:
    """Keeps the events and CPU seconds of the calls of a method that takes a block or its outcomes last."""

    def __init__(self, owner: object, name: str) -> None:
        self.calls: list[tuple[int, float]] = []
        self._owner, self._name, self._method = owner, name, getattr(owner, name)
        setattr(owner, name, self._timed(self._method))

    def _timed(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            begin = time.process_time()
            try:
                return method(*arguments, **keywords)
            finally:
                self.calls.append((len(arguments[-1]), time.process_time() - begin))

        return call

    def restore(self) -> None:
        """Put the method back."""
        setattr(self._owner, self._name, self._method)


class _Node:
    """A worker or server in this process, which measures its calls."""

    is_up = True

    def __init__(self, owner: RemoteWorker | RemoteServer, calls: list[tuple[str, int, float]]) -> None:
        self._owner, self._calls = owner, calls
        self._answer: Any = None

    def send(self, method: str, *arguments: Any) -> None:
        """Call a method, whose name is the first of the arguments."""
        name, _, *messages = arguments
        begin = time.process_time()
        trees = [unpack(message) if isinstance(message, bytes) else message for message in messages]
        answer, results = getattr(self._owner, name)(*trees)
        self._answer = answer, [b"".join(pack(result)) for result in results]
        seconds = time.process_time() - begin
        n_events = len(results[0].outcomes) if name == "learn" else 0
        self._calls.append((f"{method} {name}", n_events, seconds))

    def receive(self) -> Any:
        """Return the answer of the last call."""
        return self._answer

    def close(self) -> None:
        """End the node."""

    def kill(self) -> None:
        """End the node."""


class _Round(NamedTuple):
    """CPU seconds of a round."""

    chunks: list[tuple[int, float]]  # events and seconds of each call of a worker
    share: float  # of the server that merges longest
    coordinator: float  # all others of this process, without the head
    looked: float  # of these, to find events


class _NodePool(CrewPool[_Node, bytes]):
    """One worker, and servers, in this process, with the messages of processes."""

    def __init__(self, command: str, servers: int) -> None:
        super().__init__(1, lambda nodes, _: nodes, servers)
        self.rounds: list[_Round] = []
        self._command, self._calls = command, list[tuple[str, int, float]]()
        self._begun = self._looked = 0.0

    def learn(self, coordinator: Coordinator, chunks: Sequence[Chunk]) -> list[ChunkEnd]:
        """Return the ends of the chunks."""
        look_ahead, done = coordinator.look_ahead, list[float]()

        def look() -> None:
            if not done:  # the next calls find nothing
                begin = time.process_time()
                look_ahead()
                done.append(time.process_time() - begin)

        self._calls.clear()
        coordinator.look_ahead, self._begun = look, time.process_time()
        try:
            return super().learn(coordinator, chunks)
        finally:
            coordinator.look_ahead, self._looked = look_ahead, sum(done)

    def merge(
        self,
        coordinator: Coordinator,
        ends: Sequence[ChunkEnd],
        meanwhile: Callable[[], object] = lambda: None,
    ) -> None:
        """Merge the ends; `meanwhile` is measured separately."""
        super().merge(coordinator, ends)
        seconds = time.process_time() - self._begun - sum(each for *_, each in self._calls)
        meanwhile()
        chunks = [(n, each) for name, n, each in self._calls if name == "call learn"]
        shares = [each for name, _, each in self._calls if name == "call merge"]
        self.rounds.append(_Round(chunks, max(shares, default=0.0), seconds - self._looked, self._looked))

    def _start(self) -> _Node:
        return _Node(RemoteWorker(self._command), self._calls)

    def _start_server(self, number: int) -> _Node:
        return _Node(RemoteServer(self._command, number), self._calls)

    def send(self, name: str, tree: Any) -> bytes:
        """Return the bytes of a tree."""
        del name
        return b"".join(pack(tree))

    def read(self, sent: bytes) -> Any:
        """Return the tree of a message."""
        return unpack(bytearray(sent))

    def received(self, worker: _Node, message: Any) -> tuple[Any, list[bytes]]:
        """Return an answer and its messages."""
        del worker
        answer, results = message
        return answer, results


class _OneThread(ThreadPool):
    """The workers of a `ThreadPool`, which learn and merge one after the other, and are measured."""

    def __init__(self) -> None:
        super().__init__(1)
        self.rounds: list[_Round] = []
        self._coordinated = self._looked = 0.0
        self._chunks: list[tuple[int, float]] = []

    def learn(self, coordinator: Coordinator, chunks: Sequence[Chunk]) -> list[ChunkEnd]:
        """Return the ends of the chunks, each of a worker of its own."""
        workspace, workers = coordinator.workspace, self._workers
        begin = time.process_time()
        base = coordinator.shared_base()
        based = time.process_time()
        coordinator.look_ahead()
        self._coordinated, self._looked = based - begin, time.process_time() - based
        workers.extend(Worker(workspace.configuration, workspace) for _ in chunks[len(workers) :])
        ends = []
        self._chunks = []
        with one_blas_thread():
            for worker, chunk in zip(workers, chunks, strict=False):
                begin = time.process_time()
                worker.adopt(base)
                ends.append(worker.learn(chunk.block, chunk.seed))
                self._chunks.append((len(chunk.block), time.process_time() - begin))
        return ends

    def merge(
        self,
        coordinator: Coordinator,
        ends: Sequence[ChunkEnd],
        meanwhile: Callable[[], object] = lambda: None,
    ) -> None:
        """Merge the ends; `meanwhile` is measured separately."""
        members: list[float] = []

        def each(merge: Callable[..., Any], *columns: Iterable[Any]) -> Iterator[Any]:
            for arguments in zip(*columns, strict=True):
                begin = time.process_time()
                yield merge(*arguments)
                members.append(time.process_time() - begin)

        begin = time.process_time()
        coordinator.merge(ends, each)
        seconds = time.process_time() - begin + self._coordinated - sum(members)
        meanwhile()
        longest = max(sum(members) / len(ends), *members, 0.0)
        self.rounds.append(_Round(self._chunks, longest, seconds, self._looked))


def measure_costs(
    path: Path, *, schedule: RoundSchedule, partitions: int, servers: int | None = None
) -> Costs:
    """Return the costs of the parts of a round, measured in this process; without `servers`, of threads."""
    run = PartitionedRun(Workspace(**OPTIONS), path, partitions=partitions, schedule=schedule)
    pool: _OneThread | _NodePool = _OneThread()
    if servers is not None:
        pool = _NodePool(run.workspace.configuration.command(kept=True), servers)
    run.pool = pool
    heads, counts = _Timer(run.workspace, "learn_block"), _Timer(ProgressTable, "update")
    events = sum(len(block) for block, _ in run)
    for timer in (heads, counts):
        timer.restore()
    rounds = pool.rounds[len(pool.rounds) // 2 :]  # those before are short, or begin with whole models
    of_chunk, of_event = _line([chunk for each in rounds for chunk in each.chunks])
    of_counts, of_counted = _line(counts.calls)
    return Costs(
        event=of_event,
        chunk=of_chunk,
        found=sum(each.looked for each in pool.rounds) / events,
        counted=of_counted,
        counts=of_counts,
        head=float(np.median([seconds for n, seconds in heads.calls if n <= schedule.head])),
        round=float(np.mean([each.coordinator for each in rounds])),
        share=float(np.mean([each.share for each in rounds])),
    )


def _line(points: Sequence[tuple[int, float]]) -> tuple[float, float]:
    """Return a and b of the least-squares line a + b·x; neither is negative."""
    table = np.array([[1.0, x] for x, _ in points])
    first, slope = np.linalg.lstsq(table, np.array([y for _, y in points]), rcond=None)[0].tolist()
    return max(first, 0.0), max(slope, 0.0)


def simulate(costs: Costs, workers: int, *, events: int) -> float:
    """Return events per second of rounds of `events` events, each cut into one chunk for each worker.

    The coordinator learns the head, packs the base and receives ends while workers wait, and counts events
    while servers merge. It finds the events of the next round while workers learn.
    """
    counting = workers * costs.counts + events * costs.counted
    alone = costs.coordinator + max(costs.share, counting)
    learning = costs.chunk + events / workers * costs.event
    return events / (alone + max(learning, events * costs.found))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the measured speeds and the simulation."""
    stream = kit.Option("planted", "a stream of datasets.generate")
    numbers = {"workers": [1, 2, 4], "partitions": [4, 8, 16], "servers": [0, 4, 16]}
    given = kit.parser(__doc__, events=400_000, stream=stream, **numbers).parse_args(arguments)
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
        longest = RoundSchedule().longest
        print("\nCosts of a round in ms of CPU time, and a simulation of as many workers as chunks\n")
        head = ["chunks", "servers", "coordinator", "longest merge", "worker", "events/s", "efficiency"]
        print(kit.table(head))
        measured = {
            (partitions, servers): measure_costs(
                path, schedule=RoundSchedule(), partitions=partitions, servers=servers
            )
            for partitions in given.partitions
            for servers in (None, *given.servers)
        }
        for (partitions, servers), costs in measured.items():
            rate = simulate(costs, partitions, events=longest * partitions)
            print(
                f"| {partitions} | {'threads' if servers is None else servers} "
                f"| {1e3 * costs.coordinator:.1f} | {1e3 * costs.share:.1f} "
                f"| {1e3 * costs.chunk:.1f} | {rate:,.0f} | {rate * costs.event / partitions:.2f} |"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
