"""A Ray cluster of a head, which runs no trials, and two nodes, all on this machine."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

_PATIENCE = 180
"""Seconds for what takes two on a machine that has nothing else to do."""


class Nodes:
    """Two nodes with one processor each, which tests may kill, and the resources `here` and `there`."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        quickly = {
            "health_check_period_ms": 500,
            "health_check_failure_threshold": 3,
            "health_check_initial_delay_ms": 0,
        }
        self._cluster = Cluster(
            initialize_head=True,
            head_node_args={"num_cpus": 0, "include_dashboard": False, "_system_config": quickly},
        )
        self.address: str = self._cluster.address
        self._nodes: dict[str, Any] = {}
        self.mend()

    def mend(self) -> None:
        """Start nodes again that were killed."""
        for name in {"here", "there"} - set(self._nodes):
            self._nodes[name] = self._cluster.add_node(num_cpus=1, resources={name: 10})

    def kill(self, node_id: str) -> None:
        """Kill a node without a graceful shutdown, like a power failure."""
        [name] = [name for name, node in self._nodes.items() if node.node_id == node_id]
        self._cluster.remove_node(self._nodes.pop(name), allow_graceful=False)

    def name(self, node_id: str) -> str:
        """Return the resource that only this node has."""
        return next(name for name, node in self._nodes.items() if node.node_id == node_id)

    def shutdown(self) -> None:
        self._cluster.shutdown()


@pytest.fixture(scope="package")
def cluster() -> Iterator[Nodes]:
    """Start the cluster once for all tests of a folder, and connect to it."""
    ray = pytest.importorskip("ray")
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"  # a warning otherwise
    nodes = Nodes()
    ray.init(address=nodes.address, log_to_driver=False, logging_level="ERROR")
    yield nodes
    ray.shutdown()
    nodes.shutdown()


@pytest.fixture
def nodes(cluster: Nodes) -> Nodes:
    """Return the cluster with both of its nodes alive."""
    import ray

    cluster.mend()
    until(lambda: ray.cluster_resources().get("CPU", 0) >= 2)
    return cluster


def until(holds: Callable[[], object]) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + _PATIENCE
    while not holds():
        assert time.monotonic() < end, "it was waited for too long"
        time.sleep(0.05)
