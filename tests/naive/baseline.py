"""The member baseline the slow, obvious way: dictionaries of weights, on contexts of words."""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

__all__ = ["Baseline"]

UNSURE, KEEPS, LATEST, SURE = 0.3, 0.9995, 1000, 1e-7


class Baseline:
    """Weights of the context that all actions share, and weights of each action."""

    def __init__(self) -> None:
        self.weights: dict[Hashable, np.float32] = {}
        self.spread: dict[Hashable, np.float32] = {}
        self.seen: set[str] = set()
        self.mean = self.variance = self.error = 0.0
        self.events = 0

    @staticmethod
    def products(words: Sequence[str], action: str) -> list[Hashable]:
        """What has a weight: the constant, words and pairs of words; of the action the constant and words."""
        shared: Iterable[Hashable] = [(), *((word,) for word in words), *combinations(sorted(words), 2)]
        return [*shared, *(("of", action, *word) for word in [(), *((word,) for word in words)])]

    def score(self, words: Sequence[str], action: str) -> float | None:
        """The cost of an action; None if it was never learnt."""
        if action not in self.seen:
            return None
        return self.mean + sum(float(self.weights.get(each, 0.0)) for each in self.products(words, action))

    def learn(self, words: Sequence[str], action: str, cost: float) -> None:
        products = self.products(words, action)
        self.events += 1
        self.seen.add(action)
        for each in products:
            self.weights.setdefault(each, np.float32(0))
            self.spread.setdefault(each, np.float32(UNSURE))
        noise = 1.0
        if self.variance > 0 and self.error > 0:
            noise = min(max(self.error / self.variance, 0.02), 1.0)
        error = cost - self.mean - sum(float(self.weights[each]) for each in products)
        total = noise + sum(float(self.spread[each]) for each in products)
        latest = min(self.events, LATEST)
        if math.isfinite(error):
            self.error += (error**2 - self.error) / latest
            for each in products:
                spread = float(self.spread[each])
                self.weights[each] = np.float32(float(self.weights[each]) + spread * error / total)
                less = (spread - spread * spread / total) / KEEPS
                self.spread[each] = np.float32(min(max(less, SURE), UNSURE))
        away = cost - self.mean
        self.mean += away / latest
        self.variance += (away * (cost - self.mean) - self.variance) / latest
