"""``GpuCluster`` and ``GpuJob``: nodes with GPUs of several kinds, and the jobs that run on them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from onlineauto.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onlineauto.cluster.gpus.application import GpuApplication, Placement

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

    @classmethod
    def parse(cls, text: str) -> GpuCluster:
        """Return the cluster of a text such as ``rtx=3x8``: three nodes of eight GPUs of the kind ``rtx``.

        Raises
        ------
        OptionError
            The text has another form.
        """
        nodes = {}
        for each in text.split(","):
            match = re.fullmatch(r"([^=\s]+)=([1-9]\d*)x([1-9]\d*)", each.strip())
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
        return (*parts, *(size * each for each in range(1, many + 1)))

    def placement(self, kind: str, gpus: int) -> Placement:
        """Return the placement of GPUs on as few nodes as possible."""
        size = self.nodes[kind][1]
        full, rest = divmod(gpus, size)
        return (size,) * full + ((rest,) if rest else ())


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

    def rate(self, cluster: GpuCluster, kind: str, gpus: int, batch: int | None = None) -> float:
        """Return the work per second in the current epoch on GPUs of a kind, on as few nodes as possible."""
        return float(self.application.rates(kind, cluster.placement(kind, gpus), batch)[self.epoch])

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
