"""The adversary: delivers in any order, twice, and resizes and kills whenever it likes."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from onlineauto.cluster.elastic.protocol.messages import Close, Copy, Resize
from tests.cluster.elastic.network import Network
from tests.cluster.elastic.sums import LAST

INDEX = st.integers(0, 2**10)
KEPT = st.sampled_from([9, 9, 9, 2, 1, 0])
"""How many nodes of a kind a request keeps at most: mostly all of them."""


class Adversary(RuleBasedStateMachine):
    """Rules over a `Network`, which checks its invariants after every message."""

    network_class: type[Network] = Network

    @initialize(workers=st.integers(1, 3), servers=st.integers(1, 3), margin=st.integers(0, 3))
    def begin(self, workers: int, servers: int, margin: int) -> None:
        self.network = self.network_class(workers=workers, servers=servers, margin=margin)

    @rule(indices=st.lists(INDEX, min_size=1, max_size=40))
    def deliver(self, indices: list[int]) -> None:
        for index in indices:
            self.network.deliver(index)

    @rule(index=st.sampled_from([0, -1]), n=st.integers(1, 120))
    def deliver_in_order(self, index: int, n: int) -> None:
        for _ in range(n):
            self.network.deliver(index)

    @rule(indices=st.lists(INDEX, min_size=1, max_size=5))
    def duplicate(self, indices: list[int]) -> None:
        for index in indices:
            self.network.duplicate(index)

    @rule(
        keep=st.tuples(KEPT, KEPT),
        add=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    )
    def resize(self, keep: tuple[int, int], add: tuple[int, int]) -> None:
        network, wanted = self.network, self.network.coordinator._requested
        workers = [name for name in wanted.workers if name in network.workers][: keep[0]]
        servers = [name for name in wanted.servers if name in network.servers][: keep[1]]
        workers += network.add_workers(add[0] or not workers)
        servers += network.add_servers(add[1] or not servers)
        network.tell(Resize(tuple(workers), tuple(servers)))

    @rule(n=st.integers(1, 40), late=st.integers(1, 40))
    def join_at_once(self, n: int, late: int) -> None:
        """Let a worker join while all that was in flight before is late."""
        network, wanted = self.network, self.network.coordinator._requested
        network.tell(Resize((*wanted.workers, *network.add_workers(1)), wanted.servers))
        for index in [-1] * n + [0] * late:
            network.deliver(index)

    @rule(n=st.integers(1, 60), index=st.sampled_from([0, -1]))
    def join_and_die(self, n: int, index: int) -> None:
        network, wanted = self.network, self.network.coordinator._requested
        (joiner,) = network.add_servers(1)
        network.tell(Resize(wanted.workers, (*wanted.servers, joiner)))
        for _ in range(n):
            network.deliver(index)
        if joiner not in network.coordinator.plan.servers:
            network.kill(joiner)

    @rule()
    def copy(self) -> None:
        self.network.tell(Copy())

    @rule()
    def close(self) -> None:
        self.network.tell(Close(LAST))

    @rule(index=INDEX)
    def kill_joiner(self, index: int) -> None:
        network = self.network
        joiners = [name for name in network.servers if name not in network.coordinator.plan.servers]
        joiners = [name for name in joiners if name in network.coordinator._requested.servers]
        if joiners:
            network.kill(joiners[index % len(joiners)])

    @rule(index=INDEX)
    def kill_worker(self, index: int) -> None:
        network = self.network
        involved = {*network.coordinator.plan.workers, *network.coordinator._requested.workers}
        living = sorted(involved & network.workers.keys())
        if living:
            network.kill(living[index % len(living)])

    def teardown(self) -> None:
        if hasattr(self, "network"):
            self.network.finish()
