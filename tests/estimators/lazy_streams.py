"""Random streams for lazy comparisons of bounds, compared lazily and in full after each event."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlineauto.estimators.robust_kernels import (
    SIZE,
    Test,
    is_better,
    lower_bound,
    observe,
    upper_bound,
)
from onlineauto.jit import kernel

LOGS = ("greedy", "uniform", "heavy")
BETTER, WRONG = 3, 4
"""Entries of a tally, after those for each effort."""

_LEVELS = (0.05 / 2, 0.05 / 4, 0.05 / 16, 0.05, 0.5)
_EVENTS = 2500


class Shares(NamedTuple):
    """Shares of the comparisons by the work that they needed, and the number that were decided wrong."""

    by_means: float
    by_wealth: float
    in_full: float
    wrong: int


def draw(log: str, rng: np.random.Generator, events: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Importance weights, float64[events, 2], of a challenger's and a champion's actions, and rewards."""
    n_actions = int(rng.choice([2, 3, 10]))
    epsilon = float(rng.choice([0.02, 0.05, 0.2, 0.5]))
    champion_skill, challenger_skill = rng.random(2) if rng.random() < 0.5 else np.sort(rng.random(2))
    best = rng.integers(n_actions, size=events)
    champion = np.where(rng.random(events) < champion_skill, best, rng.integers(n_actions, size=events))
    other = np.where(rng.random(events) < challenger_skill, best, rng.integers(n_actions, size=events))
    challenger = np.where(rng.random(events) < rng.uniform(0, 0.95), champion, other)
    first = challenger if log == "heavy" else champion  # whose actions the logging policy prefers
    if log == "heavy":
        likely = np.minimum(1.0, 10.0 ** rng.uniform(-6, 1, events))
    else:
        likely = np.full(events, 1 / n_actions if log == "uniform" else 1 - epsilon + epsilon / n_actions)
    other = (first + rng.integers(1, n_actions, size=events)) % n_actions
    logged = np.where(rng.random(events) < likely, first, other)
    propensity = np.where(logged == first, likely, (1 - likely) / (n_actions - 1)).astype(np.float32)
    low, high = np.sort(rng.random(2)) if rng.random() < 0.5 else rng.uniform([0.0, 0.7], [0.3, 1.0])
    rewards = np.where(logged == best, high, low)
    if rng.random() < 0.5:
        rewards = (rng.random(events) < rewards).astype(np.float64)
    if rng.random() < 0.2:
        rewards = rewards * rng.choice([-1.0, 3.0]) + rng.choice([-0.5, 0.0, 0.5])  # not what it should be
    chosen = np.stack([challenger, champion], axis=1)
    weights = np.where(chosen == logged[:, None], 1 / propensity[:, None], 0)
    return weights.astype(np.float64), rewards.astype(np.float32).astype(np.float64)


@kernel
def compare(
    evidence: NDArray[np.float64],
    weights: NDArray[np.float64],
    rewards: NDArray[np.float64],
    lease: int,
    test: Test,
    tally: NDArray[np.int64],
) -> None:
    """Compare after every event; `evidence` is float64[2, 2, SIZE], the challenger's first."""
    for event in range(len(rewards)):
        if event % lease == 0:
            evidence[:] = 0.0
        observe(evidence[0], weights[event, 0], rewards[event])
        observe(evidence[1], weights[event, 1], rewards[event])
        better, effort = is_better(evidence[0], evidence[1], test)
        tally[effort] += 1
        if better != (lower_bound(evidence[0], test) > upper_bound(evidence[1], test)):
            tally[WRONG] += 1
        if better:
            tally[BETTER] += 1
            evidence[:] = 0.0


def measure(log: str, *, tol_x: float, checks: int, seed: int) -> Shares:
    """Compare `checks` times, on streams of 2500 events that differ in all that can differ."""
    rng = np.random.default_rng(seed)
    tally = np.zeros(5, np.int64)
    evidence = np.zeros((2, 2, SIZE))
    while (left := checks - int(tally[:BETTER].sum())) > 0:
        weights, rewards = draw(log, rng, min(left, _EVENTS))
        test = Test(np.float64(np.float32(rng.choice(_LEVELS))), np.float64(tol_x))
        compare(evidence, weights, rewards, int(rng.choice([10, 100, 1000, 4000])), test, tally)
    means, wealth, full = (tally[:BETTER] / checks).tolist()
    return Shares(means, wealth, full, int(tally[WRONG]))
