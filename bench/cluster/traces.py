"""All policies on the public traces of Sia: completion times, makespan and GPU hours.

    python -m bench.cluster.traces FOLDER [--half odd|even|all] [--most N] [--policies …] [--sets …]

FOLDER is `sia-simulator` of a copy of the repository siasosp23/artifacts. Workloads with odd numbers choose
the defaults of the package; the even ones are held out. Each line is one policy on one set: mean and 99 %
quantile of the completion times of all jobs, mean makespan, GPU hours and restarts of a job, processor time,
and, where `fair` is the first of `--policies`, the mean over workloads of the mean completion time divided by
that of `fair`, with half its 95 % interval. A policy decides every 60 s, or every 360 s if it does not weigh
restarts against gains, as published.

`learned` has two lines: the network of the package, and, with `--trained FILE`, one that was trained on
synthetic jobs with the speeds of these applications (`--train FILE` writes it).
`measured` is the default of `Cluster`: it knows no speeds and learns them from the rounds. `--gpus rtx=8x8`
replays on a cluster with one kind of GPU; a `Cluster` has one kind of workers.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from bench import kit
from onlineauto.cluster.gpus import (
    GPU_POLICIES,
    SIA_CLUSTER,
    GpuCluster,
    GpuJob,
    KindBlind,
    ReplayResult,
    read_trace,
    replay,
    totals,
)
from onlineauto.cluster.history import Record
from onlineauto.cluster.learned import Learned
from onlineauto.cluster.policies import ClusterPolicy, Situation
from onlineauto.cluster.policies.gpu_policy import fit_speeds
from onlineauto.cluster.policies.marginal_gain import UntilKnown
from onlineauto.cluster.policies.policy import Watch
from onlineauto.cluster.simulator import JobKind, Workload
from onlineauto.cluster.simulator.simulation import mean_ratio
from onlineauto.cluster.simulator.trace_files import read_sia_application

SETS = ("philly", "saturn", "newtrace")
HALVES = {"odd": (1,), "even": (0,), "all": (0, 1)}
_APPLICATIONS = ("bert", "cifar10", "deepspeech2", "imagenet", "yolov3")
_INTERVAL = KindBlind.interval


class Measured(KindBlind):
    """A policy that observes each round, like on a real cluster, instead of knowing all speeds."""

    def begin(self) -> None:
        """Forget the last round."""
        super().begin()
        self._last: dict[str, tuple[float, int, int]] = {}

    def decide(self, situation: Situation, *, watch: Watch | None = None) -> Situation:
        """Observe the last round, then decide."""
        assert situation.gpus is not None
        jobs = situation.gpus.jobs
        self._policy.observe(
            [self._record(job, situation.gpus.now) for job in jobs if job.name in self._last]
        )
        decided = super().decide(situation, watch=watch)
        assert decided.gpus is not None
        sizes = {name: size for name, (_, size) in decided.gpus.allocation.items()}
        self._last = {
            job.name: (job.done, sizes[job.name], job.restarts) for job in jobs if job.name in sizes
        }
        return decided

    def _record(self, job: GpuJob, now: float) -> Record:
        before, gpus, restarts = self._last[job.name]
        lost = min(job.application.restart / self.interval, 1) if job.restarts > restarts else 0.0
        return Record(
            slot=int(now / self.interval),
            job=job.name,
            kind=job.speed_kind,
            arrived=job.arrival / self.interval,
            workers=gpus,
            servers=0,
            before=before,
            done=job.done,
            total=float(job.application.progress[-1]),
            used=1 - lost,
            worker={"GPU": 1},
        )


def run_set(
    folder: Path,
    name: str,
    half: str,
    most: int,
    make: Callable[[], ClusterPolicy],
    *,
    gpus: str = "",
) -> list[ReplayResult]:
    """Replay a half of a set, or its first `most` workloads, under a policy."""
    paths = (folder / "workloads" / name).glob("workload-*.csv")
    numbered = sorted((int(re.sub(r"\D", "", path.stem)), path) for path in paths)
    results = []
    for _, path in [item for item in numbered if item[0] % 2 in HALVES[half]][:most]:
        jobs, cluster = read_trace(path, folder / "traces")
        results.append(replay(make(), jobs, GpuCluster.parse(gpus) if gpus else cluster))
    return results


def _row(
    policy: str, results: Sequence[ReplayResult], fair: Sequence[ReplayResult], seconds: float
) -> dict[str, object]:
    """Return the row of a policy; times are in hours, and `of fair` only if the first policy is `fair`."""
    mean = totals(results)
    row = {"policy": policy, "mean": mean.mean, "p99": mean.late, "makespan": mean.makespan}
    row |= {"GPU hours": mean.gpu_hours, "restarts": mean.restarts, "CPU s": seconds}
    if not fair:
        return row
    ratio, low, _ = mean_ratio(
        *(np.array([result.times.mean() for result in many]) for many in (results, fair))
    )
    return row | {"of fair": ratio, "half of the interval": ratio - low}


def workload_of(folder: Path, *, rate: float = 1.5) -> Workload:
    """Return synthetic jobs with the speeds of Sia's applications on its 64 GPUs, taken as one kind."""
    kinds = []
    for name in _APPLICATIONS:
        application = read_sia_application(folder / "traces" / name)
        kinds.append(
            JobKind(
                name=name,
                coefficients=tuple(fit_speeds(application, SIA_CLUSTER, _INTERVAL)),
                work=float(application.progress[-1]),
                worker={"GPU": 1},
            )
        )
    return Workload(kinds=tuple(kinds), capacity={"GPU": 64.0}, places=24, rate=rate, interference=0.0)


def train(folder: Path, *, slots: int) -> Learned:
    """Return a policy that was trained on `workload_of`."""
    workload = workload_of(folder)
    return Learned.warm_up(workload).improve(workload, slots=slots)


POLICIES: dict[str, Callable[[], ClusterPolicy]] = {**GPU_POLICIES, "measured": partial(Measured, UntilKnown)}
"""Policies by name."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table for each set."""
    parser = kit.parser(
        __doc__,
        half=kit.Option("even", choices=HALVES),
        sets=kit.Option(SETS, choices=SETS),
        policies=kit.Option([*POLICIES], choices=POLICIES),
        gpus=kit.Option("", "nodes of another cluster, such as rtx=8x8"),
        most=kit.Option(100, "workloads of a set"),
        train=str,
        slots=400,
        trained=str,
    )
    parser.add_argument("folder", type=Path)
    options = parser.parse_args(arguments)
    if options.train:
        train(options.folder, slots=options.slots).save(options.train)
        return 0
    policies = {name: POLICIES[name] for name in options.policies}
    if options.trained:
        policies["learned-trained"] = partial(KindBlind, partial(Learned.load, options.trained))
    for name in options.sets:
        print(f"{name}, {options.half} workloads")
        fair: list[ReplayResult] = []
        rows = []
        for policy, make in policies.items():
            begin = time.process_time()
            results = run_set(options.folder, name, options.half, options.most, make, gpus=options.gpus)
            fair = fair or (results if policy == "fair" else [])
            rows.append(_row(policy, results, fair, time.process_time() - begin))
        kit.printed(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
