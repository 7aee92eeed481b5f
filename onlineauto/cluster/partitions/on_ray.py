"""``RayPool``: workers as actors of a Ray cluster; calls carry the bytes of messages, not pickled objects."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.cluster.partitions.messages import pack, unpack
from onlineauto.cluster.partitions.pool import CrewPool, Server
from onlineauto.work.on_ray import Actor, imported_ray, ray_connection, wait_for_actors

if TYPE_CHECKING:
    from collections.abc import Mapping


class WorkerActor:
    """A worker in an actor."""

    def __init__(self, command: str) -> None:
        self._server = Server(command)

    def ready(self) -> None:
        """Do nothing: the answer says that the actor is up."""

    def learn(self, base: bytes | None, chunk: bytes) -> bytes:
        """Return the answer of `Server`; without a `base`, that of the last call is used."""
        return _packed(self._server.answer(None if base is None else _unpacked(base), _unpacked(chunk)))


class RayPool(CrewPool[Actor, Any]):
    """Actors of a Ray cluster that learn the chunks of rounds."""

    def __init__(self, n: int, command: str, *, needs: Mapping[str, float] | None = None) -> None:
        super().__init__(n, wait_for_actors)
        self._command = command
        self._ray, self._connection = imported_ray(), ExitStack()
        self._connection.enter_context(ray_connection(None))
        self._resources = tuple(sorted({"CPU": 0.0, **(needs or {"CPU": 1.0})}.items()))

    @property
    def actors(self) -> list[Actor]:
        """The actors that run or start."""
        return [*self._crew.starting, *self._crew.idle, *self._crew.busy]

    def _start(self) -> Actor:
        return Actor(WorkerActor, self._command, bundles=(self._resources,))

    def _send(self, name: str, tree: Any) -> Any:  # noqa: ARG002
        """Return a reference to the bytes of a tree, which is sent once to each node."""
        return self._ray.put(_packed(tree))

    def _received(self, message: Any) -> Any:
        return _unpacked(message)

    def close(self) -> None:
        """End the actors, and disconnect if the pool has connected."""
        try:
            super().close()
        finally:
            self._connection.close()


def _packed(tree: Any) -> bytes:
    return b"".join(pack(tree))


def _unpacked(message: bytes) -> Any:
    """Return the tree of a packed message, whose arrays can be written to."""
    return unpack(np.frombuffer(message, np.uint8).copy())
