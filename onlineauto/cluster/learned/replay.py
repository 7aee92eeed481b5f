"""``Replay``: the last decisions, from which batches are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.cluster.policies.situation import Bools, Ints


class Sample(NamedTuple):
    """Hold n decisions.

    Attributes
    ----------
    jobs, cluster, valid, choices, actions : array[n, ...]
        What was seen, what could be chosen, and what was.
    logs : float32[n]
        Logarithm of the probability that the action had.
    gain : float32[n]
        How much better than expected it was.
    targets : float32[n, J]
        What each job's value turned out to be.
    """

    jobs: NDArray[np.float32]
    cluster: NDArray[np.float32]
    valid: Bools
    choices: Bools
    actions: Ints
    logs: NDArray[np.float32]
    gain: NDArray[np.float32]
    targets: NDArray[np.float32]


class Replay:
    """Keep the last decisions.

    Parameters
    ----------
    most : int
        How many; with 0 those that were added last.
    draw : numpy.random.Generator
        Of batches.
    """

    def __init__(self, most: int, draw: np.random.Generator) -> None:
        self._most, self._draw = most, draw
        self._parts: list[Sample] = []
        self._all: Sample | None = None

    def __len__(self) -> int:
        return sum(len(part.actions) for part in self._parts)

    def add(self, sample: Sample) -> None:
        """Add decisions, and drop the oldest ones if they are too many."""
        self._parts.append(sample)
        while len(self._parts) > 1 and len(self) - len(self._parts[0].actions) >= self._most:
            del self._parts[0]
        self._all = None

    def clear(self) -> None:
        """Drop all."""
        self._parts, self._all = [], None

    def sample(self, many: int) -> Sample:
        """Draw decisions, with replacement."""
        if self._all is None:
            self._all = Sample(*(np.concatenate(each) for each in zip(*self._parts, strict=True)))
        at = self._draw.integers(len(self._all.actions), size=many)
        return Sample._make(each[at] for each in self._all)
