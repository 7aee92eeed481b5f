"""``Servers``: the merge servers of a pool, which join and leave while workers learn.

1. A new server registers: it answers once its process or actor is up. Rounds go on without it.
2. `assign` divides the blocks of the model among the servers, and moves as few as possible.
3. A `ScalingClock` names a version that all servers and workers hear of before they reach it.
4. At this version, blocks migrate: each owner sends them to the next one and keeps a copy.
5. Once all have arrived, the next base carries the new owners. A server without blocks ends.

If a server dies in between, no block has another owner, and the change begins again in the next round. A
server that dies is replaced by one that adopts the coordinator's full base, which has all blocks.
"""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar
from weakref import WeakKeyDictionary

from onlineauto.cluster.partitions.assignment import assign
from onlineauto.cluster.partitions.division import Division, blocks_of
from onlineauto.cluster.partitions.messages import state_of_tree
from onlineauto.cluster.partitions.scaling_clock import NodeTiming, ScalingClock
from onlineauto.work.crew import Crew, W, WorkerLost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from onlineauto.cluster.partitions.coordinator import Coordinator
    from onlineauto.cluster.partitions.division import Block
    from onlineauto.cluster.partitions.pool import Bases
    from onlineauto.cluster.partitions.state import SentState

Node_contra = TypeVar("Node_contra", contravariant=True)
Sent = TypeVar("Sent")
"""A message that was sent."""


class Transport(Protocol[Node_contra, Sent]):
    """A transport of messages to workers and servers."""

    def send(self, name: str, tree: Any) -> Sent:
        """Send a message to all workers and servers, and return its name or reference."""

    def read(self, sent: Sent) -> Any:
        """Return the tree of a message."""

    def received(self, worker: Node_contra, message: Any) -> tuple[Any, list[Sent]]:
        """Return the plain answer of a worker, and the messages that it has sent with its answer."""


class _Job(NamedTuple):
    """A message to a server, whose outputs have names that begin with `output`."""

    server: int
    method: str
    output: str
    arguments: tuple[Any, ...] = ()


class _Plan(NamedTuple):
    """The next owners of blocks, and the clock at which they change."""

    servers: list[int]
    owners: dict[Block, int]
    clock: ScalingClock


