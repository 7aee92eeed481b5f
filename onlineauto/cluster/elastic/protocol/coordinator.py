"""``Coordinator``: change the layout, one plan after the other, while workers and servers continue."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from onlineauto.cluster.elastic.protocol.balance import balance
from onlineauto.cluster.elastic.protocol.messages import (
    RUN,
    STORE,
    Abort,
    Arrived,
    Close,
    Copy,
    CoverPart,
    Died,
    Fence,
    Installed,
    Message,
    Move,
    Outbox,
    Plan,
    Promise,
    Resize,
    ServerLost,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Phase(Enum):
    """The current step of a change of layout."""

    STEADY = "steady"
    FENCED = "fenced"
    MOVING = "moving"
    LOST = "lost"


class Coordinator:
    """A state machine that owns the layout. Several requests coalesce: the next plan is for the last one.

    A change has three steps:

    1. *Fence*: each server promises a version that it will not pass.
    2. *Move*: the clock is the largest promise. Servers run to the clock, and send the blocks that move.
    3. *Commit*: once all servers are at the clock and all blocks are at their new owners, the plan is sent to
       all nodes. Workers need no earlier notice.

    Parameters
    ----------
    sizes : mapping of int to int
        The sizes of the blocks.
    workers, servers : sequence of str
        The initial nodes.
    margin : int
        Number of ticks that servers may continue while a change is prepared. It affects only the speed.
    tick : int
        The first tick: 0, or the tick of a snapshot.

    Attributes
    ----------
    plan : Plan
        The layout in force.
    phase : Phase
        The current step of a change.
    """

    def __init__(
        self,
        sizes: Mapping[int, int],
        *,
        workers: Sequence[str],
        servers: Sequence[str],
        margin: int = 0,
        tick: int = 0,
    ) -> None:
        self._sizes, self._margin = dict(sizes), margin
        owner = balance(self._sizes, {}, servers)
        self.plan = Plan(0, tick, owner, tuple(servers), tuple(workers))
        self.phase = Phase.STEADY
        self._requested = Resize(tuple(workers), tuple(servers))
        self._dead: set[str] = set()
        self._covering: dict[str, str] = {}  # by dead worker: the worker that does its part
        self._copies = 0  # requested copies that are not complete yet
        self._attempt = 0
        self._promises: dict[str, int] = {}
        self._moving = 0  # copies that are complete once the current change of layout is committed
        self._next: tuple[tuple[str, ...], dict[int, str]] = (), {}  # servers and owners of the next plan
        self._arrived: dict[str, int] = {}
        self._missing: set[int] = set()
        self._closing: Close | None = None

    @property
    def nodes_of_layouts(self) -> set[str]:
        """Nodes of the current layout, of the requested layout, and of a change that is not committed yet."""
        moving = self._next[0] if self.phase is Phase.MOVING else ()
        requested, plan = self._requested, self.plan
        return {*plan.workers, *plan.servers, *requested.workers, *requested.servers, *moving}

    def start(self) -> Outbox:
        """Return the first messages: the first plan, to all nodes."""
        return [(node, self.plan) for node in (*self.plan.servers, *self.plan.workers)]

    def process_message(self, message: Message) -> Outbox:
        """Process a message; return the messages to send."""
        out: Outbox = []
        match message:
            case Resize():
                self._store_request(message)
                self._cover(out)
            case Copy():
                self._copies += 1
            case Died():
                self._remove_node(message.node, out)
            case Promise():
                self._take_promise(message, out)
            case Arrived():
                if message.attempt == self._attempt:
                    self._arrived[message.server] = message.version
            case Installed():
                if message.attempt == self._attempt:
                    self._missing.discard(message.block)
            case Close() if self._closing is None:
                self._closing = message
                out += [(node, message) for node in (RUN, *self.plan.servers)]
        self._commit(out)
        self._begin(out)
        return out

    def _store_request(self, request: Resize) -> None:
        """Store the last request without dead nodes; if no server is left, keep the current servers."""
        workers = tuple(name for name in request.workers if name not in self._dead)
        servers = tuple(name for name in request.servers if name not in self._dead)
        self._requested = Resize(workers, servers or self.plan.servers)

    def _begin(self, out: Outbox) -> None:
        """Fence the servers if the layout differs from the requested one, or a copy is requested."""
        requested, plan = self._requested, self.plan
        differs = (requested.workers, requested.servers) != (plan.workers, plan.servers)
        if self.phase is Phase.STEADY and (differs or self._copies) and requested.workers:
            self._attempt += 1
            self.phase, self._promises = Phase.FENCED, {}
            fence = Fence(self._attempt, plan.generation, self._margin)
            out += [(server, fence) for server in plan.servers]

    def _take_promise(self, promise: Promise, out: Outbox) -> None:
        if promise.attempt != self._attempt or self.phase is not Phase.FENCED:
            return
        self._promises[promise.server] = promise.hold
        if len(self._promises) < len(self.plan.servers):
            return
        before, servers = self.plan.owner, self._requested.servers
        owner = balance(self._sizes, before, servers)
        destination = {block: home for block, home in owner.items() if home != before[block]}
        self.phase, self._next, self._moving = Phase.MOVING, (servers, owner), self._copies
        self._arrived, self._missing = {}, set(destination)
        move = Move(self._attempt, self._clock(), destination, self._copies > 0)
        out += [(server, move) for server in self.plan.servers]

    def _clock(self) -> int:
        """Return the tick of the change: the largest promise, which no server has passed or will pass."""
        return max(self._promises.values())

    def _commit(self, out: Outbox) -> None:
        """Commit the next plan once all servers are ready; its workers are those requested now."""
        ready = len(self._arrived) == len(self.plan.servers) and not self._missing
        if self.phase is not Phase.MOVING or not ready or not self._requested.workers:
            return
        (tick,) = set(self._arrived.values())
        old, (servers, owner) = self.plan, self._next
        self.plan = plan = Plan(self._attempt, tick, owner, servers, self._requested.workers)
        workers = (*old.workers, *plan.workers, *self._covering.values())
        everyone = dict.fromkeys((*old.servers, *servers, *workers))
        out += [(node, plan) for node in everyone if node not in self._dead]
        if self._closing is not None:
            out += [(server, self._closing) for server in servers if server not in old.servers]
        if self._moving:
            out.append((STORE, plan))
        out.append((RUN, plan))
        self.phase, self._covering = Phase.STEADY, {}
        self._copies -= self._moving

    # -- deaths ----------------------------------------------------------------------------------------

    def _remove_node(self, node: str, out: Outbox) -> None:
        if node in self._dead:
            return
        self._dead.add(node)
        if node in self.plan.servers:
            self.phase = Phase.LOST
            out.append((RUN, ServerLost(node)))
            return
        self._store_request(self._requested)
        if self.phase is Phase.MOVING and node in self._next[0]:
            out += [(server, Abort(self._attempt)) for server in {*self.plan.servers, *self._next[0]}]
            self.phase = Phase.STEADY
        self._cover(out)

    def _cover(self, out: Outbox) -> None:
        """Assign the part of each dead worker to a living worker, which repeats the tick."""
        living = [name for name in (*self.plan.workers, *self._requested.workers) if name not in self._dead]
        if not living:
            return  # the tick waits for a worker that joins
        for role in self.plan.workers:
            if role in self._dead and self._covering.get(role, role) in self._dead:
                busy = list(self._covering.values())
                self._covering[role] = chosen = min(living, key=busy.count)
                out.append((chosen, CoverPart(self.plan, role)))
