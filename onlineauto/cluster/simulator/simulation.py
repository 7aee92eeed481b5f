"""``slots``: simulate drawn jobs in a batch of clusters, or the jobs of a trace on GPUs, under a policy."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from numbers import Integral
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import numpy as np

from onlineauto.cluster.history import Head, History, Record
from onlineauto.cluster.policies.gpu_policy import GpuRound
from onlineauto.cluster.policies.situation import Situation, demand_of
from onlineauto.cluster.policies.speeds import terms
from onlineauto.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from onlineauto.cluster.policies.gpu_policy import Allocation, GpuCluster, GpuJob
    from onlineauto.cluster.policies.policy import ClusterPolicy, Watch
    from onlineauto.cluster.policies.situation import Bools, Floats, Ints
    from onlineauto.cluster.simulator.workload import Traces

_MOST_SLOTS: Final = 5000
"""Maximum number of slots of a run, which is exceeded if jobs starve."""
_MOST_ROUNDS: Final = 200_000
"""Maximum number of rounds of a replay."""
_LARGE: Final = 8
"""Number of workers from which on a job has the full interference."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulatedSlot:
    """The results of one slot of B clusters."""

    now: int  # Number of the slot.
    jobs: Ints  # int64[B, J]: the number of the job in each row; undefined in empty rows.
    progress: Floats  # float64[B, J]: units of work of the job of each row in this slot.
    total: Floats  # float64[B, J]: total units of work of the job.
    used: Floats  # float64[B, J]: the part of the slot before the end of the job; 1 if the job did not end.
    waiting: Floats  # float64[B]: mean number of jobs in the cluster during the slot, with or without a row.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ran:
    """The results of traces under a policy."""

    # float64[B, N]: slots from the arrival of each job to its end, or to the end of the run. NaN if there is
    # no job.
    times: Floats
    finished: Bools  # bool[B, N]: jobs that ended.
    # float64[B]: number of jobs in the cluster, summed over time: by Little's law the same as the sum of the
    # times.
    waiting: Floats
    slots: Ints  # int64[B]: number of slots with any job.

    @property
    def mean(self) -> Floats:
        """float64[B]: the mean completion time of each trace."""
        return np.asarray(np.nanmean(self.times, 1))


_SlotT_co = TypeVar("_SlotT_co", covariant=True)


class _Simulator(Protocol[_SlotT_co]):
    """A simulation of drawn jobs, or of the jobs of a trace."""

    @property
    def is_done(self) -> bool: ...
    @property
    def part_done(self) -> float: ...
    def situation(self) -> Situation: ...
    def advance(self, situation: Situation) -> _SlotT_co: ...


def slots(
    policy: ClusterPolicy,
    simulator: _Simulator[_SlotT_co],
    *,
    most: int = sys.maxsize,
    watch: Callable[[float], object] | None = None,
    watch_actions: Watch | None = None,
) -> Iterator[tuple[Situation, _SlotT_co]]:
    """Simulate up to `most` slots until all jobs have ended; yield the allocation and the results of each.

    `watch` is called in each slot with the part that is done, and `watch_actions` for each action.
    """
    for _ in range(most):
        if simulator.is_done:
            return
        allocation = policy.decide(simulator.situation(), watch=watch_actions)
        slot = simulator.advance(allocation)
        if watch is not None:
            watch(simulator.part_done)
        yield allocation, slot


