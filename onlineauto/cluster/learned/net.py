"""``Net``: a network over a set of jobs in NumPy, for decisions only, and its input; `training` trains it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onlineauto.cluster.policies.situation import Bools, Floats, Situation

WIDTH: Final = 32
"""Number of units of a layer."""

Weights = dict[str, "Floats"]
"""The arrays of a network by name; see `shapes`."""

OF_JOB: Final = 15
"""Number of features of a job, in addition to one for each kind."""
OF_CLUSTER: Final = 6
"""Number of features of a cluster."""


class NetworkInputs(NamedTuple):
    """The input of a network."""

    jobs: Floats  # float64[B, J, kinds + OF_JOB]:
    cluster: Floats  # float64[B, OF_CLUSTER]:
    valid: Bools  # bool[B, J]:


def features(situation: Situation, kinds: tuple[str, ...], scales: Floats) -> NetworkInputs:
    """Return the features of clusters, whose jobs may have other kinds than the known ones.

    `scales`, float64[kinds + 1], is the number of slots of a unit of work with one bundle, for each kind; the
    last entry is for other kinds.
    """
    numbers = {name: number for number, name in enumerate(kinds)}
    kind_number = np.array([numbers.get(name, len(kinds)) for name in situation.kinds])[situation.kind]
    known = (kind_number[..., None] == np.arange(len(kinds))).astype(np.float64)
    workers, servers = situation.workers.astype(np.float64), situation.servers.astype(np.float64)
    share, worker, server = situation.shares(), situation.parts(1, 0), situation.parts(0, 1)
    remaining = situation.remaining * scales[kind_number]
    total = situation.done + situation.remaining
    free = situation.free_parts
    jobs = np.stack(
        [
            np.log1p(np.maximum(situation.age, 0)) / 3,
            np.log1p(remaining) / 3,
            np.log1p(total * scales[kind_number]) / 3,
            situation.remaining / np.maximum(total, 1e-12),
            1 / (1 + remaining),
            share,
            workers / 8,
            servers / 8,
            np.log1p(workers),
            np.log1p(servers),
            workers / np.maximum(workers + servers, 1),
            1 / np.maximum(workers, 1),
            situation.takes_servers.astype(np.float64),
            8 * worker,
            8 * server,
        ],
        -1,
    )
    valid = situation.valid
    many = valid.sum(1)
    cluster = np.stack(
        [
            free.min(1),
            free.max(1),
            np.log1p(situation.backlog) / 3,
            many / 8,
            1 / np.maximum(many, 1),
            (np.where(valid, np.log1p(remaining), 0).sum(1)) / np.maximum(many, 1) / 3,
        ],
        -1,
    )
    jobs = np.concatenate([known, jobs], -1) * valid[..., None]
    return NetworkInputs(jobs, cluster, valid)


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
    """Score the actions of clusters with any number of jobs, whose order does not matter."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights

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
