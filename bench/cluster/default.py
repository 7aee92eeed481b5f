"""The policies that a `Cluster` may have by default, on simulated jobs, each without any knowledge at first.

    python -m bench.cluster.default [--traces 16] [--workloads own …] [--rates 0.3 0.5 1.2]

The table has mean completion times divided by those of `Fair`, trace by trace, with 95 % intervals and the
standard deviation of a trace, on held-out traces. The workloads are:

`own`: the jobs of the simulator, on which the network of the package was trained.
`renamed`: the same under names that the network does not know. `units`: and 1,000 units of work for each.
`other`: six kinds with speed curves, demands and units that are drawn for each trace. The fastest numbers of
workers are between 3 and 24. `scalable`: the same, and almost all of the work of a job is parallel.

`marginal-gain` and `guarded` learn from each slot, as they do in a `Cluster`; `known` is marginal gain with
the exact speeds; `equal` is the default without preference for short jobs.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bench import kit
from bench.cluster.learned import HELD_OUT
from onlineauto.cluster import ClusterPolicy, Fair, MarginalGain
from onlineauto.cluster.learned import Learned
from onlineauto.cluster.policies.marginal_gain import UntilKnown
from onlineauto.cluster.simulator import JobKind, Workload, draw_traces, record
from onlineauto.cluster.simulator.simulation import mean_ratio


def own(seed: int) -> Workload:
    """Return the workload of the simulator."""
    return Workload()


def renamed(seed: int, *, units: float = 1.0) -> Workload:
    """Return the workload of the simulator with other names of kinds and other units of work."""
    kinds = [
        replace(
            kind,
            name=f"kind-{number}",
            work=kind.work * units,
            coefficients=tuple(number / units for number in kind.coefficients),
        )
        for number, kind in enumerate(own(seed).kinds)
    ]
    return Workload(kinds=tuple(kinds))


def other(seed: int, *, scalable: bool = False) -> Workload:
    """Return six kinds with drawn speed curves; one bundle always does a job of mean size in 7.5 slots."""
    draw = np.random.default_rng([77, seed])
    kinds = []
    for number in range(6):
        takes_server = bool(draw.integers(2)) and not scalable
        fastest, serial = float(np.exp(draw.uniform(np.log(3), np.log(24)))), float(draw.uniform(0.02, 0.3))
        fastest, serial = (60.0, 0.02) if scalable else (fastest, serial)
        shared = 0.05 if takes_server else 0.0
        parallel = 1 - serial - shared
        growth = parallel / fastest**2
        units = float(10 ** draw.uniform(-1, 4))
        slowness = np.array([parallel, serial, shared, growth, 0.0])
        if takes_server:
            slowness[3:] = growth / 2
        kinds.append(
            JobKind(
                name=f"kind-{number}",
                coefficients=tuple(slowness / slowness.sum() / units),
                work=7.5 * units,
                worker={"CPU": 1, "memory": float(draw.uniform(0.5, 2.5))},
                server={"CPU": 1, "memory": 1} if takes_server else {},
            )
        )
    return Workload(kinds=tuple(kinds))


WORKLOADS: dict[str, Callable[[int], Workload]] = {
    "own": own,
    "renamed": renamed,
    "units": lambda seed: renamed(seed, units=1000.0),
    "other": other,
    "scalable": lambda seed: other(seed, scalable=True),
}
"""A workload for each seed of a trace."""


def _equal() -> UntilKnown:
    policy = UntilKnown()
    policy._gain.short_first = 0.0
    return policy


POLICIES: dict[str, Callable[[Workload], ClusterPolicy]] = {
    "known": lambda workload: MarginalGain(workload.speeds()),
    "marginal-gain": lambda _: UntilKnown(),
    "equal": lambda _: _equal(),
    "learned": lambda _: Learned.load(),
    "guarded": lambda _: Learned.load().guarded(),
}


def mean_time(policy: ClusterPolicy, workload: Workload, seed: int) -> float:
    """Return the mean completion time of the jobs of a trace; the policy observes each slot."""
    history = record(policy, draw_traces(workload, [seed]), learns=True)
    return float(np.mean(list(history.completion_times().values())))


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print."""
    options = kit.parser(
        __doc__,
        traces=16,
        seed=HELD_OUT,
        rates=[0.3, 0.5, 1.2],
        workloads=kit.Option([*WORKLOADS], choices=WORKLOADS),
        policies=kit.Option([*POLICIES], choices=POLICIES),
    ).parse_args(words)
    kit.printed(rows(options, range(options.seed, options.seed + options.traces)))
    return 0


def rows(options: Namespace, seeds: range) -> Iterator[dict[str, Any]]:
    for name in options.workloads:
        for rate in options.rates:
            workloads = [replace(WORKLOADS[name](seed), rate=rate) for seed in seeds]
            fair = np.array([mean_time(Fair(), *pair) for pair in zip(workloads, seeds, strict=True)])
            for policy in options.policies:
                make = POLICIES[policy]
                times = np.array(
                    [
                        mean_time(make(workload), workload, seed)
                        for workload, seed in zip(workloads, seeds, strict=True)
                    ]
                )
                ratio, low, high = mean_ratio(times, fair)
                deviation = float((times / fair).std(ddof=1)) if len(seeds) > 1 else 0.0
                row = {"workload": name, "rate": rate, "policy": policy, "ratio": ratio}
                yield row | {"low": low, "high": high, "deviation": deviation}


if __name__ == "__main__":
    sys.exit(main())
