"""Replay public traces of training jobs on clusters with several kinds of GPUs, under any policy."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from onlineauto.cluster.learned import Learned
from onlineauto.cluster.policies import POLICIES
from onlineauto.cluster.policies.baselines import AskedBundles
from onlineauto.cluster.policies.gavel import Gavel
from onlineauto.cluster.policies.goodput import Goodput
from onlineauto.cluster.policies.gpu_policy import GpuApplication, GpuCluster, GpuJob, GpuPolicy, KindBlind
from onlineauto.cluster.simulator.simulation import ReplayResult, Totals, replay, totals
from onlineauto.cluster.simulator.trace_files import (
    SIA_CLUSTER,
    MeasuredApplication,
    StepTimes,
    TimedApplication,
    read_trace,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from onlineauto.cluster.policies import ClusterPolicy

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
"""Number of bundles that policies of asked bundles ask for; `KindBlind` reduces it to what users asked for.

`Srtf` and `Tetris` rank jobs by their remaining time with this number: that of the GPUs of Sia's cluster.
"""


def _kind_blind(make: type[ClusterPolicy]) -> Callable[[], GpuPolicy]:
    if issubclass(make, AskedBundles):
        return partial(KindBlind, partial(make, asked=_ASKED), asks=True)
    return partial(KindBlind, make)


GPU_POLICIES: Mapping[str, Callable[[], GpuPolicy]] = {
    "goodput": Goodput,
    "sia": partial(Goodput, growth=2.0),
    "gavel": Gavel,
    "gavel-throughput": partial(Gavel, "throughput"),
    **{name: _kind_blind(make) for name, make in POLICIES.items()},
    "learned": partial(KindBlind, Learned.load),
}
"""Policies for clusters with several kinds of GPUs, by name; those of one kind of workers are among them."""
