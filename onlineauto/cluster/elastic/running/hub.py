"""``Hub``: the thread that runs the coordinator, stores snapshots, and starts and ends nodes."""

from __future__ import annotations

import time
from queue import Empty, SimpleQueue
from threading import Condition, Thread
from typing import TYPE_CHECKING, Any, NamedTuple

from onlineauto.cluster.elastic.protocol.coordinator import Coordinator
from onlineauto.cluster.elastic.protocol.messages import (
    COORDINATOR,
    RUN,
    STORE,
    Close,
    Copy,
    Died,
    Install,
    Message,
    Plan,
    Reached,
    Resize,
    ServerLost,
)
from onlineauto.cluster.elastic.running.nodes import NodeFailed, Ready, Spec
from onlineauto.cluster.elastic.running.snapshot import Snapshot
from onlineauto.engine.stream.source import can_be_read_again
from onlineauto.errors import OnlineautoError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from onlineauto.cluster.elastic.protocol.messages import Outbox
    from onlineauto.cluster.elastic.running.nodes import Backend, NodeDemand
    from onlineauto.cluster.elastic.running.recipe import Recipe

_MOST_LOST = 5
"""Number of nodes that die in a row before any is ready that ends the run."""
_PATIENCE = 30.0
"""Seconds without messages after which a run begins with the ready nodes; others may lack resources."""


class _ResizeRequest(Message, frozen=True):
    """Ask the hub for new numbers of workers and servers."""

    workers: int
    servers: int


class LayoutChange(NamedTuple):
    """A layout that was committed."""

    tick: int
    workers: int
    servers: int
    moved: int  # blocks that moved
    asked: float  # `time.monotonic` at the request
    done: float  # `time.monotonic` at the commit


