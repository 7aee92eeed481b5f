"""The champion test on 45 pairs of fixed configs, trained side by side on real logs: what is found, how soon.

    python -m bench.champion.real_pairs [--data DIR] [--json FILE]

A challenger is better if its true reward over the log is higher. Tests, all of the level 0.0125: VW's two
robust intervals; the paired test with the mean reward as baseline, and with the champion's predictions
("predicted"); and the paired test of squared errors on the logged actions ("loss"), the one that the search
uses. Of that one nothing is asked: who predicts costs better need not choose better.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from bench.champion.pair_tests import TESTS, Side
from bench.quality.logs import FOLDER, BanditLog, head, load, write
from bench.quality.runs import LEARNER, Config, best_products, context_by_action
from onlineauto import Workspace

LOGS = (
    *(f"{name}-u" for name in ("penbased", "surveys", "flights", "planted", "diamonds")),
    *(f"{name}-e" for name in ("penbased", "surveys", "flights", "diamonds")),
)
"""The logs."""

_ONE = {"penbased": "aZ", "surveys": "hZ", "flights": "tZ", "planted": "eZ", "diamonds": "cZ"}
_PAIRS = (("q::", "ctxZ"), ("q::", "best"), ("ctxZ", "best"), ("none", "one"), ("ctxZ", "q::"))
_GOAL = 28


@dataclass(frozen=True, slots=True)
class Pair:
    """A champion and a challenger on a log."""

    log: str
    champion: str
    challenger: str
    rewards: tuple[float, float]  # true ones of both
    events: dict[str, int | None]  # after how many each test says that the challenger is better

    @property
    def better(self) -> bool:
        """Whether it is."""
        return self.rewards[1] > self.rewards[0]


def _configs(log: BanditLog) -> dict[str, Config]:
    return {
        "none": {},
        "one": {"quadratic": [_ONE[log.set]]},
        "q::": {"quadratic": "::"},
        "ctxZ": context_by_action(log),
        "best": best_products(log),
    }


def _side(log: BanditLog, path: Path, config: Config) -> Side:
    """Learn a log; costs as they were predicted before each event was learnt."""
    learner = {"cb_adf": True, "bit_precision": LEARNER["bit_precision"]}
    parts = [outcomes for _, outcomes in Workspace(**learner, **config).stream(path)]
    order = np.concatenate([part.action for part in parts]).reshape(log.rewards.shape)
    ranked = np.concatenate([part.score for part in parts]).reshape(log.rewards.shape)
    costs = np.empty(log.rewards.shape)
    np.put_along_axis(costs, order.astype(np.int64), ranked.astype(np.float64), axis=1)
    return Side(greedy=order[:, 0].astype(np.int64), costs=costs)


def pairs(log: BanditLog) -> list[Pair]:
    """The five pairs on a log."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "log.txt")
        write(log, path)
        sides = {name: _side(log, path, config) for name, config in _configs(log).items()}
    rows = np.arange(len(log.events))
    rewards = {name: float(log.rewards[rows, side.greedy].mean()) for name, side in sides.items()}
    found = []
    for champion, challenger in _PAIRS:
        events = {name: test(log, sides[challenger], sides[champion]) for name, test in TESTS.items()}
        both = rewards[champion], rewards[challenger]
        name = _ONE[log.set] if challenger == "one" else challenger
        found.append(Pair(log.name, champion, name, both, events))
    return found


def _promoted(table: Iterable[Pair], test: str) -> int:
    return sum(pair.events[test] is not None for pair in table)


def _fewer(table: list[Pair], test: str) -> float:
    """How many times fewer events than VW's test takes, where both find what is better; the median."""
    ratios = [
        vw / ours
        for pair in table
        if pair.better and (vw := pair.events["VW"]) is not None and (ours := pair.events[test]) is not None
    ]
    return float(np.median(ratios)) if ratios else float("nan")


def _print_pair(pair: Pair) -> None:
    cells = "".join(f"{'never' if n is None else format(n, ','):>11}" for n in pair.events.values())
    name = f"{pair.champion} -> {pair.challenger}"
    sign = "better" if pair.better else ""
    print(
        f"{pair.log:12}{name:14}{pair.rewards[0]:8.4f}{pair.rewards[1]:8.4f}  {sign:7}{cells}",
        flush=True,
    )


def _print_sums(table: list[Pair]) -> None:
    better = [pair for pair in table if pair.better]
    others = [pair for pair in table if not pair.better]
    for name, group in (("better", better), ("others", others)):
        counts = "".join(f"{_promoted(group, test):>11}" for test in TESTS)
        print(f"{f'promoted of the {len(group)} {name}':51}{counts}")
    print(f"{'times fewer events than VW, median':51}" + "".join(f"{_fewer(table, t):11.1f}" for t in TESTS))


def verdicts(table: list[Pair]) -> dict[str, bool]:
    """What is asked of our tests of rewards, and whether it holds."""
    found = {}
    for test in ("paired", "predicted"):
        better = _promoted((pair for pair in table if pair.better), test)
        found[f"{test}: at least {_GOAL} of the better"] = better >= _GOAL
        others = _promoted((pair for pair in table if not pair.better), test)
        found[f"{test}: none of the others"] = others == 0
    return found


def _options(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=FOLDER, help="where cb-NAME-u.txt.gz and .npz are")
    parser.add_argument("--logs", nargs="+", choices=LOGS, default=list(LOGS))
    parser.add_argument("--events", type=int, help="of each log; all by default")
    parser.add_argument("--json", type=Path)
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Print the table; write JSON if asked to; fail if what is asked does not hold."""
    options = _options(argv)
    print(f"{'log':12}{'pair':14}{'rewards':>16}{'':9}" + "".join(f"{name:>11}" for name in TESTS))
    table: list[Pair] = []
    for name in options.logs:
        log = load(name, options.data)
        for pair in pairs(head(log, options.events or len(log.events))):
            table.append(pair)
            _print_pair(pair)
    _print_sums(table)
    verdict = verdicts(table)
    for name, holds in verdict.items():
        print(f"{'yes' if holds else 'NO':4}{name}")
    if options.json:
        document = {"pairs": [asdict(pair) for pair in table], "verdicts": verdict}
        options.json.write_text(json.dumps(document, indent=2) + "\n")
    return 0 if all(verdict.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
