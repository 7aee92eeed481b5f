"""Workers outside the coordinator's process: what is the same for them, whatever carries their messages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from onlineauto.cluster.partitions.messages import base_of_tree, base_to_tree, chunk_of_tree, end_to_tree
from onlineauto.cluster.partitions.text_file import UnexpectedEventsError
from onlineauto.cluster.partitions.worker import Worker
from onlineauto.errors import OnlineautoError
from onlineauto.features.block import Namespaces
from onlineauto.workspace.options import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from onlineauto.cluster.partitions.coordinator import Coordinator
    from onlineauto.cluster.partitions.messages import Chunk
    from onlineauto.cluster.partitions.worker import End

MOST_DEATHS = 8
"""Number of deaths of workers after which a run gives up, unless chunks are learnt in between."""
Sent = TypeVar("Sent")
"""A message that was sent."""


class Server:
    """A worker that answers messages."""

    def __init__(self, command: str) -> None:
        self._worker, self._namespaces = Worker(REGISTRY.parse(command)), Namespaces()

    def answer(self, base: Any, chunk: Any) -> Any:
        """Return the tree of a chunk's end; or a mapping with the text of an "error", or why it "refuses".

        `base` is the tree of the base, None for that of the last call.
        """
        try:
            if base is not None:
                self._worker.adopt(base_of_tree(base))
            block, seed = chunk_of_tree(chunk, self._namespaces, self._worker.workspace.configuration)
            self._namespaces = block.namespaces
            return end_to_tree(self._worker.learn(block, seed))
        except UnexpectedEventsError as error:
            return {"refuses": str(error)}
        except OnlineautoError as error:
            return {"error": str(error)}


class Bases(Generic[Sent]):
    """The messages with the next base of a coordinator: for workers with the last one, and for others."""

    def __init__(self, coordinator: Coordinator, send: Callable[[str, Any], Sent]) -> None:
        self._coordinator, self._send = coordinator, send
        self._last = coordinator.version
        self._changes = send("changes", base_to_tree(coordinator.next_base()))
        self._full: Sent | None = None

    def of_version(self, version: int) -> Sent | None:
        """Return the message for a worker with the base of a version; None if it has this one."""
        if version == self._coordinator.version:
            return None
        if version == self._last:
            return self._changes
        if self._full is None:
            self._full = self._send("full", base_to_tree(self._coordinator.full_base()))
        return self._full


class OutsidePool(ABC):
    """Workers outside this process; those of a failed round are ended, and the next round starts others.

    Parameters
    ----------
    n : int
        Number of workers; it may be changed between rounds by `resize`.
    """

    def __init__(self, n: int) -> None:
        self._n, self._deaths = n, 0

    def resize(self, n: int) -> None:
        """Have `n` workers from the next round on."""
        self._n = n

    def learn(self, coordinator: Coordinator, chunks: Sequence[Chunk]) -> list[End]:
        """Return the ends of chunks that were learnt from the coordinator's next base.

        Raises
        ------
        WorkersError
            Workers die again and again, or a worker has no memory or disk.
        UnexpectedEventsError
            The coordinator must read the events itself.
        InputError
            An event cannot be learnt.
        """
        try:
            return self._learn(coordinator, chunks)
        except UnexpectedEventsError:
            raise  # all workers wait
        except BaseException:
            self._end()  # no worker may answer later
            raise

    @abstractmethod
    def _learn(self, coordinator: Coordinator, chunks: Sequence[Chunk]) -> list[End]:
        """Learn the chunks as `learn` does, but leave the workers of a failed round as they are."""

    @abstractmethod
    def _end(self) -> None:
        """End the workers."""
