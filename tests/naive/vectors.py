"""Vectors the slow, obvious way: lists of numbers, their means, and their principal components."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Features = Sequence[tuple[int, float]]

FEW, CAPACITY, MOST, LEAST = 48, 384, 4, 16
"""Longest vector that is no block; numbers and vectors that are known at most; least free capacity."""
FIRST, SUMMED, PROJECTED, ROUNDS = 32, 256, 16, 16
MEMORY = 16384
PROJECTION = 1 << 57
_GOLDEN = 0x9E3779B97F4A7C15


def split(features: Features) -> tuple[list[tuple[int, float]], list[list[tuple[int, float]]]]:
    """Separate the features with more than `FEW` consecutive hashes from all others."""
    runs: list[list[tuple[int, float]]] = []
    for hash_, x in features:
        if runs and hash_ == (runs[-1][-1][0] + 1) % 2**32:
            runs[-1].append((hash_, x))
        else:
            runs.append([(hash_, x)])
    return [each for run in runs if len(run) <= FEW for each in run], [run for run in runs if len(run) > FEW]


@dataclass
class Vector:
    """A known vector."""

    mean: NDArray[np.float64]
    variance: NDArray[np.float64]
    seen: int = 0

    def values(self, run: Features) -> NDArray[np.float64]:
        """Return the numbers of an event; those beyond the capacity are added, each with a sign."""
        size = len(self.mean)
        values = np.zeros(size)
        for i, (_, x) in enumerate(run):
            minus = i >= size and i * _GOLDEN % 2**64 >> 63
            values[i % size] += -x if minus else x
        return values

    def standardised(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        spread = np.sqrt(self.variance)
        away = np.divide(values - self.mean, spread, out=np.zeros_like(values), where=spread > 0)
        return np.where(np.isfinite(values), np.clip(away, -4, 4), 0.0) / math.sqrt(len(values))

    def see(self, values: NDArray[np.float64]) -> None:
        self.seen += 1
        values = np.where(np.isfinite(values), values, self.mean)
        part, away = 1 / min(self.seen, MEMORY), values - self.mean
        self.mean = self.mean + part * away
        self.variance = self.variance + part * (away * (values - self.mean) - self.variance)


@dataclass
class Vectors:
    """The known vectors, by the hash of their first number, and their principal components."""

    known: dict[int, Vector] = field(default_factory=dict)
    products: NDArray[np.float64] | None = None
    n_summed: int = 0
    basis: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))

    def __len__(self) -> int:
        return sum(len(vector.mean) for vector in self.known.values())

    def meet(self, runs: Sequence[Features]) -> None:
        for run in runs:
            free = CAPACITY - len(self)
            if run[0][0] not in self.known and len(self.known) < MOST and free >= LEAST:
                n = min(len(run), free)
                self.known[run[0][0]] = Vector(np.zeros(n), np.zeros(n))

    def _parts(self, runs: Sequence[Features]) -> dict[int, Features]:
        return {run[0][0]: run for run in runs}

    def numbers(self, runs: Sequence[Features]) -> NDArray[np.float64]:
        """Return the standardised numbers of all known vectors; those of missing vectors are 0."""
        parts = self._parts(runs)
        found = [
            vector.standardised(vector.values(parts[head])) if head in parts else np.zeros(len(vector.mean))
            for head, vector in self.known.items()
        ]
        return np.concatenate([np.zeros(0), *found])

    def projections(self, runs: Sequence[Features]) -> list[tuple[int, float]]:
        """Return the projections of an event, as features."""
        n = self.basis.shape[1]
        values = self.basis @ self.numbers(runs)[:n]
        return [(PROJECTION + k, float(x)) for k, x in enumerate(values)]

    def variances(self) -> list[float]:
        """Return the variance of the projections of the summed events on each component."""
        return [float(row @ self.products @ row) / self.n_summed for row in self.basis]

    def see(self, runs: Sequence[Features]) -> bool:
        """Learn the numbers of an event; return whether the principal components have been found."""
        numbers, parts = self.numbers(runs), self._parts(runs)
        seen = 0
        for head, vector in self.known.items():
            if head in parts:
                vector.see(vector.values(parts[head]))
                seen = max(seen, vector.seen)
        if len(self.basis) or seen <= FIRST:
            return False
        products = np.outer(numbers, numbers)
        if self.products is not None:
            n = len(self.products)
            products[:n, :n] += self.products
        self.products = products
        self.n_summed += 1
        if self.n_summed < SUMMED:
            return False
        self.basis = principal(products)
        return True


def principal(products: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the principal components, by orthogonal iteration from the same start as the kernel's."""
    n = len(products)
    hashes = [[1 + k * CAPACITY + i for i in range(n)] for k in range(PROJECTED)]
    rows = np.array([[(each * _GOLDEN % 2**64 >> 32) / 2**32 - 0.5 for each in row] for row in hashes])
    for _ in range(ROUNDS):
        after = rows @ products
        rows = np.zeros_like(after)
        for k in range(PROJECTED):
            row = after[k]
            for other in (*rows[:k], *rows[:k]):
                row = row - (row @ other) * other
            rows[k] = row / np.linalg.norm(row)
    return rows
