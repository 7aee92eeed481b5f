"""Tests of whether a challenger is better than the champion, over a log on which both have learnt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.quality.logs import BanditLog
from onlineauto.estimators import robust_kernels as robust
from onlineauto.estimators.paired import ChampionTest

_LEVEL = 0.0125  # what VW gives each of 4 live configs


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """What a config predicted of a log, each event before it was learnt."""

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
    """How much less the challenger lost on each logged action, predictions clipped to costs seen before."""
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
