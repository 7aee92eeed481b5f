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

_MOST_BUNDLES = 64
"""Number of bundles that `Fifo`, `Srtf` and `Tetris` ask for; `KindBlind` reduces it to what users asked for.

`Srtf` and `Tetris` rank jobs by their remaining time with this number: that of the GPUs of Sia's cluster.
"""

GPU_POLICIES: Mapping[str, Callable[[], GpuPolicy]] = {
    "goodput": Goodput,
    "sia": partial(Goodput, growth=2.0),
    "gavel": Gavel,
    "gavel-throughput": partial(Gavel, "throughput"),
    "marginal-gain": partial(KindBlind, MarginalGain),
    "fair": partial(KindBlind, Fair),
    "fifo": partial(KindBlind, partial(Fifo, _MOST_BUNDLES), asks=True),
    "srtf": partial(KindBlind, partial(Srtf, asked=_MOST_BUNDLES), asks=True),
    "tetris": partial(KindBlind, partial(Tetris, asked=_MOST_BUNDLES), asks=True),
    "learned": partial(KindBlind, Learned.load),
}
"""Policies for clusters with several kinds of GPUs, by name."""
