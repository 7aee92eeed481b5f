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
        The input of the network, the possible actions, and the chosen action.
    logs : float32[n]
        Logarithm of the probability of the action.
    gain : float32[n]
        Target value minus estimated value.
    targets : float32[n, J]
        Target value of each job.
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
    """A buffer of the last decisions.

    Parameters
    ----------
    most : int
        Maximum number of decisions; the last added sample is always retained.
    draw : numpy.random.Generator
        Generator of batches.
    """

    def __init__(self, most: int, draw: np.random.Generator) -> None:
        self._most, self._draw = most, draw
        self._parts: list[Sample] = []
        self._all: Sample | None = None

    def __len__(self) -> int:
        return sum(len(part.actions) for part in self._parts)

    def add(self, sample: Sample) -> None:
        """Add decisions, and drop the oldest ones beyond the maximum."""
        self._parts.append(sample)
        while len(self._parts) > 1 and len(self) - len(self._parts[0].actions) >= self._most:
            del self._parts[0]
        self._all = None

    def clear(self) -> None:
        """Drop all decisions."""
        self._parts, self._all = [], None

    def sample(self, count: int) -> Sample:
        """Draw `count` decisions with replacement."""
        if self._all is None:
            self._all = Sample(*(np.concatenate(each) for each in zip(*self._parts, strict=True)))
        at = self._draw.integers(len(self._all.actions), size=count)
        return Sample._make(each[at] for each in self._all)
