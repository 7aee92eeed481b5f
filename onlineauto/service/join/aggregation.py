"""Aggregations: the reward of a decision, if it came in parts."""

from __future__ import annotations

from typing import Final

AGGREGATIONS: Final = ("first", "last", "sum", "mean", "min", "max")
"""Names of the aggregations. Only with ``first`` is a reward final before the wait of its decision ends."""


def add_reward(how: str, count: int, value: float, reward: float) -> float:
    """Return the running value of `count` rewards, `value`, updated by one more reward.

    >>> add_reward("max", 0, 0.0, -3.0), add_reward("mean", 1, 2.0, 4.0)
    (-3.0, 6.0)
    """
    if count == 0 or how == "last":
        return reward
    if how == "first":
        return value
    if how in ("sum", "mean"):
        return value + reward
    return min(value, reward) if how == "min" else max(value, reward)


def final_reward(how: str, count: int, value: float) -> float:
    """Return the reward of a decision from its running value.

    >>> final_reward("mean", 2, 6.0), final_reward("sum", 2, 6.0)
    (3.0, 6.0)
    """
    return value / count if how == "mean" else value
