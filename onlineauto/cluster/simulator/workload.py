"""``Workload``: the capacity of a simulated cluster, the kinds of its jobs, and their rate of arrival."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from onlineauto.cluster.policies.situation import Demand, demand_table
from onlineauto.cluster.policies.speeds import TERMS, Speeds
from onlineauto.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from onlineauto.cluster.policies.situation import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class JobKind(Demand):
    """A kind of job: its speed and its work, in addition to its `Demand`."""

    name: str  # Name of the kind; jobs of a history have the same name in the field `kind`.
    # Coefficients of the time that a unit of work takes; see `onlineauto.cluster.policies.speeds.terms`.
    coefficients: tuple[float, ...]
    work: float  # Mean number of units of work of a job.
    pause: float = 0.0  # Slots without progress after a change of the numbers of workers or servers.


MIXED: Final = tuple(
    JobKind(
        name=name,
        coefficients=coefficients,
        work=7.5,
        worker={"CPU": 1, "memory": worker_memory},
        server={"CPU": 1, "memory": server_memory} if server_memory else {},
    )
    for name, coefficients, worker_memory, server_memory in (
        ("search", (0.8911, 0.10, 0.0, 0.0089, 0.0), 1.5, 0),  # parallel trials of a study
        # members wait for each other at every generation
        ("population", (0.8757, 0.10, 0.0, 0.0243, 0.0), 2.5, 0),
        # a sparse model with little load on servers
        ("sharded", (0.7885, 0.10, 0.08, 0.0160, 0.0155), 1, 2),
        # a large model with high load on servers
        ("embedding", (0.5850, 0.15, 0.20, 0.0325, 0.0325), 2, 3),
        ("rules", (0.6300, 0.25, 0.05, 0.0350, 0.0350), 2, 1),  # a job with a serial part
        # challengers and a champion on one stream, with little parallel work
        ("race", (0.6030, 0.25, 0.08, 0.0335, 0.0335), 1, 1),
    )
)
"""Six kinds modelled on jobs of this project. One bundle does one unit per slot; the fastest numbers of
workers are 10, 6, 5, 3, 3 and 3."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Describe a cluster and the jobs that arrive at it.

    Attributes
    ----------
    kinds : tuple of Kind
        The kinds, which are equally likely.
    capacity : mapping
        The amount of each resource of the cluster.
    places : int
        J, the maximum number of jobs with a row; later jobs wait.
    rate : float
        Mean number of jobs that arrive in a slot.
    swing, period : float
        Relative amplitude of the periodic rate, and its period in slots, as for day and night.
    spread : float
        Standard deviation of the logarithm of a job's work.
    interference : float
        The part of its speed that a large job loses on a full cluster, which policies do not know.
    noise : float
        Standard deviation of the logarithm of speeds from slot to slot.
    """

    kinds: tuple[JobKind, ...] = MIXED
    capacity: Mapping[str, float] = field(default_factory=lambda: {"CPU": 24.0, "memory": 48.0})
    places: int = 12
    rate: float = 0.5
    swing: float = 0.5
    period: float = 48.0
    spread: float = 0.8
    interference: float = 0.35
    noise: float = 0.15

    def __post_init__(self) -> None:
        if not self.kinds or not self.capacity or self.places < 1:
            raise OptionError("a workload needs at least one kind of jobs, one resource and one row")
        if not self.rate > 0 or not 0 <= self.swing < 1 or not self.period > 0:
            raise OptionError(
                f"rate = {self.rate:g}, swing = {self.swing:g}, period = {self.period:g}: valid is a rate "
                "and a period above 0, and a swing from 0 to below 1"
            )
        for kind in self.kinds:
            if len(kind.coefficients) != TERMS or min(kind.coefficients) < 0 or not sum(kind.coefficients):
                raise OptionError(f"kind {kind.name}: give {TERMS} coefficients, none of them negative")
            if not 0 <= kind.pause < math.inf:
                raise OptionError(f"kind {kind.name}: pause = {kind.pause:g}: give 0 or more slots")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the kinds."""
        return tuple(kind.name for kind in self.kinds)

    def speeds(self) -> Speeds:
        """Return the exact speeds of the kinds, without interference and noise."""
        return Speeds({kind.name: kind.coefficients for kind in self.kinds})

    def demands(self) -> tuple[Floats, Floats]:
        """Return the demands of a worker and of a server of each kind: float64[kinds, R] twice."""
        demands = [kind.worker for kind in self.kinds], [kind.server for kind in self.kinds]
        return demand_table(demands[0], self.capacity), demand_table(demands[1], self.capacity)

    def most_tasks(self) -> tuple[Ints, Ints]:
        """Return the maximum numbers of workers and servers of each kind; 0 servers if it takes none."""
        workers = np.array([kind.most_workers for kind in self.kinds])
        return workers, np.array([kind.most_servers if kind.server else 0 for kind in self.kinds])


_REPEATS: Final = 64
"""Number of slots after which the noise of a job repeats."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Traces:
    """The jobs of B simulated clusters, N in each, in the order of arrival."""

    workload: Workload  # The workload of all clusters.
    arrival: Ints  # int64[B, N]: the slot at whose beginning a job arrives.
    kind: Ints  # int64[B, N]: the index of its kind in the workload.
    # float64[B, N]: its units of work; 0 marks a missing job of a cluster with fewer than N jobs.
    work: Floats
    # float64[B, S, N]: factor of the speed of a job in slots s, s + S, …; it is the same under each policy.
    noise: Floats

    def __len__(self) -> int:
        return len(self.arrival)


def draw_traces(workload: Workload, seeds: Sequence[int], *, jobs: int = 40) -> Traces:
    """Draw a trace for each seed; a trace depends on its own seed only.

    Arrivals are a Poisson process with a periodic rate, and work is log-normal.

    Examples
    --------
    >>> from onlineauto.cluster.simulator import Workload
    >>> traces = draw_traces(Workload(rate=2), [1, 2], jobs=5)
    >>> traces.arrival[0], traces.kind[0]
    (array([0, 0, 0, 1, 1]), array([4, 1, 1, 0, 1]))
    """
    drawn = [_draw(workload, seed, jobs) for seed in seeds]
    arrival, kind, work, noise = (np.stack(arrays) for arrays in zip(*drawn, strict=True))
    return Traces(workload=workload, arrival=arrival, kind=kind, work=work, noise=noise)


def draw_noise(draw: np.random.Generator, jobs: int, noise: float) -> Floats:
    """Return factors of the speeds of jobs: log-normal, with mean 1."""
    return np.exp(noise * draw.standard_normal((_REPEATS, jobs)) - noise**2 / 2)


def _draw(workload: Workload, seed: int, jobs: int) -> tuple[Ints, Ints, Floats, Floats]:
    draw = np.random.default_rng([0xC1, seed])
    phase, waits = draw.uniform(0, 2 * np.pi), draw.exponential(size=jobs)
    now, times = 0.0, []
    for wait in waits:
        rate = workload.rate * (1 + workload.swing * np.sin(phase + 2 * np.pi * now / workload.period))
        now += wait / rate
        times.append(now)
    kind = draw.integers(len(workload.kinds), size=jobs)
    mean = np.array([job_kind.work for job_kind in workload.kinds])[kind]
    spread = workload.spread
    work = mean * np.exp(spread * draw.standard_normal(jobs) - spread**2 / 2)
    arrival = np.floor(np.array(times) - times[0]).astype(np.int64)
    return arrival, kind, np.maximum(work, 1e-3), draw_noise(draw, jobs, workload.noise)
