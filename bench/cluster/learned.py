"""The learned policy beside fair sharing and Optimus, on held-out traces of simulated clusters.

    python -m bench.cluster.learned [--seeds 3] [--slots 800] [--traces 64] [--runs learned permuted …]

A run trains a policy for each seed: warmed up on `Fair`, then improved, at the rates of arrival that it is
judged at. The table has mean completion times divided by those of `Fair`, trace by trace, with 95 %
intervals, on traces that no training and no choice of a policy has seen. `optimus` has the exact model of
speeds, and gives away whatever helps; `gain` is `MarginalGain` as it is by default, with the exact model too;
`online` is the same with speeds that it learns from scratch on each trace. `guarded` is the
learned policy where shadows have proved it better, on traces of their own, and `Fair` elsewhere.

Runs beside `learned`: `permuted` has rewards of other clusters and slots, a control that can learn nothing;
`warmed` is not improved; `no-warm-up`, `no-smoothing`, `no-exploration` and `no-replay` leave out a part
each. The cost is processor time of training, on one core.

`--package FILE` trains the network of the package instead: it imitates `MarginalGain` with known speeds on
two families of drawn jobs, then improves on the first one for `--slots` slots. No public trace, none of the
six kinds of the simulator, and no held-out seed is used.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bench import kit
from onlineauto.cluster import ClusterPolicy, Fair, MarginalGain
from onlineauto.cluster.learned import Improving, Learned, WarmUp
from onlineauto.cluster.learned.training import imitate, improve_policy, joined, teacher_decisions
from onlineauto.cluster.simulator import JobKind, Workload, compare, draw_traces, record
from onlineauto.cluster.simulator.simulation import mean_ratio, run

RATES = (0.3, 0.5, 0.8, 1.2)
HELD_OUT = 5_000_000
"""The first seed of held-out traces."""
RUNS: dict[str, dict[str, Any]] = {
    "learned": {},
    "permuted": {"permuted": True},
    "warmed": {"slots": 0},
    "no-warm-up": {},
    "no-smoothing": {},
    "no-exploration": {"explore": 0.0},
    "no-replay": {"replay": 0},
}
"""What is different in the training of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One policy at one rate: mean completion time beside that of `Fair`, its interval, and times."""

    run: str
    seed: int
    rate: float
    ratio: float
    low: float
    high: float
    mean: float
    late: float
    finished: float
    seconds: float = 0.0


def trained(name: str, seed: int, *, slots: int, save: str = "") -> tuple[Learned, float]:
    """Return a policy, and the processor time of its training."""
    begin = time.process_time()
    workload = Workload()
    if name == "no-warm-up":
        policy = Learned.untrained(seed=seed)
    else:
        warm = WarmUp(smoothing=0.0) if name == "no-smoothing" else WarmUp()
        policy = Learned.warm_up(workload, settings=warm, seed=seed)
    changes: dict[str, Any] = {"slots": slots, **RUNS[name]}
    settings = Improving(**changes)
    if settings.slots:
        policy = policy.improve(workload, settings=settings, seed=seed)
    if save:
        policy.save(Path(save) / f"{name}-{seed}.npz")
    return policy.copy(workload.speeds()), time.process_time() - begin


def package(*, seed: int, slots: int) -> Learned:
    """Return the network of the package. Its kinds are drawn with the seeds 100 to 115, and 300."""
    small, large = drawn_kinds(range(100, 116)), large_jobs(300)
    settings = WarmUp(traces=12, steps=2000)
    decisions = joined(
        teacher_decisions(workload, MarginalGain(workload.speeds()), settings, seed=seed)
        for workload in (replace(small, places=24), large)
    )
    return improve_policy(
        imitate(decisions, settings, seed=seed), small, Improving(slots=slots, check=200), seed=seed
    )


def drawn_kinds(seeds: range) -> Workload:
    """Return a workload of six drawn kinds for each seed; a quarter of them scale almost without limit."""
    from bench.cluster.default import other

    workloads = [other(seed, scalable=seed % 4 == 3) for seed in seeds]
    kinds = [
        replace(kind, name=f"{seed}-{kind.name}")
        for seed, workload in zip(seeds, workloads, strict=True)
        for kind in workload.kinds
    ]
    return Workload(kinds=tuple(kinds))


def large_jobs(seed: int) -> Workload:
    """Return 48 drawn kinds whose fastest numbers of workers are between 4 and 64, on 64 processors."""
    draw = np.random.default_rng([78, seed])
    kinds = []
    for number in range(48):
        fastest, serial = float(np.exp(draw.uniform(np.log(4), np.log(64)))), float(draw.uniform(0.01, 0.2))
        slowness = np.array([1 - serial, serial, 0.0, (1 - serial) / fastest**2, 0.0])
        kinds.append(
            JobKind(
                name=f"large-{number}",
                coefficients=tuple(slowness / slowness.sum()),
                work=float(np.exp(draw.uniform(np.log(3), np.log(60)))),
                worker={"CPU": 1.0},
                most_workers=int(np.exp(draw.uniform(np.log(2), np.log(64)))),
            )
        )
    return Workload(kinds=tuple(kinds), capacity={"CPU": 64.0}, places=24, rate=0.8)


def measured(
    policies: dict[str, ClusterPolicy], rate: float, traces: int, *, seed: int = -1, seconds: float = 0.0
) -> list[Row]:
    """Return a row for each policy on held-out traces of one rate."""
    drawn = draw_traces(Workload(rate=rate), range(HELD_OUT, HELD_OUT + traces))
    rows = compare({"fair": Fair(), **policies}, drawn, by="fair")
    return [
        Row(run=row.pop("name"), seed=seed, rate=rate, seconds=seconds, **row)
        for row in map(asdict, rows)
        if row["name"] != "fair" or seed < 0
    ]


def online(rate: float, traces: int) -> Row:
    """Return the row of marginal gain that learns speeds from scratch on each trace."""
    seeds = range(HELD_OUT, HELD_OUT + traces)
    workload = Workload(rate=rate)
    fair = run(Fair(), draw_traces(workload, seeds)).mean
    times = [
        list(record(MarginalGain(), draw_traces(workload, [seed]), learns=True).completion_times().values())
        for seed in seeds
    ]
    ratio, low, high = mean_ratio(np.mean(times, 1), fair)
    late = float(np.quantile(times, 0.95))
    return Row(
        run="online", seed=-1, rate=rate, ratio=ratio, low=low, high=high,
        mean=float(np.mean(times)), late=late, finished=1.0,
    )  # fmt: skip


def _known(traces: int, few: int) -> list[Row]:
    rows = []
    for rate in RATES:
        speeds = Workload().speeds()
        known: dict[str, ClusterPolicy] = {
            "optimus": MarginalGain(speeds, least=0, power=None),
            "gain": MarginalGain(speeds),
        }
        rows += [*measured(known, rate, traces), *([online(rate, few)] if few else [])]
    return rows


def _learned(name: str, seed: int, *, slots: int, traces: int, save: str) -> list[Row]:
    policy, seconds = trained(name, seed, slots=slots, save=save)
    rows = []
    for rate in RATES:
        policies: dict[str, ClusterPolicy] = {name: policy}
        if name == "learned":
            guarded = policy.guarded(by=Fair())
            guarded.judge(replace(Workload(), rate=rate))
            policies["guarded"] = guarded
        rows += measured(policies, rate, traces, seed=seed, seconds=seconds)
    return rows


def main(words: Sequence[str]) -> None:
    """Train, measure, print."""
    options = kit.parser(
        __doc__,
        seeds=3,
        slots=800,
        traces=64,
        online=kit.Option(16, "traces on which speeds are learnt; 0 for none"),
        runs=kit.Option(["learned"], choices=sorted(RUNS)),
        save=kit.Option("", "folder for the policies"),
        package=kit.Option("", "file for the network of the package"),
        json=Path,
    ).parse_args(words)
    if options.package:
        package(seed=0, slots=options.slots).save(options.package)
        return
    rows = kit.printed(_known(options.traces, options.online))
    settings = {"slots": options.slots, "traces": options.traces, "save": options.save}
    runs = ((name, seed) for name in options.runs for seed in range(options.seeds))
    rows += kit.printed(row for name, seed in runs for row in _learned(name, seed, **settings))
    kit.write_json(options.json, rows)


if __name__ == "__main__":
    main(sys.argv[1:])
