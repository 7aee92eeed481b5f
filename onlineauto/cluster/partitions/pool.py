"""``Pool``: workers that learn the chunks of a round: threads of this process or, as a `Crew`, others.

A worker outside this process that dies is replaced, and its chunk is learnt again from the same base: an end
is merged only when it is complete, and only once.
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

from onlineauto.cluster.partitions.messages import (
    base_of_tree,
    chunk_of_tree,
    chunk_to_tree,
    end_of_tree,
    moved_of_tree,
    state_of_tree,
)
from onlineauto.cluster.partitions.server import MergeServer
from onlineauto.cluster.partitions.servers import Servers
from onlineauto.cluster.partitions.text_file import UnexpectedEventsError
from onlineauto.cluster.partitions.worker import Worker, one_blas_thread
from onlineauto.errors import InputError, OnlineautoError
from onlineauto.features.block import Namespaces
from onlineauto.work.crew import Crew, W, WorkerLost
from onlineauto.workspace.options import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from onlineauto.cluster.partitions.coordinator import Coordinator
    from onlineauto.cluster.partitions.messages import Chunk
    from onlineauto.cluster.partitions.worker import ChunkEnd

_LOG: Final = logging.getLogger("onlineauto")
_LONG: Final = 30.0
"""Seconds without a message after which a warning is logged if no worker is up."""
_MOST_DEATHS: Final = 8
"""Number of deaths of workers after which a run gives up, unless chunks are learnt in between."""
Sent = TypeVar("Sent")
"""A message that was sent."""


def _nothing() -> None:
    """Do nothing."""


class Pool(Protocol):
    """Learns the chunks of a round."""

    @property
    def size(self) -> int:
        """Number of workers that run or start."""

    @property
    def n_servers(self) -> int:
        """Number of merge servers that run or start."""

    def learn(self, coordinator: Coordinator, chunks: Sequence[Chunk]) -> list[ChunkEnd]:
        """Return the ends of chunks that were learnt from the coordinator's next base.

        An `UnexpectedEventsError` says that the coordinator must read the events itself.
        """

    def merge(
        self, coordinator: Coordinator, ends: Sequence[ChunkEnd], meanwhile: Callable[[], object] = _nothing
    ) -> None:
        """Merge the first ends of the last round into the coordinator's model.

        `meanwhile` is called while threads or servers merge.
        """

    def resize(self, n: int, servers: int = 0) -> None:
        """Have `n` workers from the next round on, and as many merge servers as soon as they are ready."""

    def close(self) -> None:
        """End the workers and servers."""


class ThreadPool:
    """Workers that are threads of this process, and read the tables of the coordinator's model."""

    n_servers = 0

    def __init__(self, n: int) -> None:
        self._n = n
        self._workers: list[Worker] = []

    @property
    def size(self) -> int:
        """Number of workers that have a model."""
        return len(self._workers)

    def learn(self, coordinator: Coordinator, chunks: Sequence[Chunk]) -> list[ChunkEnd]:
        """Return the ends of chunks that were learnt from the coordinator's next base.

        If chunks fail, the error is that of the first of them.
        """
        workspace, base = coordinator.workspace, coordinator.shared_base()
        del self._workers[self._n :]
        while len(self._workers) < self._n:
            self._workers.append(Worker(workspace.configuration, workspace))
        idle = [*self._workers]

        def learn(chunk: Chunk) -> ChunkEnd:
            worker = idle.pop()
            if worker.version != base.version:
                worker.adopt(base)
            try:
                return worker.learn(chunk.block, chunk.seed)
            finally:
                idle.append(worker)

        with one_blas_thread(), ThreadPoolExecutor(self._n, "onlineauto-worker") as threads:
            learning = [threads.submit(learn, chunk) for chunk in chunks]
            try:
                coordinator.look_ahead()
                return [future.result() for future in learning]
            except BaseException as error:
                threads.shutdown(cancel_futures=True)
                if not isinstance(error, UnexpectedEventsError):
                    self._workers.clear()
                raise

    def merge(
        self, coordinator: Coordinator, ends: Sequence[ChunkEnd], meanwhile: Callable[[], object] = _nothing
    ) -> None:
        """Merge the first ends of the last round into the coordinator's model, its members in parallel."""
        with ThreadPoolExecutor(self._n, "onlineauto-worker") as threads:
            counting = threads.submit(meanwhile)
            coordinator.merge(ends, threads.map)
            counting.result()

    def resize(self, n: int, servers: int = 0) -> None:
        """Have `n` workers from the next round on."""
        del servers
        self._n = n

    def close(self) -> None:
        """End the workers; the next round starts others."""
        self._workers.clear()


