"""The champion test on 45 pairs of fixed configs, trained side by side on real logs: what is found, how soon.

    python -m bench.champion.real_pairs [--data DIR] [--json FILE]

A challenger is better if its true reward over the log is higher. Tests, all of the level 0.0125: VW's two
robust intervals; the paired test with the mean reward as baseline, and with the champion's predictions
("predicted"); and the paired test of squared errors on the logged actions ("loss"), the one that the search
uses. Of that one nothing is asked: who predicts costs better need not choose better.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench import kit
from bench.quality.logs import BanditLog, head, load, write
from bench.quality.runs import LEARNER, Config, best_products, context_by_action
from datasets.convert import FOLDER
from onlineauto import Workspace
from onlineauto.estimators import robust_kernels as robust
from onlineauto.estimators.paired import ChampionTest

LOGS = (
    *(f"{name}-u" for name in ("penbased", "surveys", "flights", "planted", "diamonds")),
    *(f"{name}-e" for name in ("penbased", "surveys", "flights", "diamonds")),
)
"""The logs."""

_ONE = {"penbased": "aZ", "surveys": "hZ", "flights": "tZ", "planted": "eZ", "diamonds": "cZ"}
_PAIRS = (("q::", "ctxZ"), ("q::", "best"), ("ctxZ", "best"), ("none", "one"), ("ctxZ", "q::"))
_GOAL = 28

_LEVEL = 0.0125  # what VW gives each of 4 live configs


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """The predictions of a config on a log, each event before it was learnt."""

    greedy: NDArray[np.int64]  # action with the lowest cost
    costs: NDArray[np.float64]  # [events, actions]


def _champion_test(floor: float) -> ChampionTest:
    return ChampionTest(alpha=2 * _LEVEL, k=1, floor=floor)  # alpha / (k (k + 1)) is the level


def _by_intervals(log: BanditLog, challenger: Side, champion: Side) -> int | None:
    evidence = np.zeros((2, 2, robust.SIZE))
    test = robust.Test(np.float64(_LEVEL), np.float64(1e-6))
    rows = zip(log.actions, log.probabilities, log.observed, challenger.greedy, champion.greedy, strict=True)
    for number, (action, p, reward, g1, g0) in enumerate(rows, start=1):
        robust.observe(evidence[0], 1.0 / p if action == g1 else 0.0, reward)
        robust.observe(evidence[1], 1.0 / p if action == g0 else 0.0, reward)
        if robust.is_better(evidence[0], evidence[1], test)[0]:
            return number
    return None


def _by_rewards(log: BanditLog, challenger: Side, champion: Side, *, predicted: bool) -> int | None:
    test = _champion_test(float(log.probabilities.min()))
    rows = np.arange(len(log.events))
    guesses = (-champion.costs[rows, side.greedy] for side in (challenger, champion))
    columns = (challenger.greedy, champion.greedy, log.actions, log.probabilities, log.observed, *guesses)
    events = zip(*(column.tolist() for column in columns), strict=True)
    for number, (g1, g0, action, p, reward, q1, q0) in enumerate(events, start=1):
        guess = (q1, q0) if predicted else None
        test.update(g1, g0, logged=action, p=p, reward=reward, predicted=guess)
        if test.better:
            return number
    return None


def differences(log: BanditLog, challenger: Side, champion: Side) -> NDArray[np.float64]:
    """Return the loss of the champion minus that of the challenger on each logged action."""
    costs, rows = -log.observed, np.arange(len(log.events))
    low, high = np.minimum.accumulate(costs)[:-1], np.maximum.accumulate(costs)[:-1]
    losses = [
        np.square(np.clip(side.costs[rows, log.actions][1:], low, high) - costs[1:])
        for side in (champion, challenger)
    ]
    return np.append(0.0, losses[0] - losses[1])


def _by_losses(log: BanditLog, challenger: Side, champion: Side) -> int | None:
    test = _champion_test(0.0)
    for number, d in enumerate(differences(log, challenger, champion).tolist(), start=1):
        test.update_difference(d)
        if test.better:
            return number
    return None


TESTS: dict[str, Callable[[BanditLog, Side, Side], int | None]] = {
    "VW": _by_intervals,
    "paired": lambda log, one, two: _by_rewards(log, one, two, predicted=False),
    "predicted": lambda log, one, two: _by_rewards(log, one, two, predicted=True),
    "loss": _by_losses,
}
"""After how many events each test says that the challenger, given first, is better; None if never."""


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
        """Return whether the challenger is better."""
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


def pairs(log: BanditLog) -> Iterator[Pair]:
    """Yield the five pairs on a log."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "log.txt")
        write(log, path)
        sides = {name: _side(log, path, config) for name, config in _configs(log).items()}
    rows = np.arange(len(log.events))
    rewards = {name: float(log.rewards[rows, side.greedy].mean()) for name, side in sides.items()}
    for champion, challenger in _PAIRS:
        events = {name: test(log, sides[challenger], sides[champion]) for name, test in TESTS.items()}
        both = rewards[champion], rewards[challenger]
        name = _ONE[log.set] if challenger == "one" else challenger
        yield Pair(log.name, champion, name, both, events)


def _promoted(table: Iterable[Pair], test: str) -> int:
    return sum(pair.events[test] is not None for pair in table)


def _fewer(table: list[Pair], test: str) -> float:
    """Return the median ratio of VW's events to ours, on pairs where both tests find the better config."""
    ratios = [
        vw / ours
        for pair in table
        if pair.better and (vw := pair.events["VW"]) is not None and (ours := pair.events[test]) is not None
    ]
    return float(np.median(ratios)) if ratios else float("nan")


def _print_sums(table: list[Pair]) -> None:
    better = [pair for pair in table if pair.better]
    others = [pair for pair in table if not pair.better]
    for name, group in (("better", better), ("others", others)):
        counts = "".join(f"{_promoted(group, test):>11}" for test in TESTS)
        print(f"{f'promoted of the {len(group)} {name}':51}{counts}")
    print(f"{'times fewer events than VW, median':51}" + "".join(f"{_fewer(table, t):11.1f}" for t in TESTS))


def verdicts(table: list[Pair]) -> dict[str, bool]:
    """Return each target of our tests of rewards, and whether it is met."""
    found = {}
    for test in ("paired", "predicted"):
        better = _promoted((pair for pair in table if pair.better), test)
        found[f"{test}: at least {_GOAL} of the better"] = better >= _GOAL
        others = _promoted((pair for pair in table if not pair.better), test)
        found[f"{test}: none of the others"] = others == 0
    return found


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    return kit.parser(
        __doc__,
        data=kit.Option(FOLDER, "where cb-NAME-u.txt.gz and .npz are"),
        logs=kit.Option(list(LOGS), choices=LOGS),
        events=kit.Option(int, "of each log; all by default"),
        json=Path,
    ).parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; write JSON if asked to; fail if what is asked does not hold."""
    options = _options(argv)
    logs = (load(name, options.data) for name in options.logs)
    table = kit.printed(pair for log in logs for pair in pairs(head(log, options.events or len(log.events))))
    _print_sums(table)
    verdict = verdicts(table)
    document = {"pairs": table, "verdicts": verdict}
    kit.write_json(options.json, document)
    return kit.print_verdicts(verdict)


if __name__ == "__main__":
    sys.exit(main())
