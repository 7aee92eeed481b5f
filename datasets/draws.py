"""Random whole numbers that are the same on every machine and with every version of NumPy.

NumPy promises that the raw words of a bit generator never change; it promises no such thing of
``Generator.integers`` or ``Generator.normal``. So only raw words are used here, and everything made from them
is integer arithmetic. A block of events has a place of its own in the counter of the generator, so a block
can be drawn without those before it and does not depend on how many follow.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Draws"]

_TABLES = 1 << 63  # no stream has this many blocks


class Draws:
    """The random numbers of one block of a stream, in the order they are asked for.

    Parameters
    ----------
    seed : int
        0 to 2**64 - 1.
    stream : int
        Number of the kind of stream, so that two kinds with one seed have nothing in common.
    block : int or None, default=None
        Which block of events; None for the numbers that hold for the whole stream (the planted truth).

    Raises
    ------
    ValueError
        If `seed` is negative or does not fit 64 bits.

    Examples
    --------
    >>> Draws(1, stream=7, block=0).integers(6, (2, 4)).tolist()
    [[1, 5, 4, 0], [3, 0, 3, 1]]
    """

    def __init__(self, seed: int, *, stream: int, block: int | None = None) -> None:
        if not 0 <= seed < 1 << 64:
            raise ValueError(f"seed {seed} is out of range: give a whole number from 0 to 2**64 - 1")
        self._key = np.array([seed, stream], dtype=np.uint64)
        self._block = _TABLES if block is None else block
        self._asked = 0

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return `count` raw 64-bit words; each call has a stretch of the counter to itself."""
        counter = np.array([0, self._asked, self._block, 0], dtype=np.uint64)
        self._asked += 1
        raw = np.random.Philox(counter=counter, key=self._key).random_raw(count)
        return np.asarray(raw, dtype=np.dtype("<u8"))

    def integers(self, high: int, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """Return whole numbers uniform on 0 to ``high - 1`` (to within ``high / 2**32``), int64[shape]."""
        size = prod(shape)
        halves = self.words((size + 1) // 2).view(np.dtype("<u4"))[:size].astype(np.uint64)
        return ((halves * np.uint64(high)) >> np.uint64(32)).astype(np.int64).reshape(shape)

    def around_zero(self, bound: int, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """Return whole numbers uniform on ``-bound`` to ``bound``, int64[shape]."""
        return np.asarray(self.integers(2 * bound + 1, shape) - bound)

    def bells(self, spread: int, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """Return bell-shaped whole numbers, int64[shape], of mean 0 and standard deviation `spread`.

        The sum of four uniforms (Irwin-Hall), so none is further than 3.47 standard deviations out: near
        enough to normal, and free of ``log`` and ``cos``, whose last bits differ between C libraries.
        """
        sixteen = self.words(prod(shape)).view(np.dtype("<u2")).reshape(*shape, 4)
        total = sixteen.astype(np.int64).sum(axis=-1) - 2 * 65535
        return np.asarray(total * spread // 37837)  # 65536 / sqrt(3), the standard deviation of the total
