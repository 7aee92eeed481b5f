"""``simulate``: fit a workload to the history of a cluster, and run its jobs under other policies."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from onlineauto.cluster.policies import POLICIES
from onlineauto.cluster.policies.situation import demand_of
from onlineauto.cluster.policies.speeds import Modelled, Speeds
from onlineauto.cluster.simulator.simulation import Compared, compare, run
from onlineauto.cluster.simulator.workload import JobKind, Traces, Workload, draw_noise
from onlineauto.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from onlineauto.cluster.history import History, Record
    from onlineauto.cluster.policies.policy import ClusterPolicy

_RUN: Final = 8
"""Number of consecutive jobs of a history that stay together in a synthetic trace (block bootstrap)."""
_FEWEST: Final = 3
"""Minimum number of jobs for a fit."""
PAUSES: Final[Mapping[str, float]] = MappingProxyType({"partitioned-stream": 0.4})
"""Seconds without progress after a change of the numbers of workers or servers, by kind of job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """One job of a history: its kind, its arrival and its work."""

    kind: str
    arrival: int
    work: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """A workload that was fitted to a history, and the jobs of the history.

    Attributes
    ----------
    workload : Workload
        Kinds with fitted speeds, and the rate of arrivals.
    replay : Traces
        One trace with the jobs of the history.
    policy : str
        Name of the policy of the history.
    actual : float
        Mean completion time of the jobs of the history, in slots; NaN if not all of them finished.
    left_out : mapping
        Number of omitted jobs by kind. The speeds of these kinds are unknown, because all their jobs waited
        or made no progress.
    """

    workload: Workload
    replay: Traces
    policy: str
    actual: float
    left_out: Mapping[str, int] = field(default_factory=dict)

    def traces(self, seeds: Sequence[int]) -> Traces:
        """Draw traces like the history by a block bootstrap of its jobs and the gaps between them."""
        arrival, kind, work = (
            array[0] for array in (self.replay.arrival, self.replay.kind, self.replay.work)
        )
        gaps = np.diff(arrival, prepend=arrival[0])
        many, size = len(work), min(_RUN, len(work))
        drawn = []
        for seed in seeds:
            draw = np.random.default_rng([0xF1, seed])
            begins = draw.integers(many, size=-(-many // size))
            order = (begins[:, None] + np.arange(size)).ravel()[:many] % many
            times = np.cumsum(gaps[order])
            noise = draw_noise(draw, many, self.workload.noise)
            drawn.append((times - times[0], kind[order], work[order], noise))
        columns = (np.stack(arrays) for arrays in zip(*drawn, strict=True))
        return Traces(
            workload=self.workload, **dict(zip(("arrival", "kind", "work", "noise"), columns, strict=True))
        )

    def compare(
        self, policies: Mapping[str, ClusterPolicy] | None = None, *, by: str = "", traces: int = 32
    ) -> list[Compared]:
        """Run synthetic traces like the history under policies; return the comparison of each.

        Parameters
        ----------
        policies : mapping, optional
            Policies by name; by default all of `onlineauto.cluster.POLICIES`, with the fitted speeds.
        by : str
            Name of the reference policy; by default the policy of the history, or ``fair``.
        traces : int
            Number of traces.
        """
        policies = policies_for(self.workload) if policies is None else policies
        if not by:
            by = self.policy if self.policy in policies else "fair"
        return compare(policies, self.traces(range(traces)), by=by)

    def error(self) -> float:
        """Return the relative error of the simulated mean completion time for the history itself.

        error = simulated / actual - 1, under the policy of the history; NaN if it is unknown.
        """
        policy = policies_for(self.workload).get(self.policy)
        if policy is None or np.isnan(self.actual):
            return float("nan")
        return float(run(policy, self.replay).mean[0] / self.actual - 1)


def policies_for(workload: Workload) -> dict[str, ClusterPolicy]:
    """Return all policies of the registry by name; those that use speeds get the speeds of the workload."""
    speeds = workload.speeds()
    return {name: make(speeds) if issubclass(make, Modelled) else make() for name, make in POLICIES.items()}


def simulate(history: History, *, places: int = 12, pauses: Mapping[str, float] = PAUSES) -> Simulated:
    """Fit a simulator to the history of a cluster, to find the policy that would have been fastest.

    Parameters
    ----------
    history : History
        The history of `Cluster.history` or `History.load`.
    places : int
        Maximum number of jobs with a row.
    pauses : mapping
        Seconds without progress after a change of the numbers of workers or servers, by kind of job; 0 for
        other kinds. The default has the measured pauses of the jobs of this package.

    Raises
    ------
    InputError
        If too few jobs of the history worked.

    Examples
    --------
    >>> from onlineauto.cluster import Fair
    >>> from onlineauto.cluster.simulator import Workload, draw_traces, record
    >>> history = record(Fair(), draw_traces(Workload(rate=1), [3], jobs=30))
    >>> simulated = simulate(history)
    >>> abs(simulated.error()) < 0.1
    True
    """
    workload = fit_workload(history, places=places, pauses=pauses)
    finite = _jobs(history)
    named = {name: job for name, job in finite.items() if job.kind in workload.names}
    jobs = [*named.values()]
    numbers = {name: number for number, name in enumerate(workload.names)}
    first = jobs[0].arrival
    replay = Traces(
        workload=workload,
        arrival=np.array([[job.arrival - first for job in jobs]]),
        kind=np.array([[numbers[job.kind] for job in jobs]]),
        work=np.array([[job.work for job in jobs]]),
        noise=np.ones((1, 1, len(jobs))),
    )
    times = history.completion_times()
    actual = float(np.mean([times.get(name, float("nan")) for name in named]))
    left_out = Counter(job.kind for job in finite.values() if job.kind not in workload.names)
    return Simulated(
        workload=workload, replay=replay, policy=history.head.policy, actual=actual, left_out=left_out
    )


def fit_workload(history: History, *, places: int = 12, pauses: Mapping[str, float] = PAUSES) -> Workload:
    """Return the workload of a history: kinds with their speeds, the rate of arrivals, the spread of work.

    Endless streams are not jobs of the workload: their average resources are subtracted from the capacity.
    Kinds without any progress are omitted. Speeds are those outside of pauses.
    """
    speeds = Speeds()
    pause = {kind: seconds / history.head.slot for kind, seconds in pauses.items()}
    ended = _without_pauses([record for record in history.records if not record.endless], pause)
    speeds.observe(ended)
    finite = _jobs(history).values()
    jobs = [job for job in finite if job.kind in speeds.kinds]
    if len(jobs) < _FEWEST:
        never = sorted({job.kind for job in finite} - {*speeds.kinds})
        note = f"; jobs of kind {', '.join(never)} never made progress" if never else ""
        raise InputError(
            f"{len(jobs)} jobs of the history made progress, but a workload needs {_FEWEST} or more{note}"
        )
    ended = [record for record in ended if record.kind in speeds.kinds]
    last = {record.kind: record for record in ended}
    works = {kind: [job.work for job in jobs if job.kind == kind] for kind in last}
    logs = [
        np.log(work) - np.mean(np.log(works_of_kind))
        for works_of_kind in works.values()
        for work in works_of_kind
    ]
    slots = max(record.slot for record in history.records) + 1 - jobs[0].arrival
    kinds = tuple(
        JobKind(
            name=kind,
            coefficients=tuple(float(number) for number in speeds.coefficients(kind)),
            work=float(np.mean(works[kind])),
            pause=pause.get(kind, 0.0),
            **demand_of(last[kind]),
        )
        for kind in sorted(last)
    )
    return Workload(
        kinds=kinds,
        capacity=_capacity(history, kinds),
        places=places,
        rate=len(jobs) / max(slots, 1),
        swing=0.0,
        spread=float(np.std(logs)),
        interference=0.0,
        noise=_noise(ended, speeds),
    )


def _without_pauses(records: Sequence[Record], pauses: Mapping[str, float]) -> list[Record]:
    """Return records in which the pause after a change of size, in slots by kind, does not count as used."""
    sizes: dict[str, tuple[int, int]] = {}
    worked = []
    for record in records:
        size = record.workers, record.servers
        if sizes.setdefault(record.job, size) != size and (pause := pauses.get(record.kind, 0.0)):
            record = msgspec.structs.replace(record, used=max(record.used - pause, 0.0))
        sizes[record.job] = size
        worked.append(record)
    return worked


def _jobs(history: History) -> dict[str, _Job]:
    """Return the finite jobs by name, in the order of arrival."""
    jobs: dict[str, _Job] = {}
    first: dict[str, float] = {}  # work before the history: a study may continue from its store
    for record in history.records:
        if record.endless:
            continue
        if record.job not in jobs:
            arrival = min(int(np.ceil(record.arrived)), record.slot)
            first[record.job] = record.before
            jobs[record.job] = _Job(
                kind=record.kind, arrival=max(arrival, 0), work=record.total - record.before
            )
        else:
            job = jobs[record.job]
            jobs[record.job] = replace(job, work=max(job.work, record.total - first[record.job]))
    with_work = {name: job for name, job in jobs.items() if job.work > 0}
    return dict(sorted(with_work.items(), key=lambda item: item[1].arrival))


def _noise(records: Sequence[Record], speeds: Speeds) -> float:
    """Return the standard deviation of the logarithm of observed speeds relative to fitted speeds."""
    errors = [
        float(
            np.log(
                (record.done - record.before)
                / record.used
                * speeds.time_per_unit(record.kind, record.workers, record.servers)
            )
        )
        for record in records
        if record.workers and record.used > 0 and record.done > record.before
    ]
    return float(np.std(errors))


def _capacity(history: History, kinds: Sequence[JobKind]) -> dict[str, float]:
    """Return the capacity minus the average use of streams; without a head, the maximum use is the capacity.

    The result is at least one bundle (a worker and a server) of each kind, even if streams leave less.
    """
    slots: dict[int, dict[str, float]] = {}
    streams: dict[str, float] = {}
    for record in history.records:
        used = slots.setdefault(record.slot, {})
        for demand, many in ((record.worker, record.workers), (record.server, record.servers)):
            for name, amount in demand.items():
                used[name] = used.get(name, 0.0) + many * amount
                if record.endless:
                    streams[name] = streams.get(name, 0.0) + many * amount
    capacity = history.head.capacity or {
        name: max(used.get(name, 0.0) for used in slots.values())
        for name in sorted({name for used in slots.values() for name in used})
    }
    free = {name: amount - streams.get(name, 0.0) / max(len(slots), 1) for name, amount in capacity.items()}
    for kind in kinds:
        for name, left in free.items():
            bundle = kind.worker.get(name, 0.0) + kind.server.get(name, 0.0)
            if bundle > capacity[name]:
                raise InputError(
                    f"jobs of kind {kind.name} take {bundle:g} {name}, but the cluster of this history has "
                    f"{capacity[name]:g}"
                )
            free[name] = max(left, bundle)
    return free
