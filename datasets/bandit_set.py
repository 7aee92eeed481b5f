"""What a full-information data set is, and what its makers share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

__all__ = ["BanditSet", "graded", "missing", "number", "one_best", "or_na", "shuffled", "word"]


@dataclass(frozen=True)
class BanditSet:
    """A full-information data set.

    Parameters
    ----------
    contexts : list of str
        The namespaces of every event as VW text, ``|a x_10 y_10 |b x_6 y_8``.
    rewards : float64[events, actions]
        The true reward of every action, in [0, 1].
    kept : int
        How many of the first events go into the files. The logs are drawn over all of them.
    lines : list of list of str
        The namespaces of every action of every event; by default the number of the action, ``|Z 3``.
    logs : str
        The logs that are made: ``u``, ``e`` or both.
    """

    contexts: list[str]
    rewards: NDArray[np.float64]
    kept: int
    lines: Sequence[Sequence[str]] = field(default=())
    logs: str = "ue"

    @property
    def namespaces(self) -> str:
        """The letters of the namespaces of the context."""
        return "".join(part[0] for part in self.contexts[0].split("|")[1:])

    @property
    def keys(self) -> list[str]:
        """The first feature of the first namespace of every event."""
        return [context.split(" ", 2)[1] for context in self.contexts]

    def actions_of(self, event: int) -> Sequence[str]:
        """The namespaces of every action of an event."""
        return self.lines[event] if self.lines else [f"|Z {k}" for k in range(self.rewards.shape[1])]


def one_best(best: Sequence[int], actions: int) -> NDArray[np.float64]:
    """Return reward 1 for the best action and 0 for the others, float64[events, actions]."""
    return np.asarray(np.eye(actions)[np.asarray(best)])


def graded(band: ArrayLike, actions: int) -> NDArray[np.float64]:
    """Return reward 1 for the band of each event, 2/3 for those beside it, and 1/3 for the next.

    >>> graded([1], 5).round(2).tolist()
    [[0.67, 1.0, 0.67, 0.33, 0.0]]
    """
    distance = np.abs(np.arange(actions) - np.asarray(band)[:, np.newaxis])
    return np.asarray(np.maximum(0, 1 - distance / 3))


def shuffled(events: int) -> list[int]:
    """Return the numbers of rows in random order."""
    return [int(row) for row in np.random.default_rng(1).permutation(events)]


def missing(value: str | float) -> bool:
    """Return whether a cell is empty; pandas marks it by NaN, which alone differs from itself."""
    return value != value or value in ("", "NA")


def or_na(value: str | float, width: int = 0) -> str:
    """Return the number of the bin of this width, the value itself for width 0, or ``na`` for nothing."""
    if missing(value):
        return "na"
    return str(int(float(value) // width)) if width else str(value)


def number(name: str, value: str | float) -> str:
    """Return a number as a number, ``x:1.5``, or ``na`` for nothing.

    >>> number("x", "1.50"), number("x", float("nan"))
    ('x:1.5', 'na')
    """
    return "na" if missing(value) else f"{name}:{float(value):g}"


def word(text: str | float) -> str:
    """Return a text as one word, or ``na`` for nothing.

    >>> word("Very Good: 1|2")
    'Very_Good_1_2'
    """
    if missing(text):
        return "na"
    return "_".join(
        "".join(letter if letter.isalnum() or letter in "-." else " " for letter in str(text)).split()
    )
