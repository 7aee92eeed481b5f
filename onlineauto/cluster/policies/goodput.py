"""``Goodput``: the kind and the number of GPUs of all jobs at once, from an integer linear program."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from onlineauto.cluster.policies.gpu_policy import GpuPolicy, scipy_module
from onlineauto.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.cluster.policies.gpu_policy import Allocation, GpuCluster, GpuJob
    from onlineauto.cluster.policies.situation import Floats, Ints

_GAP: Final = 1e-3
"""Relative distance from the optimum at which the solver may stop."""
_KEEP: Final = 300.0
"""Seconds after which an allocation is computed again, even if no job has arrived, ended or restarted."""
_SECONDS: Final = 5.0
"""Maximum time of the solver for a decision; the best allocation so far is then taken."""


def cheapest(costs: Floats, owner: Ints, kind: Ints, gpus: Ints, capacity: Floats) -> Ints:
    """Return the configurations with the least sum of costs: at most one for each job, within the capacity.

    Each configuration has a cost, float64[n], a job, a kind of GPU and a number of GPUs, int64[n] each. A job
    without a configuration costs 0. `capacity`, float64[K], is the number of GPUs of each kind. The result is
    int64[m], the indices of the chosen configurations.

    >>> job, kind, gpus = np.array([0, 0, 1]), np.array([0, 0, 0]), np.array([1, 2, 1])
    >>> cheapest(np.array([-1.0, -1.5, -1.0]), job, kind, gpus, np.array([2.0]))
    array([0, 2])
    """
    sparse, optimize = scipy_module("sparse"), scipy_module("optimize")
    many, jobs = len(costs), int(owner.max()) + 1
    rows, columns = np.concatenate([owner, jobs + kind]), np.tile(np.arange(many), 2)
    # Parts of the capacity: rounding errors of the solver are then far below its tolerance.
    parts = gpus / np.maximum(capacity, 1.0)[kind]
    table = sparse.csc_array(
        (np.concatenate([np.ones(many), parts]), (rows, columns)), shape=(jobs + len(capacity), many)
    )
    most = np.concatenate([np.ones(jobs), np.minimum(capacity, 1.0)])
    limits = optimize.LinearConstraint(table, -np.inf, most)
    answer = optimize.milp(
        costs,
        constraints=limits,
        integrality=np.ones(many),
        bounds=optimize.Bounds(0, 1),
        # Presolving takes longer than it saves here, and HiGHS prints a line in rare cases.
        options={"mip_rel_gap": _GAP, "time_limit": _SECONDS, "presolve": False},
    )
    if answer.x is None:  # out of time without any allocation
        return np.zeros(0, np.int64)
    return np.flatnonzero(answer.x > 0.5)


class Goodput(GpuPolicy):
    """Minimize the sum over jobs of goodput ** power - waiting, over all kinds and numbers of GPUs.

    The goodput of a job is relative to the least goodput that it can have. A job that would restart has its
    goodput multiplied by (age - lost) / (age + restart), where `lost` is the time that earlier restarts took.
    A job keeps its GPUs while it restarts.

    Source: Jayaram Subramanya et al., *Sia: Heterogeneity-aware, goodput-optimized ML-cluster scheduling*,
    SOSP 2023. Sia has a growth of 2, because it learns the speeds of a job from its earlier GPUs.

    Parameters
    ----------
    power : float
        Fairness: negative; the lower, the more the slowest jobs count.
    waiting : float
        Cost of a job without GPUs, relative to a job with its least goodput.
    growth : float
        A job gets at most this multiple of the largest number of GPUs that it has had, and 1 at first.
    """

    name: ClassVar[str] = "goodput"

    def __init__(self, *, power: float = -0.5, waiting: float = 1.1, growth: float = math.inf) -> None:
        if not power < 0 or not waiting > 1 or not growth >= 2:
            raise OptionError(
                f"power = {power:g}, waiting = {waiting:g}, growth = {growth:g}: valid is a power below 0, a "
                "cost of waiting above 1, and a growth of 2 or more"
            )
        self.power, self.waiting, self.growth = power, waiting, growth
        self.begin()

    def begin(self) -> None:
        """Forget the last allocation."""
        self._last: tuple[object, float, Allocation] = (None, 0.0, {})

    def allocate(self, jobs: Sequence[GpuJob], cluster: GpuCluster, now: float) -> Allocation:
        """Return the allocation with the least sum of costs.

        It is computed if a job has arrived, has ended, or has begun or ended a restart, and every five
        minutes.
        """
        state = tuple((job.name, job.delay > 0) for job in jobs)
        if state != self._last[0] or now >= self._last[1] + _KEEP:
            self._last = (state, now, self._solve(jobs, cluster, now))
        return self._last[2]

    def _solve(self, jobs: Sequence[GpuJob], cluster: GpuCluster, now: float) -> Allocation:
        kinds, free = [*cluster.nodes], cluster.capacity
        chosen: Allocation = {}
        configs: list[tuple[str, str, int]] = []
        costs: list[float] = []
        owner: list[int] = []
        jobs_to_place = 0
        for job in jobs:
            if job.delay > 0 and job.gpus:  # a restart is not interrupted
                chosen[job.name] = (job.kind, len(job.gpus))
                free[job.kind] -= len(job.gpus)
                continue
            rates = self._rates(job, cluster)
            least = min(rates.values(), default=0.0)
            bounds = dict.fromkeys(kinds, 0.0)
            for (kind, many), rate in rates.items():
                goodput = rate / least
                if job.gpus and (kind, many) != (job.kind, len(job.gpus)):
                    goodput *= _restart_factor(job, now)
                if goodput <= bounds[kind]:  # fewer GPUs of this kind are as good
                    continue
                bounds[kind] = goodput
                configs.append((job.name, kind, many))
                costs.append(max(goodput, 1e-4) ** self.power - self.waiting)
                owner.append(jobs_to_place)
            jobs_to_place += 1
        if not configs:
            return chosen
        indices = cheapest(
            np.array(costs),
            np.array(owner),
            np.array([kinds.index(kind) for _, kind, _ in configs]),
            np.array([many for *_, many in configs]),
            np.array([float(free[kind]) for kind in kinds]),
        )
        return {**chosen, **{configs[index][0]: configs[index][1:] for index in indices}}

    def _rates(self, job: GpuJob, cluster: GpuCluster) -> dict[tuple[str, int], float]:
        """Return the goodput of a job for each kind and number of GPUs that it may have now."""
        most = max(1.0, self.growth * max(job.largest, 0.5)) if job.application.is_elastic else job.asked
        return {
            (kind, many): job.rate(cluster, kind, many)
            for kind in cluster.nodes
            for many in self.sizes(job, cluster, kind)
            if many <= most
        }


def _restart_factor(job: GpuJob, now: float) -> float:
    """Return the factor of the goodput of a job that would restart."""
    age, cost = now - job.arrival, job.application.restart
    return 1.0 if age < cost else max(age - max(job.restarts, 0) * cost, 0.0) / (age + cost)
