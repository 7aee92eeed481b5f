"""``Parzen``: a density around observed codes, to draw from and to compare.

Each observation is a kernel. For a number the kernel is a normal distribution truncated to [0, 1]; its width
is the distance to the next observation on the farther side, within bounds. For a word it puts most of the
weight on the observed word. One more kernel covers the whole space. If a parameter does not exist in an
observation, the kernel is uniform in that dimension, because nothing was observed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

_TIE = 1e-12
"""Added to codes once for each earlier row, so that every kind of sort gives the same order."""
_NOTHING = -50.0
"""Logarithm of a share that does not count; numbers near the least float would be slow."""
_RECENT = 25
"""Number of newest observations with full weight; the weight of older observations decreases with age."""


class Parzen:
    """The density around some observations, in all dimensions together.

    Parameters
    ----------
    numbers : float64[n, d]
        The codes of numbers, in [0, 1].
    words : int64[n, c]
        The indices of words.
    categories : sequence of int
        Number of words of each of the `c` choices.
    exists : bool[n, d + c]
        Which numbers and words exist in each observation.
    narrowest : float64[d]
        The minimum width of a kernel.
    widest : float
        The maximum width.

    Source: Bergstra and others: Algorithms for hyper-parameter optimization, 2011; Falkner and others: BOHB,
    2018, for kernels of several dimensions; Watanabe: Tree-structured Parzen estimator, 2023, for a minimum
    width on which the result depends most.
    """

    def __init__(
        self,
        numbers: np.ndarray,
        words: np.ndarray,
        categories: Sequence[int],
        exists: np.ndarray,
        narrowest: np.ndarray,
        widest: float,
    ) -> None:
        self._count, dimensions = numbers.shape
        self._categories = np.array(categories, dtype=np.int64)
        self._weights = _weights(self._count)
        self._uniform = 1.0 / (self._count + 1)  # weight in a kernel of all words that were not observed
        self._around = np.vstack([numbers, np.full((1, dimensions), 0.5)])
        self._words = np.vstack([words, np.zeros((1, len(categories)), dtype=np.int64)])
        near = widths(numbers, exists[:, :dimensions], narrowest, widest)
        self._widths = np.vstack([near, np.ones((1, dimensions))])
        self._exist = np.vstack([exists[:, :dimensions], np.ones((1, dimensions), dtype=bool)])
        self._known = np.vstack([exists[:, dimensions:], np.zeros((1, len(categories)), dtype=bool)])
        self._heights = -_log_masses(self._around, self._widths) - np.log(self._widths * np.sqrt(2 * np.pi))

    def draw(self, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw `size` configs: codes of numbers and indices of words.

        A parameter that does not exist in a kernel is drawn uniformly.
        """
        chosen = np.searchsorted(np.cumsum(self._weights[:-1]), rng.random(size), side="right")
        around, spread = self._around[chosen], self._widths[chosen]
        numbers = around + spread * rng.standard_normal(around.shape)
        while (outside := (numbers < 0) | (numbers > 1)).any():
            redrawn = around + spread * rng.standard_normal(around.shape)
            numbers[outside] = redrawn[outside]
        numbers = np.where(self._exist[chosen], numbers, rng.random(numbers.shape))
        words = self._words[chosen]
        other = ~self._known[chosen] | (rng.random(words.shape) < self._uniform / (1 + self._uniform))
        uniform = (rng.random(words.shape) * self._categories).astype(int)
        return numbers, np.where(other, uniform, words)

    def log_density(self, numbers: np.ndarray, words: np.ndarray, exists: np.ndarray) -> np.ndarray:
        """Return the logarithm of the density at codes, in the dimensions that exist: float64[n]."""
        mask = exists[:, : numbers.shape[1]].astype(float)
        scale = np.where(self._exist, 1 / self._widths**2, 0.0)
        codes = np.hstack([mask, mask * numbers, mask * numbers**2])
        heights = np.where(self._exist, self._heights, 0.0) - scale * self._around**2 / 2
        logs = codes @ np.hstack([heights, scale * self._around, -scale / 2]).T + np.log(self._weights)
        for choice, count in enumerate(self._categories.tolist()):
            same = words[:, choice, None] == self._words[:, choice]
            share = self._uniform / count
            observed = np.where(same, np.log(1 + share), np.log(share)) - np.log(1 + self._uniform)
            density = np.where(self._known[:, choice], observed, -np.log(count))
            logs += np.where(exists[:, numbers.shape[1] + choice, None], density, 0.0)
        highest = logs.max(1)
        shares = np.exp(np.maximum(logs - highest[:, None], _NOTHING))
        return np.asarray(highest + np.log(shares.sum(1)))


def widths(numbers: np.ndarray, exists: np.ndarray, narrowest: np.ndarray, widest: float) -> np.ndarray:
    """Return the width of each kernel in each dimension: float64[n, d].

    The width is the larger of the distances to the two neighbours among the observations that have the
    number. The first and the last observation have one neighbour.
    """
    if len(numbers) < 2:
        return np.full(numbers.shape, widest)
    codes = np.where(exists, numbers, np.inf).T + _TIE * np.arange(len(numbers))  # what is missing comes last
    order = np.argsort(codes, axis=1)
    with np.errstate(invalid="ignore"):
        gaps = np.diff(np.take_along_axis(codes, order, axis=1))
    gaps[~np.isfinite(gaps)] = 0
    farther = np.maximum(np.hstack([gaps[:, :1], gaps]), np.hstack([gaps, gaps[:, -1:]]))
    farther[exists.sum(0) < 2] = widest
    result = np.empty_like(farther)
    np.put_along_axis(result, order, farther, axis=1)
    return np.asarray(np.clip(result.T, np.minimum(narrowest, widest), widest))


def _weights(count: int) -> np.ndarray:
    """Return the weights of observations, the oldest first, and of the kernel for the whole space."""
    weights = np.ones(count + 1)
    if count > _RECENT:
        weights[: count - _RECENT] = np.linspace(1 / count, 1, count - _RECENT)
    return np.asarray(weights / weights.sum())


def _log_masses(numbers: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Return the logarithm of each kernel's mass between 0 and 1, in each dimension."""
    inside = np.ones(numbers.shape)
    near = np.minimum(numbers, 1 - numbers) < 6 * spread  # all of the others is inside
    at, scale = numbers[near], spread[near] * np.sqrt(2)
    inside[near] = 0.5 * (_erf((1 - at) / scale) + _erf(at / scale))
    return np.asarray(np.log(inside))


def _erf(at: np.ndarray) -> np.ndarray:
    """Return the error function of numbers of at least 0, to seven digits.

    Source: Abramowitz and Stegun: Handbook of mathematical functions, 7.1.26.
    """
    at = np.minimum(at, 6.0)  # the function is 1 from there on
    t = 1 / (1 + 0.3275911 * at)
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return np.asarray(1 - series * np.exp(-at * at))
