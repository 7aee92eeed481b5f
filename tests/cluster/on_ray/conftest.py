"""The Ray cluster of two nodes on which studies are tested, for the cluster too."""

from __future__ import annotations

from tests.tune.on_ray.conftest import cluster, nodes

__all__ = ["cluster", "nodes"]
