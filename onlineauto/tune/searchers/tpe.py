"""``TpeSearcher``: proposes configs in regions where good configs are dense and other configs are not.

The tree-structured Parzen estimator splits the tried configs into a few good ones and the others, and models
the density of both. It draws candidates from the good density and proposes the candidate with the largest
ratio of the two densities.

Losses are compared at the highest resource that enough trials have reached. Trials with less resource rank
after them, in decreasing order of resource, because a scheduler has stopped them.

In a space with conditional parameters, an observation has no effect on a parameter that it does not have.
More configs count as good there, because they divide among the branches, and all kernels have the same width:
with narrow kernels, a branch that is good early hides the others.

If parameters have a prior, its logarithm is added to that of the ratio, with a weight that decreases with the
number of results. The effect of a wrong prior therefore ends.

Source for priors: Hvarfner and others: PiBO, 2022; Mallik and others: PriorBand, 2023.
"""

from __future__ import annotations

from math import ceil, inf, isinf, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.errors import OptionError
from onlineauto.tune.searchers.observations import compared_level
from onlineauto.tune.searchers.pareto import ranked
from onlineauto.tune.searchers.searcher import Searcher
from onlineauto.tune.spaces import Categorical

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from onlineauto.tune.spaces import Config, Space

_MOST_GOOD = 25
_NARROWEST = 0.4
"""Minimum width of kernels, times the square root of the number of results. Both densities have the same
minimum: narrower kernels of the many other configs would leave gaps between them that look good."""
_LEAST = 0.04
"""Minimum width if results are of several resources: most of them are then of little resource, and noisy."""
_WIDEST = 0.2
_CONDITIONAL = 0.05
"""Width of all kernels in a space with conditions, unless there are fewer than 20."""
_CELL_WIDTH = 0.5
"""Minimum width of kernels as a part of the width of a whole number."""
_PRIOR = 10.0
"""The weight of a prior's logarithm in a proposal is this number divided by the number of results."""
_MORE_GOOD = 1.5
"""The factor of the share that counts as good in a space with conditions."""

_TIE = 1e-12
"""Added to codes once for each earlier row, so that every kind of sort gives the same order."""
_NOTHING = -50.0
"""Logarithm of a share that does not count; numbers near the least float would be slow."""
_ONE_THREAD = 2**18
"""Maximum number of multiplications of one product. OpenBLAS divides a larger one among threads, which then
wait for each other: 6 ms in place of 0.03 ms on a busy machine."""
_RECENT = 25
"""Number of newest observations with full weight; the weight of older observations decreases with age."""