class Servers(Generic[W, Sent]):
    """The merge servers of a pool.

    Attributes
    ----------
    n : int
        The requested number of servers.
    shares : list
        What the servers have merged of the last round, as messages for workers.
    owners : dict
        The server of each block.
    pauses : list of float
        The seconds that each change of owners has stopped the rounds.
    """

    def __init__(self, crew: Crew[W, int], transport: Transport[W, Sent]) -> None:
        self.n = 0
        self.shares: list[Sent] = []
        self.owners: dict[Block, int] = {}
        self.pauses: list[float] = []
        self._crew, self._transport = crew, transport
        self._nodes: dict[int, W] = {}
        self._registered: set[int] = set()
        self._servers: list[int] = []  # that own blocks
        self._last_number = -1
        self._plan: _Plan | None = None
        self._merged: list[SentState] = []  # the last shares
        self._versions: WeakKeyDictionary[W, int] = WeakKeyDictionary()
        self._parts: list[list[Sent]] = []
        self._jobs: dict[int, _Job] = {}
        self._begun = time.perf_counter()
        self._round_time = 1.0

    @property
    def numbers(self) -> list[int]:
        """The numbers of the servers that own blocks, in the order of the parts of ends."""
        return sorted(set(self.owners.values()))

    @property
    def size(self) -> int:
        """Number of servers that run or start."""
        return len(self._crew)

    def nodes(self) -> list[W]:
        """Return the processes or actors."""
        return [*self._nodes.values()]

    def scale(
        self, coordinator: Coordinator, confirm: Callable[[int], Iterator[tuple[str, int, float]]]
    ) -> None:
        """Bring the number of servers nearer to the requested one, between two rounds.

        `confirm` tells workers the version of a change, and yields name, version and seconds of each answer.
        """
        now = time.perf_counter()
        self._begun, self._round_time = now, max(now - self._begun, 1e-6)
        coordinator.owners = self.owners
        if not self.n:
            self._end_servers(coordinator)
        elif not self._servers:
            self._begin(coordinator)
        elif self._plan is not None and len(self._plan.servers) == self.n:
            if coordinator.version >= self._plan.clock.start:
                self._migrate(coordinator, self._plan)
        else:
            self._plan = None
            self._prepare(coordinator, confirm)

    def _end_servers(self, coordinator: Coordinator) -> None:
        """End all servers, since the coordinator has all blocks; workers still need the last shares."""
        shares = self.shares
        self.end()
        self._servers, self.owners, self.shares = [], {}, shares
        coordinator.owners = self.owners

    def _begin(self, coordinator: Coordinator) -> None:
        """Start the first servers; they receive their blocks with the full base."""
        servers = [self._start() for _ in range(self.n)]
        while not self._registered.issuperset(servers):
            self._take_messages()
            for server in servers:
                self._node(server)
        self._commit(coordinator, servers, assign(self._all_sizes(coordinator), {}, servers))

    def _prepare(
        self, coordinator: Coordinator, confirm: Callable[[int], Iterator[tuple[str, int, float]]]
    ) -> None:
        """Start new servers; once all have registered, plan the next owners and tell all nodes the clock."""
        self._take_messages(0.0)
        joining = [number for number in self._nodes if number not in self._servers]
        missing = max(self.n - len(self._servers), 0)
        joining += [self._start() for _ in range(missing - len(joining))]
        for number in joining[missing:]:
            self._drop(number)
        joining = joining[:missing]
        if self.n == len(self._servers) or not self._registered.issuperset(joining):
            return
        servers = [*self._servers, *joining][: self.n]
        owners = assign(self._all_sizes(coordinator), self.owners, servers)
        speed = 1.0 / self._round_time
        answers = [*self._confirm(0), *confirm(0)]
        if not answers:
            return  # all nodes have died, and others begin
        clock = ScalingClock(
            {name: NodeTiming(version, speed, seconds) for name, version, seconds in answers}
        )
        while not clock.is_confirmed:
            heard, start = set(), clock.start
            for name, version, _ in [*self._confirm(start), *confirm(start)]:
                heard.add(name)
                clock.confirm(name, start, version)
            for name in {name for name, *_ in answers} - heard:
                clock.remove(name)
        self._plan = _Plan(servers, owners, clock)

    def _confirm(self, start: int) -> Iterator[tuple[str, int, float]]:
        """Tell servers at which version owners change; yield name, version and seconds of each answer."""
        begin, numbers = time.perf_counter(), [*self._nodes]
        results = self._ask([_Job(number, "clock", "", (start,)) for number in numbers])
        for number, result in zip(numbers, results, strict=True):
            if result is not None:
                yield f"server {number}", result[0], time.perf_counter() - begin

    def _migrate(self, coordinator: Coordinator, plan: _Plan) -> None:
        """Move blocks to their next owners; if a server dies meanwhile, no block has another owner."""
        begin = time.perf_counter()
        moves: dict[tuple[int, int], list[Block]] = {}
        for block, target in plan.owners.items():
            if self.owners[block] != target:
                moves.setdefault((self.owners[block], target), []).append(block)
        nodes = [self._nodes.get(source) for source, _ in moves]
        if any(node is None or self._versions.get(node) != coordinator.version for node in nodes):
            return  # after the next base
        given = self._ask(
            [
                _Job(
                    source,
                    "give",
                    f"moved{source}.{target}",
                    (self._transport.send(f"blocks{source}.{target}", blocks),),
                )
                for (source, target), blocks in moves.items()
            ]
        )
        inboxes: dict[int, list[Sent]] = {}
        for (_, target), result in zip(moves, given, strict=True):
            if result is not None:
                inboxes.setdefault(target, []).extend(result[1])
        received = self._ask([_Job(target, "receive", "", (*inbox,)) for target, inbox in inboxes.items()])
        self._plan = None
        if None in given or None in received:
            return
        for target in inboxes:
            self._versions[self._nodes[target]] = coordinator.version
        self._commit(coordinator, plan.servers, plan.owners)
        self.pauses.append(time.perf_counter() - begin)

    def _commit(self, coordinator: Coordinator, servers: list[int], owners: dict[Block, int]) -> None:
        """Change the owners of blocks; servers without any end."""
        self._servers, self.owners = servers, owners
        coordinator.owners = owners
        for number in [*self._nodes]:
            if number not in servers:
                self._drop(number)

    def _all_sizes(self, coordinator: Coordinator) -> dict[Block, float]:
        """Return the size of each block: about how long the last round took to merge in it."""
        workspace = coordinator.workspace
        merged = self._merged or [coordinator.full_base().state]
        division = Division.of(workspace, {}, {})
        sizes: dict[Block, float] = {}
        for share in merged:
            sizes |= division.sizes(share)
        return {block: 1.0 + sizes.get(block, 0.0) for block in blocks_of(workspace)}

    def adopt(self, bases: Bases[Sent]) -> None:
        """Send the next base to all servers, without waiting for their answers."""
        self._bases = bases
        for number in self._servers:
            self._adopt(number)

    def _adopt(self, number: int) -> bool:
        """Send the next base to an idle server that does not have it; return False if the server has it."""
        node = self._node(number)
        base = self._bases.of_version(self._versions.get(node, 0))
        if node not in self._crew.busy and base is not None:
            self._send(_Job(number, "adopt", "", (base,)))
            self._versions[node] = self._bases.version
        return base is not None

    def begin_merge(self, parts: Sequence[list[Sent]]) -> None:
        """Have all servers merge their parts of ends, without waiting for their answers."""
        self._parts = [*parts]
        while any(node in self._crew.busy for number, node in self._nodes.items() if number in self._servers):
            self._take_messages()
        for number in self.numbers:
            self._merge(number)

    def _merge(self, number: int) -> None:
        """Have a server merge its parts, if it has the base; otherwise, send the base."""
        if self._node(number) not in self._crew.busy and not self._adopt(number):
            position = self.numbers.index(number)
            self._send(_Job(number, "merge", f"share{number}", tuple(part[position] for part in self._parts)))

    def end_merge(self) -> list[SentState]:
        """Return what the servers have merged; those that die are replaced."""
        shares: dict[int, Sent] = {}
        while len(shares) < len(self.numbers):
            for number in self.numbers:
                if number not in shares:
                    self._merge(number)
            for job, result in self._take_messages():
                if result is not None and job.method == "merge":
                    [shares[job.server]] = result[1]
        self.shares = [shares[number] for number in self.numbers]
        merged = [state_of_tree(self._transport.read(share)) for share in self.shares]
        self._merged = merged or self._merged
        return merged

    def _start(self) -> int:
        """Start a server with a new number, which registers."""
        self._last_number += 1
        self._node(self._last_number)
        return self._last_number

    def _node(self, number: int) -> W:
        """Return a server, which is started and registers if it does not run."""
        if number not in self._nodes:
            self._nodes[number] = self._crew.start(number)
            self._registered.discard(number)
            self._send(_Job(number, "clock", "", (0,)))
        return self._nodes[number]

    def _drop(self, number: int) -> None:
        """End a server that owns no blocks."""
        self._jobs.pop(number, None)
        self._crew.remove(self._nodes.pop(number))

    def _send(self, job: _Job) -> None:
        self._jobs[job.server] = job
        self._crew.begin(self._nodes[job.server], job.server, "call", job.method, job.output, *job.arguments)

    def _ask(self, jobs: Sequence[_Job]) -> list[tuple[Any, list[Sent]] | None]:
        """Return the answers and outputs of servers, in the order of jobs; None of a server that has died."""
        results: dict[_Job, Any] = {}
        waiting = deque(jobs)
        while len(results) < len(jobs):
            for job in [*waiting]:
                if job.server not in self._nodes:
                    results[job] = None
                elif self._nodes[job.server] in self._crew.busy:
                    continue
                else:
                    self._send(job)
                waiting.remove(job)
            if len(results) < len(jobs):
                results.update((job, result) for job, result in self._take_messages() if job in jobs)
        return [results[job] for job in jobs]

    def _take_messages(self, seconds: float | None = None) -> list[tuple[_Job, Any]]:
        """Wait for messages of servers; return each job that has ended, with its answer and outputs.

        They are None if the server has died.
        """
        ended = list[tuple[_Job, Any]]()
        for node, number, message in self._crew.wait(seconds) if self._crew.busy else ():
            job = self._jobs.pop(number)
            if isinstance(message, WorkerLost):
                self._crew.count_death(message)
                del self._nodes[number]
                ended.append((job, None))
                continue
            self._crew.release(node)
            self._registered.add(number)
            answer, outputs = self._transport.received(node, message)
            ended.append((job, (answer, outputs)))
        return ended

    def end(self) -> None:
        """End all servers; the next round starts others in their place."""
        self._crew.end()
        self._nodes.clear()
        self._registered.clear()
        self._jobs.clear()
        self._plan, self.shares = None, []
