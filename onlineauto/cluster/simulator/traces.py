"""``Traces``: the jobs of simulated clusters and their arrivals, drawn from seeds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.cluster.policies.situation import Floats, Ints
    from onlineauto.cluster.simulator.workload import Workload

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
    arrival, kind, work, noise = (np.stack(each) for each in zip(*drawn, strict=True))
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
    mean = np.array([each.work for each in workload.kinds])[kind]
    spread = workload.spread
    work = mean * np.exp(spread * draw.standard_normal(jobs) - spread**2 / 2)
    arrival = np.floor(np.array(times) - times[0]).astype(np.int64)
    return arrival, kind, np.maximum(work, 1e-3), draw_noise(draw, jobs, workload.noise)
