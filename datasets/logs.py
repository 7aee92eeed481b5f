"""Turning full-information data into what a bandit would have logged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["Log", "epsilon_greedy", "uniform"]

_SEED = 0
_EPSILON = 0.2
_KNOWN = 0.1


@dataclass(frozen=True)
class Log:
    """What the logging policy did.

    Parameters
    ----------
    actions : int64[events]
        The action it took, counted from 0.
    probabilities : float64[events]
        The probability with which it took that action.
    """

    actions: NDArray[np.int64]
    probabilities: NDArray[np.float64]


def uniform(events: int, *, actions: int) -> Log:
    """Take every action with the same probability.

    Examples
    --------
    >>> uniform(5, actions=10).actions.tolist()
    [8, 6, 5, 2, 3]
    """
    draws = np.random.default_rng(_SEED)
    return Log(draws.integers(0, actions, events), np.full(events, 1 / actions))


def epsilon_greedy(keys: Sequence[str], best: NDArray[np.int64], *, actions: int) -> Log:
    """Take, with probability 0.8, the action of a weak rule, and otherwise any action.

    The rule looks at one key of the event. It is told the best action of one event in ten, drawn at random,
    and takes the action that was best most often under this key so far (in a tie the first of them; under a
    new key action 0).

    Parameters
    ----------
    keys : sequence of str
        What the rule sees of each event.
    best : int64[events]
        The action with the highest reward.
    actions : int
        How many actions there are.

    Examples
    --------
    >>> log = epsilon_greedy(["x"] * 6, np.array([2, 2, 2, 1, 1, 1]), actions=4)
    >>> log.actions.tolist(), log.probabilities.round(2).tolist()
    ([0, 0, 0, 2, 1, 0], [0.85, 0.85, 0.85, 0.85, 0.85, 0.05])
    """
    draws = np.random.default_rng(_SEED)
    told = draws.random(len(keys)) < _KNOWN
    counts: dict[str, NDArray[np.int64]] = {}
    rule = np.zeros(len(keys), dtype=np.int64)
    for event, key in enumerate(keys):
        count = counts.setdefault(key, np.zeros(actions, dtype=np.int64))
        rule[event] = count.argmax()
        count[best[event]] += told[event]
    policy = np.full((len(keys), actions), _EPSILON / actions)
    policy[np.arange(len(keys)), rule] += 1 - _EPSILON
    taken = (draws.random(len(keys))[:, np.newaxis] > policy.cumsum(axis=1)).sum(axis=1)
    return Log(taken, policy[np.arange(len(keys)), taken])
