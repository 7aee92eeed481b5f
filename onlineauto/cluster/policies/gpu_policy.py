"""Kinds of GPUs in a situation, the jobs that run on them, and policies that choose kinds: ``GpuPolicy``."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from onlineauto.cluster.policies.policy import ClusterPolicy
from onlineauto.cluster.policies.situation import Row, Situation
from onlineauto.cluster.policies.speeds import Modelled, Speeds, fit_slowness, terms
from onlineauto.errors import OptionError, PackageError, install_hint

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from onlineauto.cluster.policies.policy import Watch
    from onlineauto.cluster.policies.situation import Floats, Ints

Placement = tuple[int, ...]
"""GPUs of a job on each of its nodes."""
MOST_GPUS = 100_000
"""Maximum number of GPUs of a kind."""
Allocation = dict[str, tuple[str, int]]
"""The kind and the number of GPUs of each job that runs, by the name of the job."""


@dataclass(frozen=True, slots=True)
class GpuCluster:
    """A cluster of nodes; each node has GPUs of one kind.

    Attributes
    ----------
    nodes : mapping
        For each kind of GPU, the number of nodes and the number of GPUs of a node.

    Examples
    --------
    >>> cluster = GpuCluster.parse("rtx=3x8,a100=2x8")
    >>> cluster.sizes("a100"), cluster.placement("rtx", 12), cluster.capacity
    ((1, 2, 4, 8, 16), (8, 4), {'rtx': 24, 'a100': 16})
    """

    nodes: Mapping[str, tuple[int, int]]
    # Results of `GpuJob.sizes`, which policies need for each job in each round.
    job_sizes: dict[tuple[Hashable, ...], tuple[int, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @classmethod
    def parse(cls, text: str) -> GpuCluster:
        """Return the cluster of a text such as ``rtx=3x8``: three nodes of eight GPUs of the kind ``rtx``.

        Raises
        ------
        OptionError
            The text has another form.
        """
        nodes = {}
        for part in text.split(","):
            match = re.fullmatch(r"([^=\s]+)=([1-9]\d*)x([1-9]\d*)", part.strip())
            if match is None:
                raise OptionError(f"gpus = {text!r}: give KIND=NODESxGPUS, such as rtx=3x8,a100=2x8")
            if match[1] in nodes:
                raise OptionError(
                    f"gpus = {text!r}: {match[1]} is there twice; nodes of one kind have one size"
                )
            nodes[match[1]] = (int(match[2]), int(match[3]))
            if nodes[match[1]][0] * nodes[match[1]][1] > MOST_GPUS:
                raise OptionError(f"gpus = {text!r}: a kind has at most {MOST_GPUS:,} GPUs")
        return cls(nodes)

    @property
    def capacity(self) -> dict[str, int]:
        """The number of GPUs of each kind."""
        return {kind: many * size for kind, (many, size) in self.nodes.items()}

    def sizes(self, kind: str) -> tuple[int, ...]:
        """Return the numbers of GPUs that pack without gaps: powers of 2 in a node, then whole nodes."""
        many, size = self.nodes[kind]
        parts = [2**power for power in range(size.bit_length()) if 2**power < size]
        return (*parts, *(size * count for count in range(1, many + 1)))

    def placement(self, kind: str, gpus: int) -> Placement:
        """Return the placement of GPUs on as few nodes as possible."""
        size = self.nodes[kind][1]
        full, rest = divmod(gpus, size)
        return (size,) * full + ((rest,) if rest else ())


class GpuApplication(ABC):
    """A program that jobs run on GPUs. Its work is divided into epochs, in which its speed is constant.

    Attributes
    ----------
    name : str
        Jobs of one application have the same speeds, on the same number of GPUs.
    progress : float64[E + 1]
        The work that is done at the beginning of each epoch, and at the end.
    restart : float
        Seconds that a job loses when its GPUs change.
    is_elastic : bool
        False if a job runs only on the number of GPUs that it asks for.
    """

    name: str
    progress: Floats
    restart: float
    is_elastic: bool

    @abstractmethod
    def rates(self, kind: str, placement: Placement, batch: int | None = None) -> Floats:
        """Return the work per second in each epoch: float64[E]; 0 if the placement is impossible.

        Parameters
        ----------
        kind : str
            The kind of the GPUs.
        placement : tuple of int
            GPUs on each node.
        batch : int, optional
            A fixed batch size; by default the batch size with the highest goodput in each epoch.
        """

    @abstractmethod
    def steps(self, kind: str, placement: Placement, batch: int | None = None) -> float:
        """Return the training steps per second with a fixed batch size; 0 if the placement is impossible."""

    @abstractmethod
    def most(self, kind: str) -> int:
        """Return the maximum number of GPUs of a kind; 0 if the application does not run on this kind."""


@dataclass(slots=True, kw_only=True)
class GpuJob:
    """A job and its state during a replay.

    Attributes
    ----------
    name : str
        Name of the job.
    application : GpuApplication
        The program that it runs.
    arrival : float
        Seconds after the beginning of the trace.
    asked, batch : int
        The number of GPUs and the batch size that its user asked for.
    kind, gpus : str, tuple of int
        The kind and the numbers of its GPUs; empty if it waits.
    placement : tuple of int
        GPUs on each node.
    epoch, done : int, float
        The current epoch and the work that is done.
    delay : float
        Seconds until a restart is over.
    restarts, largest : int
        Number of restarts, and the largest number of GPUs so far.
    used : float
        GPU seconds so far.
    end : float
        Time of completion; NaN before.
    """

    name: str
    application: GpuApplication
    arrival: float
    asked: int = 1
    batch: int | None = None
    kind: str = ""
    gpus: tuple[int, ...] = ()
    placement: Placement = ()
    epoch: int = 0
    done: float = 0.0
    delay: float = 0.0
    restarts: int = -1
    largest: int = 0
    used: float = 0.0
    end: float = field(default=float("nan"))

    @property
    def speed_kind(self) -> str:
        """The application, and the number of GPUs if it is fixed: jobs that have both in common are alike."""
        name = self.application.name
        return name if self.application.is_elastic else f"{name} on {self.asked}"

    def rate(self, cluster: GpuCluster, kind: str, gpus: int, batch: int | None = None) -> float:
        """Return the work per second in the current epoch on GPUs of a kind, on as few nodes as possible."""
        return float(self.application.rates(kind, cluster.placement(kind, gpus), batch)[self.epoch])

    def sizes(self, cluster: GpuCluster, kind: str, *, rigid: bool = False) -> tuple[int, ...]:
        """Return the numbers of GPUs of a kind on which the job runs: only the one it asks for if `rigid`."""
        key = (self.application, self.epoch, kind, rigid, self.asked, self.batch)
        if key not in cluster.job_sizes:
            most = min(self.application.most(kind), cluster.capacity[kind])
            sizes = cluster.sizes(kind) if self.application.is_elastic and not rigid else (self.asked,)
            batch = self.batch if rigid else None
            cluster.job_sizes[key] = tuple(
                many for many in sizes if many <= most and self.rate(cluster, kind, many, batch) > 0
            )
        return cluster.job_sizes[key]

    def work_left(self) -> float:
        """Return the work until the job ends."""
        return float(self.application.progress[-1] - self.done)

    def advance(self, now: float, seconds: float, batch: int | None) -> None:
        """Run for some seconds from `now` on the current GPUs."""
        lost = min(self.delay, seconds)
        self.delay -= lost
        self.used += lost * len(self.gpus)
        now, seconds = now + lost, seconds - lost
        rates = self.application.rates(self.kind, self.placement, batch)
        progress = self.application.progress
        while seconds > 0 and self.end != self.end:
            time = (
                (progress[self.epoch + 1] - self.done) / rates[self.epoch] if rates[self.epoch] else math.inf
            )
            if time > seconds:
                self.done += rates[self.epoch] * seconds
                time = seconds
            else:
                self.epoch += 1
                self.done = float(progress[self.epoch])
                if self.epoch == len(progress) - 1:
                    self.end = now + time
            self.used += time * len(self.gpus)
            now, seconds = now + time, seconds - time

    def move(self, kind: str, gpus: tuple[int, ...], placement: Placement) -> None:
        """Take other GPUs; the job restarts if the kind or the placement changes."""
        if gpus and (kind, placement) != (self.kind, self.placement):
            self.delay = self.application.restart
            self.restarts += 1
            self.largest = max(self.largest, len(gpus))
        self.kind, self.gpus, self.placement = kind, gpus, placement


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuRound:
    """A decision about a cluster with several kinds of GPUs; the arrays of its `Situation` have one kind."""

    cluster: GpuCluster
    jobs: Sequence[GpuJob]  # The job of each row, with the GPUs that it has before the decision.
    now: float  # Seconds after the beginning of the trace.
    allocation: Allocation = field(default_factory=dict)  # The decision.

    def situation_for(self, policy: ClusterPolicy) -> Situation:
        """Return the situation before the decision, with a row for each job if the policy scores rows.

        An elastic job has one GPU for each worker; any other job has all its GPUs for one worker.
        """
        rows = [
            Row(
                kind=job.speed_kind,
                age=(self.now - job.arrival) / policy.interval,
                done=job.done,
                remaining=job.work_left(),
                worker={"GPU": 1 if job.application.is_elastic else job.asked},
                server={},
                most_workers=self._most_workers(job, asks=policy.asks),
            )
            for job in (self.jobs if policy.scores_rows else ())
        ]
        capacity = {"GPU": float(sum(self.cluster.capacity.values()))}
        return replace(Situation.of(rows, capacity, places=len(rows)), gpus=self)

    def _most_workers(self, job: GpuJob, *, asks: bool) -> int:
        """Return the maximum number of workers: what the job asks for, or twice its largest number so far."""
        if not job.application.is_elastic:
            return 1
        most = max(max(job.sizes(self.cluster, kind), default=0) for kind in self.cluster.nodes)
        return min(most, job.asked if asks else max(1, 2 * job.largest))

    def choose_kinds(self, workers: Ints) -> Allocation:
        """Return GPUs for numbers of workers, int64[J], as `KindBlind` describes."""
        free = self.cluster.capacity
        allocation: Allocation = {}
        for row in np.argsort(-workers, kind="stable"):
            job = self.jobs[row]
            most = int(workers[row]) * (1 if job.application.is_elastic else job.asked)
            configs = [
                (many, kind == job.kind and many == len(job.gpus), job.rate(self.cluster, kind, many), kind)
                for kind in self.cluster.nodes
                for many in job.sizes(self.cluster, kind)
                if many <= min(most, free[kind])
            ]
            if configs:
                many, *_, kind = max(configs)
                allocation[job.name] = (kind, many)
                free[kind] -= many
        return allocation


def scipy_module(name: str) -> Any:
    """Return a module of SciPy."""
    try:
        return import_module(f"scipy.{name}")
    except ImportError as error:
        raise PackageError(f"clusters of GPUs need SciPy: {install_hint('tune')}") from error


class GpuPolicy(ClusterPolicy):
    """A policy that chooses the kind and the number of the GPUs of each job, in place of scores.

    It has the attributes of a `ClusterPolicy`; its interval is 60 seconds by default.
    """

    interval = 60.0
    scores_rows = False

    def sizes(self, job: GpuJob, cluster: GpuCluster, kind: str) -> list[int]:
        """Return the numbers of GPUs of a kind on which a job runs."""
        return [*job.sizes(cluster, kind, rigid=self.is_rigid)]

    @abstractmethod
    def allocate(self, jobs: Sequence[GpuJob], cluster: GpuCluster, now: float) -> Allocation:
        """Return the kind and the number of GPUs of each job that runs until the next decision.

        Parameters
        ----------
        jobs : sequence of GpuJob
            Unfinished jobs in the order of their arrival, with the GPUs that they have now.
        cluster : GpuCluster
            The nodes.
        now : float
            Seconds after the beginning of the trace.
        """

    def decide(self, situation: Situation, *, watch: Watch | None = None) -> Situation:  # noqa: ARG002
        """Return the situation with the allocation of `allocate`."""
        if situation.gpus is None:
            raise OptionError(f"the policy {self.name} chooses kinds of GPUs, and this cluster has none")
        gpus = situation.gpus
        return situation.with_kinds(self.allocate(gpus.jobs, gpus.cluster, gpus.now))

    def score(self, situation: Situation) -> Floats:
        """Return no scores, because `allocate` decides."""
        raise NotImplementedError


class KindBlind(GpuPolicy):
    """Let a `ClusterPolicy` decide how many GPUs each job has, as if all GPUs were of one kind.

    The numbers are rounded down to sizes that pack. The largest jobs are placed first, each on the kind on
    which it is fastest among those with enough free GPUs; a job that fits nowhere gets fewer GPUs.

    Parameters
    ----------
    make : callable
        Returns the policy. A policy with `Speeds` gets the mean speeds of all kinds.
    asks : bool
        True if a job gets at most the number of GPUs that its user asked for.
    """

    name: ClassVar[str] = "kind-blind"
    interval = 360.0
    scores_rows = True

    def __init__(self, make: Callable[[], ClusterPolicy], *, asks: bool = False) -> None:
        self._make, self.asks = make, asks
        self.begin()

    def begin(self) -> None:
        """Forget the speeds of applications."""
        self._policy = self._make()
        self._coefficients: dict[str, list[float]] = {}

    def allocate(self, jobs: Sequence[GpuJob], cluster: GpuCluster, now: float) -> Allocation:
        """Return the numbers of the policy, with kinds."""
        gpus = GpuRound(cluster=cluster, jobs=jobs, now=now)
        decided = self.decide(gpus.situation_for(self)).gpus
        return {} if decided is None else decided.allocation

    def decide(self, situation: Situation, *, watch: Watch | None = None) -> Situation:
        """Return the decision of the policy, after a fit of the speeds of new applications."""
        if situation.gpus is not None and isinstance(self._policy, Modelled):
            jobs, cluster = situation.gpus.jobs, situation.gpus.cluster
            new = {job.speed_kind: job for job in jobs if job.speed_kind not in self._coefficients}
            for kind, job in new.items():
                speeds = fit_speeds(job.application, cluster, self.interval, asked=job.asked)
                self._coefficients[kind] = speeds
            if new:
                self._policy.speeds = Speeds(self._coefficients)
        return self._policy.decide(situation, watch=watch)


def fit_speeds(
    application: GpuApplication, cluster: GpuCluster, interval: float, *, asked: int = 1
) -> list[float]:
    """Return five coefficients of the rounds that a unit of work takes; see `terms`.

    An application that is not elastic runs on `asked` GPUs only, and these are one worker.
    """
    points: dict[int, list[float]] = {}
    for kind in cluster.nodes:
        for many in cluster.sizes(kind) if application.is_elastic else (asked,):
            rate = float(application.rates(kind, cluster.placement(kind, many)).mean())
            if rate > 0:
                points.setdefault(many if application.is_elastic else 1, []).append(1 / (rate * interval))
    counts = np.array([*points], np.float64)
    times = np.array([np.mean(point) for point in points.values()])
    return [float(number) for number in fit_slowness(terms(counts, np.zeros_like(counts)), times)]
