"""``replay``: run the jobs of a trace on a cluster of GPUs under a policy, round by round."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Final

import numpy as np

from onlineauto.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from onlineauto.cluster.gpus.cluster import Allocation, GpuCluster, GpuJob
    from onlineauto.cluster.gpus.gpu_policy import GpuPolicy
    from onlineauto.cluster.policies.situation import Floats

_MOST_ROUNDS: Final = 200_000
"""Maximum number of rounds of a replay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayResult:
    """The results of a replay.

    Attributes
    ----------
    times : float64[N]
        Completion time of each job, in seconds after its arrival; NaN if it did not end.
    makespan : float
        Seconds from the first arrival to the last completion.
    gpu_hours : float64[N]
        GPU hours of each job, including restarts.
    restarts : int64[N]
        Number of restarts of each job.
    """

    times: Floats
    makespan: float
    gpu_hours: Floats
    restarts: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Means over several replays.

    Attributes
    ----------
    mean, late : float
        Mean and 99 % quantile of the completion times of all jobs, in hours.
    makespan : float
        Mean makespan of the replays, in hours.
    gpu_hours, restarts : float
        GPU hours and restarts of a job, on average.
    """

    mean: float
    late: float
    makespan: float
    gpu_hours: float
    restarts: float


def totals(results: Sequence[ReplayResult]) -> Totals:
    """Return the means over replays; the 99 % quantile is an observed time, as in Sia's tables."""
    times = np.sort(np.concatenate([each.times for each in results])) / 3600
    return Totals(
        mean=float(times.mean()),
        late=float(times[int(0.99 * len(times))]),
        makespan=float(np.mean([each.makespan for each in results]) / 3600),
        gpu_hours=float(np.concatenate([each.gpu_hours for each in results]).mean()),
        restarts=float(np.concatenate([each.restarts for each in results]).mean()),
    )


def replay(
    policy: GpuPolicy,
    jobs: Sequence[GpuJob],
    cluster: GpuCluster,
    *,
    interval: float | None = None,
    watch: Callable[[float], object] | None = None,
) -> ReplayResult:
    """Run jobs on a cluster under a policy until all have ended.

    The policy decides at the end of each interval. A job whose kind of GPUs or placement changes loses the
    restart time of its application. The jobs are not changed.

    Parameters
    ----------
    policy : GpuPolicy
        Decides which GPUs each job has.
    jobs : sequence of GpuJob
        The jobs.
    cluster : GpuCluster
        The nodes.
    interval : float, optional
        Seconds between two decisions; by default the interval of the policy.
    watch : callable, optional
        Called in each round with the part of the jobs that have ended.

    Raises
    ------
    OptionError
        The policy allocates more GPUs than the cluster has, or a job can run on none of its GPUs.
    """
    interval = policy.interval if interval is None else interval
    _check_jobs(jobs)
    waiting = sorted((replace(job) for job in jobs), key=lambda job: job.arrival)
    for job in waiting:
        if not policy.runs(job, cluster):
            raise OptionError(
                f"job {job.name} asks for {job.asked} GPUs, and no kind of GPU runs it; the cluster has "
                f"{', '.join(f'{many} {kind}' for kind, many in cluster.capacity.items())}"
            )
    everyone, now = [*waiting], 0.0
    present: list[GpuJob] = []
    policy.begin()
    for _ in range(_MOST_ROUNDS):
        for job in present:
            if job.gpus:
                job.advance(now, interval, job.batch if policy.is_rigid else None)
        now += interval
        present = [job for job in present if math.isnan(job.end)]
        if watch is not None:
            watch(1 - (len(present) + len(waiting)) / len(everyone))
        if not present and waiting:
            now = max(now, math.ceil(waiting[0].arrival / interval) * interval)
        while waiting and waiting[0].arrival <= now:
            present.append(waiting.pop(0))
        if not present:
            break
        _move(present, policy.allocate(present, cluster, now), cluster)
    ends = np.array([job.end for job in everyone])
    arrivals = np.array([job.arrival for job in everyone])
    return ReplayResult(
        times=ends - arrivals,
        makespan=float(ends.max() - arrivals.min()),
        gpu_hours=np.array([job.used / 3600 for job in everyone]),
        restarts=np.array([max(job.restarts, 0) for job in everyone]),
    )


def _check_jobs(jobs: Sequence[GpuJob]) -> None:
    """Reject jobs that no replay can end."""
    if not jobs:
        raise OptionError("there are no jobs to replay")
    names: set[str] = set()
    for job in jobs:
        if job.name in names:
            raise OptionError(f"two jobs have the name {job.name}: give each job its own name")
        names.add(job.name)
        work = job.work_left()
        if not (0 <= job.arrival < math.inf and 0 < work < math.inf):
            raise OptionError(
                f"job {job.name} arrives at {job.arrival:g} s and has {work:g} units of work: valid is an "
                "arrival of 0 or later, and work above 0"
            )
        if job.asked < 1 or (job.batch is not None and job.batch < 1):
            raise OptionError(
                f"job {job.name} asks for {job.asked} GPUs and a batch size of {job.batch}: both must be at "
                "least 1"
            )


def _move(jobs: Sequence[GpuJob], allocation: Allocation, cluster: GpuCluster) -> None:
    """Give each job the GPUs of an allocation.

    The largest jobs are first. A job keeps its GPUs if their number does not change and a larger job has
    not taken them; it otherwise gets the first free GPUs of its kind.
    """
    capacity = cluster.capacity
    for kind, many in capacity.items():
        free = set(range(many))
        here = [job for job in jobs if allocation.get(job.name, ("", 0))[0] == kind]
        here.sort(key=lambda job: -allocation[job.name][1])
        if (total := sum(allocation[job.name][1] for job in here)) > many:
            raise OptionError(f"a policy allocated {total} GPUs of kind {kind}; the cluster has {many}")
        for size, group in groupby(here, key=lambda job: allocation[job.name][1]):
            moved = []
            for job in [*group]:
                if job.kind == kind and len(job.gpus) == size and free.issuperset(job.gpus):
                    free.difference_update(job.gpus)
                else:
                    moved.append(job)
            for job in moved:
                gpus = tuple(sorted(free)[:size])
                free.difference_update(gpus)
                nodes = [gpu // cluster.nodes[kind][1] for gpu in gpus]
                job.move(kind, gpus, tuple(len([*same]) for _, same in groupby(nodes)))
    for job in jobs:
        if job.name not in allocation:
            job.move("", (), ())
