"""``RayPool``: workers as actors of a Ray cluster; calls carry the bytes of messages, not pickled objects."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.cluster.partitions.messages import pack, unpack
from onlineauto.cluster.partitions.pool import CrewPool, RemoteServer, RemoteWorker
from onlineauto.work.on_ray import Actor, imported_ray, ray_connection, wait_for_actors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from onlineauto.work.on_ray import Bundles


class _RemoteActor:
    """A worker or server in an actor."""

    _owner: RemoteWorker | RemoteServer

    def ready(self) -> None:
        """Do nothing: the answer says that the actor is up."""

    def call(self, method: str, n_results: int, *arguments: Any) -> Any:
        """Call a method, and return its answer and results; an argument of bytes is a message."""
        trees = [_unpacked(argument) if isinstance(argument, bytes) else argument for argument in arguments]
        answer, results = getattr(self._owner, method)(*trees)
        packed = [_packed(result) for result in results] + [b""] * (n_results - len(results))
        return (answer, *packed) if packed else answer


class WorkerActor(_RemoteActor):
    """A worker in an actor."""

    def __init__(self, command: str) -> None:
        self._owner = RemoteWorker(command)


class ServerActor(_RemoteActor):
    """A merge server in an actor."""

    def __init__(self, command: str, number: int) -> None:
        self._owner = RemoteServer(command, number)


class _Node(Actor):
    """An actor whose results stay on its node until another actor, or the driver, needs them."""

    outputs: list[Any]

    def __init__(self, kind: type, *arguments: Any, bundles: Bundles, n_servers: Callable[[], int]) -> None:
        super().__init__(kind, *arguments, bundles=bundles)
        self._n_servers = n_servers

    def send(self, method: str, *arguments: Any) -> None:
        """Call a method of the actor."""
        name, _, *messages = arguments
        n = {"learn": 1 + self._n_servers(), "merge": 1, "give": 1}.get(name, 0)
        call = getattr(self.handle, method).options(num_returns=1 + n)
        references = call.remote(name, n, *messages)
        self.awaited, *self.outputs = references if n else [references]


class RayPool(CrewPool[Actor, Any]):
    """Actors of a Ray cluster that learn the chunks of rounds and merge."""

    def __init__(
        self,
        n: int,
        command: str,
        *,
        needs: Mapping[str, float] | None = None,
        servers: int = 0,
        server_needs: Mapping[str, float] | None = None,
    ) -> None:
        super().__init__(n, wait_for_actors, servers)
        self._command = command
        self._ray, self._connection = imported_ray(), ExitStack()
        self._connection.enter_context(ray_connection(None))
        self._resources = tuple(sorted({"CPU": 0.0, **(needs or {"CPU": 1.0})}.items()))
        self._server_resources = tuple(sorted({"CPU": 0.0, **(server_needs or {})}.items()))

    @property
    def actors(self) -> list[Actor]:
        """The actors that run or start."""
        return [*self._crew.starting, *self._crew.idle, *self._crew.busy]

    def _start(self) -> _Node:
        return self._node(WorkerActor, bundles=(self._resources,))

    def _start_server(self, number: int) -> _Node:
        return self._node(ServerActor, number, bundles=(self._server_resources,))

    def _node(self, kind: type, *arguments: int, bundles: Bundles) -> _Node:
        n_servers = lambda: len(self.servers.numbers)  # noqa: E731
        return _Node(kind, self._command, *arguments, bundles=bundles, n_servers=n_servers)

    def send(self, name: str, tree: Any) -> Any:  # noqa: ARG002
        """Return a reference to the bytes of a tree, which is sent once to each node."""
        return self._ray.put(_packed(tree))

    def read(self, sent: Any) -> Any:
        """Return the tree of a message."""
        return _unpacked(self._ray.get(sent))

    def received(self, worker: Actor, message: Any) -> tuple[Any, list[Any]]:
        """Return the plain answer of an actor, and references to the messages that it has sent with it."""
        assert isinstance(worker, _Node)
        return message, worker.outputs

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
