"""``Workload``: what a simulated cluster is, which kinds of jobs come to it, and how often."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from onlineauto.cluster.policies.speeds import TERMS, Speeds
from onlineauto.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onlineauto.cluster.policies.situation import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Describe a kind of job.

    Attributes
    ----------
    name : str
        As in a history.
    coefficients : tuple of float
        Of the time that a unit of work takes; see `onlineauto.cluster.policies.speeds.terms`.
    work : float
        Mean units of work of a job.
    worker, server : mapping
        What one worker, and one server, takes of each resource; nothing if the kind has no servers.
    most_workers, most_servers : int
        More than that it cannot use.
    """

    name: str
    coefficients: tuple[float, ...]
    work: float
    worker: Mapping[str, float]
    server: Mapping[str, float] = field(default_factory=dict)
    most_workers: int = 16
    most_servers: int = 16


MIXED: Final = (
    Kind(
        name="search",  # trials of a study side by side
        coefficients=(0.8911, 0.10, 0.0, 0.0089, 0.0),
        work=7.5,
        worker={"CPU": 1, "memory": 1.5},
    ),
    Kind(
        name="population",  # members wait for each other at every generation
        coefficients=(0.8757, 0.10, 0.0, 0.0243, 0.0),
        work=7.5,
        worker={"CPU": 1, "memory": 2.5},
    ),
    Kind(
        name="sharded",  # a sparse model; its servers keep up easily
        coefficients=(0.7885, 0.10, 0.08, 0.0160, 0.0155),
        work=7.5,
        worker={"CPU": 1, "memory": 1},
        server={"CPU": 1, "memory": 2},
    ),
    Kind(
        name="embedding",  # a large model; servers are soon too few
        coefficients=(0.5850, 0.15, 0.20, 0.0325, 0.0325),
        work=7.5,
        worker={"CPU": 1, "memory": 2},
        server={"CPU": 1, "memory": 3},
    ),
    Kind(
        name="rules",  # a part of it is serial
        coefficients=(0.6300, 0.25, 0.05, 0.0350, 0.0350),
        work=7.5,
        worker={"CPU": 1, "memory": 2},
        server={"CPU": 1, "memory": 1},
    ),
    Kind(
        name="race",  # challengers beside a champion, on one stream: little to divide
        coefficients=(0.6030, 0.25, 0.08, 0.0335, 0.0335),
        work=7.5,
        worker={"CPU": 1, "memory": 1},
        server={"CPU": 1, "memory": 1},
    ),
)
"""Six kinds after the jobs of this project. A bundle does one unit a slot; humps are at 10, 6, 5, 3, 3, 3."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Describe a cluster and the jobs that come to it.

    Attributes
    ----------
    kinds : tuple of Kind
        A job is of any of them with the same probability.
    capacity : mapping
        How much of each resource the cluster has.
    places : int
        J, the number of jobs that have a row at once; the others wait.
    rate : float
        Jobs that arrive in a slot, on average.
    swing, period : float
        By how much of itself the rate goes up and down, and in how many slots: day and night.
    spread : float
        Standard deviation of the logarithm of a job's work.
    interference : float
        The part of its speed that a large job loses on a full cluster; no policy knows of it.
    noise : float
        Standard deviation of the logarithm of speeds from slot to slot.
    """

    kinds: tuple[Kind, ...] = MIXED
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
            raise OptionError("a workload has a kind of jobs, a resource and a row at least")
        if not self.rate > 0 or not 0 <= self.swing < 1 or not self.period > 0:
            raise OptionError(
                f"rate = {self.rate:g}, swing = {self.swing:g}, period = {self.period:g}: valid is a rate "
                "and a period above 0, and a swing from 0 to below 1"
            )
        for kind in self.kinds:
            if len(kind.coefficients) != TERMS or min(kind.coefficients) < 0 or not sum(kind.coefficients):
                raise OptionError(f"kind {kind.name}: give {TERMS} coefficients, none of them negative")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the kinds."""
        return tuple(kind.name for kind in self.kinds)

    def speeds(self) -> Speeds:
        """Return the speeds of the kinds, exactly, but for interference and noise."""
        return Speeds({kind.name: kind.coefficients for kind in self.kinds})

    def demands(self) -> tuple[Floats, Floats]:
        """Return what a worker and a server of each kind take: float64[kinds, R] twice."""
        return self._demands("worker"), self._demands("server")

    def most(self) -> tuple[Ints, Ints]:
        """Return the most workers and servers of each kind; no servers where it takes none."""
        workers = np.array([kind.most_workers for kind in self.kinds])
        return workers, np.array([kind.most_servers if kind.server else 0 for kind in self.kinds])

    def _demands(self, what: str) -> Floats:
        table = [[getattr(kind, what).get(name, 0.0) for name in self.capacity] for kind in self.kinds]
        return np.array(table, np.float64)
