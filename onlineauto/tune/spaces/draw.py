"""``Draw``: random numbers that are known by their number."""

from __future__ import annotations

from typing import Any

import numpy as np


class Draw:
    """A generator for each whole number: what it draws depends on a seed, a purpose and that number alone.

    So the random state of a scheduler or a searcher is one count. It goes on after a restart, in another
    process or on another machine, and nothing has to be drawn again to get there.

    Parameters
    ----------
    seed : int
        Any whole number.
    purpose : int
        Draws of different purposes are independent.

    Source: Salmon and others: Parallel random numbers: as easy as 1, 2, 3 (Philox), 2011.

    >>> draw = Draw(7, purpose=1)
    >>> early, late = float(draw.at(0).random()), float(draw.at(1).random())
    >>> float(draw.at(0).random()) == early != late
    True
    """

    def __init__(self, seed: int, purpose: int) -> None:
        bits = np.random.Philox(key=np.array([seed % 2**64, purpose], dtype=np.uint64))
        self._state: dict[str, Any] = dict(bits.state)
        self._generator = np.random.Generator(bits)
        self._bits = bits

    def at(self, number: int) -> np.random.Generator:
        """Return the generator of a number; the one that was returned before ends."""
        self._state["state"]["counter"][:] = (0, number, 0, 0)
        self._bits.state = self._state  # type: ignore[assignment]
        return self._generator
