"""``Pool``: workers that learn the chunks of a round, in this process or, as a `Crew`, outside of it.

A worker that dies is replaced, and its chunk is learnt again from the same base: an end is merged only when
it is complete, and only once.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import deque
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

from onlineauto.cluster.partitions.messages import (
    base_of_tree,
    chunk_of_tree,
    chunk_to_tree,
    end_of_tree,
)
from onlineauto.cluster.partitions.text_file import UnexpectedEventsError
from onlineauto.cluster.partitions.worker import Worker
from onlineauto.errors import InputError, OnlineautoError, WorkersError
from onlineauto.features.block import Namespaces
from onlineauto.work.crew import Crew, W, WorkerLost
from onlineauto.workspace.options import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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


class Pool(Protocol):
    """Learns the chunks of a round."""

    @property
    def size(self) -> int:
        """Number of workers outside this process that run or start."""

    def learn(self, coordinator: Coordinator, chunks: Sequence[Chunk]) -> list[ChunkEnd]:
        """Return the ends of chunks that were learnt from the coordinator's next base.

        An `UnexpectedEventsError` says that the coordinator must read the events itself.
        """

    def resize(self, n: int) -> None:
        """Have `n` workers from the next round on."""

    def close(self) -> None:
        """End the workers."""


class InlinePool:
    """A single worker in this process."""

    size = 0

    def __init__(self) -> None:
        self._worker: Worker | None = None

    def learn(self, coordinator: Coordinator, chunks: Sequence[Chunk]) -> list[ChunkEnd]:
        """Return the ends of chunks that were learnt from the coordinator's next base."""
        base = coordinator.next_base()
        worker, self._worker = self._worker, None  # an error leaves no worker
        if worker is None or worker.version != base.since:
            worker, base = Worker(coordinator.workspace.configuration), coordinator.full_base()
        worker.adopt(base)
        try:
            ends = [worker.learn(chunk.block, chunk.seed) for chunk in chunks]
        except UnexpectedEventsError:
            self._worker = worker
            raise
        self._worker = worker
        return ends

    def resize(self, n: int) -> None:
        """Do nothing: `PartitionedRun.resize` takes another pool."""

    def close(self) -> None:
        """Do nothing."""


class Server:
    """A worker outside the coordinator's process, which answers messages."""

    def __init__(self, command: str) -> None:
        self._worker, self._namespaces = Worker(REGISTRY.parse(command)), Namespaces()

    def answer(self, base: Any, chunk: Any) -> Any:
        """Return the end of a chunk; or a mapping with the text of an "error", or why it "refuses".

        `base` is the tree of the base, None for that of the last call.
        """
        try:
            if base is not None:
                self._worker.adopt(base_of_tree(base))
            block, seed = chunk_of_tree(chunk, self._namespaces, self._worker.workspace.configuration)
            self._namespaces = block.namespaces
            return self._worker.learn(block, seed)
        except UnexpectedEventsError as error:
            return {"refuses": str(error)}
        except OnlineautoError as error:
            return {"error": str(error)}


class _Bases(Generic[Sent]):
    """The messages with the next base of a coordinator: for workers with the last one, and for others."""

    def __init__(self, coordinator: Coordinator, send: Callable[[str, Any], Sent]) -> None:
        self._coordinator, self._send = coordinator, send
        self._last = coordinator.version
        self._changes = send("changes", coordinator.next_base())
        self._full: Sent | None = None

    def of_version(self, version: int) -> Sent | None:
        """Return the message for a worker with the base of a version; None if it has this one."""
        if version == self._coordinator.version:
            return None
        if version == self._last:
            return self._changes
        if self._full is None:
            self._full = self._send("full", self._coordinator.full_base())
        return self._full


class CrewPool(ABC, Generic[W, Sent]):
    """Workers outside this process; those of a failed round are ended, and the next round starts others."""

    def __init__(self, n: int, wait: Callable[[Sequence[W], float | None], Sequence[W]]) -> None:
        self._n = n
        self._crew: Crew[W, int] = Crew(self._start, wait, most_deaths=_MOST_DEATHS)
        self._versions: WeakKeyDictionary[W, int] = WeakKeyDictionary()  # of the bases that workers have

    @property
    def size(self) -> int:
        """Number of workers that run or start."""
        return len(self._crew)

    def resize(self, n: int) -> None:
        """Have `n` workers from the next round on."""
        self._n = n

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

    def _learn(self, coordinator: Coordinator, chunks: Sequence[Chunk]) -> list[ChunkEnd]:
        crew, waiting = self._crew, deque(range(len(chunks)))
        crew.resize(self._n)
        bases = _Bases(coordinator, self._send)
        sent = [self._send(f"chunk{number}", chunk_to_tree(chunk)) for number, chunk in enumerate(chunks)]
        ends: dict[int, ChunkEnd] = {}
        refused = ""
        while waiting or crew.busy:
            crew.resize(self._n)  # after deaths
            for worker in crew.idle[: len(waiting)]:
                base = bases.of_version(self._versions.get(worker, 0))
                number = waiting.popleft()
                crew.begin(worker, number, "learn", base, sent[number])
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
                answer = self._received(message)
                if not isinstance(answer, dict):
                    ends[number] = end_of_tree(answer)
                elif "failed" in answer:
                    raise WorkersError(f"a worker cannot read or write its messages: {answer['failed']}")
                elif "error" in answer:
                    raise InputError(answer["error"])
                else:
                    refused = answer["refuses"]
            if refused:
                waiting.clear()
        if refused:
            raise UnexpectedEventsError(refused)
        return [ends[number] for number in range(len(chunks))]

    @abstractmethod
    def _start(self) -> W:
        """Start a worker."""

    @abstractmethod
    def _send(self, name: str, tree: Any) -> Sent:
        """Send a message to all workers, and return its name or reference."""

    @abstractmethod
    def _received(self, message: Any) -> Any:
        """Return the answer of `Server` in a message of a worker."""

    def _end(self) -> None:
        self._crew.end()

    def close(self) -> None:
        """End the workers."""
        self._end()
