"""``GpuPolicy``: the base class of policies that choose the kind and the number of a job's GPUs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.cluster.gpus.cluster import Allocation, GpuCluster, GpuJob


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
