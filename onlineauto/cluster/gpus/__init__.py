"""Replay public traces of training jobs on clusters with several kinds of GPUs, under any policy."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from onlineauto.cluster.gpus.application import (
    GpuApplication,
    MeasuredApplication,
    StepTimes,
    TimedApplication,
)
from onlineauto.cluster.gpus.cluster import GpuCluster, GpuJob
from onlineauto.cluster.gpus.gavel import Gavel
from onlineauto.cluster.gpus.goodput import Goodput
from onlineauto.cluster.gpus.gpu_policy import GpuPolicy
from onlineauto.cluster.gpus.kind_blind import KindBlind
from onlineauto.cluster.gpus.replay import ReplayResult, Totals, replay, totals
from onlineauto.cluster.gpus.trace_files import SIA_CLUSTER, read_trace
from onlineauto.cluster.learned import Learned
from onlineauto.cluster.policies import Fair, Fifo, MarginalGain, Srtf, Tetris

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = [
    "GPU_POLICIES",
    "SIA_CLUSTER",
    "Gavel",
    "Goodput",
    "GpuApplication",
    "GpuCluster",
    "GpuJob",
    "GpuPolicy",
    "KindBlind",
    "MeasuredApplication",
    "ReplayResult",
    "StepTimes",
    "TimedApplication",
    "Totals",
    "read_trace",
    "replay",
    "totals",
]

_ASKED = 64
"""More GPUs than any job of the traces asks for: `KindBlind` then limits a job to what it asks for."""

GPU_POLICIES: Mapping[str, Callable[[], GpuPolicy]] = {
    "goodput": Goodput,
    "sia": partial(Goodput, growth=2.0),
    "gavel": Gavel,
    "gavel-throughput": partial(Gavel, "throughput"),
    "marginal-gain": partial(KindBlind, MarginalGain),
    "fair": partial(KindBlind, Fair),
    "fifo": partial(KindBlind, partial(Fifo, _ASKED), asks=True),
    "srtf": partial(KindBlind, partial(Srtf, asked=_ASKED), asks=True),
    "tetris": partial(KindBlind, partial(Tetris, asked=_ASKED), asks=True),
    "learned": partial(KindBlind, Learned.load),
}
"""Policies for clusters with several kinds of GPUs, by name."""