class RemoteWorker:
    """A worker outside the coordinator's process.

    Each method is that of a message, takes the trees of messages, and returns a plain answer and the trees
    that are sent with it.
    """

    def __init__(self, command: str) -> None:
        self._worker, self._namespaces = Worker(REGISTRY.parse(command)), Namespaces()

    def learn(self, base: Any, chunk: Any, *shares: Any) -> tuple[Any, list[Any]]:
        """Return the end of a chunk, without the parts of servers, and these parts.

        An answer has the text of an "error", or why the worker "refuses". `base` is None for that of the last
        call; `shares` are what servers have merged of the last base.
        """
        worker = self._worker
        try:
            if base is not None:
                worker.adopt(base_of_tree(base), [state_of_tree(share) for share in shares])
            block, seed = chunk_of_tree(chunk, self._namespaces, worker.workspace.configuration)
            self._namespaces = block.namespaces
            end = worker.learn(block, seed)
        except UnexpectedEventsError as error:
            return {"refuses": str(error)}, []
        except OnlineautoError as error:
            return {"error": str(error)}, []
        state, parts = worker.divide(end.state)
        return None, [end._replace(state=state), *parts]

    def clock(self, start: int) -> tuple[int, list[Any]]:
        """Hear at which version blocks change their owners, and return the version of this worker's base."""
        del start  # The base of that version has the owners.
        return self._worker.version, []


class RemoteServer:
    """A merge server outside the coordinator's process, with methods like those of `RemoteWorker`."""

    def __init__(self, command: str, number: int) -> None:
        self._server = MergeServer(REGISTRY.parse(command), number)

    def adopt(self, base: Any) -> tuple[Any, list[Any]]:
        """Adopt a base."""
        self._server.adopt(base_of_tree(base))
        return None, []

    def merge(self, *parts: Any) -> tuple[Any, list[Any]]:
        """Send what has merged of this server's parts of ends."""
        return None, [self._server.merge([state_of_tree(part) for part in parts])]

    def give(self, blocks: Any) -> tuple[Any, list[Any]]:
        """Send blocks."""
        return None, [self._server.give([(name, number) for name, number in blocks])]

    def receive(self, *inbox: Any) -> tuple[Any, list[Any]]:
        """Keep blocks until the next base."""
        self._server.receive([moved_of_tree(moved) for moved in inbox])
        return None, []

    def clock(self, start: int) -> tuple[int, list[Any]]:
        """Hear at which version blocks change their owners, and return the version of this server's base."""
        del start  # The base of that version has the owners.
        return self._server.version, []


class Bases(Generic[Sent]):
    """The messages with the next base of a coordinator: for workers with the last one, and for others."""

    def __init__(self, coordinator: Coordinator, send: Callable[[str, Any], Sent]) -> None:
        self._coordinator, self._send = coordinator, send
        self.last = coordinator.version
        self._changes = send("changes", coordinator.next_base())
        self.version = coordinator.version
        self._full: Sent | None = None

    def of_version(self, version: int) -> Sent | None:
        """Return the message for a worker with the base of a version; None if it has this one."""
        if version == self.version:
            return None
        if version == self.last:
            return self._changes
        if self._full is None:
            self._full = self._send("full", self._coordinator.full_base())
        return self._full


