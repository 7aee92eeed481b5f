"""Divide a cluster among jobs, slot by slot: clusters, jobs, policies, and histories to evaluate them."""

from __future__ import annotations

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
from onlineauto.cluster.sharded_snapshot import load_sharded_snapshot
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
    "load_sharded_snapshot",
    "simulate",
]
