"""``Situation``: the input of a policy: jobs and free resources of clusters during an allocation."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onlineauto.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from onlineauto.cluster.history import Record
    from onlineauto.cluster.policies.gpu_policy import Allocation, GpuRound

Floats = NDArray[np.float64]
"""An array of numbers."""
Ints = NDArray[np.int64]
"""An array of whole numbers."""
Bools = NDArray[np.bool_]
"""An array of truth values."""

LEAST_REMAINING = 1e-9
"""Remaining units of work of an endless stream that has kept up with the arrival of events."""
_ROUNDING = 1e-9
"""Relative error by which a sum of demands may exceed the capacity through rounding."""


@dataclass(frozen=True, slots=True)
class Demand:
    """The resources that a job takes from a cluster."""

    # The demand of one worker and of one server by resource; `server` is empty for a job without servers.
    worker: Mapping[str, float] = field(default_factory=lambda: {"CPU": 1.0})
    server: Mapping[str, float] = field(default_factory=dict)
    most_workers: int = 16  # The maximum numbers that the job can use.
    most_servers: int = 16


def demand_of(source: Demand | Record) -> dict[str, Any]:
    """Return the four fields of a demand, as arguments of another record."""
    return {
        "worker": dict(source.worker),
        "server": dict(source.server),
        "most_workers": source.most_workers,
        "most_servers": source.most_servers,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Row(Demand):
    """Describe one unfinished job, in addition to its `Demand`, to `Situation.of`.

    Attributes
    ----------
    kind : str
        Jobs of one kind have about the same speeds.
    age : float
        Slots since it arrived.
    done, remaining : float
        Units of work.
    """

    kind: str
    age: float
    done: float
    remaining: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Situation:
    """Hold B clusters with J rows each, one row per job, during the allocation of a slot.

    A real cluster is a batch of size 1; a simulator has larger batches. Rows are in the order of arrival; a
    row that is not `valid` is empty. A situation is never changed in place: `after` returns a new situation.

    Attributes
    ----------
    kinds : tuple of str
        Names of the kinds of jobs, by number.
    valid : bool[B, J]
        Rows that have a job.
    kind : int64[B, J]
        Number of the kind of each job.
    age, done, remaining : float64[B, J]
        Slots since the job arrived; units of work.
    workers, servers : int64[B, J]
        The allocation of the job in this slot so far.
    most_workers, most_servers : int64[B, J]
        The maximum numbers that the job can use; 0 servers for a job that takes none.
    worker_demand, server_demand : float64[B, J, R]
        The demand of one worker, and of one server, for each of R resources.
    capacity, free : float64[B, R]
        The total and the free amount of each resource.
    backlog : int64[B]
        Jobs that wait for a row.
    gpus : GpuRound or None
        For a cluster with several kinds of GPUs: its nodes, its jobs, and the GPUs that they get.
    """

    kinds: tuple[str, ...]
    valid: Bools
    kind: Ints
    age: Floats
    done: Floats
    remaining: Floats
    workers: Ints
    servers: Ints
    most_workers: Ints
    most_servers: Ints
    worker_demand: Floats
    server_demand: Floats
    capacity: Floats
    free: Floats
    backlog: Ints
    gpus: GpuRound | None = None

    @classmethod
    def of(
        cls, rows: Sequence[Row], capacity: Mapping[str, float], *, places: int = 12, backlog: int = 0
    ) -> Situation:
        """Return the situation of one cluster before any allocation.

        Parameters
        ----------
        rows : sequence of Row
            The unfinished jobs in the order of their arrival. Jobs after the first `places` wait.
        capacity : mapping
            The amount of each resource in the cluster.
        places : int
            J, the number of rows.
        backlog : int
            Number of further jobs that wait.

        Raises
        ------
        OptionError
            If a job takes a resource that the cluster does not have, or a negative amount.

        Examples
        --------
        >>> job = Row(kind="study", age=2, done=1, remaining=9, worker={"CPU": 1}, server={})
        >>> situation = Situation.of([job], {"CPU": 4}, places=2)
        >>> situation.valid, situation.free
        (array([[ True, False]]), array([[4.]]))
        >>> situation.after(np.array([0])).free
        array([[3.]])
        """
        names = list(capacity)
        for row in rows:
            unknown = sorted({*row.worker, *row.server} - {*names})
            if unknown:
                raise OptionError(
                    f"a job of kind {row.kind} takes {', '.join(unknown)}; the cluster has "
                    f"{', '.join(names) or 'nothing'}"
                )
            wrong = [amount for amount in (*row.worker.values(), *row.server.values()) if not amount >= 0]
            if wrong:
                raise OptionError(f"a job of kind {row.kind} takes {wrong[0]} of a resource: give 0 or more")
        visible = [*rows[:places], *[_EMPTY] * (places - len(rows))]
        kinds = tuple(sorted({row.kind for row in rows[:places]})) or ("",)
        capacities = np.array([[capacity[name] for name in names]], np.float64)
        return cls(
            kinds=kinds,
            valid=np.array([[row is not _EMPTY for row in visible]]),
            kind=np.array([[kinds.index(row.kind) if row.kind in kinds else 0 for row in visible]]),
            age=np.array([[row.age for row in visible]], np.float64),
            done=np.array([[row.done for row in visible]], np.float64),
            remaining=np.array([[row.remaining for row in visible]], np.float64),
            workers=np.zeros((1, places), np.int64),
            servers=np.zeros((1, places), np.int64),
            most_workers=np.array([[row.most_workers for row in visible]]),
            most_servers=np.array([[row.most_servers if row.server else 0 for row in visible]]),
            worker_demand=demand_table([row.worker for row in visible], names)[None],
            server_demand=demand_table([row.server for row in visible], names)[None],
            capacity=capacities,
            free=capacities,
            backlog=np.array([backlog + max(0, len(rows) - places)]),
        )

    @property
    def places(self) -> int:
        """J, the number of rows."""
        return int(self.valid.shape[1])

    @property
    def takes_servers(self) -> Bools:
        """bool[B, J]: jobs that need servers in addition to workers."""
        return self.most_servers > 0

    @property
    def free_parts(self) -> Floats:
        """float64[B, R]: the free part of each resource; 1 for a resource that the cluster does not have."""
        exists = self.capacity > 0
        return np.where(exists, self.free / np.where(exists, self.capacity, 1.0), 1.0)

    def without_allocations(self) -> Situation:
        """Return the situation with nothing allocated."""
        nothing = np.zeros_like(self.workers)
        return replace(self, workers=nothing, servers=nothing, free=self.capacity)

    def with_kinds(self, allocation: Allocation) -> Situation:
        """Return the situation with GPUs for each job, by kind."""
        assert self.gpus is not None
        return replace(self, gpus=replace(self.gpus, allocation=allocation))

    def after(self, actions: Ints) -> Situation:
        """Return the situation after one legal action in each cluster.

        Parameters
        ----------
        actions : int64[B]
            See `onlineauto.cluster.policies.policy`.
        """
        places = self.places
        rows = actions % places
        acts = actions < 3 * places
        kinds = actions // places
        more_workers = (acts & (kinds != 1)).astype(np.int64)
        more_servers = (acts & (kinds != 0)).astype(np.int64)
        batch = np.arange(len(actions))
        workers, servers = self.workers.copy(), self.servers.copy()
        workers[batch, rows] += more_workers
        servers[batch, rows] += more_servers
        taken = (
            more_workers[:, None] * self.worker_demand[batch, rows]
            + more_servers[:, None] * self.server_demand[batch, rows]
        )
        return replace(self, workers=workers, servers=servers, free=self.free - taken)

    def legal(self) -> Bools:
        """Return the possible actions: bool[B, 3J + 1]. "Nothing more" is always possible.

        A job that takes servers begins with a worker and a server at once, because neither works alone.
        """
        begun = self.workers > 0
        takes = self.takes_servers
        free = (self.free + _ROUNDING * self.capacity)[:, None, :]
        hires = self.valid & (self.workers < self.most_workers)
        serves = self.valid & takes & (self.servers < self.most_servers)
        worker = hires & (begun | ~takes) & (self.worker_demand <= free).all(2)
        server = serves & begun & (self.server_demand <= free).all(2)
        both = hires & serves & (self.worker_demand + self.server_demand <= free).all(2)
        nothing = np.ones((len(free), 1), np.bool_)
        return np.concatenate([worker, server, both, nothing], 1)

    def choices(self) -> Bools:
        """Return the actions from which a policy chooses: bool[B, 3J + 1].

        While a job without workers can begin, only actions that begin a job are choices, so that no policy
        starves a job. Afterwards all legal actions are choices.
        """
        legal = self.legal()
        idle = self.valid & (self.workers == 0)
        begins = legal & np.concatenate([idle, np.zeros_like(idle), idle, np.zeros((len(idle), 1), bool)], 1)
        return np.where(begins.any(1, keepdims=True), begins, legal)

    def shares(self) -> Floats:
        """Return the dominant share of each job: the largest part that it has of any resource, [B, J]."""
        return self.parts(self.workers, self.servers)

    def parts(self, workers: Ints | int, servers: Ints | int) -> Floats:
        """Return the dominant share of each job for given numbers of workers and servers: float64[B, J]."""
        taken = (
            np.asarray(workers)[..., None] * self.worker_demand
            + np.asarray(servers)[..., None] * self.server_demand
        )
        part = taken / np.maximum(self.capacity, 1e-12)[:, None, :]
        return np.asarray(part.max(2, initial=0.0))


_EMPTY = Row(kind="", age=0, done=0, remaining=0, worker={}, server={}, most_workers=0, most_servers=0)


def demand_table(demands: Sequence[Mapping[str, float]], names: Collection[str]) -> Floats:
    """Return the amount of each resource for each demand: float64[len(demands), R]."""
    table = [[float(demand.get(name, 0.0)) for name in names] for demand in demands]
    return np.array(table, np.float64).reshape(len(demands), len(names))