class Simulation:
    """Run B clusters synchronously: return the situation, accept an allocation, simulate a slot.

    Jobs arrive at the beginning of a slot and end at any time in a slot; the resources of an ended job are
    free in the next slot. The first J unfinished jobs have rows.

    >>> from onlineauto.cluster import Fair, allocate
    >>> from onlineauto.cluster.simulator import Workload, draw_traces
    >>> simulation = Simulation(draw_traces(Workload(), [7], jobs=3))
    >>> while not simulation.is_done:
    ...     given = allocate(Fair(), simulation.situation())
    ...     slot = simulation.advance(given)
    >>> simulation.ran().times.round(2)
    array([[7.16, 9.62, 8.23]])
    """

    def __init__(self, traces: Traces) -> None:
        self.traces = traces
        self.now = 0
        workload = traces.workload
        self._coefficients = workload.speeds().table(workload.names)
        self._worker, self._server = workload.demands()
        self._most = workload.most_tasks()
        capacity = np.array(list(workload.capacity.values()), np.float64)
        self._capacity = np.tile(capacity, (len(traces), 1))
        self._pause = np.array([kind.pause for kind in workload.kinds])
        self._sizes = np.zeros((2, *traces.work.shape), np.int64)  # workers and servers in the last slot
        self._paused = np.zeros(traces.work.shape)  # slots of pauses that are not over
        self._left = traces.work.copy()
        self._end = np.full(traces.work.shape, np.nan)
        self._waiting = np.zeros(len(traces))
        self._slots = np.zeros(len(traces), np.int64)
        self._rows, self._valid = self._choose()

    @property
    def is_done(self) -> bool:
        """True if all jobs of all clusters have ended."""
        return not (self._left > 0).any()

    @property
    def part_done(self) -> float:
        """The part of the work of all jobs that is done."""
        return 1 - float(self._left.sum() / self.traces.work.sum())

    @property
    def jobs(self) -> Ints:
        """int64[B, J]: the number of the job in each row; undefined in empty rows."""
        return self._rows

    def situation(self) -> Situation:
        """Return the current situation for a policy, before any allocation."""
        workload, rows = self.traces.workload, self._rows
        kind = np.take_along_axis(self.traces.kind, rows, 1)
        remaining = np.take_along_axis(self._left, rows, 1)
        work = np.take_along_axis(self.traces.work, rows, 1)
        arrival = np.take_along_axis(self.traces.arrival, rows, 1)
        nothing = np.zeros_like(rows)
        return Situation(
            kinds=workload.names,
            valid=self._valid,
            kind=kind,
            age=np.where(self._valid, self.now - arrival, 0).astype(np.float64),
            done=work - remaining,
            remaining=remaining,
            workers=nothing,
            servers=nothing,
            most_workers=self._most[0][kind],
            most_servers=self._most[1][kind],
            worker_demand=self._worker[kind],
            server_demand=self._server[kind],
            capacity=self._capacity,
            free=self._capacity,
            backlog=self._present().sum(1) - self._valid.sum(1),
        )

    def advance(self, situation: Situation) -> SimulatedSlot:
        """Simulate a slot with the workers and servers of an allocation, and return its results."""
        rows, traces = self._rows, self.traces
        noise = traces.noise[:, self.now % traces.noise.shape[1], :]
        speed = self._speed(situation) * np.take_along_axis(noise, rows, 1)
        remaining = np.take_along_axis(self._left, rows, 1)
        lost = self._lost(situation)
        possible = speed * (1 - lost)
        ends = self._valid & (possible >= remaining) & (possible > 0)
        progress = np.where(ends, remaining, np.where(self._valid, possible, 0.0))
        used = np.where(ends, lost + remaining / np.maximum(speed, 1e-300), np.where(self._valid, 1.0, 0.0))
        present = self._present()
        waiting = present.sum(1) - (ends * (1 - used)).sum(1)
        self._waiting += waiting
        self._slots += present.any(1)
        cluster, row = np.nonzero(self._valid)  # excludes empty rows, which may repeat a job
        self._left[cluster, rows[cluster, row]] = np.where(ends, 0.0, remaining - progress)[cluster, row]
        cluster, row = np.nonzero(ends)
        self._end[cluster, rows[cluster, row]] = self.now + used[cluster, row]
        self.now += 1
        total = np.take_along_axis(traces.work, rows, 1)
        self._rows, self._valid = self._choose()
        return SimulatedSlot(
            now=self.now - 1, jobs=rows, progress=progress, total=total, used=used, waiting=waiting
        )

    def ran(self) -> Ran:
        """Return the results of all jobs so far."""
        exists = self.traces.work > 0
        finished = exists & (self._left == 0)
        until = np.where(finished, self._end, float(self.now))
        times = np.where(exists, until - self.traces.arrival, np.nan)
        return Ran(times=times, finished=finished, waiting=self._waiting.copy(), slots=self._slots.copy())

    def _present(self) -> Bools:
        """Return which jobs have arrived and not ended: bool[B, N]."""
        return np.asarray((self.traces.arrival <= self.now) & (self._left > 0))

    def _choose(self) -> tuple[Ints, Bools]:
        """Return the number of the job in each row, and which rows have a job."""
        present = self._present()
        places = self.traces.workload.places
        order = np.argsort(~present, axis=1, kind="stable")[:, :places]
        if order.shape[1] < places:
            order = np.concatenate([order, np.repeat(order[:, :1], places - order.shape[1], 1)], 1)
        valid = np.arange(places) < present.sum(1, keepdims=True)
        return order, valid

    def _lost(self, situation: Situation) -> Floats:
        """Return the part of the slot in which each job pauses after a change of its size."""
        cluster, row = np.nonzero(self._valid)
        job = cluster, self._rows[cluster, row]
        sizes = np.stack([situation.workers[cluster, row], situation.servers[cluster, row]])
        changed = (sizes != self._sizes[:, *job]).any(0) & (self._left[job] < self.traces.work[job])
        self._sizes[:, *job] = sizes
        paused = self._paused[job] + changed * self._pause[self.traces.kind[job]]
        lost = np.zeros(self._rows.shape)
        lost[cluster, row] = np.minimum(paused, 1.0)
        self._paused[job] = paused - lost[cluster, row]
        return lost

    def _speed(self, situation: Situation) -> Floats:
        """Return the speed of each job, including the interference that policies do not know."""
        works = (situation.workers > 0) & (~situation.takes_servers | (situation.servers > 0))
        slowness = self._coefficients[situation.kind] * terms(
            np.maximum(situation.workers, 1), situation.servers
        )
        full = 1 - situation.free_parts.min(1, keepdims=True)
        large = np.minimum(situation.workers / _LARGE, 1)
        lost = self.traces.workload.interference * np.clip(full, 0, 1) ** 2 * large
        return np.where(works, (1 - lost) / np.maximum(slowness.sum(-1), 1e-12), 0.0)


