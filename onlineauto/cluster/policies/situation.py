"""``Situation``: what a policy sees of clusters while it divides a slot."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from onlineauto.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Floats = NDArray[np.float64]
"""An array of numbers."""
Ints = NDArray[np.int64]
"""An array of whole numbers."""
Bools = NDArray[np.bool_]
"""An array of truth values."""

_ROUNDING = 1e-9
"""The part of the capacity that sums of demands may seem to lack, whatever its unit is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Describe one unfinished job to `Situation.of`.

    Attributes
    ----------
    kind : str
        Jobs of one kind have about the same speeds.
    age : float
        Slots since it arrived.
    done, remaining : float
        Units of work.
    worker, server : mapping
        What one worker, and one server, takes of each resource; a job without servers has none in `server`.
    most_workers, most_servers : int
        More than that it cannot use.
    """

    kind: str
    age: float
    done: float
    remaining: float
    worker: Mapping[str, float]
    server: Mapping[str, float]
    most_workers: int = 16
    most_servers: int = 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Situation:
    """Hold B clusters with J rows each, one row for a job, while the workers of a slot are given away.

    One real cluster is a batch of one; a simulator has many. Rows are in the order of arrival; a row that is
    not `valid` is empty. Nothing here is ever changed in place: `after` returns another situation.

    Attributes
    ----------
    kinds : tuple of str
        Names of the kinds of jobs, by number.
    valid : bool[B, J]
        Rows that have a job.
    kind : int64[B, J]
        Number of the kind of each job.
    age, done, remaining : float64[B, J]
        Slots since it arrived; units of work.
    workers, servers : int64[B, J]
        What it was given in this slot so far.
    most_workers, most_servers : int64[B, J]
        More than that it cannot use; no servers for a job that takes none.
    worker_demand, server_demand : float64[B, J, R]
        What one worker, and one server, takes of each of R resources.
    capacity, free : float64[B, R]
        What the cluster has of each resource, and what is left of it.
    backlog : int64[B]
        Jobs that wait for a row.
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

    @classmethod
    def of(
        cls, rows: Sequence[Row], capacity: Mapping[str, float], *, places: int = 12, backlog: int = 0
    ) -> Situation:
        """Make the situation of one cluster, with nothing given away yet.

        Parameters
        ----------
        rows : sequence of Row
            The unfinished jobs in the order of their arrival. Those past the first `places` wait.
        capacity : mapping
            How much of each resource the cluster has.
        places : int
            J, the number of rows.
        backlog : int
            More jobs that wait.

        Raises
        ------
        OptionError
            If a job takes a resource that the cluster does not have, or less than nothing of one.

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
            wrong = [each for each in (*row.worker.values(), *row.server.values()) if not each >= 0]
            if wrong:
                raise OptionError(f"a job of kind {row.kind} takes {wrong[0]} of a resource: give 0 or more")
        shown = [*rows[:places], *[_EMPTY] * (places - len(rows))]
        kinds = tuple(sorted({row.kind for row in rows[:places]})) or ("",)
        has = np.array([[capacity[name] for name in names]], np.float64)
        return cls(
            kinds=kinds,
            valid=np.array([[row is not _EMPTY for row in shown]]),
            kind=np.array([[kinds.index(row.kind) if row.kind in kinds else 0 for row in shown]]),
            age=np.array([[row.age for row in shown]], np.float64),
            done=np.array([[row.done for row in shown]], np.float64),
            remaining=np.array([[row.remaining for row in shown]], np.float64),
            workers=np.zeros((1, places), np.int64),
            servers=np.zeros((1, places), np.int64),
            most_workers=np.array([[row.most_workers for row in shown]]),
            most_servers=np.array([[row.most_servers if row.server else 0 for row in shown]]),
            worker_demand=_demands([row.worker for row in shown], names),
            server_demand=_demands([row.server for row in shown], names),
            capacity=has,
            free=has,
            backlog=np.array([backlog + max(0, len(rows) - places)]),
        )

    @property
    def places(self) -> int:
        """J, the number of rows."""
        return int(self.valid.shape[1])

    @property
    def takes_servers(self) -> Bools:
        """bool[B, J]: jobs that need servers beside workers."""
        return self.most_servers > 0

    @property
    def free_parts(self) -> Floats:
        """float64[B, R]: the part of each resource that is left; 1 of one that the cluster has none of."""
        has = self.capacity > 0
        return np.where(has, self.free / np.where(has, self.capacity, 1.0), 1.0)

    def cleared(self) -> Situation:
        """Return the situation with nothing given away."""
        nothing = np.zeros_like(self.workers)
        return replace(self, workers=nothing, servers=nothing, free=self.capacity)

    def after(self, actions: Ints) -> Situation:
        """Return the situation after one action in each cluster; they have to be legal.

        Parameters
        ----------
        actions : int64[B]
            See `onlineauto.cluster.policies.actions`.
        """
        places = self.places
        rows = actions % places
        acts = actions < 3 * places
        what = actions // places
        more_workers = (acts & (what != 1)).astype(np.int64)
        more_servers = (acts & (what != 0)).astype(np.int64)
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
        """Return which actions can be done: bool[B, 3J + 1]. Doing nothing more always can.

        A job that takes servers begins with a worker and a server at once; neither works alone.
        """
        begun = self.workers > 0
        takes = self.takes_servers
        room = (self.free + _ROUNDING * self.capacity)[:, None, :]
        hires = self.valid & (self.workers < self.most_workers)
        serves = self.valid & takes & (self.servers < self.most_servers)
        worker = hires & (begun | ~takes) & (self.worker_demand <= room).all(2)
        server = serves & begun & (self.server_demand <= room).all(2)
        both = hires & serves & (self.worker_demand + self.server_demand <= room).all(2)
        nothing = np.ones((len(room), 1), np.bool_)
        return np.concatenate([worker, server, both, nothing], 1)

    def choices(self) -> Bools:
        """Return which actions a policy chooses from: bool[B, 3J + 1].

        As long as a job that has nothing can be begun, these are the actions that begin one: so no policy
        lets a job starve while there is space for it. Then they are the legal ones.
        """
        legal = self.legal()
        idle = self.valid & (self.workers == 0)
        begins = legal & np.concatenate([idle, np.zeros_like(idle), idle, np.zeros((len(idle), 1), bool)], 1)
        return np.where(begins.any(1, keepdims=True), begins, legal)

    def shares(self) -> Floats:
        """Return the dominant share of each job: the largest part that it has of any resource, [B, J]."""
        return self.parts(self.workers, self.servers)

    def parts(self, workers: Ints | int, servers: Ints | int) -> Floats:
        """Return the dominant share that so many workers and servers of each job would have, [B, J]."""
        taken = (
            np.asarray(workers)[..., None] * self.worker_demand
            + np.asarray(servers)[..., None] * self.server_demand
        )
        part = taken / np.maximum(self.capacity, 1e-12)[:, None, :]
        return np.asarray(part.max(2, initial=0.0))


_EMPTY = Row(kind="", age=0, done=0, remaining=0, worker={}, server={}, most_workers=0, most_servers=0)


def _demands(demands: Sequence[Mapping[str, float]], names: Sequence[str]) -> Floats:
    """Return what each takes of each resource, [1, J, R]."""
    table = [[float(each.get(name, 0.0)) for name in names] for each in demands]
    return np.array(table, np.float64).reshape(1, len(demands), len(names))
