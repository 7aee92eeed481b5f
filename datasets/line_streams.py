"""Single-line streams, regression and classification, whose noise-free labels are known."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from datasets.chunks import BLOCK, Chunk
from datasets.draws import Draws
from datasets.spelling import decimal, decimals, join, side_by_side, words

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Classification", "Regression"]

_NAMES = [b" %d:" % name if name % 2 else b" |%c %d:" % (b"abcdefgh"[name // 2], name) for name in range(16)]


class Regression:
    """8 namespaces ``a``-``h`` of two numbers each; the products a×b, c×d and e×f pay.

    The numbers are bell-shaped with standard deviation 1. The label is the sum of a linear part (weights in
    [-0.3, 0.3]), of all products of a number of one namespace with one of its partner (weights in
    [-0.9, 0.9]), and of bell-shaped noise with standard deviation 0.5. ``g`` and ``h`` act only linearly.
    """

    number: ClassVar[int] = 6

    def __init__(self, seed: int) -> None:
        self._seed = seed
        draws = Draws(seed, stream=self.number)
        self._linear = draws.integers(601, (16,)) - 300
        self._pairs = draws.integers(1801, (3, 2, 2)) - 900

    def _score(self, x: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the noise-free label in thousandths, int64[events], of numbers in thousandths."""
        left, right = x[:, :12].reshape(-1, 3, 2, 2)[:, :, 0], x[:, :12].reshape(-1, 3, 2, 2)[:, :, 1]
        products = np.einsum("epi,pij,epj->e", left, self._pairs, right)
        return np.asarray((x @ self._linear) // 1000 + products // 1_000_000)

    def block(self, index: int, take: int) -> Chunk:
        """Return the first `take` events of the block `index`."""
        draws = Draws(self._seed, stream=self.number, block=index)
        x = draws.bells(1000, (BLOCK, 16))
        truth = self._score(x)
        labels = truth + draws.bells(500, (BLOCK,))
        spelt = words([decimal(label, places=3) for label in labels[:take].tolist()])
        return _lines(spelt, x[:take], truth[:take] / 1000)


class Classification(Regression):
    """As `Regression`, with labels 1 and -1.

    The probability of 1 is ``0.5 + score / 4``, cut off at 0.05 and 0.95, where the score is the noise-free
    label of a `Regression`; so one label in twenty is wrong even far from the boundary.
    """

    number: ClassVar[int] = 7

    def block(self, index: int, take: int) -> Chunk:
        """Return the first `take` events of the block `index`."""
        draws = Draws(self._seed, stream=self.number, block=index)
        x = draws.bells(1000, (BLOCK, 16))
        chance = np.clip(500 + self._score(x) // 4, 50, 950)
        positive = (draws.integers(1000, (BLOCK,)) < chance).astype(np.int64)
        return _lines(words([b"-1", b"1"])[positive[:take]], x[:take], chance[:take] / 1000)


def _lines(labels: NDArray[np.uint8], x: NDArray[np.int64], truth: NDArray[np.float64]) -> Chunk:
    """Write one line an event: the label and the 16 numbers (in thousandths) under their namespaces."""
    features = side_by_side(words(_NAMES), decimals(4000, 3)[4000 + x]).reshape(len(x), -1)
    return Chunk(text=join(side_by_side(labels, features, b"\n")), truth=truth)
