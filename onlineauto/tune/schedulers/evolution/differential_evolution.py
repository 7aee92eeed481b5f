"""Differential evolution on codes: mutation, repair and crossover (``rand/1/bin``), each a plain function.

No function changes what it is given.

Source: Storn and Price: Differential evolution, 1997.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["crossover", "mask", "mutant", "offspring"]


def mutant(parents: Sequence[np.ndarray], factor: float, fill: np.ndarray) -> np.ndarray:
    """Return the first parent plus `factor` times the difference of the other two.

    Where the sum is outside [0, 1], the number of `fill` takes its place.

    >>> parents = [np.array([0.5, 0.9]), np.array([0.8, 0.9]), np.array([0.2, 0.1])]
    >>> mutant(parents, 0.5, np.array([0.3, 0.3])).tolist()
    [0.8, 0.3]
    """
    first, second, third = parents
    moved = (second - third) * factor + first
    return np.where((moved < 0) | (moved > 1), fill, moved)


def mask(rate: float, drawn: Sequence[float] | np.ndarray, forced: int) -> np.ndarray:
    """Return which parameters come from the mutant: those that drew less than `rate`, or else the forced one.

    >>> mask(0.5, [0.45, 0.7], 1).tolist(), mask(0.1, [0.15, 0.55], 0).tolist()
    ([True, False], [True, False])
    """
    chosen = np.asarray(drawn) < rate
    if not chosen.any():
        chosen[forced] = True
    return chosen


def crossover(
    target: np.ndarray, mutated: np.ndarray, chosen: np.ndarray, widths: Sequence[int]
) -> np.ndarray:
    """Return the target with the chosen parameters of the mutant; the code of a word moves as one block.

    >>> crossover(np.zeros(4), np.ones(4), np.array([False, True]), [1, 3]).tolist()
    [0.0, 1.0, 1.0, 1.0]
    """
    return np.where(np.repeat(chosen, widths), mutated, target)


def offspring(
    target: np.ndarray,
    pool: Sequence[np.ndarray],
    widths: Sequence[int],
    rng: np.random.Generator,
    *,
    factor: float,
    rate: float,
) -> np.ndarray:
    """Return a child of a target and of three different members of a pool."""
    order = rng.random(len(pool)).argpartition(2)[:3] if len(pool) > 3 else rng.permutation(3)
    mutated = mutant([pool[place] for place in order], factor, rng.random(len(target)))
    chosen = mask(rate, rng.random(len(widths)), int(rng.integers(len(widths))))
    return crossover(target, mutated, chosen, widths)
