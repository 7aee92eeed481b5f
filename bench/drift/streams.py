"""Bandit streams in VW's text format whose best interactions change, or never do, and their truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from datasets.chunks import BLOCK, Chunk, Stream, bandit_chunk
from datasets.draws import Draws
from datasets.spelling import counting, side_by_side, words


@dataclass(frozen=True, slots=True)
class Text:
    """A whole stream, and the mean rewards of all actions: float64[events, actions]."""

    text: bytes
    truth: NDArray[np.float64]

    def __len__(self) -> int:
        """Count the events."""
        return len(self.truth)


def written(stream: Stream, events: int) -> Text:
    """Return the first events of a stream."""
    chunks = [stream.block(start // BLOCK, min(BLOCK, events - start)) for start in range(0, events, BLOCK)]
    return Text(b"".join(chunk.text for chunk in chunks), np.concatenate([chunk.truth for chunk in chunks]))


def _chunk(
    take: int,
    letters: bytes,
    context: NDArray[np.int64],
    means: NDArray[np.int64],
    draws: Draws,
    *,
    binary: bool,
) -> Chunk:
    """Log each event uniformly, and write it: a category for each letter, the number of the action in ``Z``.

    Rewards are 0 or 1, or have noise in [-0.2, 0.2].
    """
    n_actions = means.shape[1]
    logged = draws.integers(n_actions, (BLOCK,))
    own = means[np.arange(BLOCK), logged]
    if binary:
        rewards = np.where(draws.integers(1000, (BLOCK,)) < own, 1000, 0)
    else:
        rewards = own + draws.around_zero(100, (2, BLOCK)).sum(axis=0)
    names = words([b"|%c " % letter for letter in letters])
    shared = side_by_side(names, counting(int(context.max()) + 1)[context], b" ")
    return bandit_chunk(
        take=take,
        shared=shared.reshape(BLOCK, -1)[:, :-1],
        actions=side_by_side(b"|Z ", counting(n_actions))[np.newaxis],
        means=means,
        rewards=rewards,
        logged=logged,
        probabilities=np.full(BLOCK, 1000 // n_actions),
    )


class Regimes:
    """8 actions; shared ``a``-``f``, one category of 6 values each; what pays changes from time to time.

    The mean reward is 0.5 plus a table, in [-0.3, 0.3], of the two namespaces of the regime and the action.
    """

    number: ClassVar[int] = 101
    letters: ClassVar[bytes] = b"abcdef"

    def __init__(self, seed: int, *, pairs: tuple[str, ...], length: int) -> None:
        self._seed, self._length = seed, length
        draws = Draws(seed, stream=self.number)
        self._tables = draws.around_zero(300, (2, 6, 6, 8))
        self._which = np.array([("ab", "cd").index(pair) for pair in pairs])

    def block(self, index: int, take: int) -> Chunk:
        """Return the first `take` events of the block `index`."""
        draws = Draws(self._seed, stream=self.number, block=index)
        context = draws.integers(6, (BLOCK, len(self.letters)))
        regime = (index * BLOCK + np.arange(BLOCK)) // self._length
        which = self._which[np.minimum(regime, len(self._which) - 1)]
        first, second = (context[np.arange(BLOCK), 2 * which + place] for place in (0, 1))
        means = 500 + self._tables[which, first, second]
        return _chunk(take, self.letters, context, means, draws, binary=False)


class Light:
    """4 actions; shared ``a``-``c``, one category of 4 values each; rewards of 0 or 1; nothing ever changes.

    The mean reward is 0.5 plus a table, in [-0.2, 0.2], of ``a`` and the action; or 0.5, if nothing pays.
    """

    number: ClassVar[int] = 102
    letters: ClassVar[bytes] = b"abc"

    def __init__(self, seed: int, *, pays: bool) -> None:
        self._seed = seed
        draws = Draws(seed, stream=self.number)
        self._table = draws.around_zero(200 if pays else 0, (4, 4))

    def block(self, index: int, take: int) -> Chunk:
        """Return the first `take` events of the block `index`."""
        draws = Draws(self._seed, stream=self.number, block=index)
        context = draws.integers(4, (BLOCK, len(self.letters)))
        return _chunk(take, self.letters, context, 500 + self._table[context[:, 0]], draws, binary=True)
