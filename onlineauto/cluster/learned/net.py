"""``Net``: a network over a set of jobs in NumPy, for decisions only; training is in `torch_net`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from onlineauto.cluster.learned.features import OF_CLUSTER, OF_JOB

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onlineauto.cluster.learned.features import NetworkInputs
    from onlineauto.cluster.policies.situation import Floats

WIDTH: Final = 32
"""Number of units of a layer."""

Weights = dict[str, "Floats"]
"""The arrays of a network by name; see `shapes`."""


def shapes(kinds: int, outputs: int, width: int = WIDTH) -> dict[str, tuple[int, ...]]:
    """Return the shape of each array of a network, from the numbers of kinds and of outputs per job.

    The first layer reads each job and the cluster. The second layer reads the first, and its mean over all
    jobs. The outputs are those of each job, and one of the cluster, computed from the mean.
    """
    return {
        "job_in": (kinds + OF_JOB, width),
        "cluster_in": (OF_CLUSTER, width),
        "bias_in": (width,),
        "job": (width, width),
        "mean": (width, width),
        "cluster": (OF_CLUSTER, width),
        "bias": (width,),
        "job_out": (width, outputs),
        "bias_out": (outputs,),
        "mean_out": (width, 1),
        "cluster_out": (OF_CLUSTER, 1),
        "nothing_out": (1,),
    }


def draw_weights(draw: np.random.Generator, kinds: int, outputs: int, width: int = WIDTH) -> Weights:
    """Draw random weights of an untrained network, whose outputs are small."""
    weights = {}
    for name, shape in shapes(kinds, outputs, width).items():
        scale = 0.0 if len(shape) == 1 else (0.1 if name.endswith("_out") else np.sqrt(2)) / np.sqrt(shape[0])
        weights[name] = scale * draw.standard_normal(shape)
    return weights


class Net:
    """Score the actions of clusters with any number of jobs; the order of rows does not matter.

    Parameters
    ----------
    weights : Weights
        The arrays; see `shapes`.
    """

    def __init__(self, weights: Weights) -> None:
        self.weights = weights

    @property
    def size(self) -> int:
        """Total number of weights."""
        return sum(each.size for each in self.weights.values())

    def scores(self, read: NetworkInputs) -> Floats:
        """Return the scores of a worker, a server and both for each job, and of nothing: [B, 3J + 1]."""
        of_jobs, of_cluster = forward(self.weights, read)
        return np.concatenate([of_jobs[..., 0], of_jobs[..., 1], of_jobs[..., 2], of_cluster], 1)


def forward(weights: Mapping[str, Floats], read: NetworkInputs) -> tuple[Floats, Floats]:
    """Return the outputs of each job, [B, J, outputs], and of the cluster, [B, 1]."""
    valid = read.valid[..., None].astype(np.float64)
    many = np.maximum(valid.sum(1), 1)
    cluster = read.cluster @ weights["cluster_in"] + weights["bias_in"]
    first = np.maximum(read.jobs @ weights["job_in"] + cluster[:, None], 0)
    mean = (first * valid).sum(1) / many
    context = mean @ weights["mean"] + read.cluster @ weights["cluster"] + weights["bias"]
    second = np.maximum(first @ weights["job"] + context[:, None], 0)
    of_jobs = second @ weights["job_out"] + weights["bias_out"]
    average = (second * valid).sum(1) / many
    of_cluster = average @ weights["mean_out"] + read.cluster @ weights["cluster_out"]
    return of_jobs, of_cluster + weights["nothing_out"]
