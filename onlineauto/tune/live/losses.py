"""``Losses``: the progressive losses of the events that a trial has learned, from one offset on."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.event.outcomes import Outcomes
    from onlineauto.features.block import Block


class Losses:
    """Collects the losses and weights of consecutive events; a sink of a `Run`."""

    def __init__(self, begin: int = 0, *, skipped: int = 0) -> None:
        self.begin, self.skipped = begin, skipped
        self._taken = np.zeros((2, 1024))
        self._size = 0

    @property
    def end(self) -> int:
        """The offset after the last event."""
        return self.begin + self._size

    def take(self, block: Block, outcomes: Outcomes) -> None:
        """Append the outcomes of a block, one row per event."""
        slots = outcomes.slots
        sums = np.array([outcomes.loss, outcomes.weight], np.float64)
        if slots is not None:  # an event has one row per slot
            sums = np.array([np.bincount(slots.event, each, len(block)) for each in sums])
        self._append(sums)

    def _append(self, sums: NDArray[np.float64]) -> None:
        size = self._size + sums.shape[1]
        while size > self._taken.shape[1]:
            self._taken = np.concatenate((self._taken, np.zeros_like(self._taken)), axis=1)
        self._taken[:, self._size : size] = sums
        self._size = size

    def state(self) -> dict[str, object]:
        """Return no state for the model file, because `write` stores the losses in front of the model."""
        return {}

    def mean(self, begin: int, end: int) -> float:
        """Return the mean loss of the events from one offset to another."""
        losses, weights = self._losses_between(begin, end).sum(axis=1)
        return float(losses / weights) if weights else 0.0

    def batches(self, begin: int, end: int, size: int) -> list[float]:
        """Return the mean losses of whole batches of events, rounded to seven digits."""
        losses, weights = self._losses_between(begin, end).reshape(2, -1, size).sum(axis=2)
        return [float(f"{mean:.7g}") for mean in losses / np.maximum(weights, 1e-30)]

    def _losses_between(self, begin: int, end: int) -> NDArray[np.float64]:
        return self._taken[:, begin - self.begin : end - self.begin]

    def write(self, file: BinaryIO) -> None:
        """Write the losses to a file."""
        np.save(file, np.array([self.begin, self.skipped]), allow_pickle=False)
        np.save(file, self._taken[:, : self._size], allow_pickle=False)

    @classmethod
    def read(cls, file: BinaryIO) -> Losses:
        """Return the losses that `write` has written."""
        begin, skipped = np.load(file, allow_pickle=False).tolist()
        losses = cls(begin, skipped=skipped)
        losses._append(np.load(file, allow_pickle=False))
        return losses
