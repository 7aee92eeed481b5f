"""Divide a cluster among jobs, slot by slot: clusters, jobs, policies, and histories to evaluate them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onlineauto.cluster.cluster import Cluster
    from onlineauto.cluster.folder import ClusterFolder, JobStatus
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
    "ClusterFolder",
    "ClusterJob",
    "ClusterPolicy",
    "Demand",
    "Fair",
    "Fifo",
    "Guarded",
    "Head",
    "History",
    "JobStatus",
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

_MODULES = {
    "cluster": ("Cluster",),
    "folder": ("ClusterFolder", "JobStatus"),
    "history": ("Head", "History", "Record"),
    "jobs": ("ClusterJob", "Demand", "RunJob", "StreamJob", "StudyJob"),
    "learned": ("Guarded", "Learned"),
    "partitions.run": ("PartitionedRun",),
    "simulator": ("Simulated", "simulate"),
}
"""Modules whose names are imported on first use, so that worker processes start sooner; else ``policies``."""


def __getattr__(name: str) -> Any:
    if name in __all__:
        module = next((module for module, names in _MODULES.items() if name in names), "policies")
        return getattr(import_module(f"onlineauto.cluster.{module}"), name)
    raise AttributeError(f"module 'onlineauto.cluster' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
