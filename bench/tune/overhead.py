"""Microseconds of processor time for a suggestion and a result, beside the peers' figures.

    python -m bench.tune.overhead [--jobs 3000]

Six numbers, levels 1 to 81, one worker. `study` is `Study.ask` and `Study.tell` in memory.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import process_time

import numpy as np

from bench import kit
from onlineauto.tune import SCHEDULERS, SEARCHERS, Float, Scheduler, Setting, Space, Study
from onlineauto.tune.schedulers.dehb import Dehb

SPACE = Space({f"x{each}": Float(0, 1) for each in range(6)})

CONTENDERS: dict[str, Callable[[], Scheduler]] = {**SCHEDULERS, "dehb, slots": lambda: Dehb("slots")}

BARS = {"hyperband": (60, 12), "dehb": (250, 20), "dehb, slots": (250, 20)}
"""Most microseconds for a suggestion and a result."""

PEERS = (
    ("Syne Tune 0.14.2, synchronous Hyperband", 58, 11),
    ("Syne Tune 0.14.2, DEHB", 265, 16),
    ("Syne Tune 0.14.2, ASHA by promotion", 184, 42),
    ("automl DEHB 0.1.2, ask and tell", 840, 25),
)


@dataclass(frozen=True, slots=True)
class Overhead:
    """Mean microseconds of processor time."""

    suggest: float
    result: float


def overhead(make: Callable[[], Scheduler], jobs: int) -> Overhead:
    """Measure a scheduler with random configs."""
    scheduler, searcher = make(), SEARCHERS["random"]()
    searcher.begin(SPACE, seed=0)
    scheduler.begin(Setting(space=SPACE))
    losses = np.random.default_rng(0).random(jobs).tolist()
    suggesting, receiving, done = 0.0, 0.0, 0
    for loss in losses:
        before = process_time()
        job = scheduler.suggest(searcher)
        between = process_time()
        if job is None:
            break
        scheduler.on_result(job.trial, job.resource, loss)
        receiving += process_time() - between
        suggesting += between - before
        done += 1
    return Overhead(suggesting / done * 1e6, receiving / done * 1e6)


def study_overhead(jobs: int) -> Overhead:
    """Measure a study in memory."""
    study = Study(SPACE, searcher="random")
    asking, telling = 0.0, 0.0
    for loss in np.random.default_rng(0).random(jobs).tolist():
        before = process_time()
        job = study.ask()
        between = process_time()
        assert job is not None
        study.tell(job, loss)
        telling += process_time() - between
        asking += between - before
    return Overhead(asking / jobs * 1e6, telling / jobs * 1e6)


def tpe_overhead(trials: int, asked: int = 100) -> float:
    """Return the median microseconds of a suggestion of TPE after `trials` trials."""
    searcher = SEARCHERS["tpe"]()
    searcher.begin(SPACE, seed=0)
    times = []
    for loss in np.random.default_rng(0).random(trials + asked).tolist():
        before = process_time()
        config = searcher.ask()
        times.append(process_time() - before)
        assert config is not None
        searcher.on_result(config, 1, loss)
    return float(np.median(times[-asked:])) * 1e6


def main(words: Sequence[str] | None = None) -> int:
    """Print a table, and return 1 if a bar is missed."""
    jobs = kit.parser(__doc__, jobs=3000).parse_args(words).jobs
    print("| | suggest µs | result µs | bars |")
    missed = False
    for who, make in CONTENDERS.items():
        found = overhead(make, jobs)
        bars = BARS.get(who)
        missed |= bars is not None and (found.suggest > bars[0] or found.result > bars[1])
        print(f"| {who} | {found.suggest:.1f} | {found.result:.1f} | {bars or ''} |", flush=True)
    found = study_overhead(jobs)
    print(f"| study | {found.suggest:.1f} | {found.result:.1f} | |")
    for trials in (200, 600, 1000):
        print(f"| TPE at {trials:,} trials | {tpe_overhead(trials):.0f} | | 2000 |")
    for name, suggest, result in PEERS:
        print(f"| {name} | {suggest} | {result} | |")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
