"""``forward`` and ``backward``: a network over a set of jobs in NumPy, its input, its gradients, and Adam."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlineauto.cluster.policies.speeds import terms

if TYPE_CHECKING:
    from onlineauto.cluster.policies.situation import Bools, Situation
    from onlineauto.cluster.policies.speeds import Speeds

WIDTH: Final = 32
"""Number of units of a layer."""

Array = NDArray[Any]
Weights = dict[str, Array]
"""The arrays of a network by name; see `shapes`."""

OF_JOB: Final = 18
"""Number of features of a job."""
OF_CLUSTER: Final = 6
"""Number of features of a cluster."""
_TYPICAL: Final = 7.5
"""Assumed number of slots of a job with one bundle whose speed is unknown."""
_VARIANTS: Final = np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
"""Additional workers and servers whose effect on speed is a feature."""


class NetworkInputs(NamedTuple):
    """The input of a network."""

    jobs: Array  # float[B, J, OF_JOB]:
    cluster: Array  # float[B, OF_CLUSTER]:
    valid: Bools  # bool[B, J]:


def features(situation: Situation, speeds: Speeds) -> NetworkInputs:
    """Return the features of clusters. Jobs differ by observed speeds only; their kinds have no features."""
    observed = {*speeds.kinds}
    known = np.array([kind in observed for kind in situation.kinds])[situation.kind]
    coefficients = speeds.table(situation.kinds)[situation.kind]
    workers, servers = situation.workers, situation.servers
    takes = situation.takes_servers
    counts = np.stack([workers, servers])[..., None] + _VARIANTS.T[:, None, None]
    one = np.stack([np.ones_like(workers), takes.astype(np.int64)])[..., None]
    counts = np.concatenate([one, np.maximum(counts, one)], -1)  # [2, B, J, 5]
    times = (coefficients[..., None, :] * terms(counts[0], counts[1])).sum(-1)
    alone, logs = times[..., 0], np.log(np.maximum(times, 1e-300))
    works = (workers > 0) & ((servers > 0) | ~takes)
    left = situation.remaining / np.maximum(situation.done + situation.remaining, 1e-12)
    remaining = np.where(known, situation.remaining * alone, left * _TYPICAL)
    valid = situation.valid
    many = np.maximum(valid.sum(1), 1)
    shorter = (remaining[:, None, :] < remaining[:, :, None]) & valid[:, None, :]
    share, worker, server = situation.shares(), situation.parts(1, 0), situation.parts(0, 1)
    # The elasticity of speed: by how many percent 1 % more resources would make the job faster.
    growth = np.stack([worker, server, situation.parts(1, 1)], -1) / np.maximum(share, 1e-12)[..., None]
    elasticity = (logs[..., 1:2] - logs[..., 2:]) / np.log1p(np.maximum(growth, 1e-12))
    elasticity = np.where(works[..., None], np.clip(2 * elasticity, -2, 2), 0.0)
    jobs = np.stack(
        [
            known.astype(np.float64),
            np.log1p(np.maximum(situation.age, 0)) / 3,
            np.log1p(remaining) / 3,
            left,
            1 / (1 + remaining),
            shorter.sum(2) / many[:, None],
            np.minimum(share * many[:, None], 8) / 2,
            np.log1p(workers) / 2,
            np.log1p(servers) / 2,
            1 / np.maximum(workers, 1),
            takes.astype(np.float64),
            -np.log(np.clip(worker, 1e-4, 1)) / 4,
            -np.log(np.clip(server, 1e-4, 1)) / 4 * takes,
            np.where(works, np.clip(logs[..., 0] - logs[..., 1], -4, 4), 0.0),
            *np.moveaxis(elasticity, -1, 0),
            (workers < situation.most_workers).astype(np.float64),
        ],
        -1,
    )
    free = situation.free_parts
    cluster = np.stack(
        [
            free.min(1),
            free.max(1),
            np.log1p(situation.backlog) / 3,
            np.log(many) / 3,
            1 / many,
            np.where(valid, np.log1p(remaining), 0).sum(1) / many / 3,
        ],
        -1,
    )
    jobs = (jobs * valid[..., None]).astype(np.float32)
    return NetworkInputs(jobs, cluster.astype(np.float32), valid)


def shapes(outputs: int, width: int = WIDTH) -> dict[str, tuple[int, ...]]:
    """Return the shape of each array of a network, from the number of outputs per job.

    The first layer reads each job and the cluster. The second layer reads the first, and its mean over all
    jobs. The outputs are those of each job, and one of the cluster, computed from the mean.
    """
    return {
        "job_in": (OF_JOB, width),
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


def draw_weights(draw: np.random.Generator, outputs: int, width: int = WIDTH) -> Weights:
    """Draw random weights of an untrained network, whose outputs are small."""
    weights = {}
    for name, shape in shapes(outputs, width).items():
        scale = 0.0 if len(shape) == 1 else (0.1 if name.endswith("_out") else np.sqrt(2)) / np.sqrt(shape[0])
        weights[name] = (scale * draw.standard_normal(shape)).astype(np.float32)
    return weights


class Layers(NamedTuple):
    """The values of a network: outputs of each job [B, J, outputs] and of the cluster [B, 1], and inside."""

    of_jobs: Array
    of_cluster: Array
    first: Array
    mean: Array
    second: Array
    average: Array
    part: Array  # float[B, J, 1]: the part of a job in a mean over the jobs of its cluster.


def forward(weights: Weights, read: NetworkInputs) -> Layers:
    """Return the values of a network. The order of jobs does not matter."""
    part = read.valid / np.maximum(read.valid.sum(1, keepdims=True), 1)
    part = part[..., None].astype(read.jobs.dtype)
    cluster = read.cluster @ weights["cluster_in"] + weights["bias_in"]
    first = np.maximum(read.jobs @ weights["job_in"] + cluster[:, None], 0)
    mean = (first * part).sum(1)
    context = mean @ weights["mean"] + read.cluster @ weights["cluster"] + weights["bias"]
    second = np.maximum(first @ weights["job"] + context[:, None], 0)
    average = (second * part).sum(1)
    of_cluster = average @ weights["mean_out"] + read.cluster @ weights["cluster_out"]
    of_jobs = second @ weights["job_out"] + weights["bias_out"]
    return Layers(of_jobs, of_cluster + weights["nothing_out"], first, mean, second, average, part)


def backward(
    weights: Weights, read: NetworkInputs, layers: Layers, of_jobs: Array, of_cluster: Array
) -> Weights:
    """Return the gradient of a loss by the weights, from its gradient by the outputs."""
    second = of_jobs @ weights["job_out"].T + layers.part * (of_cluster @ weights["mean_out"].T)[:, None]
    second *= layers.second > 0
    context = second.sum(1)
    first = second @ weights["job"].T + layers.part * (context @ weights["mean"].T)[:, None]
    first *= layers.first > 0
    cluster = first.sum(1)
    return {
        "job_in": _outer(read.jobs, first),
        "cluster_in": _outer(read.cluster, cluster),
        "bias_in": cluster.sum(0),
        "job": _outer(layers.first, second),
        "mean": _outer(layers.mean, context),
        "cluster": _outer(read.cluster, context),
        "bias": context.sum(0),
        "job_out": _outer(layers.second, of_jobs),
        "bias_out": of_jobs.sum((0, 1)),
        "mean_out": _outer(layers.average, of_cluster),
        "cluster_out": _outer(read.cluster, of_cluster),
        "nothing_out": of_cluster.sum(0),
    }


def _outer(inputs: Array, gradient: Array) -> Array:
    """Return the gradient by a matrix that multiplies the inputs."""
    product: Array = inputs.reshape(-1, inputs.shape[-1]).T @ gradient.reshape(-1, gradient.shape[-1])
    return product


def scores(weights: Weights, read: NetworkInputs) -> Array:
    """Return the scores of a worker, a server and both for each job, and of nothing: [B, 3J + 1]."""
    return join_scores(forward(weights, read))


def join_scores(layers: Layers) -> Array:
    """Return the outputs of a network with three outputs per job as scores: [B, 3J + 1]."""
    of_jobs = layers.of_jobs.transpose(0, 2, 1).reshape(len(layers.of_jobs), -1)
    return np.concatenate([of_jobs, layers.of_cluster], 1)


class Adam:
    """Take gradient steps with a separate step size for each weight.

    Source: Kingma and Ba, *Adam: A method for stochastic optimization*, ICLR 2015.
    """

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.steps = 0
        self.mean = {name: np.zeros_like(array) for name, array in weights.items()}
        self.square = {name: np.zeros_like(array) for name, array in weights.items()}

    def step(self, gradient: Weights, rate: float, *, clip: float = np.inf) -> None:
        """Change the weights in place; a gradient with a norm above `clip` is scaled down to it."""
        self.steps += 1
        norm = np.sqrt(sum(float((array * array).sum()) for array in gradient.values()))
        factor = min(1.0, clip / max(norm, 1e-12))
        bias = np.sqrt(1 - 0.999**self.steps) / (1 - 0.9**self.steps)
        for name, array in self.weights.items():
            slope, mean, square = factor * gradient[name], self.mean[name], self.square[name]
            mean += 0.1 * (slope - mean)
            square += 0.001 * (slope * slope - square)
            array -= rate * bias * mean / (np.sqrt(square) + 1e-8)
