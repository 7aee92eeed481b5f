"""A network in one process: messages wait until somebody delivers them, and invariants are checked then."""

from __future__ import annotations

from onlineauto.cluster.elastic.protocol.coordinator import Coordinator, Phase
from onlineauto.cluster.elastic.protocol.messages import (
    COORDINATOR,
    RUN,
    STORE,
    Close,
    Died,
    Install,
    Message,
    Outbox,
    Plan,
    Resize,
    ServerLost,
)
from onlineauto.cluster.elastic.protocol.server import Server
from onlineauto.cluster.elastic.protocol.worker import Worker
from tests.cluster.elastic.sums import ALONE, LAST, SIZES, SumShard, SumShards, SumWork


class Network:
    """A coordinator, servers and workers, and the messages between them."""

    coordinator_class: type[Coordinator] = Coordinator
    server_class: type[Server] = Server
    worker_class: type[Worker] = Worker

    def __init__(
        self,
        *,
        workers: int = 2,
        servers: int = 2,
        margin: int = 0,
        tick: int = 0,
        kept: dict[int, int] | None = None,
    ) -> None:
        self._kept = kept
        self.servers: dict[str, Server] = {}
        self.workers: dict[str, Worker] = {}
        self.dead: set[str] = set()
        self.flying: list[tuple[str, Message]] = []
        self.lost: list[str] = []
        self._counts = {"w": 0, "s": 0}
        self._seen: dict[str, tuple[int, int]] = {}
        self.copies: dict[int, dict[int, int]] = {}
        self.snapshots: list[Plan] = []
        made = self.add_workers(workers), self.add_servers(servers)
        self.coordinator = self.coordinator_class(
            SIZES, workers=made[0], servers=made[1], margin=margin, tick=tick
        )
        self.send(self.coordinator.start())

    def add_workers(self, n: int) -> list[str]:
        names = [self._name("w") for _ in range(n)]
        self.workers |= {name: self.worker_class(name, SumWork()) for name in names}
        return names

    def add_servers(self, n: int) -> list[str]:
        names = [self._name("s") for _ in range(n)]
        self.servers |= {name: self.server_class(name, SumShards(), self._kept) for name in names}
        return names

    def _name(self, kind: str) -> str:
        self._counts[kind] += 1
        return f"{kind}{self._counts[kind]}"

    def send(self, messages: Outbox) -> None:
        self.flying += [(node, message) for node, message in messages if node not in self.dead]

    def deliver(self, index: int) -> None:
        """Deliver one of the messages in flight."""
        if self.flying:
            self._hand_over(*self.flying.pop(index % len(self.flying)))

    def _hand_over(self, node: str, message: Message) -> None:
        if node == COORDINATOR:
            self.send(self.coordinator.process_message(message))
            self.check_plan()
        elif node == STORE:
            self._keep(message)
        elif node == RUN:
            self.lost += [message.server] if isinstance(message, ServerLost) else []
        elif node in self.servers:
            server = self.servers[node]
            self.send(server.process_message(message))
            self.check_server(server)
        else:
            self.send(self.workers[node].process_message(message))

    def duplicate(self, index: int) -> None:
        if self.flying:
            self.flying.append(self.flying[index % len(self.flying)])

    def tell(self, message: Message) -> None:
        """Hand the coordinator a message at once."""
        self._hand_over(COORDINATOR, message)

    def kill(self, node: str) -> None:
        """Let a node vanish with its memory and all messages to it; the coordinator notices."""
        self.dead.add(node)
        self.servers.pop(node, None)
        self.workers.pop(node, None)
        self.flying = [(to, message) for to, message in self.flying if to != node]
        self.tell(Died(node))

    def _keep(self, message: Message) -> None:
        if isinstance(message, Install):
            self.copies.setdefault(message.attempt, {})[message.block] = message.payload
        if isinstance(message, Plan):
            self.snapshots.append(message)

    def check_copies(self) -> None:
        """Check that the snapshots of which all has arrived are what one process has at their ticks."""
        for plan in self.snapshots:
            assert self.copies[plan.generation] == ALONE[plan.tick]

    def check_plan(self) -> None:
        plan = self.coordinator.plan
        assert plan.owner.keys() == SIZES.keys()
        assert set(plan.owner.values()) <= set(plan.servers)
        assert len(set(plan.workers)) == len(plan.workers)
        assert plan.workers

    def check_server(self, server: Server) -> None:
        """Check that blocks are, bit for bit, those of one process at this version, and time goes on."""
        if server.generation < 0:
            return
        found = {block: shard.value for block, shard in server.blocks.items() if isinstance(shard, SumShard)}
        assert found == {block: ALONE[server.version][block] for block in server.blocks}
        now = server.generation, server.version
        assert now >= self._seen.get(server.name, now)
        self._seen[server.name] = now
        assert server.hold is None or server.version <= server.hold

    def finish(self) -> None:
        """Deliver everything, then end; check that all has come to rest at the end of the stream."""
        if not set(self.coordinator._requested.workers):
            self.tell(Resize(tuple(self.add_workers(1)), self.coordinator._requested.servers))
        self.tell(Close(LAST))
        delivered = 0
        while self.flying:
            self.deliver(0)
            delivered += 1
            assert delivered < 200_000, "the network never comes to rest"
        if self.lost:
            return
        plan = self.coordinator.plan
        assert self.coordinator.phase is Phase.STEADY
        assert (plan.workers, plan.servers) == (
            self.coordinator._requested.workers,
            self.coordinator._requested.servers,
        )
        for name in plan.servers:
            assert self.servers[name].version == LAST, f"{name} is stuck"
            assert self.servers[name].generation == plan.generation
        owned = [block for name in plan.servers for block in self.servers[name].blocks]
        assert sorted(owned) == sorted(SIZES)
        loads = [sum(SIZES[block] for block in self.servers[name].blocks) for name in plan.servers]
        assert max(loads) - min(loads) <= max(SIZES.values())
        self.check_copies()
