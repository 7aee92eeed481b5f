"""Divide a cluster among jobs, slot by slot: clusters, jobs, policies, and histories to evaluate them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onlineauto.cluster.cluster import Cluster
    from onlineauto.cluster.history import Head, History, Record
    from onlineauto.cluster.jobs import ClusterJob, Demand, RunJob, StreamJob, StudyJob
    from onlineauto.cluster.learned import Guarded, Learned
    from onlineauto.cluster.partitions.run import PartitionedRun
    from onlineauto.cluster.policies import (
        POLICIES,
        ClusterPolicy,
        Fair,
        Fifo,
        MarginalGain,
        Row,
        Situation,
        Speeds,
        Srtf,
        Tetris,
        allocate,
    )
    from onlineauto.cluster.simulator import Simulated, simulate

__all__ = [
    "POLICIES",
    "Cluster",
    "ClusterJob",
    "ClusterPolicy",
    "Demand",
    "Fair",
    "Fifo",
    "Guarded",
    "Head",
    "History",
    "Learned",
    "MarginalGain",
    "PartitionedRun",
    "Record",
    "Row",
    "RunJob",
    "Simulated",
    "Situation",
    "Speeds",
    "Srtf",
    "StreamJob",
    "StudyJob",
    "Tetris",
    "allocate",
    "simulate",
]

_LAZY = {
    "Cluster": "onlineauto.cluster.cluster",
    "ClusterJob": "onlineauto.cluster.jobs",
    "ClusterPolicy": "onlineauto.cluster.policies",
    "Demand": "onlineauto.cluster.jobs",
    "Fair": "onlineauto.cluster.policies",
    "Fifo": "onlineauto.cluster.policies",
    "Guarded": "onlineauto.cluster.learned",
    "Head": "onlineauto.cluster.history",
    "History": "onlineauto.cluster.history",
    "Learned": "onlineauto.cluster.learned",
    "MarginalGain": "onlineauto.cluster.policies",
    "POLICIES": "onlineauto.cluster.policies",
    "PartitionedRun": "onlineauto.cluster.partitions.run",
    "Record": "onlineauto.cluster.history",
    "Row": "onlineauto.cluster.policies",
    "RunJob": "onlineauto.cluster.jobs",
    "Simulated": "onlineauto.cluster.simulator",
    "Situation": "onlineauto.cluster.policies",
    "Speeds": "onlineauto.cluster.policies",
    "Srtf": "onlineauto.cluster.policies",
    "StreamJob": "onlineauto.cluster.jobs",
    "StudyJob": "onlineauto.cluster.jobs",
    "Tetris": "onlineauto.cluster.policies",
    "allocate": "onlineauto.cluster.policies",
    "simulate": "onlineauto.cluster.simulator",
}
"""Modules of the names, which are imported on first use, so that worker processes start sooner."""


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'onlineauto.cluster' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
