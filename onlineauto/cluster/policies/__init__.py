"""Policies divide a cluster between jobs. This package has their registry and their input."""

from __future__ import annotations

from onlineauto.cluster.policies.baselines import Fair, Fifo, Srtf, Tetris
from onlineauto.cluster.policies.marginal_gain import MarginalGain
from onlineauto.cluster.policies.policy import ClusterPolicy, allocate
from onlineauto.cluster.policies.situation import Row, Situation
from onlineauto.cluster.policies.speeds import Speeds
from onlineauto.options import Parts

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
    "register",
]

POLICIES: Parts[type[ClusterPolicy]] = Parts(
    "policy",
    ClusterPolicy,
    {
        "marginal-gain": MarginalGain,
        "fair": Fair,
        "fifo": Fifo,
        "srtf": Srtf,
        "tetris": Tetris,
    },
    reserved=("learned",),
)
"""Policies by name; called without arguments, each begins without knowledge of the jobs."""
register = POLICIES.register
"""Make a policy known by its name; see `onlineauto.options.Parts.register`."""
