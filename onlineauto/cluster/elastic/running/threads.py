"""Nodes as threads of this process."""

from __future__ import annotations

from queue import SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING

from onlineauto.cluster.elastic.protocol.messages import COORDINATOR, RUN, STORE, Died, Message
from onlineauto.cluster.elastic.running.nodes import NodeFailed, Ready

if TYPE_CHECKING:
    from onlineauto.cluster.elastic.learning.feed import TickFeed
    from onlineauto.cluster.elastic.running.nodes import Post, Spec

_HUB = {COORDINATOR, RUN, STORE}


class Threads:
    """A backend whose nodes are threads with one shared feed. Kernels release the GIL."""

    def __init__(self) -> None:
        self._queues: dict[str, SimpleQueue[Message | None]] = {}
        self._feed: TickFeed | None = None
        self._opening = Lock()

    def begin(self, spec: Spec, post: Post) -> None:
        """Start a node."""
        queue = self._queues[spec.name] = SimpleQueue()
        Thread(target=self._run, args=(spec, queue, post), name=spec.name, daemon=True).start()

    def _run(self, spec: Spec, queue: SimpleQueue[Message | None], post: Post) -> None:
        try:
            with self._opening:
                if self._feed is None and not spec.serves:
                    self._feed = spec.recipe.feed(spec.tick)
            core = spec.recipe.core(spec, self._feed)
            post(RUN, Ready(spec.name))
            while (message := queue.get()) is not None:
                for node, each in core.process_message(message):
                    if node in _HUB:
                        post(node, each)
                    else:
                        self.send(node, each)
        except Exception as error:
            post(RUN, NodeFailed(spec.name, f"{type(error).__name__}: {error}"))

    def send(self, node: str, message: Message) -> None:
        """Deliver a message; a message to a dead node is dropped."""
        queue = self._queues.get(node)
        if queue is not None:
            queue.put(message)

    def end(self, node: str) -> None:
        """End a node."""
        queue = self._queues.pop(node, None)
        if queue is not None:
            queue.put(None)

    def kill(self, node: str, post: Post) -> None:
        """End a node and report its death, as if its machine had failed."""
        self.end(node)
        post(COORDINATOR, Died(node))

    def close(self) -> None:
        """End all nodes."""
        for node in list(self._queues):
            self.end(node)
        if self._feed is not None:
            self._feed.close()
