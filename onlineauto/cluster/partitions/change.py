"""Change: detect in the losses of chunks that a stream has changed, so that one learner continues.

All chunks of a round begin from the same base, so after a change a round adapts no further than one chunk.
Losses of bandits are importance-weighted: they estimate the cost of what the model would choose. They are
compared by their number, their sum and their sum of squares.
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from onlineauto.engine.event.outcomes import Outcomes

_ROUNDS, _ENOUGH = 8, 1024
"""Numbers of rounds, or pieces that one learner has learnt, and of losses, with which others are compared."""
_RISE, _GAIN = 3.0, 1.0
"""Standard errors by which losses rise after a change, and by which one learner then loses less."""


class ChangeTest:
    """Compares the losses of each round with those of the last rounds.

    `begin` is the event at which the last change was detected; the lengths of rounds are counted from there.
    """

    def __init__(self, begin: int = 0, rounds: Sequence[Sequence[float]] = ()) -> None:
        self.begin = begin
        self._rounds = deque((np.array(each, np.float64) for each in rounds), maxlen=_ROUNDS)

    def state(self) -> tuple[Any, ...]:
        """Return the arguments of a copy."""
        return self.begin, [each.tolist() for each in self._rounds]

    def note(self, outcomes: Sequence[Outcomes]) -> None:
        """Add the losses of a round, or of a piece that one learner has learnt."""
        self._rounds.append(np.sum([_sums(each) for each in outcomes], axis=0))

    def first_changed(self, chunks: Sequence[Outcomes]) -> int:
        """Return the chunk before those whose losses have risen; the number of chunks if none have."""
        sums, before = [_sums(each) for each in chunks], list(self._rounds)
        rises = [_rise(before, sums[at:]) for at in range(len(sums))]
        if max(rises, default=0.0) > _RISE:
            return max(rises.index(max(rises)) - 1, 0)  # a change may be in mid-chunk
        slow = any(_rise(before[:-n], [*before[-n:], *sums]) > _RISE for n in (1, 2))
        return 0 if slow else len(chunks)

    def confirm(self, begin: int, alone: Sequence[Outcomes], chunks: Sequence[Outcomes]) -> None:
        """Note the losses of one learner; if chunks of the same events lose more, `begin` is a change."""
        gains = np.concatenate([each.loss for each in chunks]) - np.concatenate([each.loss for each in alone])
        if gains.sum() > _GAIN * math.sqrt(float(gains @ gains)):
            self.begin = begin
            self._rounds.clear()
        self.note(alone)


def _sums(outcomes: Outcomes) -> NDArray[np.float64]:
    """Return number, sum and sum of squares of the losses of labelled events."""
    losses = outcomes.loss[outcomes.labelled].astype(np.float64)
    return np.array([len(losses), losses.sum(), losses @ losses])


def _rise(before: Sequence[NDArray[np.float64]], after: Sequence[NDArray[np.float64]]) -> float:
    """Return by how many standard errors the mean loss has risen; 0 if there are too few losses."""
    (m, total, squares), (n, latest, its_squares) = (sum(each, np.zeros(3)) for each in (before, after))
    if m < _ENOUGH or not n:
        return 0.0
    mean, variance, latest = total / m, squares / m - (total / m) ** 2, latest / n
    error = math.sqrt(max(max(variance, its_squares / n - latest**2) / n + variance / m, 0.0))
    return float(latest - mean) / error if error > 0.0 else 0.0