def run(
    policy: ClusterPolicy,
    traces: Traces,
    *,
    most_slots: int = _MOST_SLOTS,
    watch: Callable[[float], object] | None = None,
) -> Ran:
    """Return the results of traces under a policy, until all jobs have ended or `most_slots` is reached.

    `watch` is called in each slot with the part of the work that is done.
    """
    simulation = Simulation(traces)
    for _ in slots(policy, simulation, most=most_slots, watch=watch):
        pass
    return simulation.ran()


def record(
    policy: ClusterPolicy, traces: Traces, *, learns: bool = False, most_slots: int = _MOST_SLOTS
) -> History:
    """Run the first trace under a policy like `run`, and return its history.

    >>> from onlineauto.cluster import Fair
    >>> from onlineauto.cluster.simulator import Workload, draw_traces
    >>> history = record(Fair(), draw_traces(Workload(), [1], jobs=2))
    >>> history.records[0].job, history.records[0].kind, history.records[0].workers
    ('job-0', 'embedding', 9)
    """
    history = History(Head(capacity=dict(traces.workload.capacity), policy=policy.name))
    for allocation, slot in slots(policy, Simulation(traces), most=most_slots):
        rows = [_record(traces, allocation, slot, row) for row in allocation.valid[0].nonzero()[0]]
        history.records.extend(rows)
        if learns:
            policy.observe(rows)
    return history


def _record(traces: Traces, situation: Situation, slot: SimulatedSlot, row: int) -> Record:
    job = int(slot.jobs[0, row])
    kind = traces.workload.kinds[int(traces.kind[0, job])]
    before = float(situation.done[0, row])
    done = before + float(slot.progress[0, row])
    total = float(slot.total[0, row])
    finished = bool(slot.used[0, row] < 1) or done >= total
    return Record(
        slot=slot.now,
        job=f"job-{job}",
        kind=kind.name,
        arrived=float(traces.arrival[0, job]),
        workers=int(situation.workers[0, row]),
        servers=int(situation.servers[0, row]),
        before=before,
        done=total if finished else done,
        total=total,
        used=float(slot.used[0, row]),
        **demand_of(kind),
    )


