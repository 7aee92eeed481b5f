"""``Replay``: the last decisions, from which batches are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.cluster.policies.situation import Bools, Ints


class Sample(NamedTuple):
    """Hold n decisions."""

    jobs: NDArray[np.float32]  # The input of the network, the possible actions, and the chosen action.
    cluster: NDArray[np.float32]
    valid: Bools
    choices: Bools
    actions: Ints
    logs: NDArray[np.float32]  # float32[n]: logarithm of the probability of the action.
    gain: NDArray[np.float32]  # float32[n]: target value minus estimated value.
    targets: NDArray[np.float32]  # float32[n, J]: target value of each job.


class Replay:
    """A buffer of the last decisions."""

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
