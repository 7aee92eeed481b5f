"""The learned policy in a cluster that it has lived in, on the public traces of Sia, beside its own start.

    python -m bench.cluster.living FOLDER [--sets philly saturn] [--slots 100] [--seeds 0 1 2]

FOLDER is as for `bench.cluster.traces`. The clusters have 64 equal GPUs, and no policy knows any speeds at
first. For each seed, the packaged policy lives in workloads with odd numbers, in an order drawn by the seed,
for at least `--slots` slots. Then it continues on each workload with an even number. `frozen` is the packaged
policy on the same workloads; it observes speeds, and its weights do not change. `guarded` is the living
policy, or `Fair`, as the guard decides after the slots lived so far. Each row is one workload and seed:
completion times divided by those of `fair`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import fields, replace
from pathlib import Path

import numpy as np

from bench import kit
from onlineauto.cluster import ClusterPolicy, Fair, Situation
from onlineauto.cluster.gpus import GpuCluster, GpuJob, KindBlind, read_trace, replay
from onlineauto.cluster.history import Record
from onlineauto.cluster.learned import Guarded, Improving, Learned
from onlineauto.cluster.policies.policy import Watch

CLUSTER = GpuCluster.parse("rtx=8x8")
PLACES = 96


class Living(KindBlind):
    """A policy that observes each round of all jobs, like in a `Cluster`, and goes on in the next trace."""

    def __init__(self, policy: ClusterPolicy) -> None:
        self.observed, self.slots = policy, 0
        super().__init__(lambda: policy)

    def begin(self) -> None:
        """Go on with the same policy in another trace."""
        self._policy = self.observed
        self._last: list[tuple[GpuJob, float, int, int]] = []
        self._now = 0.0

    def decide(self, situation: Situation, *, watch: Watch | None = None) -> Situation:
        """Observe the last round, then decide."""
        gpus = situation.gpus
        assert gpus is not None
        if self._last:
            self._policy.observe([self._record(*row) for row in self._last])
            self.slots += 1
        decided = self._policy.decide(situation, watch=watch)
        self._policy.see(replace(_padded(situation), gpus=None))
        assert decided.gpus is not None
        sizes = {name: size for name, (_, size) in decided.gpus.allocation.items()}
        self._last = [(job, job.done, sizes.get(job.name, 0), job.restarts) for job in gpus.jobs]
        self._now = gpus.now
        return decided

    def _record(self, job: GpuJob, before: float, size: int, restarts: int) -> Record:
        lost = min(job.application.restart / self.interval, 1) if job.restarts > restarts else 0.0
        ended = 1.0 if np.isnan(job.end) else min((job.end - self._now) / self.interval, 1.0)
        elastic = job.application.is_elastic
        return Record(
            slot=self.slots,
            job=job.name,
            kind=job.speed_kind,
            arrived=job.arrival / self.interval,
            workers=size if elastic else int(size > 0),
            servers=0,
            before=before,
            done=job.done,
            total=float(job.application.progress[-1]),
            used=max(ended - lost, 1e-3),
            worker={"GPU": 1.0 if elastic else float(job.asked)},
            most_workers=64,
        )


def _padded(situation: Situation) -> Situation:
    """Return a situation with `PLACES` rows: all decisions of a buffer have the same number of rows."""
    more = PLACES - situation.places
    arrays = {field.name: getattr(situation, field.name) for field in fields(situation)}
    for name, array in arrays.items():
        if isinstance(array, np.ndarray) and array.ndim > 1 and name not in ("capacity", "free"):
            arrays[name] = np.pad(array, [(0, 0), (0, more)] + [(0, 0)] * (array.ndim - 2))
    return Situation(**arrays)


def _jobs(folder: Path, name: str, number: int) -> list[GpuJob]:
    return read_trace(folder / "workloads" / name / f"workload-{number}.csv", folder / "traces")[0]


def _mean(policy: KindBlind, jobs: Sequence[GpuJob]) -> float:
    return float(replay(policy, jobs, CLUSTER).times.mean())


def main(words: Sequence[str] | None = None) -> int:
    """Live, measure, print."""
    parser = kit.parser(
        __doc__,
        sets=["philly", "saturn"],
        slots=100,
        seeds=[0, 1, 2],
        rate=kit.Option(3e-3, "learning rate of the policy"),
        odd=[1, 3, 5, 7],
        even=[2, 4, 6, 8],
        start=kit.Option("", "file of the policy to start from; by default the packaged one"),
    )
    parser.add_argument("folder", type=Path)
    options = parser.parse_args(words)

    def start() -> Learned:
        return Learned.load(options.start) if options.start else Learned.load()

    rows: list[dict[str, float]] = []
    for name in options.sets:
        held_out = {number: _jobs(options.folder, name, number) for number in options.even}
        fair = {number: _mean(KindBlind(Fair), jobs) for number, jobs in held_out.items()}
        frozen = {number: _mean(Living(start()), jobs) for number, jobs in held_out.items()}
        for seed in options.seeds:
            begin = time.process_time()
            policy = start().live(Improving(rate=options.rate), seed=seed)
            guarded = Guarded(policy, Fair(), every=sys.maxsize)
            guarded.trusted = True  # The policy decides where it lives: the guard judges once, at the end.
            living = Living(guarded)
            for number in np.random.default_rng(seed).permutation(options.odd):
                if living.slots < options.slots:
                    replay(living, _jobs(options.folder, name, int(number)), CLUSTER)
            lived = {number: _mean(Living(deepcopy(policy)), jobs) for number, jobs in held_out.items()}
            table = [
                {"frozen": frozen[number] / fair[number], "living": lived[number] / fair[number]}
                for number in held_out
            ]
            kit.printed({"set": name, "seed": seed, **row} for row in table)
            trusted = guarded.judge()
            for row in table:  # An untrusted policy learns too, but `Fair` decides.
                row["guarded"] = row["living"] if trusted else 1.0
            rows += table
            print(f"{living.slots} slots lived; trusted: {trusted}; {guarded.found}; ", end="")
            print(f"{time.process_time() - begin:.0f} s of processor time", flush=True)
    for what, by in (("living", "frozen"), ("guarded", "frozen"), ("guarded", "fair")):
        ratios = np.array([row[what] / row.get(by, 1.0) for row in rows])
        print(f"{what} / {by}: {ratios.mean():.3f}, from {ratios.min():.3f} to {ratios.max():.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
