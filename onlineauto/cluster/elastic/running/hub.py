"""Hub: the thread that runs the coordinator, keeps snapshots, and begins and ends nodes."""

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
    Lost,
    Message,
    Plan,
    Reached,
    Resize,
)
from onlineauto.cluster.elastic.running.nodes import Failed, Ready, Spec
from onlineauto.cluster.elastic.running.snapshot import Snapshot
from onlineauto.engine.stream.source import can_be_read_again
from onlineauto.errors import OnlineautoError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from onlineauto.cluster.elastic.protocol.messages import Outbox
    from onlineauto.cluster.elastic.running.nodes import Backend, Demand
    from onlineauto.cluster.elastic.running.recipe import Recipe

_MOST_LOST = 5
"""Nodes that may die one after the other before any is ready."""
_PATIENCE = 30.0
"""Seconds without news after which a run begins with the nodes that are ready; others may never find room."""


class _Wanted(Message, frozen=True):
    """Ask for so many nodes."""

    workers: int
    servers: int


class Change(NamedTuple):
    """A layout that came into force."""

    tick: int
    workers: int
    servers: int
    moved: int  # blocks that moved
    asked: float  # `time.monotonic` of the request
    done: float  # and of the commit


class Hub:
    """Directs a run. All its state is its thread's; others read it under the `condition`.

    Parameters
    ----------
    recipe : Recipe
        The stream and the model.
    backend : Backend
        Where nodes live.
    demand : Demand
        Resources of each node.
    tick : int
        The tick to begin at.
    margin : int
        Ticks that servers may go on while a change is prepared.
    every : int or None
        Take a snapshot each time that so many ticks have passed.
    """

    def __init__(
        self,
        recipe: Recipe,
        backend: Callable[[], Backend],
        demand: Demand,
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
        self.changes: list[Change] = []
        self.times: list[tuple[int, float]] = []
        self._backend: Backend | None = None
        self._queue: SimpleQueue[tuple[int | None, str, Message | None]] = SimpleQueue()
        self._epoch = 0  # it grows when all nodes begin anew; messages of old ones are dropped
        self._coordinator: Coordinator | None = None
        self._target: tuple[list[str], list[str]] = [], []
        self._begun: set[str] = set()  # nodes that were not ended
        self._ready: set[str] = set()
        self._lost = 0  # nodes that died before they were ready, one after the other
        self._count = 0
        self._asked = time.monotonic()
        self._last_plan = Plan(-1, tick, {}, (), ())
        self._copies: dict[int, dict[int, Any]] = {}  # by attempt, then by block
        self._copied_at: dict[int, int] = {}  # ticks of copies, by generation
        self._copied = tick
        self._copy_is_due = False
        self._finishing = False
        self._thread = Thread(target=self._run, name="elastic hub", daemon=True)

    # -- from other threads ----------------------------------------------------------------------------

    def start(self, workers: int, servers: int) -> None:
        """Begin all nodes and the thread."""
        self._backend = self._make()
        self._thread.start()
        self.resize(workers, servers)

    def resize(self, workers: int, servers: int) -> None:
        """Ask for so many workers and servers."""
        self._queue.put((None, RUN, _Wanted(workers, servers)))

    def copy(self) -> None:
        """Ask for a snapshot."""
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
                    self._begin_with_those_there_are()
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
                self._send(self._coordinator.on(message))
        elif node == STORE:
            self._keep(message)
        else:
            self._hear(message)

    def _send(self, messages: Outbox) -> None:
        assert self._backend is not None
        for node, message in messages:
            if node in (COORDINATOR, RUN, STORE):
                self._take(node, message)
            else:
                self._backend.send(node, message)

    def _hear(self, message: Message) -> None:
        """Take a message to the run itself."""
        match message:
            case Reached():
                self._reach(message.version)
            case Ready():
                self._ready.add(message.node)
                self._lost = 0
                self._ask()
            case _Wanted():
                self._want(message.workers, message.servers)
            case Plan():
                self._note(message)
            case Close():
                self.end = message.end
                self._finish_if_done()
            case Failed():
                raise OnlineautoError(f"{message.node}: {message.reason}")
            case Lost():
                self._begin_anew()

    # -- nodes -----------------------------------------------------------------------------------------

    def _want(self, workers: int, servers: int) -> None:
        """Keep the oldest nodes, and begin those that are missing; ask for all once they are ready."""
        self._asked = time.monotonic()
        kept = [names[:n] for names, n in zip(self._target, (workers, servers), strict=True)]
        if self._coordinator is not None and kept[0] and kept[1]:  # shrink first: joiners may need the room
            self._target = kept[0], kept[1]
            self._ask()
        for number in range(max(workers, servers)):  # in turn, so that both find room if there is little
            for names, n, serves in zip(kept, (workers, servers), (False, True), strict=True):
                if len(names) <= number < n:
                    names.append(self._begin(serves=serves))
        self._target = kept[0], kept[1]
        self._ask()
        self._dismiss()

    def _dismiss(self) -> None:
        """End the nodes that nobody needs: those that left, and joiners that were called off."""
        assert self._backend is not None
        needed = {*self._target[0], *self._target[1]}
        if self._coordinator is not None:
            needed |= self._coordinator.involved
        for name in self._begun - needed:
            self._begun.discard(name)
            self._ready.discard(name)
            self._backend.end(name)

    def _replace(self, node: str) -> None:
        """Begin a node in place of one that is gone, if it was still wanted."""
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

    def _ask(self) -> None:
        workers, servers = self._target
        if not {*workers, *servers} <= self._ready or self._finishing:
            return
        if self._coordinator is not None:
            self._send(self._coordinator.on(Resize(tuple(workers), tuple(servers))))
            return
        self._coordinate(workers, servers)

    def _begin_with_those_there_are(self) -> None:
        """Make the first layout of the nodes that are ready; the others join when they are."""
        workers, servers = ([name for name in names if name in self._ready] for names in self._target)
        if workers and servers:
            with self.condition:
                self._coordinate(workers, servers)
                self.condition.notify_all()

    def _coordinate(self, workers: list[str], servers: list[str]) -> None:
        """Begin with the first layout."""
        made = Coordinator(
            self._sizes, workers=workers, servers=servers, margin=self._margin, tick=self.begun
        )
        self._coordinator = made
        self._send(made.start())
        self._note(made.plan)
        if self._copy_is_due:
            self._take(COORDINATOR, Copy())

    def _note(self, plan: Plan) -> None:
        """Note a layout that came into force, and end the nodes that left."""
        before, self._last_plan = self._last_plan, plan
        moved = sum(before.owner.get(block, home) != home for block, home in plan.owner.items())
        n = len(plan.workers), len(plan.servers)
        self.changes.append(Change(plan.tick, *n, moved, self._asked, time.monotonic()))
        self._dismiss()

    def _begin_anew(self) -> None:
        """Go back to the last snapshot, or to the start, since blocks are lost."""
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
        self._want(workers, servers)

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
        """Keep a copy of a block, or the plan of a tick at which all were copied."""
        if isinstance(message, Install):
            self._copies.setdefault(message.attempt, {})[message.block] = message.payload
        elif isinstance(message, Plan):
            self._copied_at[message.generation] = message.tick
        for generation, tick in list(self._copied_at.items()):
            blocks = self._copies.get(generation, {})
            if blocks.keys() == self._sizes.keys():
                self.snapshot = Snapshot(tick, self._recipe.command, self._recipe.cutting, blocks)
                self._copies = {each: kept for each, kept in self._copies.items() if each > generation}
                del self._copied_at[generation]
                self._copy_is_due = False
                self.done = self._finishing and tick == self.end
