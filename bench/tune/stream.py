"""`tune_stream` beside the defaults and the best of 50 random configs, by progressive loss on real streams.

    python -m bench.tune.stream [--seeds 10] [--streams reg-flights …] [--scheduler race] [--json FILE]

A cost is a number of events learnt, in streams. Fifty random configs that learn a whole stream cost 50;
`tune_stream` may spend a third of that, its last job included. Both choose from the same space. The loss is
the mean progressive loss of all events of the stream, as it is printed when the stream is learnt with these
flags; with bandits it is an estimate of the mean cost by inverse propensities.

Then each stream is tuned on its first third, while a model with the default flags serves it. The winner is
handed over to a search that goes on from that model: after how many events is it the champion?
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench import kit
from onlineauto import Workspace
from onlineauto.tune.live import flags_of, hand_over, tune_stream
from onlineauto.tune.live.flags import SEARCHED
from onlineauto.tune.live.tuning import used_resource
from onlineauto.workspace.options import REGISTRY
from onlineauto.workspace.run import Run
from onlineauto.workspace.warm_start import search_from

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
    """One seed on one stream.

    `defaults`, `random` and `tuned` are losses: of the default flags, of the best random config, and of the
    config that was found at `cost`. `champion` is the number of events after which the winner of the first
    third is the champion of a search; None if it never is.
    """

    stream: str
    seed: int
    defaults: float
    random: float
    tuned: float
    cost: float
    seconds_random: float
    seconds_tuned: float
    champion: int | None
    flags: str


def measured(stream: str, seed: int, *, scheduler: str = "race", most: int | None = None) -> Row:
    """Measure one seed on one stream, or on its first `most` events."""
    path, base = DATASETS / f"{stream}.txt.gz", STREAMS[stream]
    begin = time.perf_counter()
    search = tune_stream(
        path, base, scheduler="fifo", searcher="random", max_trials=RANDOM + 2, max_examples=most, seed=seed
    )
    middle = time.perf_counter()
    events = search.trials[0].resource
    defaults, _, *drawn = (trial.value for trial in search.trials)  # the second one has all interactions
    study = tune_stream(
        path, base, scheduler=scheduler, budget=RANDOM * events // 3 - events, max_examples=most, seed=seed
    )
    end = time.perf_counter()
    best = study.best
    assert best is not None
    assert best.value is not None
    assert defaults is not None
    return Row(
        stream=stream,
        seed=seed,
        defaults=defaults,
        random=min(value for value in drawn if value is not None),
        tuned=best.value,
        cost=used_resource(study) / events,
        seconds_random=middle - begin,
        seconds_tuned=end - middle,
        champion=handed_over(stream, seed, events // 3),
        flags=flags_of(best.config, base),
    )


def handed_over(stream: str, seed: int, events: int) -> int | None:
    """Return after how many more events the winner of the first events is the champion, None if never."""
    path, base = DATASETS / f"{stream}.txt.gz", STREAMS[stream]
    study = tune_stream(path, base, max_examples=events, seed=seed)
    serving = Workspace(configuration=REGISTRY.parse(base))
    run = Run(serving, path)
    run.step(events)
    search = search_from(serving, REGISTRY.parse(f"--automl 2 --search {','.join(SEARCHED)}"))
    winner = search.searching.live_configs.configs[hand_over(study, search)]
    rest = Run(search, path, stored={"position": run.position._asdict()})
    while rest.step(100):
        if search.searching.live_configs.configs[0] == winner:
            return rest.position.events - events
    return None


def _summary(rows: Sequence[Row]) -> dict[str, object]:
    """Return the row of the table about one stream: means over the seeds."""
    wins = sum(row.tuned <= row.random and row.tuned < row.defaults for row in rows)
    names = ("defaults", "random", "tuned", "seconds_random", "seconds_tuned")
    means = {name: float(np.mean([getattr(row, name) for row in rows])) for name in names}
    champions = sum(row.champion is not None for row in rows)
    cost = max(row.cost for row in rows)
    return {"stream": rows[0].stream, **means, "wins": wins, "cost": cost, "champion": champions}


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and print a table."""
    given = kit.parser(
        __doc__,
        seeds=10,
        streams=kit.Option(list(STREAMS), choices=list(STREAMS)),
        scheduler="race",
        json=Path,
    ).parse_args(argv)
    runs: list[Row] = []

    def summaries() -> Iterator[dict[str, object]]:
        for stream in given.streams:
            rows = [measured(stream, seed, scheduler=given.scheduler) for seed in range(given.seeds)]
            runs.extend(rows)
            yield _summary(rows)

    kit.printed(summaries())
    kit.write_json(given.json, runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