_NORMAL: Final = 1.96


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The comparison of one policy with a reference policy."""

    name: str  # Name of the policy.
    # Mean over traces of the ratio of mean completion times, policy / reference, with its 95 % interval. A
    # ratio below 1 is faster.
    ratio: float
    low: float
    high: float
    mean: float  # Mean and 95 % quantile of the completion times of jobs, in slots.
    late: float
    finished: float  # The part of all jobs that ended; less than 1 if jobs starve.


def mean_ratio(times: Floats, others: Floats) -> tuple[float, float, float]:
    """Return the mean ratio of the times of two runs, float64[B] each, and the 95 % interval of this mean."""
    ratios = times / others
    mean = float(ratios.mean())
    if len(ratios) < 2:
        return mean, float("-inf"), float("inf")
    half = float(_quantile(len(ratios)) * ratios.std(ddof=1) / np.sqrt(len(ratios)))
    return mean, mean - half, mean + half


def _quantile(count: int) -> float:
    """Return the 97.5 % quantile of Student's distribution for a mean of `count` numbers, to 0.3 %.

    Source: Abramowitz and Stegun, *Handbook of mathematical functions*, 26.7.5; the last terms are fitted.
    """
    free = count - 1
    return _NORMAL + 2.372 / free + 2.823 / free**2 + 2.556 / free**3 + 1.59 / free**4 + 1.41 / free**5


def compare(
    policies: Mapping[str, ClusterPolicy],
    traces: Traces,
    *,
    by: str,
    watch: Callable[[str, float], object] | None = None,
) -> list[Compared]:
    """Run all traces under each policy; return the comparison of each with the policy named `by`.

    `watch` is called in each slot with the name of the policy and the part of the work that is done.

    Raises
    ------
    OptionError
        No policy is named `by`.

    Examples
    --------
    >>> from onlineauto.cluster import Fair, MarginalGain
    >>> from onlineauto.cluster.simulator import Workload, draw_traces
    >>> workload = Workload(rate=0.5)
    >>> policies = {"fair": Fair(), "gain": MarginalGain(workload.speeds())}
    >>> fair, gain = compare(policies, draw_traces(workload, range(8)), by="fair")
    >>> fair.ratio, gain.ratio < 1
    (1.0, True)
    """
    if by not in policies:
        raise OptionError(f"by = {by!r} is unknown; valid are {', '.join(policies)}")
    ran = {
        name: run(policy, traces, watch=None if watch is None else partial(watch, name))
        for name, policy in policies.items()
    }
    return [_compare_runs(name, result, ran[by]) for name, result in ran.items()]


def _compare_runs(name: str, result: Ran, other: Ran) -> Compared:
    ratio, low, high = mean_ratio(result.mean, other.mean)
    exists = ~np.isnan(result.times)
    return Compared(
        name=name,
        ratio=ratio,
        low=low,
        high=high,
        mean=float(result.mean.mean()),
        late=float(np.nanquantile(result.times, 0.95)),
        finished=float(result.finished[exists].mean()),
    )


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
    times = np.sort(np.concatenate([result.times for result in results])) / 3600
    return Totals(
        mean=float(times.mean()),
        late=float(times[int(0.99 * len(times))]),
        makespan=float(np.mean([result.makespan for result in results]) / 3600),
        gpu_hours=float(np.concatenate([result.gpu_hours for result in results]).mean()),
        restarts=float(np.concatenate([result.restarts for result in results]).mean()),
    )


class GpuSimulation:
    """Run jobs on a cluster with several kinds of GPUs, whose policy decides at the end of each interval."""

    def __init__(
        self, policy: ClusterPolicy, jobs: Sequence[GpuJob], cluster: GpuCluster, interval: float
    ) -> None:
        _check_jobs(jobs)
        # The copy of the cluster has its own cache of sizes, which ends with the replay.
        self._policy, self._cluster, self._interval = policy, replace(cluster), interval
        self._waiting = sorted((replace(job) for job in jobs), key=lambda job: job.arrival)
        for job in self._waiting:
            if not policy.runs(job, self._cluster):
                raise OptionError(
                    f"job {job.name} asks for {job.asked} GPUs, and no kind of GPU runs it; the cluster has "
                    f"{', '.join(f'{many} {kind}' for kind, many in cluster.capacity.items())}"
                )
        self.jobs, self._now = (*self._waiting,), 0.0
        self._present: list[GpuJob] = []
        self._begin_round()

    @property
    def is_done(self) -> bool:
        """True if all jobs have ended."""
        return not self._present

    @property
    def part_done(self) -> float:
        """The part of the jobs that have ended."""
        return 1 - (len(self._present) + len(self._waiting)) / len(self.jobs)

    def situation(self) -> Situation:
        """Return the current situation for a policy, before any allocation."""
        gpus = GpuRound(cluster=self._cluster, jobs=self._present, now=self._now)
        return gpus.situation_for(self._policy)

    def advance(self, situation: Situation) -> None:
        """Move jobs to the GPUs of an allocation, and run them for an interval."""
        assert situation.gpus is not None
        _check_allocation(self._policy.name, situation.gpus.allocation, self._present, self._cluster)
        _move(self._present, situation.gpus.allocation, self._cluster)
        for job in self._present:
            if job.gpus:
                job.advance(self._now, self._interval, job.batch if self._policy.is_rigid else None)
        self._present = [job for job in self._present if math.isnan(job.end)]
        self._begin_round()

    def _begin_round(self) -> None:
        """Go on to the next decision about any job, and add the jobs that have arrived."""
        self._now += self._interval
        if not self._present and self._waiting:
            arrival = self._waiting[0].arrival
            self._now = max(self._now, math.ceil(arrival / self._interval) * self._interval)
        while self._waiting and self._waiting[0].arrival <= self._now:
            self._present.append(self._waiting.pop(0))


def replay(
    policy: ClusterPolicy,
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
    policy : ClusterPolicy
        Decides which GPUs each job has: a `GpuPolicy`, or any other policy, for which all GPUs are equal.
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
        The policy allocates GPUs that the cluster does not have, or allocates to an unknown job; the interval
        is not above 0 and finite; or a job can run on none of the GPUs.
    """
    seconds = policy.interval if interval is None else interval
    if not 0 < seconds < math.inf:
        raise OptionError(f"interval = {seconds!r}: give a finite number of seconds above 0")
    simulation = GpuSimulation(policy, jobs, cluster, seconds)
    policy.begin()
    for _ in slots(policy, simulation, most=_MOST_ROUNDS, watch=watch):
        pass
    ends = np.array([job.end for job in simulation.jobs])
    arrivals = np.array([job.arrival for job in simulation.jobs])
    return ReplayResult(
        times=ends - arrivals,
        makespan=float(ends.max() - arrivals.min()),
        gpu_hours=np.array([job.used / 3600 for job in simulation.jobs]),
        restarts=np.array([max(job.restarts, 0) for job in simulation.jobs]),
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


def _check_allocation(
    policy: str, allocation: Allocation, jobs: Sequence[GpuJob], cluster: GpuCluster
) -> None:
    """Reject an allocation of an unknown job, of an unknown kind, or of less than one GPU."""
    names = {job.name for job in jobs}
    for name, (kind, many) in allocation.items():
        problem = ""
        if name not in names:
            problem = "there is no unfinished job of this name"
        elif kind not in cluster.nodes:
            problem = f"the kinds of the cluster are {', '.join(cluster.nodes)}"
        elif not isinstance(many, Integral) or many < 1:
            problem = "a job that runs has a whole number of GPUs of at least 1"
        if problem:
            raise OptionError(f"the policy {policy} allocated {(kind, many)} to the job {name}: {problem}")


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
