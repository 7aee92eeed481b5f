"""`tune_stream` beside the defaults and the best of 50 random configs, by progressive loss on real streams.

    python -m tests.bench.tune_stream [--seeds 10] [--streams reg-bikeshare] [--scheduler race] [--json FILE]

A cost is a number of events learnt, in streams. Fifty random configs that learn a whole stream cost 50;
`tune_stream` may spend a third of that, its last job included. Both choose from the same space, and the loss is the one that is
printed when a stream is learnt with the flags: the mean progressive loss of all its events. With bandits it
is an estimate of the mean cost by inverse propensities.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.tune.live import flags_of, tune_stream
from onlineauto.tune.live.budget import spent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["STREAMS", "Row", "main", "measured"]

DATASETS = Path(__file__).parents[2] / "datasets"
STREAMS = {
    "reg-bikeshare": "",
    "reg-diamonds": "",
    "reg-flights": "",
    "cb-penbased-u": "--cb_explore_adf",
    "cb-letter-u": "--cb_explore_adf",
    "cb-diamonds-u": "--cb_explore_adf",
    "cb-surveys-u": "--cb_explore_adf",
    "cb-flights-u": "--cb_explore_adf",
}
"""The committed streams, and the options with which they are learnt."""
RANDOM = 50


@dataclass(frozen=True, slots=True)
class Row:
    """One seed on one stream: losses of the defaults, of the best random config and of the tuned one."""

    stream: str
    seed: int
    defaults: float
    random: float
    tuned: float
    cost: float
    seconds_random: float
    seconds_tuned: float
    flags: str


def measured(stream: str, seed: int, *, scheduler: str = "race", most: int | None = None) -> Row:
    """Measure one seed on one stream."""
    path, base = DATASETS / f"{stream}.txt.gz", STREAMS[stream]
    begin = time.perf_counter()
    search = tune_stream(
        path, base, scheduler="fifo", searcher="random", max_trials=RANDOM + 1, max_examples=most, seed=seed
    )
    middle = time.perf_counter()
    events = search.trials[0].resource
    losses = [trial.value for trial in search.trials if trial.value is not None]
    study = tune_stream(
        path, base, scheduler=scheduler, budget=RANDOM * events // 3 - events, max_examples=most, seed=seed
    )
    end = time.perf_counter()
    best = study.best
    assert best is not None
    assert best.value is not None
    return Row(
        stream=stream,
        seed=seed,
        defaults=losses[0],
        random=min(losses[1:]),
        tuned=best.value,
        cost=spent(study) / events,
        seconds_random=middle - begin,
        seconds_tuned=end - middle,
        flags=flags_of(best.config, base),
    )


def _table(rows: Sequence[Row]) -> Iterable[str]:
    yield f"{'stream':<16}{'defaults':>10}{'random':>10}{'tuned':>10}{'wins':>8}{'cost':>7}{'seconds':>16}"
    for stream in dict.fromkeys(row.stream for row in rows):
        of = [row for row in rows if row.stream == stream]
        wins = sum(row.tuned <= row.random and row.tuned < row.defaults for row in of)
        mean = {name: np.mean([getattr(row, name) for row in of]) for name in ("defaults", "random", "tuned")}
        seconds = f"{np.mean([row.seconds_tuned for row in of]):.1f} / {np.mean([row.seconds_random for row in of]):.1f}"
        yield (
            f"{stream:<16}{mean['defaults']:>10.4f}{mean['random']:>10.4f}{mean['tuned']:>10.4f}"
            f"{wins:>4}/{len(of):<3}{max(row.cost for row in of):>7.1f}{seconds:>16}"
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--streams", nargs="*", default=list(STREAMS), choices=list(STREAMS))
    parser.add_argument("--scheduler", default="race")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(argv)
    rows = []
    for stream in given.streams:
        rows += [measured(stream, seed, scheduler=given.scheduler) for seed in range(given.seeds)]
        print(list(_table(rows))[-1], flush=True)
    print("\n".join(_table(rows)))
    if given.json:
        given.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
