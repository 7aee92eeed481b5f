"""The elastic protocol before an adversary."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from onlineauto.cluster.elastic.protocol.messages import Copy, Resize
from tests.cluster.elastic.machine import Adversary
from tests.cluster.elastic.network import Network
from tests.cluster.elastic.sums import LAST

QUIET = settings(deadline=None, suppress_health_check=list(HealthCheck), stateful_step_count=30)


def test_nothing_is_lost_or_applied_twice() -> None:
    run_state_machine_as_test(Adversary, settings=settings(QUIET, max_examples=150))


@pytest.mark.slow
def test_nothing_is_lost_or_applied_twice_for_long() -> None:
    run_state_machine_as_test(Adversary, settings=settings(QUIET, max_examples=3000, derandomize=False))


def test_margin_is_a_matter_of_speed_alone() -> None:
    """Servers go on for as many ticks as the margin says, and the blocks are the same."""
    for margin in range(6):
        network = Network(workers=2, servers=2, margin=margin)
        for _ in range(40):
            network.deliver(0)
        at = max(server.version for server in network.servers.values())
        wanted = network.coordinator.plan
        network.tell(Resize((*wanted.workers, *network.add_workers(1)), network.coordinator.plan.servers))
        while network.coordinator.plan is wanted:
            network.deliver(0)
        assert at <= network.coordinator.plan.tick <= at + margin + 1
        network.finish()


def test_a_run_goes_on_from_a_snapshot_when_a_server_is_lost() -> None:
    network = Network(workers=2, servers=3)
    for _ in range(60):
        network.deliver(0)
    network.tell(Copy())
    while not network.snapshots:
        network.deliver(0)
    for _ in range(100):
        network.deliver(0)
    network.kill("s2")
    while network.flying:
        network.deliver(0)
    assert network.lost == ["s2"]
    (snapshot,) = network.snapshots
    assert 0 < snapshot.tick < LAST
    again = Network(workers=3, servers=2, tick=snapshot.tick, kept=network.copies[snapshot.generation])
    again.finish()


def test_the_last_worker_may_die() -> None:
    network = Network(workers=1, servers=2)
    for _ in range(15):
        network.deliver(0)
    network.kill("w1")
    while network.flying:
        network.deliver(0)
    assert max(server.version for server in network.servers.values()) < LAST
    network.tell(Resize(tuple(network.add_workers(1)), network.coordinator.plan.servers))
    network.finish()