class CrewPool(ABC, Generic[W, Sent]):
    """Workers outside this process; those of a failed round are ended, and the next round starts others."""

    def __init__(
        self, n: int, wait: Callable[[Sequence[W], float | None], Sequence[W]], servers: int = 0
    ) -> None:
        self._n = n
        self._crew: Crew[W, int] = Crew(self._start, wait, most_deaths=_MOST_DEATHS)
        self._versions: WeakKeyDictionary[W, int] = WeakKeyDictionary()  # of the bases that workers have
        self._parts: dict[int, list[Sent]] = {}  # of the end of each chunk, for the servers
        self.servers: Servers[W, Sent] = Servers(
            Crew(self._start_server, wait, most_deaths=_MOST_DEATHS), self
        )
        self.servers.n = servers

    @property
    def size(self) -> int:
        """Number of workers that run or start."""
        return len(self._crew)

    @property
    def n_servers(self) -> int:
        """Number of merge servers that run or start."""
        return self.servers.size

    def resize(self, n: int, servers: int = 0) -> None:
        """Have `n` workers from the next round on, and as many merge servers as soon as they are ready."""
        self._n, self.servers.n = n, servers

    def learn(self, coordinator: Coordinator, chunks: Sequence[Chunk]) -> list[ChunkEnd]:
        """Return the ends of chunks that were learnt from the coordinator's next base.

        A `WorkersError` says that workers die again and again, or that a worker has no memory or disk.
        """
        try:
            return self._learn(coordinator, chunks)
        except UnexpectedEventsError:
            raise  # all workers wait
        except BaseException:
            self._end()  # no worker may answer later
            raise

    def merge(
        self, coordinator: Coordinator, ends: Sequence[ChunkEnd], meanwhile: Callable[[], object] = _nothing
    ) -> None:
        """Merge the first ends of the last round into the coordinator's model, with the servers."""
        if not self.servers.owners:
            coordinator.merge(ends)
            meanwhile()
            return
        try:
            self.servers.begin_merge([self._parts[number] for number in range(len(ends))])
            meanwhile()
            shares = self.servers.end_merge()
        except BaseException:
            self._end()
            raise
        coordinator.take_shares(ends, shares)

    def _learn(self, coordinator: Coordinator, chunks: Sequence[Chunk]) -> list[ChunkEnd]:
        crew, waiting = self._crew, deque(range(len(chunks)))
        crew.resize(self._n)
        self.servers.scale(coordinator, self._confirm)
        shares, self.servers.shares = self.servers.shares, []
        bases = Bases(coordinator, self.send)
        self.servers.adopt(bases)
        sent = [self.send(f"chunk{number}", chunk_to_tree(chunk)) for number, chunk in enumerate(chunks)]
        ends: dict[int, ChunkEnd] = {}
        refused = ""
        while waiting or crew.busy:
            crew.resize(self._n)  # after deaths
            for worker in crew.idle[: len(waiting)]:
                version, number = self._versions.get(worker, 0), waiting.popleft()
                base = bases.of_version(version)
                merged = shares if base is not None and version == bases.last else []
                crew.begin(worker, number, "call", "learn", f"end{number}", base, sent[number], *merged)
                self._versions[worker] = coordinator.version
            coordinator.look_ahead()
            messages = crew.wait(_LONG)
            if not messages and len(crew.starting) == len(crew):
                _LOG.warning("no worker is up after %d seconds: chunks wait", _LONG)
            for worker, number, message in messages:
                if isinstance(message, WorkerLost):
                    waiting.appendleft(number)
                    crew.count_death(message)
                    continue
                crew.release(worker)
                answer, outputs = self.received(worker, message)
                if answer is None:
                    end, *self._parts[number] = outputs
                    ends[number] = end_of_tree(self.read(end))
                elif "error" in answer:
                    raise InputError(answer["error"])
                else:
                    refused = answer["refuses"]
            if refused:
                waiting.clear()
        if refused:
            raise UnexpectedEventsError(refused)
        return [ends[number] for number in range(len(chunks))]

    def _confirm(self, start: int) -> Iterator[tuple[str, int, float]]:
        """Tell idle workers when owners change; yield name, version and seconds of each answer."""
        crew, begin = self._crew, time.perf_counter()
        missing = {worker: f"worker {number}" for number, worker in enumerate(crew.idle)}
        for worker in missing:
            crew.begin(worker, 0, "call", "clock", "", start)
        while missing:
            for worker, _, message in crew.wait(_LONG):
                name = missing.pop(worker)
                if isinstance(message, WorkerLost):
                    crew.count_death(message)
                    continue
                crew.release(worker)
                yield name, self.received(worker, message)[0], time.perf_counter() - begin

    @abstractmethod
    def _start(self) -> W:
        """Start a worker."""

    @abstractmethod
    def _start_server(self, number: int) -> W:
        """Start a merge server with a number."""

    @abstractmethod
    def send(self, name: str, tree: Any) -> Sent:
        """Send a message to all workers and servers, and return its name or reference."""

    @abstractmethod
    def read(self, sent: Sent) -> Any:
        """Return the tree of a message."""

    @abstractmethod
    def received(self, worker: W, message: Any) -> tuple[Any, list[Sent]]:
        """Return the plain answer of a worker or server, and the messages that it has sent with it."""

    def _end(self) -> None:
        self._crew.end()
        self.servers.end()

    def close(self) -> None:
        """End the workers."""
        self._end()
