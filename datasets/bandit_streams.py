"""Contextual-bandit streams whose true rewards are known.

Rewards and probabilities are whole thousandths from 0 to 1000, and a cost is minus its reward, so that it
lies in [-1, 0]. The truth (the tables behind the rewards) depends on the seed alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from datasets.chunks import BLOCK, Chunk, bandit_chunk
from datasets.draws import Draws
from datasets.spelling import counting, decimals, side_by_side, words

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Heavy", "Narrow", "Null", "Planted", "Wide"]

_SIGNED = decimals(1000, 3)


def _observe(
    draws: Draws, means: NDArray[np.int64], logged: NDArray[np.int64], noise: int
) -> NDArray[np.int64]:
    """Return the mean of the logged action plus noise of mean 0, triangular on -noise to noise."""
    halves = draws.around_zero(noise // 2, (2, BLOCK))
    return np.asarray(means[np.arange(BLOCK), logged] + halves.sum(axis=0))


class Narrow:
    """8 actions and 4 namespaces: ``a`` and ``b`` shared, ``Z`` and ``c`` of each action.

    ``a`` holds two categories (``s0`` to ``s15``, ``t0`` to ``t11``), ``b`` two numbers, ``Z`` the number of
    the action, and ``c`` a category (``g0`` to ``g7``) and a number. What pays: the pair a×Z (the category
    ``s``) and the pair b×c (the number ``x``, with a slope for each ``g``). Mean rewards lie in [0.2, 0.8],
    the noise in [-0.2, 0.2]. Logged uniformly.
    """

    number: ClassVar[int] = 1
    actions: ClassVar[int] = 8

    def __init__(self, seed: int) -> None:
        self._seed = seed
        draws = Draws(seed, stream=self.number)
        self._level = draws.around_zero(150, (16, self.actions))
        self._slope = draws.around_zero(150, (8,))

    def _log(self, draws: Draws) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the logged actions and their probabilities in thousandths."""
        return draws.integers(self.actions, (BLOCK,)), np.full(BLOCK, 1000 // self.actions)

    def block(self, index: int, take: int) -> Chunk:
        """Return the first `take` events of the block `index`."""
        draws = Draws(self._seed, stream=self.number, block=index)
        s, t = draws.integers(16, (BLOCK,)), draws.integers(12, (BLOCK,))
        x, y = draws.around_zero(1000, (2, BLOCK))
        g, q = draws.integers(8, (BLOCK, self.actions)), draws.integers(1001, (BLOCK, self.actions))
        means = 500 + self._level[s] + self._slope[g] * x[:, np.newaxis] // 1000
        logged, probabilities = self._log(draws)
        rewards = _observe(draws, means, logged, 200)
        a = side_by_side(b"|a s", counting(16)[s], b" t", counting(12)[t])
        b = side_by_side(b" |b x:", _SIGNED[1000 + x], b" y:", _SIGNED[1000 + y])
        c = side_by_side(b" |c g", counting(8)[g], b" q:", _SIGNED[1000 + q])
        return bandit_chunk(
            take=take,
            shared=side_by_side(a, b),
            actions=side_by_side(b"|Z ", counting(self.actions), c),
            means=means,
            rewards=rewards,
            logged=logged,
            probabilities=probabilities,
        )


class Heavy(Narrow):
    """As `Narrow`, logged with probabilities down to 0.001, so importance weights reach 1000.

    Each event has a favourite action, drawn uniformly, and gives each of the others the same small
    probability: one of 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1 and 0.125, equally often.
    """

    number: ClassVar[int] = 2

    def _log(self, draws: Draws) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        small = np.array([1, 2, 5, 10, 20, 50, 100, 125])[draws.integers(8, (BLOCK,))]
        favourite = draws.integers(self.actions, (BLOCK,))
        step = draws.integers(1000, (BLOCK,)) // small  # each of 0 to 6 has the small probability
        strays = step < self.actions - 1
        logged = np.where(strays, (favourite + 1 + step) % self.actions, favourite)
        return logged, np.where(strays, small, 1000 - (self.actions - 1) * small)


class Wide:
    """100 shared features and 50 actions, logged uniformly.

    ``a`` and ``b`` hold 25 numbers each, ``c`` and ``d`` 25 categories of 8 values each, ``Z`` the number of
    the action. What pays: the number ``f0`` of ``a`` and the category ``f0`` of ``c``, each with the action.
    Mean rewards lie in [0.2, 0.8], the noise in [-0.2, 0.2].
    """

    number: ClassVar[int] = 3
    actions: ClassVar[int] = 50

    def __init__(self, seed: int) -> None:
        self._seed = seed
        draws = Draws(seed, stream=self.number)
        self._level = draws.around_zero(150, (8, self.actions))
        self._slope = draws.around_zero(150, (self.actions,))

    def block(self, index: int, take: int) -> Chunk:
        """Return the first `take` events of the block `index`."""
        draws = Draws(self._seed, stream=self.number, block=index)
        numbers = draws.around_zero(1000, (BLOCK, 2, 25))
        levels = draws.integers(8, (BLOCK, 2, 25))
        means = 500 + self._level[levels[:, 0, 0]] + self._slope * numbers[:, 0, :1] // 1000
        logged = draws.integers(self.actions, (BLOCK,))
        names = words([b" f%d" % feature for feature in range(25)])
        ab = side_by_side(names, b":", _SIGNED[1000 + numbers]).reshape(BLOCK, 2, -1)
        cd = side_by_side(names, b"_", counting(8)[levels]).reshape(BLOCK, 2, -1)
        return bandit_chunk(
            take=take,
            shared=side_by_side(b"|a", ab[:, 0], b" |b", ab[:, 1], b" |c", cd[:, 0], b" |d", cd[:, 1]),
            actions=side_by_side(b"|Z ", counting(self.actions))[np.newaxis],
            means=means,
            rewards=_observe(draws, means, logged, 200),
            logged=logged,
            probabilities=np.full(BLOCK, 1000 // self.actions),
        )


class Planted:
    """8 shared namespaces ``a``-``h`` of one category of 6 values, 8 actions ``Z``; three interactions pay.

    The mean reward is 0.5 plus a table of a×b×Z, a table of c×d×Z (both in [-0.15, 0.15]) and a table of e×Z
    (in [-0.1, 0.1]); ``f``, ``g`` and ``h`` are idle. The noise is triangular on [-0.1, 0.1]. Logged
    uniformly.
    """

    number: ClassVar[int] = 4
    actions: ClassVar[int] = 8
    letters: ClassVar[bytes] = b"abcdefgh"

    def __init__(self, seed: int) -> None:
        self._seed = seed
        draws = Draws(seed, stream=self.number)
        self._ab = draws.around_zero(150, (6, 6, self.actions))
        self._cd = draws.around_zero(150, (6, 6, self.actions))
        self._e = draws.around_zero(100, (6, self.actions))

    def block(self, index: int, take: int) -> Chunk:
        """Return the first `take` events of the block `index`."""
        draws = Draws(self._seed, stream=self.number, block=index)
        context = draws.integers(6, (BLOCK, len(self.letters)))
        logged = draws.integers(self.actions, (BLOCK,))
        means, rewards = self._reward(draws, context, logged)
        spaces = side_by_side(
            words([b"|%c " % letter for letter in self.letters]), counting(6)[context], b" "
        )
        return bandit_chunk(
            take=take,
            shared=spaces.reshape(BLOCK, -1)[:, :-1],
            actions=side_by_side(b"|Z ", counting(self.actions))[np.newaxis],
            means=means,
            rewards=rewards,
            logged=logged,
            probabilities=np.full(BLOCK, 1000 // self.actions),
        )

    def _reward(
        self, draws: Draws, context: NDArray[np.int64], logged: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the mean rewards of all actions and the observed reward, in thousandths."""
        a, b, c, d, e = context.T[:5]
        means = np.asarray(500 + self._ab[a, b] + self._cd[c, d] + self._e[e])
        return means, _observe(draws, means, logged, 100)


class Null(Planted):
    """As `Planted`, with nothing to learn: every reward is 0 or 1 by the toss of a fair coin."""

    number: ClassVar[int] = 5

    def _reward(
        self, draws: Draws, context: NDArray[np.int64], logged: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return np.full((len(context), self.actions), 500), 1000 * draws.integers(2, logged.shape)
