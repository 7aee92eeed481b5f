"""Workers as actors of a Ray cluster: calls carry the bytes of messages, and no object of ours is pickled.

An actor that dies, with its node or alone, is replaced, and its chunk is learnt again from the same base: an
end is merged only when it is complete, and only once. Ray is imported when a pool is made.
"""

from __future__ import annotations

import logging
from collections import deque
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from onlineauto.cluster.partitions.messages import chunk_to_tree, end_of_tree, pack, unpack
from onlineauto.cluster.partitions.server import MOST_DEATHS, Bases, OutsidePool, Server
from onlineauto.cluster.partitions.text_file import UnexpectedEventsError
from onlineauto.errors import InputError, WorkersError
from onlineauto.tune.workers.on_ray.actors import resource_options
from onlineauto.tune.workers.on_ray.connection import imported_ray, ray_connection

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from onlineauto.cluster.partitions.coordinator import Coordinator
    from onlineauto.cluster.partitions.messages import Chunk
    from onlineauto.cluster.partitions.worker import End

_LOG: Final = logging.getLogger("onlineauto")
_LONG: Final = 30.0
"""Seconds without an actor and without a message after which a warning is logged."""


class WorkerActor:
    """A worker in an actor."""

    def __init__(self, command: str) -> None:
        self._server = Server(command)

    def ready(self) -> None:
        """Do nothing: the answer says that the actor is up."""

    def learn(self, base: bytes, chunk: bytes) -> bytes:
        """Return the answer of `Server`; an empty `base` is that of the last call."""
        return _packed(self._server.answer(_unpacked(base) if base else None, _unpacked(chunk)))


class _Actor:
    """An actor: the base that it has, the chunk that it learns, and the answer that is awaited."""

    def __init__(self, remote: Any, command: str) -> None:
        self.version, self.chunk, self.is_up = 0, -1, False
        self.handle = remote.remote(command)
        self.awaited: Any = self.handle.ready.remote()


class RayPool(OutsidePool):
    """Actors of a Ray cluster that learn the chunks of rounds."""

    def __init__(
        self,
        n: int,
        command: str,
        *,
        address: str | None = None,
        needs: Mapping[str, float] | None = None,
    ) -> None:
        super().__init__(n)
        self._command = command
        self._ray, self._connection = imported_ray(), ExitStack()
        self._connection.enter_context(ray_connection(address))
        # A call is never repeated by Ray itself: the actor that it restarts has no base.
        resources = resource_options({"CPU": 0.0, **(needs or {"CPU": 1.0})})
        self._remote = self._ray.remote(max_restarts=0, max_task_retries=0, **resources)(WorkerActor)
        self.actors: list[_Actor] = []

    @property
    def size(self) -> int:
        """Number of actors that run or start."""
        return len(self.actors)

    def _learn(self, coordinator: Coordinator, chunks: Sequence[Chunk]) -> list[End]:
        while len(self.actors) > self._n:
            self._ray.kill(self.actors.pop().handle)
        while len(self.actors) < self._n:
            self.actors.append(_Actor(self._remote, self._command))
        bases = Bases(coordinator, lambda _, tree: self._put(tree))
        sent = [self._put(chunk_to_tree(chunk)) for chunk in chunks]
        waiting = deque(range(len(chunks)))
        ends: dict[int, End] = {}
        refused = ""
        while waiting or any(each.chunk >= 0 for each in self.actors):
            for actor in [each for each in self.actors if each.is_up and each.chunk < 0]:
                if not waiting:
                    break
                base = bases.of_version(actor.version)
                actor.chunk, actor.version = waiting.popleft(), coordinator.version
                actor.awaited = actor.handle.learn.remote(b"" if base is None else base, sent[actor.chunk])
            coordinator.look_ahead()
            refused = self._receive(ends, waiting) or refused
        if refused:
            raise UnexpectedEventsError(refused)
        return [ends[number] for number in range(len(chunks))]

    def _receive(self, ends: dict[int, End], waiting: deque[int]) -> str:
        """Wait for an answer, and take it: an actor is up, has learnt or refuses its chunk, or has died.

        Returns why an actor refuses its chunk, or "". Then no more chunks wait.
        """
        refused = ""
        by_reference = {each.awaited: each for each in self.actors if each.awaited is not None}
        ready, _ = self._ray.wait([*by_reference], num_returns=1, timeout=_LONG)
        if not ready and not any(each.is_up for each in self.actors):
            _LOG.warning("no actor of Ray is up; the cluster has free: %s", self._ray.available_resources())
        for actor in map(by_reference.__getitem__, ready):
            try:
                answer = self._ray.get(actor.awaited)
            except self._ray.exceptions.RayTaskError:
                raise  # an error of our own code
            except self._ray.exceptions.RayError as error:
                self._replace(actor, waiting, error)
                continue
            actor.awaited = None
            if not actor.is_up:
                actor.is_up = True
                continue
            tree = _unpacked(answer)
            if isinstance(tree, dict) and "error" in tree:
                raise InputError(tree["error"])
            if isinstance(tree, dict):
                refused = tree["refuses"]
                waiting.clear()
            else:
                ends[actor.chunk] = end_of_tree(tree)
            actor.chunk, self._deaths = -1, 0
        return refused

    def _replace(self, actor: _Actor, waiting: deque[int], error: Exception) -> None:
        """Start a new actor for one that has died, and let its chunk wait again."""
        if actor.chunk >= 0:
            waiting.appendleft(actor.chunk)
        self._deaths += 1
        if self._deaths > MOST_DEATHS:
            raise WorkersError(
                f"actors have died {self._deaths} times in a row; the last message of Ray: {error}"
            )
        self._ray.kill(actor.handle)  # one whose answer was lost with a node may live
        self.actors[self.actors.index(actor)] = _Actor(self._remote, self._command)

    def _put(self, tree: Any) -> Any:
        """Return a reference to the bytes of a tree, which is sent once to each node."""
        return self._ray.put(_packed(tree))

    def close(self) -> None:
        """End the actors, and disconnect if the pool has connected."""
        try:
            self._end()
        finally:
            self._connection.close()

    def _end(self) -> None:
        while self.actors:
            self._ray.kill(self.actors.pop().handle)
        self._deaths = 0


def _packed(tree: Any) -> bytes:
    return b"".join(pack(tree))


def _unpacked(message: bytes) -> Any:
    """Return the tree of a message, whose arrays can be written to."""
    return unpack(np.frombuffer(message, np.uint8).copy())
