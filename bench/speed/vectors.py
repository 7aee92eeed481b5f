"""Measure the time of one decision whose context is a vector, beside LinUCB in NumPy.

    python -m bench.speed.vectors [--numbers 64 384] [--actions 10] [--events 300] [--rounds 3]

Each event ranks the actions and learns the reward of the chosen one, which is linear in the vector. *array*
and *list* are `AutoML` with the vector as float32 array and as list, *4 numbers* is `AutoML` with four named
numbers instead, and *LinUCB* has an inverse matrix per action, float64, updated by Sherman-Morrison. All take
turns in one process and keep what they have learnt; the medians of CPU microseconds for an event are printed,
and the mean reward of all rounds but the first. BLAS has one thread.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # CPU time, not wall time, is compared

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench import kit
from onlineauto import AutoML

Vector = NDArray[np.float32]
Pair = Callable[[Vector, NDArray[np.float64]], float]
"""Ranks the actions for a vector, learns the reward of the chosen one, given those of all; returns it."""

_FEW = 4


class LinUCB:
    """Regularised regression per action with an upper confidence bound.

    Source: Li and others 2010, "A Contextual-Bandit Approach to Personalized News Article Recommendation",
    algorithm 1.
    """

    def __init__(self, n_actions: int, n_numbers: int, *, alpha: float = 0.5) -> None:
        self._inverse = np.tile(np.eye(n_numbers), (n_actions, 1, 1))
        self._b = np.zeros((n_actions, n_numbers))
        self._theta = np.zeros((n_actions, n_numbers))
        self._alpha = alpha

    def rank(self, vector: Vector) -> int:
        """Return the action of the largest bound."""
        x = vector.astype(np.float64)
        width = np.sqrt((self._inverse @ x) @ x)
        return int(np.argmax(self._theta @ x + self._alpha * width))

    def learn(self, vector: Vector, action: int, reward: float) -> None:
        """Update the inverse matrix and the weights of an action."""
        x = vector.astype(np.float64)
        inverse = self._inverse[action]
        product = inverse @ x
        inverse -= np.outer(product, product / (1 + x @ product))
        self._b[action] += reward * x
        self._theta[action] = inverse @ self._b[action]


def _linucb(n_actions: int, n_numbers: int) -> Pair:
    bandit = LinUCB(n_actions, n_numbers)

    def run(vector: Vector, rewards: NDArray[np.float64]) -> float:
        action = bandit.rank(vector)
        bandit.learn(vector, action, rewards[action])
        return float(rewards[action])

    return run


def _automl(n_actions: int, context_of: Callable[[Vector], dict[str, Any]]) -> Pair:
    bandit, actions = AutoML(), [{"arm": f"a{i}"} for i in range(n_actions)]

    def run(vector: Vector, rewards: NDArray[np.float64]) -> float:
        choice = bandit.rank(context_of(vector), actions)
        reward = float(rewards[choice.action])
        bandit.learn(choice, reward=reward)
        return reward

    return run


def _few(vector: Vector) -> dict[str, Any]:
    return {"x": {f"n{i}": float(vector[i]) for i in range(_FEW)}}


def pairs_of(n_actions: int, n_numbers: int) -> dict[str, Pair]:
    """Return the contenders by name."""
    return {
        "LinUCB": _linucb(n_actions, n_numbers),
        "array": _automl(n_actions, lambda vector: {"x": vector}),
        "list": _automl(n_actions, lambda vector: {"x": vector.tolist()}),
        f"{_FEW} numbers": _automl(n_actions, _few),
    }


def measure(n_numbers: int, *, n_actions: int, n_events: int, rounds: int) -> list[dict[str, Any]]:
    """Return a row per contender: median CPU microseconds of a pair, against LinUCB, and mean reward."""
    drawn = np.random.default_rng(n_numbers)
    weights = drawn.normal(size=(n_actions, n_numbers)) / np.sqrt(n_numbers)
    pairs = pairs_of(n_actions, n_numbers)

    def spend(name: str) -> tuple[float, float]:
        vectors = drawn.normal(size=(n_events, n_numbers)).astype(np.float32)
        rewards = vectors @ weights.T + 0.1 * drawn.normal(size=(n_events, n_actions))
        begin = time.process_time()
        earned = [pairs[name](vector, all_of) for vector, all_of in zip(vectors, rewards, strict=True)]
        return (time.process_time() - begin) / n_events * 1e6, mean(earned)

    spent = kit.samples(pairs, rounds, spend)
    middle = {name: median(microseconds for microseconds, _ in runs) for name, runs in spent.items()}
    return [
        {
            "numbers": n_numbers,
            "contender": name,
            "CPU µs": middle[name],
            "/ LinUCB": middle[name] / middle["LinUCB"],
            "reward": mean(reward for _, reward in spent[name]),
        }
        for name in pairs
    ]


def main(words: Sequence[str] | None = None) -> int:
    """Print the table, and write it to a file if asked to."""
    options = kit.parser(__doc__, numbers=[64, 384], actions=10, events=300, rounds=3, json=Path).parse_args(
        words
    )
    rows = kit.printed(
        row
        for n_numbers in options.numbers
        for row in measure(
            n_numbers, n_actions=options.actions, n_events=options.events, rounds=options.rounds
        )
    )
    kit.write_json(options.json, rows)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
