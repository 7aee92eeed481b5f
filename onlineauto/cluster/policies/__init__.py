"""Policies divide a cluster between jobs. This package has their registry and their input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.cluster.policies.baselines import Fair, Fifo, Srtf, Tetris
from onlineauto.cluster.policies.marginal_gain import MarginalGain
from onlineauto.cluster.policies.policy import ClusterPolicy, allocate
from onlineauto.cluster.policies.situation import Row, Situation
from onlineauto.cluster.policies.speeds import Speeds

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "POLICIES",
    "ClusterPolicy",
    "Fair",
    "Fifo",
    "MarginalGain",
    "Row",
    "Situation",
    "Speeds",
    "Srtf",
    "Tetris",
    "allocate",
]

POLICIES: Mapping[str, type[ClusterPolicy]] = {
    "marginal-gain": MarginalGain,
    "fair": Fair,
    "fifo": Fifo,
    "srtf": Srtf,
    "tetris": Tetris,
}
"""Policies by name; called without arguments, each begins without knowledge of the jobs."""
