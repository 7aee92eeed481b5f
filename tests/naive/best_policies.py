"""Which policies are proved to be worse than another, from the rows of a log, one by one."""

from __future__ import annotations

from itertools import permutations

from tests.naive.evaluation import lower_mean


def lower_difference(
    weights: list[tuple[float, float]],
    rewards: list[float],
    *,
    reward_range: tuple[float, float],
    floor: float,
    alpha: float,
) -> float:
    """Return a lower bound on how much more the first of two policies earns than the second."""
    low, high = reward_range
    xs, squares, earned = [], 0.0, 0.0
    for (one, other), reward in zip(weights, rewards, strict=True):
        centre = earned / squares if squares else (low + high) / 2
        xs.append((one - other) * (reward - centre))
        squares += (one - other) ** 2
        earned += (one - other) ** 2 * reward
    bounds = [(high - low) / floor] * len(xs)
    return lower_mean(xs, [0.0] * len(xs), bounds, alpha=alpha)


def best_policies(
    weights: dict[str, list[float]],
    rewards: list[float],
    *,
    reward_range: tuple[float, float],
    floor: float,
    alpha: float,
) -> list[str]:
    """Return the policies that no other is proved to be better than."""
    pairs = [*permutations(weights, 2)]
    worse = set()
    for one, other in pairs:
        both = [*zip(weights[one], weights[other], strict=True)]
        level = alpha / len(pairs)
        if lower_difference(both, rewards, reward_range=reward_range, floor=floor, alpha=level) > 0:
            worse.add(other)
    return [name for name in weights if name not in worse]
