"""``Parzen``: a density around observed codes, to draw from and to compare.

Each observation is a kernel. For a number the kernel is a normal distribution truncated to [0, 1]; for a word
it puts most of the weight on the observed word. One more kernel covers the whole space. If a parameter does
not exist in an observation, the kernel is uniform in that dimension, because nothing was observed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

_WIDTH = 0.07
_NARROWEST = 0.01
_RECENT = 25
"""Number of newest observations with full weight; the weight of older observations decreases with age."""


class Parzen:
    """The density around some observations.

    Parameters
    ----------
    numbers : float64[n, d]
        The codes of numbers, in [0, 1].
    words : int64[n, c]
        The indices of words.
    categories : sequence of int
        Number of words of each of the `c` choices.

    Source: Bergstra and others: Algorithms for hyper-parameter optimization, 2011; Falkner and others: BOHB,
    2018, for kernels of several dimensions.
    """

    def __init__(self, numbers: np.ndarray, words: np.ndarray, categories: Sequence[int]) -> None:
        count, dimensions = numbers.shape
        self._widths = widths(numbers, len(categories))
        self._weights = _weights(count)
        self._numbers = numbers
        self._scaled = numbers / self._widths
        self._words = words
        self._uniform = 1.0 / (count + 1)  # weight in a kernel of all words that were not observed
        self._categories = np.array(categories)
        self._logs = np.log(self._weights[:-1]) - _log_mass(numbers, self._widths)
        self._logs -= np.log(self._widths * np.sqrt(2 * np.pi)).sum()
        self._prior = np.log(self._weights[-1]) - dimensions * np.log(_ERF_HALF * np.sqrt(2 * np.pi))

    def draw(self, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return codes of numbers and indices of words drawn from the density."""
        chosen = np.searchsorted(np.cumsum(self._weights[:-1]), rng.random(size), side="right")
        everywhere = chosen == len(self._numbers)
        around = np.append(self._numbers, np.full((1, self._numbers.shape[1]), 0.5), axis=0)[chosen]
        spread = np.where(everywhere[:, None], 1.0, self._widths)
        numbers = around + spread * rng.standard_normal(around.shape)
        while (outside := (numbers < 0) | (numbers > 1)).any():
            again = around + spread * rng.standard_normal(around.shape)
            numbers[outside] = again[outside]
        words = np.append(self._words, np.zeros((1, self._words.shape[1]), int), axis=0)[chosen]
        other = (
            rng.random(words.shape) < np.where(everywhere, 1.0, self._uniform / (1 + self._uniform))[:, None]
        )
        uniform = (rng.random(words.shape) * self._categories).astype(int)
        return numbers, np.where(other, uniform, words)

    def log_density(self, numbers: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Return the logarithm of the density at codes: float64[n]."""
        scaled = numbers / self._widths
        squares = (scaled**2).sum(1)[:, None] + (self._scaled**2).sum(1) - 2 * scaled @ self._scaled.T
        logs = self._logs - squares / 2
        for choice, count in enumerate(self._categories):
            same = words[:, choice, None] == self._words[:, choice]
            share = self._uniform / count
            logs += np.where(same, np.log(1 + share), np.log(share)) - np.log(1 + self._uniform)
        prior = self._prior - ((numbers - 0.5) ** 2).sum(1) / 2 - np.log(self._categories).sum()
        highest = np.maximum(logs.max(1, initial=-np.inf), prior)
        return np.asarray(highest + np.log(np.exp(logs - highest[:, None]).sum(1) + np.exp(prior - highest)))


class ConditionalParzen(Parzen):
    """The density around observations in a space with conditional parameters.

    Parameters
    ----------
    numbers, words, categories
        As for `Parzen`.
    numbers_exist : bool[n, d]
        Which numbers exist in each observation.
    words_exist : bool[n, c]
        Which words exist in each observation.
    """

    def __init__(
        self,
        numbers: np.ndarray,
        words: np.ndarray,
        categories: Sequence[int],
        numbers_exist: np.ndarray,
        words_exist: np.ndarray,
    ) -> None:
        super().__init__(numbers, words, categories)
        self._numbers_exist, self._words_exist = numbers_exist, words_exist
        self._log_heights = -_log_masses(numbers, self._widths) - np.log(self._widths * np.sqrt(2 * np.pi))

    def draw(self, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw `size` configs: codes of numbers and indices of words.

        A parameter that does not exist in a kernel is drawn uniformly.
        """
        chosen = np.searchsorted(np.cumsum(self._weights[:-1]), rng.random(size), side="right")
        around = np.append(self._numbers, np.full((1, self._numbers.shape[1]), 0.5), axis=0)[chosen]
        exist = np.append(self._numbers_exist, np.zeros((1, self._numbers.shape[1]), bool), axis=0)[chosen]
        numbers = around + self._widths * rng.standard_normal(around.shape)
        while (outside := (numbers < 0) | (numbers > 1)).any():
            again = around + self._widths * rng.standard_normal(around.shape)
            numbers[outside] = again[outside]
        numbers = np.where(exist, numbers, rng.random(numbers.shape))
        words = np.append(self._words, np.zeros((1, self._words.shape[1]), int), axis=0)[chosen]
        known = np.append(self._words_exist, np.zeros((1, self._words.shape[1]), bool), axis=0)[chosen]
        other = ~known | (rng.random(words.shape) < self._uniform / (1 + self._uniform))
        uniform = (rng.random(words.shape) * self._categories).astype(int)
        return numbers, np.where(other, uniform, words)

    def log_density_where(
        self, numbers: np.ndarray, words: np.ndarray, numbers_exist: np.ndarray, words_exist: np.ndarray
    ) -> np.ndarray:
        """Return the logarithm of the density at codes in the dimensions that exist: float64[n]."""
        distances = (numbers[:, None, :] - self._numbers) / self._widths
        both = numbers_exist[:, None, :] & self._numbers_exist
        logs = np.log(self._weights[:-1]) + np.where(both, self._log_heights - distances**2 / 2, 0.0).sum(2)
        for choice, count in enumerate(self._categories):
            same = words[:, choice, None] == self._words[:, choice]
            share = self._uniform / count
            observed = np.where(same, np.log(1 + share), np.log(share)) - np.log(1 + self._uniform)
            density = np.where(self._words_exist[:, choice], observed, -np.log(count))
            logs += np.where(words_exist[:, choice, None], density, 0.0)
        prior = np.log(self._weights[-1]) - (words_exist * np.log(self._categories)).sum(1)
        highest = np.maximum(logs.max(1, initial=-np.inf), prior)
        return np.asarray(highest + np.log(np.exp(logs - highest[:, None]).sum(1) + np.exp(prior - highest)))


def widths(numbers: np.ndarray, words: int) -> np.ndarray:
    """Return the width of the kernels in each dimension."""
    count, dimensions = numbers.shape
    width = _WIDTH * max(count, 1) ** (-1 / (dimensions + words + 4))
    return np.full(dimensions, max(width, _NARROWEST, 1 / (1 + count)))


def _weights(count: int) -> np.ndarray:
    """Return the weights of observations, the oldest first, and of the kernel for the whole space."""
    weights = np.ones(count + 1)
    if count > _RECENT:
        weights[: count - _RECENT] = np.linspace(1 / count, 1, count - _RECENT)
    return np.asarray(weights / weights.sum())


def _log_mass(numbers: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Return the logarithm of each kernel's mass between 0 and 1."""
    return np.asarray(_log_masses(numbers, widths).sum(1))


def _log_masses(numbers: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Return the logarithm of each kernel's mass between 0 and 1, in each dimension."""
    inside = 0.5 * (_erf((1 - numbers) / (widths * np.sqrt(2))) + _erf(numbers / (widths * np.sqrt(2))))
    return np.asarray(np.log(inside))


def _erf(at: np.ndarray) -> np.ndarray:
    """Return the error function of numbers of at least 0, to seven digits.

    Source: Abramowitz and Stegun: Handbook of mathematical functions, 7.1.26.
    """
    t = 1 / (1 + 0.3275911 * at)
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return np.asarray(1 - series * np.exp(-at * at))


_ERF_HALF = 0.3829249225480262
"""The mass of a standard normal distribution between -1/2 and 1/2, for the kernel of the whole space."""
