"""Regret at an equal budget, beside the peers' figures.

    python -m bench.tune.regret [--seeds 40] [--workers 1] [--only dehb] [--json FILE]

A job costs its resource, so a trial that is resumed pays for all again, as in the peers' runs. The budget is
200 times the highest level. Regret is the true value of the config with the best loss at the highest level
that was seen. All tuners get the same noise for the same seed. With several workers, jobs end in the order in
which they would if each took as long as it costs.
"""

from __future__ import annotations

import heapq
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench import kit
from bench.tune.functions import FUNCTIONS
from onlineauto.tune.schedulers import SCHEDULERS, Scheduler, Setting, Suggestion
from onlineauto.tune.schedulers.dehb import Dehb
from onlineauto.tune.schedulers.hyperband import Hyperband
from onlineauto.tune.searchers import SEARCHERS

CONTENDERS: dict[str, tuple[Callable[[], Scheduler], str]] = {
    "random search at full level": (SCHEDULERS["fifo"], "random"),
    "Hyperband, random": (Hyperband, "random"),
    "Hyperband, random, hpbandster's sizes": (lambda: Hyperband("hpbandster"), "random"),
    "ASHA, random": (SCHEDULERS["asha"], "random"),
    "DEHB": (Dehb, "random"),
    "DEHB, slots": (lambda: Dehb("slots"), "random"),
    "Hyperband, TPE: the default": (Hyperband, "tpe"),
}
"""Our schedulers and the searchers at their base rungs."""

BARS = {
    ("Hyperband, random", 1): (0.64, 0.195),
    ("DEHB", 1): (0.365, 0.101),
    ("DEHB", 4): (0.42, 0.107),
    ("Hyperband, TPE: the default", 1): (0.085, 0.0155),
}
"""Bounds by contender and number of workers, for each function."""

PEERS = (
    ("random search at full level (20 seeds)", 1, 1.117, 0.240),
    ("Syne Tune 0.14.2, synchronous Hyperband (20)", 1, 0.629, 0.191),
    ("Syne Tune 0.14.2, ASHA by promotion (20)", 1, 0.476, 0.180),
    ("Syne Tune 0.14.2, DEHB (20)", 1, 0.422, 0.130),
    ("automl DEHB 0.1.2 (60)", 1, 0.337, 0.098),
    ("Optuna 5.0, TPE and HyperbandPruner (10)", 1, 0.057, 0.075),
    ("Syne Tune 0.14.2, synchronous Hyperband (20)", 4, 0.640, 0.191),
    ("Syne Tune 0.14.2, DEHB (20)", 4, 0.488, 0.125),
    ("automl DEHB 0.1.2 (20)", 4, 0.377, 0.101),
)
"""What was measured of the peers on the same functions: name, workers, and the regret at the end."""


@dataclass(frozen=True, slots=True)
class Row:
    """The regrets of one contender on one function."""

    who: str
    function: str
    workers: int
    seeds: int
    quarter: float
    end: float
    error: float


def regret(who: str, function: str, seed: int, workers: int = 1) -> tuple[float, float]:
    """Return the regret after a quarter of the budget, and at its end."""
    made, searching = CONTENDERS[who]
    scheduler, searcher, problem = made(), SEARCHERS[searching](), FUNCTIONS[function]
    searcher.begin(problem.space, seed=seed)
    ladder = {"min_resource": problem.min_resource, "max_resource": problem.max_resource}
    scheduler.begin(Setting(space=problem.space, seed=seed, **ladder))
    noise = np.random.default_rng(seed)
    running: list[tuple[float, int, Suggestion]] = []
    spent, clock, number, quarter = 0, 0.0, 0, float("nan")
    best: tuple[int, float] = (0, 0.0)
    incumbent = 1.0
    while True:
        while len(running) < workers:
            job = scheduler.suggest(searcher)
            assert job is not None  # there is no limit
            number += 1
            heapq.heappush(running, (clock + job.resource, number, job))
        clock, _, job = heapq.heappop(running)
        spent += job.resource
        if spent > problem.budget:
            return quarter, incumbent
        loss = problem.loss(job.config, job.resource, noise)
        scheduler.on_result(job.trial, job.resource, loss)
        searcher.on_result(job.config, job.resource, loss)
        if (job.resource, -loss) > best:
            best, incumbent = (job.resource, -loss), problem.regret(job.config)
        if np.isnan(quarter) and spent >= problem.budget / 4:
            quarter = incumbent


def measured(who: str, function: str, seeds: Iterable[int], workers: int = 1) -> Row:
    """Return the mean regrets of a contender, and the standard error of the last."""
    found = np.array([regret(who, function, seed, workers) for seed in seeds])
    quarter, end = found.mean(0).tolist()
    error = float(found[:, 1].std(ddof=1) / np.sqrt(len(found)))
    return Row(who, function, workers, len(found), quarter, end, error)


def main(words: Sequence[str] | None = None) -> int:
    """Print a table, and return 1 if a bar is missed."""
    asked = kit.parser(
        __doc__, seeds=40, workers=1, only=kit.Option("", "a part of the contender's name"), json=Path
    ).parse_args(words)
    rows: list[Row] = []
    missed = False
    heads = " | ".join(f"{name} at a quarter, at the end" for name in FUNCTIONS)
    print(f"| {'contender':45} | {heads} | bars |")
    for who in CONTENDERS:
        if asked.only.lower() not in who.lower():
            continue
        new = [measured(who, function, range(asked.seeds), asked.workers) for function in FUNCTIONS]
        rows += new
        bars = BARS.get((who, asked.workers))
        missed |= bars is not None and any(row.end > bar for row, bar in zip(new, bars, strict=True))
        cells = " | ".join(f"{row.quarter:.3f} | {row.end:.4f} ± {row.error:.4f}" for row in new)
        print(f"| {who:45} | {cells} | {'' if bars is None else f'{bars[0]} / {bars[1]}'} |", flush=True)
    for who, workers, *ends in PEERS:
        if workers == asked.workers:
            print(f"| {who:45} | | {ends[0]} | | {ends[1]} | |")
    kit.write_json(asked.json, rows)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