class Hub:
    """Controls a run. Only its thread changes its state; other threads read it under the `condition`.

    Parameters
    ----------
    recipe : Recipe
        The stream and the model.
    backend : Backend
        Starts nodes.
    demand : Demand
        Resources of each node.
    tick : int
        The first tick.
    margin : int
        Number of ticks that servers may continue while a change is prepared.
    every : int or None
        Number of ticks between two snapshots.
    """

    def __init__(
        self,
        recipe: Recipe,
        backend: Callable[[], Backend],
        demand: NodeDemand,
        *,
        sizes: Mapping[int, int],
        tick: int = 0,
        margin: int = 0,
        every: int | None = None,
    ) -> None:
        self._recipe, self._make, self._demand = recipe, backend, demand
        self._sizes, self._margin, self._every = sizes, margin, every
        self.condition = Condition()
        self.version, self.begun = tick, tick
        self.end: int | None = None
        self.error: BaseException | None = None
        self.done = False
        self.snapshot: Snapshot | None = None
        self.changes: list[LayoutChange] = []
        self.times: list[tuple[int, float]] = []
        self._backend: Backend | None = None
        self._queue: SimpleQueue[tuple[int | None, str, Message | None]] = SimpleQueue()
        self._epoch = 0  # grows when all nodes restart; messages of earlier epochs are dropped
        self._coordinator: Coordinator | None = None
        self._target: tuple[list[str], list[str]] = [], []
        self._begun: set[str] = set()  # nodes that were started and not ended
        self._ready: set[str] = set()
        self._lost = 0  # nodes that died in a row before they were ready
        self._count = 0
        self._requested_at = time.monotonic()
        self._last_plan = Plan(-1, tick, {}, (), ())
        self._copies: dict[int, dict[int, Any]] = {}  # by attempt, then by block
        self._copied_at: dict[int, int] = {}  # ticks of copies, by generation
        self._copied = tick
        self._copy_is_due = False
        self._finishing = False
        self._thread = Thread(target=self._run, name="elastic hub", daemon=True)

    # -- from other threads ----------------------------------------------------------------------------

    def start(self, workers: int, servers: int) -> None:
        """Start all nodes and the thread."""
        self._backend = self._make()
        self._thread.start()
        self.resize(workers, servers)

    def resize(self, workers: int, servers: int) -> None:
        """Request numbers of workers and servers."""
        self._queue.put((None, RUN, _ResizeRequest(workers, servers)))

    def copy(self) -> None:
        """Request a snapshot."""
        self._queue.put((None, COORDINATOR, Copy()))

    def stop(self) -> None:
        """End all nodes and the thread."""
        self._queue.put((None, RUN, None))
        if self._thread.is_alive():
            self._thread.join(timeout=30)

    # -- the thread ------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self.done:
                try:
                    epoch, node, message = self._queue.get(timeout=None if self._coordinator else _PATIENCE)
                except Empty:
                    self._begin_with_ready_nodes()
                    continue
                if message is None:
                    raise OnlineautoError("the run was stopped before the end of its stream")
                if epoch in (None, self._epoch):
                    with self.condition:
                        self._take(node, message)
                        self.condition.notify_all()
        except BaseException as error:
            self._fail(error)
        finally:
            if self._backend is not None:
                self._backend.close()
            with self.condition:
                self.done = True
                self.condition.notify_all()

    def _fail(self, error: BaseException) -> None:
        with self.condition:
            self.error = self.error or error

    def _take(self, node: str, message: Message) -> None:
        if node == COORDINATOR:
            if isinstance(message, Died):
                self._replace(message.node)
            if isinstance(message, Copy):
                self._copy_is_due = True
            if self._coordinator is not None:
                self._send(self._coordinator.process_message(message))
        elif node == STORE:
            self._keep(message)
        else:
            self._process(message)

    def _send(self, messages: Outbox) -> None:
        assert self._backend is not None
        for node, message in messages:
            if node in (COORDINATOR, RUN, STORE):
                self._take(node, message)
            else:
                self._backend.send(node, message)

    def _process(self, message: Message) -> None:
        """Process a message to the run itself."""
        match message:
            case Reached():
                self._reach(message.version)
            case Ready():
                self._ready.add(message.node)
                self._lost = 0
                self._request_layout()
            case _ResizeRequest():
                self._resize(message.workers, message.servers)
            case Plan():
                self._record_change(message)
            case Close():
                self.end = message.end
                self._finish_if_done()
            case NodeFailed():
                raise OnlineautoError(f"{message.node}: {message.reason}")
            case ServerLost():
                self._restart()

    # -- nodes -----------------------------------------------------------------------------------------

    def _resize(self, workers: int, servers: int) -> None:
        """Retain the oldest nodes and start missing ones; request the layout once all nodes are ready."""
        self._requested_at = time.monotonic()
        nodes = [names[:n] for names, n in zip(self._target, (workers, servers), strict=True)]
        if self._coordinator is not None and nodes[0] and nodes[1]:  # shrink first to free resources
            self._target = nodes[0], nodes[1]
            self._request_layout()
        for number in range(max(workers, servers)):  # alternate, in case resources suffice for few nodes
            for names, n, serves in zip(nodes, (workers, servers), (False, True), strict=True):
                if len(names) <= number < n:
                    names.append(self._begin(serves=serves))
        self._target = nodes[0], nodes[1]
        self._request_layout()
        self._end_removed_nodes()

    def _end_removed_nodes(self) -> None:
        """End the nodes that have left the layout, and nodes of cancelled requests."""
        assert self._backend is not None
        needed = {*self._target[0], *self._target[1]}
        if self._coordinator is not None:
            needed |= self._coordinator.nodes_of_layouts
        for name in self._begun - needed:
            self._begun.discard(name)
            self._ready.discard(name)
            self._backend.end(name)

    def _replace(self, node: str) -> None:
        """Start a node in place of a dead one that is still requested."""
        if node in self._begun and node not in self._ready:
            self._lost += 1
            if self._lost >= _MOST_LOST:
                raise OnlineautoError(f"{self._lost} nodes died before they were ready, the last one {node}")
        self._begun.discard(node)
        self._ready.discard(node)
        for names, serves in zip(self._target, (False, True), strict=True):
            if node in names:
                names.remove(node)
                names.append(self._begin(serves=serves))

    def _begin(self, *, serves: bool) -> str:
        assert self._backend is not None
        self._count += 1
        name = f"{'server' if serves else 'worker'}-{self._count}"
        self._begun.add(name)
        tick = self.begun if serves else max(self.begun, self.version - 1)
        resources = self._demand.server if serves else self._demand.worker
        epoch = self._epoch
        self._backend.begin(
            Spec(name, serves, self._recipe, tick, resources),
            lambda node, message: self._queue.put((epoch, node, message)),
        )
        return name

    def _request_layout(self) -> None:
        workers, servers = self._target
        if not {*workers, *servers} <= self._ready or self._finishing:
            return
        if self._coordinator is not None:
            self._send(self._coordinator.process_message(Resize(tuple(workers), tuple(servers))))
            return
        self._coordinate(workers, servers)

    def _begin_with_ready_nodes(self) -> None:
        """Create the first layout from the ready nodes; other nodes join when they are ready."""
        workers, servers = ([name for name in names if name in self._ready] for names in self._target)
        if workers and servers:
            with self.condition:
                self._coordinate(workers, servers)
                self.condition.notify_all()

    def _coordinate(self, workers: list[str], servers: list[str]) -> None:
        """Start the coordinator with the first layout."""
        coordinator = Coordinator(
            self._sizes, workers=workers, servers=servers, margin=self._margin, tick=self.begun
        )
        self._coordinator = coordinator
        self._send(coordinator.start())
        self._record_change(coordinator.plan)
        if self._copy_is_due:
            self._take(COORDINATOR, Copy())

    def _record_change(self, plan: Plan) -> None:
        """Record a committed layout, and end the nodes that have left it."""
        before, self._last_plan = self._last_plan, plan
        moved = sum(before.owner.get(block, home) != home for block, home in plan.owner.items())
        n = len(plan.workers), len(plan.servers)
        self.changes.append(LayoutChange(plan.tick, *n, moved, self._requested_at, time.monotonic()))
        self._end_removed_nodes()

    def _restart(self) -> None:
        """Restart all nodes from the last snapshot or the beginning, because blocks are lost."""
        if not can_be_read_again(self._recipe.source):
            raise OnlineautoError("a server is lost, and the stream cannot be read a second time")
        assert self._backend is not None
        workers, servers = (len(names) for names in self._target)
        self._backend.close()
        self._backend = self._make()
        self._epoch += 1
        if self.snapshot is not None:
            self._recipe.kept = self.snapshot.blocks
            self.begun = self.snapshot.tick
        self.version, self._copied = self.begun, self.begun
        self._coordinator, self._target = None, ([], [])
        self._begun, self._ready = set(), set()
        self._copies, self._copied_at, self._last_plan = {}, {}, Plan(-1, self.begun, {}, (), ())
        self._finishing = False
        self._resize(workers, servers)

    # -- ticks and snapshots ---------------------------------------------------------------------------

    def _reach(self, version: int) -> None:
        if version > self.version:
            self.version = version
            self.times.append((version, time.monotonic()))
        if self._every is not None and self.version - self._copied >= self._every:
            self._copied = self.version
            self._take(COORDINATOR, Copy())
        self._finish_if_done()

    def _finish_if_done(self) -> None:
        if self.end is not None and self.version >= self.end and not self._finishing:
            self._finishing = True
            self._take(COORDINATOR, Copy())

    def _keep(self, message: Message) -> None:
        """Store a copied block, or the tick of a complete copy; publish a snapshot once it is complete."""
        if isinstance(message, Install):
            self._copies.setdefault(message.attempt, {})[message.block] = message.payload
        elif isinstance(message, Plan):
            self._copied_at[message.generation] = message.tick
        for generation, tick in list(self._copied_at.items()):
            blocks = self._copies.get(generation, {})
            if blocks.keys() == self._sizes.keys():
                self.snapshot = Snapshot(tick, self._recipe.command, self._recipe.cutting, blocks)
                self._copies = {each: copy for each, copy in self._copies.items() if each > generation}
                del self._copied_at[generation]
                self._copy_is_due = False
                self.done = self._finishing and tick == self.end
