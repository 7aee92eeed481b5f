"""``record``: return the history of a simulated cluster in the form of a real one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.cluster.history import Head, History, Record
from onlineauto.cluster.policies.policy import allocate
from onlineauto.cluster.simulator.simulation import Simulation

if TYPE_CHECKING:
    from onlineauto.cluster.policies.policy import ClusterPolicy
    from onlineauto.cluster.policies.situation import Situation
    from onlineauto.cluster.simulator.simulation import SimulatedSlot
    from onlineauto.cluster.simulator.traces import Traces


def record(policy: ClusterPolicy, traces: Traces, *, learns: bool = False) -> History:
    """Run the first trace under a policy, and return its history.

    Examples
    --------
    >>> from onlineauto.cluster import Fair
    >>> from onlineauto.cluster.simulator import Workload, draw_traces
    >>> history = record(Fair(), draw_traces(Workload(), [1], jobs=2))
    >>> history.records[0].job, history.records[0].kind, history.records[0].workers
    ('job-0', 'embedding', 9)
    """
    history = History(Head(capacity=dict(traces.workload.capacity), policy=policy.name))
    simulation = Simulation(traces)
    while not simulation.is_done:
        allocation = allocate(policy, simulation.situation())
        now, jobs = simulation.now, simulation.jobs[0]
        slot = simulation.advance(allocation)
        rows = [
            _record(traces, allocation, slot, now, at, int(jobs[at]))
            for at in allocation.valid[0].nonzero()[0]
        ]
        history.records.extend(rows)
        if learns:
            policy.observe(rows)
    return history


def _record(
    traces: Traces, situation: Situation, slot: SimulatedSlot, now: int, row: int, job: int
) -> Record:
    kind = traces.workload.kinds[int(traces.kind[0, job])]
    before = float(situation.done[0, row])
    done = before + float(slot.progress[0, row])
    total = float(slot.total[0, row])
    finished = bool(slot.used[0, row] < 1) or done >= total
    return Record(
        slot=now,
        job=f"job-{job}",
        kind=kind.name,
        arrived=float(traces.arrival[0, job]),
        workers=int(situation.workers[0, row]),
        servers=int(situation.servers[0, row]),
        before=before,
        done=total if finished else done,
        total=total,
        used=float(slot.used[0, row]),
        worker=dict(kind.worker),
        server=dict(kind.server),
        most_workers=kind.most_workers,
        most_servers=kind.most_servers,
    )
