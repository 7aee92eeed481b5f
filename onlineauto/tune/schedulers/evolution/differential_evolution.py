"""Differential evolution on codes: mutation, repair and crossover, each a plain function.

A strategy is a mutation and a crossover: ``rand1_bin``, ``currenttobest1_exp``, … A mutation adds differences
of parents to a parent, to the best of the pool, or to the target. Crossover selects each parameter separately
(``bin``), or a run of parameters (``exp``).

No function changes its arguments.

Source: Storn and Price: Differential evolution, 1997.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

Mutation: TypeAlias = Callable[[np.ndarray, np.ndarray, Sequence[np.ndarray], float], np.ndarray]
"""Takes the target, the best, the parents and the factor."""
_MUTATIONS: Mapping[str, tuple[int, Mutation]] = {
    "rand1": (3, lambda _target, _best, p, f: p[0] + f * (p[1] - p[2])),
    "rand2": (5, lambda _target, _best, p, f: p[0] + f * (p[1] - p[2]) + f * (p[3] - p[4])),
    "rand2dir": (3, lambda _target, _best, p, f: p[0] + f / 2 * (p[0] - p[1] - p[2])),
    "best1": (2, lambda _target, best, p, f: best + f * (p[0] - p[1])),
    "best2": (4, lambda _target, best, p, f: best + f * (p[0] - p[1]) + f * (p[2] - p[3])),
    "currenttobest1": (2, lambda target, best, p, f: target + f * (best - target) + f * (p[0] - p[1])),
    "randtobest1": (3, lambda _target, best, p, f: p[0] + f * (best - p[0]) + f * (p[1] - p[2])),
}
"""By name: the number of parents, and the mutation."""
STRATEGIES = tuple(f"{mutation}_{kind}" for mutation in _MUTATIONS for kind in ("bin", "exp"))
"""All pairs of a mutation and a crossover."""


def parents_of(strategy: str) -> int:
    """Return the number of parents of a strategy.

    >>> parents_of("rand1_bin"), parents_of("best2_exp")
    (3, 4)
    """
    return _MUTATIONS[strategy.partition("_")[0]][0]


def mutant(
    parents: Sequence[np.ndarray],
    factor: float,
    fill: np.ndarray,
    *,
    strategy: str = "rand1_bin",
    target: np.ndarray | None = None,
    best: np.ndarray | None = None,
) -> np.ndarray:
    """Return the mutant of parents: by default the first parent plus `factor` times a difference.

    Numbers outside [0, 1] are replaced by those of `fill`.

    >>> parents = [np.array([0.5, 0.9]), np.array([0.8, 0.9]), np.array([0.2, 0.1])]
    >>> mutant(parents, 0.5, np.array([0.3, 0.3])).tolist()
    [0.8, 0.3]
    """
    other = parents[0]
    moved = _MUTATIONS[strategy.partition("_")[0]][1](
        other if target is None else target, other if best is None else best, parents, factor
    )
    return np.where((moved < 0) | (moved > 1), fill, moved)


def mask(rate: float, drawn: Sequence[float] | np.ndarray, forced: int) -> np.ndarray:
    """Return which parameters the mutant gives: those drawn below `rate`, or else `forced`.

    >>> mask(0.5, [0.45, 0.7], 1).tolist(), mask(0.1, [0.15, 0.55], 0).tolist()
    ([True, False], [True, False])
    """
    chosen = np.asarray(drawn) < rate
    if not chosen.any():
        chosen[forced] = True
    return chosen


def run_mask(rate: float, drawn: Sequence[float] | np.ndarray, first: int) -> np.ndarray:
    """Return which parameters the mutant gives: `first`, and those after it until a number is `rate` or more.

    >>> run_mask(0.5, [0.1, 0.2, 0.9, 0.1], 3).tolist()
    [True, True, False, True]
    """
    lasts = np.roll(np.asarray(drawn) < rate, -first - 1)[:-1]
    size = 1 + int(np.cumprod(lasts).sum())
    chosen = np.zeros(len(drawn), dtype=bool)
    chosen[(first + np.arange(size)) % len(chosen)] = True
    return chosen


def crossover(
    target: np.ndarray, mutated: np.ndarray, chosen: np.ndarray, widths: Sequence[int]
) -> np.ndarray:
    """Return the target with the chosen parameters of the mutant; the code of a word is copied as one block.

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
    strategy: str = "rand1_bin",
    best: np.ndarray | None = None,
) -> np.ndarray:
    """Return a child of a target and of distinct members of a pool by a strategy."""
    count = parents_of(strategy)
    many = len(pool) > count
    order = rng.random(len(pool)).argpartition(count - 1)[:count] if many else rng.permutation(count)
    parents = [pool[index] for index in order]
    fill = rng.random(len(target))
    mutated = mutant(parents, factor, fill, strategy=strategy, target=target, best=best)
    chosen = (run_mask if strategy.endswith("_exp") else mask)(
        rate, rng.random(len(widths)), int(rng.integers(len(widths)))
    )
    return crossover(target, mutated, chosen, widths)
