"""What a generator yields: a chunk of text together with the truth behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from datasets.spelling import decimals, join, side_by_side

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["BLOCK", "Chunk", "Stream", "bandit_chunk"]

BLOCK = 2048
"""Events drawn together, and the most that one chunk holds."""


@dataclass(frozen=True)
class Chunk:
    """Some consecutive events of a stream.

    Parameters
    ----------
    text : bytes
        The events in VW's text format, whole events only.
    truth : float64[events, actions] or float64[events]
        Contextual bandits: the mean reward of every action, noise left out (reward = -cost).
        Regression: the label without its noise. Classification: the probability of the label 1.
    actions : int64[events] or None
        The logged action, counted from 0; None for single-line streams.
    probabilities : float64[events] or None
        The probability with which it was logged; None for single-line streams.
    """

    text: bytes
    truth: NDArray[np.float64]
    actions: NDArray[np.int64] | None = None
    probabilities: NDArray[np.float64] | None = None


class Stream(Protocol):
    """A kind of stream with its seed: any block of it can be made, in any order."""

    def block(self, index: int, take: int) -> Chunk:
        """Return the first `take` events (at most `BLOCK`) of the block `index`."""


def bandit_chunk(
    *,
    take: int,
    shared: NDArray[np.uint8],
    actions: NDArray[np.uint8],
    means: NDArray[np.int64],
    rewards: NDArray[np.int64],
    logged: NDArray[np.int64],
    probabilities: NDArray[np.int64],
) -> Chunk:
    r"""Write contextual-bandit events: a ``shared`` line, a line per action, the label on the logged one.

    Parameters
    ----------
    take : int
        How many of the events to write.
    shared : uint8[events, width]
        The namespaces of the context, without the word ``shared``.
    actions : uint8[events or 1, K, width]
        The namespaces of each action.
    means, rewards : int64[events, K], int64[events]
        Mean rewards of all actions and the reward that was observed, in thousandths.
    logged, probabilities : int64[events]
        The logged action and its probability in thousandths.

    Examples
    --------
    >>> import numpy as np
    >>> from datasets.spelling import counting, side_by_side
    >>> one = np.array([1])
    >>> bandit_chunk(take=1, shared=side_by_side(b"|a ", counting(2)[one]),
    ...              actions=side_by_side(b"|Z ", counting(2))[np.newaxis], means=np.array([[500, 250]]),
    ...              rewards=np.array([400]), logged=one, probabilities=np.array([500])).text
    b'shared |a 1\n|Z 0\n0:-0.4:0.5 |Z 1\n\n'
    """
    thousandths = decimals(1000, 3)
    costs, chances = thousandths[1000 - rewards[:take]], thousandths[1000 + probabilities[:take]]
    label = side_by_side(b"0:", costs, b":", chances, b" ")
    labels = np.zeros((take, means.shape[1], label.shape[-1]), dtype=np.uint8)
    labels[np.arange(take), logged[:take]] = label
    lines = side_by_side(labels, actions[:take], b"\n").reshape(take, -1)
    return Chunk(
        text=join(side_by_side(b"shared ", shared[:take], b"\n", lines, b"\n")),
        truth=means[:take] / 1000,
        actions=logged[:take],
        probabilities=probabilities[:take] / 1000,
    )
