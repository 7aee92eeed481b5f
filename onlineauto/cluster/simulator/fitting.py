"""``simulate``: a workload fitted to the history of a cluster, and its jobs under other policies."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from onlineauto.cluster.policies import POLICIES
from onlineauto.cluster.policies.speeds import Modelled, Speeds
from onlineauto.cluster.simulator.comparison import Compared, compare
from onlineauto.cluster.simulator.simulation import run
from onlineauto.cluster.simulator.traces import Traces, draw_noise
from onlineauto.cluster.simulator.workload import Kind, Workload
from onlineauto.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from onlineauto.cluster.history import History, Record
    from onlineauto.cluster.policies.policy import Policy

_RUN: Final = 8
"""Jobs that follow each other in a history stay together in a made-up trace, in runs of about so many."""
_FEWEST: Final = 3
"""Jobs from which something can be said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """One job of a history: its kind, when it came, and how much there was to do."""

    kind: str
    arrival: int
    work: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """Hold a workload that was fitted to a history, and the jobs of the history.

    Attributes
    ----------
    workload : Workload
        Kinds with fitted speeds; the rate at which jobs came.
    replay : Traces
        The jobs of the history, once.
    policy : str
        Name of the policy that had decided.
    actual : float
        Mean completion time of the jobs of the history, in slots; NaN if not all of them finished.
    left_out : mapping
        How many jobs of a kind are left out, by kind: all jobs of these kinds only waited, or worked without
        progress, so nobody knows how fast they would have been.
    """

    workload: Workload
    replay: Traces
    policy: str
    actual: float
    left_out: Mapping[str, int] = field(default_factory=dict)

    def traces(self, seeds: Sequence[int]) -> Traces:
        """Draw traces like the history: its jobs, with their gaps, in another order and frequency."""
        arrival, kind, work = (each[0] for each in (self.replay.arrival, self.replay.kind, self.replay.work))
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
        columns = (np.stack(each) for each in zip(*drawn, strict=True))
        return Traces(
            workload=self.workload, **dict(zip(("arrival", "kind", "work", "noise"), columns, strict=True))
        )

    def compare(
        self, policies: Mapping[str, Policy] | None = None, *, by: str = "", traces: int = 32
    ) -> list[Compared]:
        """Run made-up traces like the history under policies; return a row for each.

        Parameters
        ----------
        policies : mapping, optional
            Policies by name; by default all of `onlineauto.cluster.POLICIES`, with the fitted speeds.
        by : str
            The one that others are compared with; by default the one that had decided, or ``fair``.
        traces : int
            How many.
        """
        policies = policies_for(self.workload) if policies is None else policies
        if not by:
            by = self.policy if self.policy in policies else "fair"
        return compare(policies, self.traces(range(traces)), by=by)

    def error(self) -> float:
        """Return by how much the simulator is wrong about the history itself, under the same policy.

        The simulated mean completion time divided by the actual one, less 1; NaN if it cannot be known.
        """
        policy = policies_for(self.workload).get(self.policy)
        if policy is None or np.isnan(self.actual):
            return float("nan")
        return float(run(policy, self.replay).mean[0] / self.actual - 1)


def policies_for(workload: Workload) -> dict[str, Policy]:
    """Return all policies of the registry by name, those that go by speeds with those of a workload."""
    speeds = workload.speeds()
    return {name: make(speeds) if issubclass(make, Modelled) else make() for name, make in POLICIES.items()}


def simulate(history: History, *, places: int = 12) -> Simulated:
    """Fit a simulator to the history of a cluster, to see which policy would have been faster.

    Parameters
    ----------
    history : History
        What `Cluster.history` returns, or `History.load` reads.
    places : int
        Jobs that have a row at once.

    Raises
    ------
    InputError
        If too few jobs worked in it.

    Examples
    --------
    >>> from onlineauto.cluster import Fair
    >>> from onlineauto.cluster.simulator import Workload, draw_traces, record
    >>> history = record(Fair(), draw_traces(Workload(rate=1), [3], jobs=30))
    >>> simulated = simulate(history)
    >>> abs(simulated.error()) < 0.1
    True
    """
    workload = fit_workload(history, places=places)
    found = _jobs(history)
    named = {name: job for name, job in found.items() if job.kind in workload.names}
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
    left_out = Counter(job.kind for job in found.values() if job.kind not in workload.names)
    return Simulated(
        workload=workload, replay=replay, policy=history.head.policy, actual=actual, left_out=left_out
    )


