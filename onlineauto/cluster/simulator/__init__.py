"""Simulate clusters with synthetic workloads, or with workloads fitted to a history."""

from __future__ import annotations

from onlineauto.cluster.simulator.fitting import Simulated, fit_workload, policies_for, simulate
from onlineauto.cluster.simulator.simulation import (
    Compared,
    Ran,
    SimulatedSlot,
    Simulation,
    compare,
    record,
    run,
)
from onlineauto.cluster.simulator.workload import MIXED, JobKind, Traces, Workload, draw_traces

__all__ = [
    "MIXED",
    "Compared",
    "JobKind",
    "Ran",
    "Simulated",
    "SimulatedSlot",
    "Simulation",
    "Traces",
    "Workload",
    "compare",
    "draw_traces",
    "fit_workload",
    "policies_for",
    "record",
    "run",
    "simulate",
]
