"""``Draw``: reproducible random generators, addressed by whole numbers."""

from __future__ import annotations

from typing import Any

import numpy as np


class Draw:
    """A random generator for each whole number, which depends only on a seed, a purpose and this number.

    The random state of a scheduler or a searcher is therefore one counter. After a restart, in another
    process or on another machine, it continues without repeating earlier draws.
    """

    def __init__(self, seed: int, purpose: int) -> None:
        bits = np.random.Philox(key=np.array([seed % 2**64, purpose], dtype=np.uint64))
        self._state: dict[str, Any] = dict(bits.state)
        self._generator = np.random.Generator(bits)
        self._bits = bits

    def at(self, number: int, branch: int = 0) -> np.random.Generator:
        """Return the generator of a number; this invalidates the generator that was returned before."""
        self._state["state"]["counter"][:] = (0, number, branch, 0)
        self._bits.state = self._state  # type: ignore[assignment]
        return self._generator
