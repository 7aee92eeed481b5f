"""Runs with merge servers whose numbers change, and whose workers and servers are killed."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

from datasets.generate import text
from onlineauto import Workspace
from onlineauto.cluster.partitions.coordinator import RoundSchedule
from onlineauto.cluster.partitions.messages import pack, unpack
from onlineauto.cluster.partitions.pool import CrewPool, RemoteServer, RemoteWorker
from onlineauto.cluster.partitions.run import PartitionedRun
from onlineauto.work.crew import WorkerLost

OPTIONS: dict[str, Any] = {"cb_explore_adf": True, "live_configs": 3, "bit_precision": 14}
SHORT = RoundSchedule(alone=512, head=8, shortest=128, longest=64, growth=4)
Kill = Callable[[], object]


def run_of(rounds: int, **options: Any) -> PartitionedRun:
    """Return a run of a number of rounds."""
    source = text("planted", events=512 + 256 * rounds, seed=5)
    return PartitionedRun(Workspace(**OPTIONS), source, schedule=SHORT, **options)


def saved(run: PartitionedRun) -> bytes:
    """Return the model file of a run."""
    file = io.BytesIO()
    run.checkpoint(file)
    return file.getvalue()


def expected(rounds: int) -> bytes:
    """Return the model file of one worker without servers."""
    run = run_of(rounds)
    run.step()
    return saved(run)


def resized(run: PartitionedRun, resizes: int, seed: int, *, fewest: int = 0) -> tuple[bytes, int]:
    """Learn with random resizes, one every second round, and return the model and the number of changes.

    These are the times that the servers have had other blocks.
    """
    draw, number, owners = Random(seed), 0, list[object]()
    while run.learn_round():
        if number % 2 == 0 and number // 2 < resizes:
            run.resize(draw.randint(1, 3), servers=draw.randint(fewest, 3))
        number += 1
        present = getattr(run.pool, "servers").owners  # noqa: B009 - of pools with processes or actors
        if not owners or owners[-1] is not present:
            owners.append(present)
    assert number >= 2 * resizes
    return saved(run), len(owners) - 1


@contextmanager
def killing(
    kills: int, victims: Callable[[], list[Kill]], seed: int, most_seconds: float
) -> Iterator[list[int]]:
    """Kill a random worker or server at random times; yield the list to which each death is added."""
    draw, stop, deaths = Random(seed), threading.Event(), list[int]()

    def kill() -> None:
        while len(deaths) < kills and not stop.wait(draw.uniform(0.0, most_seconds)):
            if alive := victims():
                victim = draw.randrange(len(alive))
                alive[victim]()
                deaths.append(victim)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield deaths
    finally:
        stop.set()
        thread.join()


class Node:
    """A worker or server in this process, which may die before or after any call."""

    is_up = True

    def __init__(self, owner: RemoteWorker | RemoteServer, dies: Callable[[], bool]) -> None:
        self._owner, self._dies, self._is_dead = owner, dies, False
        self._answer: Any = None

    def send(self, method: str, *arguments: Any) -> None:
        """Call a method, whose name is the first of the arguments of "call"."""
        assert method == "call"
        name, _, *messages = arguments
        self._is_dead = self._is_dead or self._dies()
        if not self._is_dead:
            trees = [
                unpack(bytearray(message)) if isinstance(message, bytes) else message for message in messages
            ]
            answer, results = getattr(self._owner, name)(*trees)
            self._answer = answer, [b"".join(pack(result)) for result in results]
            self._is_dead = self._dies()

    def receive(self) -> Any:
        """Return the answer of the last call."""
        if self._is_dead:
            raise WorkerLost("killed by a test")
        return self._answer

    def close(self) -> None:
        """End the node."""

    def kill(self) -> None:
        """End the node."""


class NodePool(CrewPool[Node, bytes]):
    """Workers and servers in this process, a part of whose calls are their last."""

    def __init__(
        self, run: PartitionedRun, n: int, servers: int, *, deaths: float = 0.0, seed: int = 0
    ) -> None:
        super().__init__(n, lambda nodes, _: nodes, servers)
        self._command = run.workspace.configuration.command(kept=True)
        self.killed, self._deaths, self._draw = 0, deaths, Random(seed)

    def _dies(self) -> bool:
        dies = self._draw.random() < self._deaths
        self.killed += dies
        return dies

    def _start(self) -> Node:
        return Node(RemoteWorker(self._command), self._dies)

    def _start_server(self, number: int) -> Node:
        return Node(RemoteServer(self._command, number), self._dies)

    def send(self, name: str, tree: Any) -> bytes:
        """Return the bytes of a tree."""
        del name
        return b"".join(pack(tree))

    def read(self, sent: bytes) -> Any:
        """Return the tree of a message."""
        return unpack(bytearray(sent))

    def received(self, worker: Node, message: Any) -> tuple[Any, list[bytes]]:
        """Return an answer and its messages."""
        del worker
        answer, results = message
        return answer, results