class Parzen:
    """The density around some observations, in all dimensions together.

    `numbers`, float64[n, d], are codes in [0, 1]; `words`, int64[n, c], are indices of words, and
    `categories` their numbers for each of the `c` choices; `exists`, bool[n, d + c], tells which of them an
    observation has. The width of a kernel is between `narrowest`, float64[d], and `widest`.

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
        factors = np.hstack([heights, scale * self._around, -scale / 2])
        step = max(_ONE_THREAD // max(codes.size, 1), 1)
        parts = [codes @ factors[row : row + step].T for row in range(0, len(factors), step)]
        logs = np.hstack(parts) + np.log(self._weights)
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
    centres, scale = numbers[near], spread[near] * np.sqrt(2)
    inside[near] = 0.5 * (_erf((1 - centres) / scale) + _erf(centres / scale))
    return np.asarray(np.log(inside))


def _erf(numbers: np.ndarray) -> np.ndarray:
    """Return the error function of numbers of at least 0, to seven digits.

    Source: Abramowitz and Stegun: Handbook of mathematical functions, 7.1.26.
    """
    numbers = np.minimum(numbers, 6.0)  # the function is 1 from there on
    t = 1 / (1 + 0.3275911 * numbers)
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return np.asarray(1 - series * np.exp(-numbers * numbers))


class TpeSearcher(Searcher):
    """Proposes configs by the densities of good and other configs, after some random configs."""

    name = "tpe"
    several = True

    def __init__(self, startup: int = 10, candidates: int = 24, good: float = 0.1) -> None:
        if startup < 1 or candidates < 1 or not 0 < good < 1:
            raise OptionError(
                f"startup = {startup}, candidates = {candidates}, good = {good}: "
                "valid are positive whole numbers and a share between 0 and 1"
            )
        self.options = {"startup": startup, "candidates": candidates, "good": good}
        self._startup, self._candidates, self._good = startup, candidates, good

    def begin(self, space: Space, *, seed: int) -> None:  # noqa: D102
        super().begin(space, seed=seed)
        self._choices = [
            name for name, parameter in space.parameters.items() if isinstance(parameter, Categorical)
        ]
        self._plain = [name for name in space.parameters if name not in self._choices]
        self._is_conditional = any(parameter.when for parameter in space.parameters.values())
        self._cells = np.array([_CELL_WIDTH / space.parameters[name].size for name in self._plain])
        self._categories = [space.parameters[name].categories for name in self._choices]
        self._rows: dict[tuple[Any, ...], int] = {}
        self._size = 0
        self._of_several: dict[int, list[float]] = {}
        self._reserve(256)

    def _reserve(self, size: int) -> None:
        self._numbers = np.full((size, len(self._plain)), 0.5)
        self._words = np.zeros((size, len(self._choices)), dtype=np.int64)
        self._levels = np.zeros(size, dtype=np.int64)
        self._losses = np.full(size, inf)
        self._exist = np.ones((size, len(self._plain) + len(self._choices)), dtype=bool)

    def on_ask(self, config: Config) -> None:
        """Count a config as bad until it has a result, which spreads parallel proposals."""
        row = self._size
        if row == len(self._losses):
            before = self._columns
            self._reserve(2 * row)
            for new, old in zip(self._columns, before, strict=True):
                new[:row] = old
        self._set(row, config)
        self._size += 1

    def on_change(self, before: Config, config: Config) -> bool:  # noqa: D102
        self._set(self._rows.pop(tuple(before.items())), config)
        return True

    def _set(self, row: int, config: Config) -> None:
        self._numbers[row], self._words[row] = self._coded(config)
        self._exist[row] = self._names_exist(config)
        key = tuple(config.items())
        self._rows[key] = max(row, self._rows.get(key, row))

    def _coded(self, config: Config) -> tuple[list[float], list[int]]:
        """Return the codes of the numbers of a config, and the indices of its words."""
        parameters = self.space.parameters
        numbers = [
            parameters[name].encode(config[name])[0] if name in config else 0.5 for name in self._plain
        ]
        words = [
            choice.index(config[name]) if name in config and isinstance(choice, Categorical) else 0
            for name in self._choices
            for choice in [parameters[name]]
        ]
        return numbers, words

    @property
    def _columns(self) -> tuple[np.ndarray, ...]:
        return self._numbers, self._words, self._levels, self._losses, self._exist

    def _names_exist(self, config: Config) -> list[bool]:
        return [name in config for name in (*self._plain, *self._choices)]

    def on_result(self, config: Config, resource: int, loss: float) -> None:  # noqa: D102
        row = self._rows[tuple(config.items())]
        if resource >= self._levels[row]:
            self._levels[row], self._losses[row] = resource, loss

    def on_losses(self, config: Config, resource: int, losses: Sequence[float]) -> None:  # noqa: D102
        self.on_result(config, resource, losses[0])
        self._of_several[self._rows[tuple(config.items())]] = list(losses)

    def may_end(self, number: int) -> bool:  # noqa: ARG002, D102
        return False

    def propose(self, number: int, rng: np.random.Generator) -> Config | None:  # noqa: D102
        results = int(np.count_nonzero(self._levels[: self._size]))
        if not results or max(number, results) < self._startup:
            return self.draw_untried(self._rows, rng)
        good, others = map(self._density, self._split())
        numbers, words = good.draw(self._candidates, rng)
        priors = None
        if self.space.has_prior:
            numbers, words = self._with_prior(numbers, words, results, rng)
            configs = [self._config(*code) for code in zip(numbers, words, strict=True)]
            priors = np.array([self.space.log_prior(config) for config in configs])
        exist = np.ones((len(numbers), self._exist.shape[1]), dtype=bool)
        if self._is_conditional:
            configs = [self._config(*code) for code in zip(numbers, words, strict=True)]
            exist = np.array([self._names_exist(config) for config in configs], dtype=bool)
        gain = good.log_density(numbers, words, exist) - others.log_density(numbers, words, exist)
        if priors is not None:
            gain += _PRIOR / results * priors
        order = np.argsort(-gain, kind="stable").tolist()
        for config in (self._config(numbers[row], words[row]) for row in order):
            if isinf(self.space.size) or tuple(config.items()) not in self._rows:
                return config
        return self.draw_untried(self._rows, rng)

    def _with_prior(
        self, numbers: np.ndarray, words: np.ndarray, results: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return candidates with more of them, which are drawn from the prior: fewer with more results."""
        configs = [self.space.draw(rng) for _ in range(ceil(self._candidates * _PRIOR / (_PRIOR + results)))]
        codes = [self._coded(config) for config in configs]
        return (
            np.vstack([numbers, [code[0] for code in codes]]),
            np.vstack([words, [code[1] for code in codes]]),
        )

    def _split(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of good configs and of other configs, the oldest first."""
        levels, losses = self._levels[: self._size], self._losses[: self._size]
        tried = levels[levels > 0]
        compared = max(compared_level(tried.tolist()), min(self.lowest, int(tried.max())))
        share = min(self._good * _MORE_GOOD, 1) if self._is_conditional else self._good
        count = min(ceil(share * len(tried)), _MOST_GOOD)
        if self._of_several:
            rows = np.array(sorted(self._of_several))
            best = rows[ranked(np.array([self._of_several[row] for row in rows.tolist()]), count)]
            losses = np.full(self._size, inf)
            losses[best] = np.arange(len(best))
        order = np.lexsort((losses, -np.minimum(levels, compared)))
        return np.sort(order[:count]), np.sort(order[count:])

    def _density(self, rows: np.ndarray) -> Parzen:
        levels = self._levels[: self._size]
        levels = levels[levels > 0]
        least = max(_NARROWEST / sqrt(len(levels)), _LEAST if levels.min() < levels.max() else 0)
        bounds = np.maximum(least, self._cells), _WIDEST
        if self._is_conditional:
            width = max(_CONDITIONAL, 1 / (1 + len(rows)))
            bounds = np.full(len(self._plain), width), width
        exist = self._exist[rows]
        return Parzen(self._numbers[rows], self._words[rows], self._categories, exist, *bounds)

    def _config(self, numbers: np.ndarray, words: np.ndarray) -> Config:
        code = np.full(self.space.width, 0.5)
        for name, number in zip(self._plain, numbers.tolist(), strict=True):
            code[self.space.blocks[name]] = number
        for name, word in zip(self._choices, words.tolist(), strict=True):
            choice = self.space.parameters[name]
            if isinstance(choice, Categorical):
                code[self.space.blocks[name]] = choice.encode(choice.values[word])
        return self.space.decode(code)

    def remember(self) -> dict[str, Any]:  # noqa: D102
        size = self._size
        configs = sorted(self._rows, key=self._rows.__getitem__)
        return {
            "configs": [[self._rows[config], dict(config)] for config in configs],
            "numbers": self._numbers[:size].tolist(),
            "words": self._words[:size].tolist(),
            "levels": self._levels[:size].tolist(),
            "losses": self._losses[:size].tolist(),
            "several": [[row, losses] for row, losses in self._of_several.items()],
        }

    def recall(self, state: Mapping[str, Any]) -> None:  # noqa: D102
        self._size = size = len(state["losses"])
        self._reserve(max(256, 2 * size))
        if size:
            self._numbers[:size] = np.array(state["numbers"]).reshape(size, -1)
            self._words[:size] = np.array(state["words"]).reshape(size, -1)
            self._levels[:size] = state["levels"]
            self._losses[:size] = state["losses"]
            for row in range(size):
                config = self._config(self._numbers[row], self._words[row])
                self._exist[row] = self._names_exist(config)
        self._rows = {tuple(config.items()): row for row, config in state["configs"]}
        self._of_several = {row: list(losses) for row, losses in state["several"]}
