"""``GpuPolicy``: the base class of policies that choose the kind and the number of a job's GPUs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from onlineauto.cluster.policies.policy import allocate
from onlineauto.cluster.policies.situation import Row, Situation
from onlineauto.cluster.policies.speeds import Modelled, Speeds, fit_slowness, terms

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from onlineauto.cluster.gpus.application import GpuApplication
    from onlineauto.cluster.gpus.cluster import Allocation, GpuCluster, GpuJob
    from onlineauto.cluster.policies.policy import ClusterPolicy


class GpuPolicy(ABC):
    """Divides a cluster with several kinds of GPUs between jobs.

    Attributes
    ----------
    name : str
        The name in the registry, or any other.
    interval : float
        Seconds between two decisions.
    is_rigid : bool
        True if each job has the number of GPUs and the batch size that its user asked for, or waits.
    """

    name: ClassVar[str]
    interval: float = 60.0
    is_rigid: bool = False

    def begin(self) -> None:  # noqa: B027
        """Forget earlier replays."""

    def runs(self, job: GpuJob, cluster: GpuCluster) -> bool:
        """Return true if the policy can give a job any GPUs of the cluster."""
        return any(self.sizes(job, cluster, kind) for kind in cluster.nodes)

    def sizes(self, job: GpuJob, cluster: GpuCluster, kind: str) -> list[int]:
        """Return the numbers of GPUs of a kind on which a job runs."""
        rigid = self.is_rigid or not job.application.is_elastic
        most = min(job.application.most(kind), cluster.capacity[kind])
        sizes = (job.asked,) if rigid else cluster.sizes(kind)
        batch = job.batch if self.is_rigid else None
        return [many for many in sizes if many <= most and job.rate(cluster, kind, many, batch) > 0]

    @abstractmethod
    def allocate(self, jobs: Sequence[GpuJob], cluster: GpuCluster, now: float) -> Allocation:
        """Return the kind and the number of GPUs of each job that runs until the next decision.

        Parameters
        ----------
        jobs : sequence of GpuJob
            Unfinished jobs in the order of their arrival, with the GPUs that they have now.
        cluster : GpuCluster
            The nodes.
        now : float
            Seconds after the beginning of the trace.
        """


class KindBlind(GpuPolicy):
    """Let a `ClusterPolicy` decide how many GPUs each job has, as if all GPUs were of one kind.

    The numbers are rounded down to sizes that pack. The largest jobs are placed first, each on the kind on
    which it is fastest among those with enough free GPUs; a job that fits nowhere gets fewer GPUs.

    Parameters
    ----------
    make : callable
        Returns the policy. A policy with `Speeds` gets the mean speeds of all kinds.
    asks : bool
        True if a job gets at most the number of GPUs that its user asked for.
    """

    name: ClassVar[str] = "kind-blind"
    interval = 360.0

    def __init__(self, make: Callable[[], ClusterPolicy], *, asks: bool = False) -> None:
        self._make, self._asks = make, asks
        self.begin()

    def begin(self) -> None:
        """Forget the speeds of applications."""
        self._policy = self._make()
        self._coefficients: dict[str, list[float]] = {}

    def allocate(self, jobs: Sequence[GpuJob], cluster: GpuCluster, now: float) -> Allocation:
        """Return the numbers of the policy, with kinds."""
        self._learn(jobs, cluster)
        rows = [
            Row(
                kind=job.application.name,
                age=(now - job.arrival) / self.interval,
                done=job.done,
                remaining=job.work_left(),
                worker={"GPU": 1 if job.application.is_elastic else job.asked},
                server={},
                most_workers=self._most(job, cluster),
            )
            for job in jobs
        ]
        situation = Situation.of(rows, {"GPU": float(sum(cluster.capacity.values()))}, places=len(rows))
        workers = allocate(self._policy, situation).workers[0]
        free, chosen = cluster.capacity, {}
        for row in np.argsort(-workers, kind="stable"):
            job = jobs[row]
            most = int(workers[row]) * (1 if job.application.is_elastic else job.asked)
            configs = [
                (many, kind == job.kind and many == len(job.gpus), job.rate(cluster, kind, many), kind)
                for kind in cluster.nodes
                for many in self.sizes(job, cluster, kind)
                if many <= min(most, free[kind])
            ]
            if configs:
                many, *_, kind = max(configs)
                chosen[job.name] = (kind, many)
                free[kind] -= many
        return chosen

    def _most(self, job: GpuJob, cluster: GpuCluster) -> int:
        """Return the maximum number of workers of a job."""
        if not job.application.is_elastic:
            return 1
        most = max((max(self.sizes(job, cluster, kind), default=0) for kind in cluster.nodes), default=0)
        return min(most, job.asked) if self._asks else min(most, max(1, 2 * job.largest))

    def _learn(self, jobs: Sequence[GpuJob], cluster: GpuCluster) -> None:
        """Fit the speeds of new applications to their mean rates over all kinds and epochs."""
        new = {job.application.name: job for job in jobs if job.application.name not in self._coefficients}
        if not new or not isinstance(self._policy, Modelled):
            return
        for name, job in new.items():
            self._coefficients[name] = fit_speeds(job.application, cluster, self.interval, asked=job.asked)
        self._policy.speeds = Speeds(self._coefficients)


def fit_speeds(
    application: GpuApplication, cluster: GpuCluster, interval: float, *, asked: int = 1
) -> list[float]:
    """Return five coefficients of the rounds that a unit of work takes; see `terms`.

    An application that is not elastic runs on `asked` GPUs only, and these are one worker.
    """
    points: dict[int, list[float]] = {}
    for kind in cluster.nodes:
        for many in cluster.sizes(kind) if application.is_elastic else (asked,):
            rate = float(application.rates(kind, cluster.placement(kind, many)).mean())
            if rate > 0:
                points.setdefault(many if application.is_elastic else 1, []).append(1 / (rate * interval))
    counts = np.array([*points], np.float64)
    times = np.array([np.mean(each) for each in points.values()])
    return [float(each) for each in fit_slowness(terms(counts, np.zeros_like(counts)), times)]