def fit_workload(history: History, *, places: int = 12) -> Workload:
    """Return the workload of a history: kinds with their speeds, the rate of arrivals, the spread of work.

    Streams, which have no end, are not jobs of the workload: what they take on average is taken off the
    capacity. Kinds of which no job ever made progress are left out.

    Raises
    ------
    InputError
        If too few jobs worked in it, or a kind takes more than the cluster has.
    """
    speeds = Speeds()
    ended = [each for each in history.records if not each.endless]
    speeds.observe(ended)
    found = _jobs(history).values()
    jobs = [job for job in found if job.kind in speeds.kinds]
    if len(jobs) < _FEWEST:
        never = sorted({job.kind for job in found} - {*speeds.kinds})
        why = f"; jobs of kind {', '.join(never)} never made progress" if never else ""
        raise InputError(
            f"the history has {len(jobs)} jobs with an end that worked, and {_FEWEST} are the fewest to go by"
            f"{why}"
        )
    ended = [each for each in ended if each.kind in speeds.kinds]
    last = {each.kind: each for each in ended}
    works = {kind: [job.work for job in jobs if job.kind == kind] for kind in last}
    logs = [np.log(work) - np.mean(np.log(each)) for each in works.values() for work in each]
    slots = max(each.slot for each in history.records) + 1 - jobs[0].arrival
    kinds = tuple(_kind(last[kind], speeds, works[kind]) for kind in sorted(last))
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


def _jobs(history: History) -> dict[str, _Job]:
    """Return the jobs that have an end by their names, in the order of arrival."""
    found: dict[str, _Job] = {}
    first: dict[str, float] = {}  # what was done before the history begins: a study may go on from its store
    for each in history.records:
        if each.endless:
            continue
        if each.job not in found:
            arrival = min(int(np.ceil(each.arrived)), each.slot)
            first[each.job] = each.before
            found[each.job] = _Job(kind=each.kind, arrival=max(arrival, 0), work=each.total - each.before)
        else:
            known = found[each.job]
            found[each.job] = replace(known, work=max(known.work, each.total - first[each.job]))
    there = {name: job for name, job in found.items() if job.work > 0}
    return dict(sorted(there.items(), key=lambda each: each[1].arrival))


def _kind(record: Record, speeds: Speeds, works: list[float]) -> Kind:
    return Kind(
        name=record.kind,
        coefficients=tuple(float(each) for each in speeds.coefficients(record.kind)),
        work=float(np.mean(works)),
        worker=record.worker,
        server=record.server,
        most_workers=record.most_workers,
        most_servers=record.most_servers,
    )


def _noise(records: Sequence[Record], speeds: Speeds) -> float:
    """Return the standard deviation of the logarithm of speeds about the fitted ones."""
    errors = [
        float(
            np.log(
                (each.done - each.before) / each.used * speeds.slowness(each.kind, each.workers, each.servers)
            )
        )
        for each in records
        if each.workers and each.used > 0 and each.done > each.before
    ]
    return float(np.std(errors))


def _capacity(history: History, kinds: Sequence[Kind]) -> dict[str, float]:
    """Return the capacity less what streams take on average; without a head, the most that was in use.

    One worker, with a server, of each kind has space in it, though streams may on average leave less.
    """
    slots: dict[int, dict[str, float]] = {}
    streams: dict[str, float] = {}
    for each in history.records:
        used = slots.setdefault(each.slot, {})
        for demand, many in ((each.worker, each.workers), (each.server, each.servers)):
            for name, amount in demand.items():
                used[name] = used.get(name, 0.0) + many * amount
                if each.endless:
                    streams[name] = streams.get(name, 0.0) + many * amount
    has = history.head.capacity or {
        name: max(used.get(name, 0.0) for used in slots.values())
        for name in sorted({name for used in slots.values() for name in used})
    }
    free = {name: amount - streams.get(name, 0.0) / max(len(slots), 1) for name, amount in has.items()}
    for kind in kinds:
        for name, left in free.items():
            bundle = kind.worker.get(name, 0.0) + kind.server.get(name, 0.0)
            if bundle > has[name]:
                raise InputError(
                    f"jobs of kind {kind.name} take {bundle:g} {name}, and the cluster of this history has "
                    f"{has[name]:g}"
                )
            free[name] = max(left, bundle)
    return free
