"""``Gavel``: shares of time on each kind of GPU, from a linear program."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from onlineauto.cluster.policies.gpu_policy import GpuPolicy, scipy_module
from onlineauto.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.cluster.policies.gpu_policy import Allocation, GpuCluster, GpuJob
    from onlineauto.cluster.policies.situation import Floats

OBJECTIVES: Final = ("fair", "throughput")
"""Maximize the least normalized speed of a job, or the sum of the throughputs."""
_FIRST: Final = 1e9
"""Factor of the priority of a job that has had no time on a kind of GPU."""


def time_shares(rates: Floats, gpus: Floats, capacity: Floats, objective: str) -> Floats:
    """Return the part of the time that each job spends on each kind of GPU: float64[J, K].

    `rates`, float64[J, K], are the speeds of jobs on each kind; `gpus`, float64[J], the numbers of GPUs of
    running jobs; and `capacity`, float64[K], those of each kind. ``fair`` maximizes the least ratio of a
    job's speed to its speed with an equal share of all GPUs.

    >>> rates = np.array([[1.0, 4.0], [1.0, 2.0]])  # both are faster on the second kind; the first gains more
    >>> time_shares(rates, np.ones(2), np.ones(2), "throughput").round(3)
    array([[0., 1.],
           [1., 0.]])
    """
    jobs, kinds = rates.shape
    sparse = scipy_module("sparse")
    each_job = sparse.kron(sparse.eye(jobs), np.ones((1, kinds)))
    each_kind = sparse.kron(gpus[None, :], sparse.eye(kinds))
    limits = [sparse.hstack([sparse.vstack([each_job, each_kind]), sparse.csr_matrix((jobs + kinds, 1))])]
    bounds = [np.ones(jobs), capacity]
    cost = np.append(-rates.ravel(), 0.0)
    if objective == "fair":
        speed = rates / np.maximum(isolated_speed(rates, gpus, capacity), 1e-300)[:, None]
        speeds = sparse.block_diag([-row[None, :] for row in speed])
        limits.append(sparse.hstack([speeds, np.ones((jobs, 1))]))
        bounds.append(np.zeros(jobs))
        cost = np.append(np.zeros(jobs * kinds), -1.0)
    answer = scipy_module("optimize").linprog(cost, sparse.vstack(limits).tocsr(), np.concatenate(bounds))
    shares = np.asarray(answer.x[:-1].reshape(jobs, kinds))
    # Among all optima, take one in which equal jobs have equal shares, like that of an interior-point method.
    _, group = np.unique(np.column_stack([rates, gpus]), axis=0, return_inverse=True)
    group = group.reshape(-1)
    means = np.stack([np.bincount(group, column) for column in shares.T], 1) / np.bincount(group)[:, None]
    return np.clip(means[group].round(5), 0.0, 1.0)


def isolated_speed(rates: Floats, gpus: Floats, capacity: Floats) -> Floats:
    """Return the speed of each job with an equal share of each kind of GPU: float64[J]."""
    share = np.outer(1 / gpus, capacity) / len(rates)
    return np.asarray((rates * share / np.maximum(share.sum(1, keepdims=True), 1.0)).sum(1))


class Gavel(GpuPolicy):
    """Give each job the time on each kind of GPU that a linear program allots to it.

    Jobs are rigid. In each round, jobs are served in the order of allotted share / received share.

    Source: Narayanan et al., *Heterogeneity-aware cluster scheduling policies for deep learning workloads*,
    OSDI 2020.

    Parameters
    ----------
    objective : str
        ``fair`` or ``throughput``; see `time_shares`.
    """

    name: ClassVar[str] = "gavel"
    interval = 360.0
    is_rigid = True

    def __init__(self, objective: str = "fair") -> None:
        if objective not in OBJECTIVES:
            raise OptionError(f"objective = {objective!r} is unknown; valid are {', '.join(OBJECTIVES)}")
        self.objective = objective
        self.begin()

    def begin(self) -> None:
        """Forget the time that jobs have received."""
        self._received: dict[str, Floats] = {}
        self._total = np.zeros(0)

    def allocate(self, jobs: Sequence[GpuJob], cluster: GpuCluster, now: float) -> Allocation:  # noqa: ARG002
        """Return the jobs with the highest priorities that fit."""
        kinds, capacity = [*cluster.nodes], np.array([*cluster.capacity.values()], np.float64)
        if not len(self._total):
            self._total = np.zeros(len(kinds))
        for job in jobs:
            if job.name not in self._received:
                self._received[job.name] = np.full(len(kinds), self.interval / 2)
                self._total = self._total + self.interval / 2
        rates = np.array([[self._steps(job, cluster, kind) for kind in kinds] for job in jobs])
        shares = time_shares(rates, np.array([float(job.asked) for job in jobs]), capacity, self.objective)
        received = np.stack([self._received[job.name] for job in jobs]) / self._total
        with np.errstate(divide="ignore", invalid="ignore"):
            priority = np.where(shares > 0, np.where(received > 0, shares / received, _FIRST * shares), 0.0)
        chosen: Allocation = {}
        free = capacity.copy()
        for entry in np.lexsort((-shares.T.ravel(), -priority.T.ravel())):  # stable: by kind, then by arrival
            kind, row = divmod(int(entry), len(jobs))
            job = jobs[row]
            if job.name not in chosen and rates[row, kind] > 0 and job.asked <= free[kind]:
                chosen[job.name] = (kinds[kind], job.asked)
                free[kind] -= job.asked
                self._received[job.name][kind] += self.interval
                self._total[kind] += self.interval
        return chosen

    def _steps(self, job: GpuJob, cluster: GpuCluster, kind: str) -> float:
        """Return the training steps per second of a job on a kind of GPU; 0 if it does not run there."""
        if not self.sizes(job, cluster, kind):
            return 0.0
        return job.application.steps(kind, cluster.placement(kind, job.asked), job.batch)
