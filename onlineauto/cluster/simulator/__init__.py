"""Simulate clusters with synthetic workloads, or with workloads fitted to a history."""

from __future__ import annotations

from onlineauto.cluster.simulator.comparison import Compared, compare
from onlineauto.cluster.simulator.fitting import Simulated, fit_workload, policies_for, simulate
from onlineauto.cluster.simulator.recording import record
from onlineauto.cluster.simulator.simulation import Ran, Simulation, Slot, run
from onlineauto.cluster.simulator.traces import Traces, draw_traces
from onlineauto.cluster.simulator.workload import MIXED, Kind, Workload

__all__ = [
    "MIXED",
    "Compared",
    "Kind",
    "Ran",
    "Simulated",
    "Simulation",
    "Slot",
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
