"""``LossTally``: the number of learnt events, and their average loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from onlineauto.engine.records.loop import Outlier

if TYPE_CHECKING:
    from onlineauto.engine.event.outcomes import Outcomes

FIELDS: Final = ("events", "weight", "loss")


class LossTally:
    """Counts learnt events, with their weights and their progressive losses.

    Examples
    --------
    >>> tally = LossTally()
    >>> tally.add(1.0, loss=0.5)
    >>> tally.add(1.0, loss=0.0)
    >>> tally.events, tally.average
    (2, 0.25)
    """

    __slots__ = FIELDS

    def __init__(self, events: int = 0, weight: float = 0.0, loss: float = 0.0) -> None:
        self.events, self.weight, self.loss = events, weight, loss

    @property
    def average(self) -> float:
        """The average loss, NaN before the first event."""
        return self.loss / self.weight if self.weight else float("nan")

    def add(self, weight: float, *, loss: float) -> None:
        """Count an event; `loss` includes its weight."""
        self.events += 1
        self.weight += weight
        self.loss += loss

    def begin_again(self) -> None:
        """Drop the losses so far, because the first events were outliers; the events stay counted."""
        self.weight = self.loss = 0.0

    def add_block(self, outcomes: Outcomes) -> None:
        """Count the labelled events of a block that were not held out."""
        counted = outcomes.labelled & ~outcomes.holdout
        self.events += int(counted.sum())
        begins = np.flatnonzero(outcomes.outlier == Outlier.BEGINS_AGAIN)
        if len(begins):
            self.begin_again()
            counted[: begins[-1]] = False
        self.weight += float(outcomes.weight[counted].sum(dtype=float))
        self.loss += float(outcomes.loss[counted].sum(dtype=float))
