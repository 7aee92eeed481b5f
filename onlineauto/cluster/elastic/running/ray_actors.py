"""Nodes as actors of Ray, on all machines of its cluster."""

from __future__ import annotations

import asyncio
from threading import Event, Thread
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import ray

from onlineauto.cluster.elastic.protocol.messages import COORDINATOR, RUN, STORE, Died, Message
from onlineauto.cluster.elastic.running.nodes import NodeFailed, Ready

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onlineauto.cluster.elastic.running.nodes import Core, Post, Spec

_HUB = {COORDINATOR, RUN, STORE}
_PATIENCE = 0.5  # seconds between two checks for dead actors


class _Mailbox:
    """An actor that queues messages to the hub until the driver takes them."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[tuple[str, Message]] = asyncio.Queue()

    async def put(self, node: str, message: Message) -> None:
        """Append a message to the queue."""
        await self._queue.put((node, message))

    async def take(self) -> list[tuple[str, Message]]:
        """Wait for a message, and return all queued messages."""
        taken = [await self._queue.get()]
        while not self._queue.empty():
            taken.append(self._queue.get_nowait())
        return taken


class _Node:
    """An actor around a state machine of the protocol. Messages may arrive in any order."""

    def __init__(self, spec: Spec, prefix: str, mailbox: Any) -> None:
        self._spec, self._prefix, self._mailbox = spec, prefix, mailbox
        self._core: Core | None = None
        self._handles: dict[str, Any] = {}

    async def begin(self) -> None:
        """Create the state machine, which opens the stream and compiles kernels."""
        try:
            self._core = self._spec.recipe.core(self._spec)
        except Exception as error:
            self._fail(error)
        else:
            self._post(RUN, Ready(self._spec.name))

    async def process_message(self, message: Message) -> None:
        """Pass a message to the state machine, and send its answers."""
        assert self._core is not None, "no message is sent before the node is ready"
        try:
            answers = self._core.process_message(message)
        except Exception as error:
            self._fail(error)
            return
        for node, answer in answers:
            if node in _HUB:
                self._post(node, answer)
            elif (handle := self._handle(node)) is not None:
                handle.process_message.remote(answer)

    async def live(self) -> None:
        """Never return, so that a caller that waits for this call is notified when the actor dies."""
        await asyncio.Event().wait()

    def _handle(self, node: str) -> Any:
        if node not in self._handles:
            try:
                self._handles[node] = ray.get_actor(self._prefix + node)
            except ValueError:  # the node has died
                return None
        return self._handles[node]

    def _post(self, node: str, message: Message) -> None:
        self._mailbox.put.remote(node, message)

    def _fail(self, error: Exception) -> None:
        self._post(RUN, NodeFailed(self._spec.name, f"{type(error).__name__}: {error}"))


class RayActors:
    """A backend whose nodes are actors. It initialises Ray if necessary."""

    def __init__(self) -> None:
        if not ray.is_initialized():
            ray.init(log_to_driver=False, include_dashboard=False)
        self._prefix = f"onlineauto-{uuid4().hex[:8]}-"
        self._actors: dict[str, Any] = {}
        self._alive: dict[Any, tuple[str, Post]] = {}
        self._mailbox = ray.remote(num_cpus=0)(_Mailbox).remote()
        self._closed = Event()
        self._post: Post | None = None

    def begin(self, spec: Spec, post: Post) -> None:
        """Start a node, which Ray may delay until resources are free."""
        if self._post is None:
            self._post = post
            Thread(target=self._forward, name="elastic mailbox", daemon=True).start()
            Thread(target=self._watch, name="elastic watch", daemon=True).start()
        options = {"name": self._prefix + spec.name, "max_concurrency": 1000, **_options(spec.resources)}
        actor = ray.remote(_Node).options(**options).remote(spec, self._prefix, self._mailbox)
        self._actors[spec.name] = actor
        actor.begin.remote()
        self._alive[actor.live.remote()] = spec.name, post

    def send(self, node: str, message: Message) -> None:
        """Deliver a message; a message to a dead node is dropped."""
        actor = self._actors.get(node)
        if actor is not None:
            actor.process_message.remote(message)

    def end(self, node: str) -> None:
        """End a node."""
        actor = self._actors.pop(node, None)
        if actor is not None:
            ray.kill(actor)

    def close(self) -> None:
        """End all nodes."""
        self._closed.set()
        for node in list(self._actors):
            self.end(node)
        ray.kill(self._mailbox)

    def _forward(self) -> None:
        """Forward messages from the mailbox to the hub."""
        assert self._post is not None
        while not self._closed.is_set():
            try:
                taken = ray.get(self._mailbox.take.remote())
            except ray.exceptions.RayError as error:
                if not self._closed.is_set():
                    self._post(RUN, NodeFailed("mailbox", str(error)))
                return
            for node, message in taken:
                self._post(node, message)

    def _watch(self) -> None:
        """Report nodes that died without a call of `end`."""
        while not self._closed.is_set():
            refs = list(self._alive)
            ended, _ = ray.wait(refs, num_returns=1, timeout=_PATIENCE) if refs else ([], [])
            for ref in ended:
                name, post = self._alive.pop(ref)
                if self._actors.pop(name, None) is not None:
                    post(COORDINATOR, Died(name))
            if not refs:
                self._closed.wait(_PATIENCE)


def _options(resources: Mapping[str, float]) -> dict[str, Any]:
    """Return resources as the options of an actor."""
    names = {"CPU": "num_cpus", "GPU": "num_gpus", "memory": "memory"}
    own = {name: amount for name, amount in resources.items() if name not in names}
    return {names[name]: amount for name, amount in resources.items() if name in names} | {"resources": own}
