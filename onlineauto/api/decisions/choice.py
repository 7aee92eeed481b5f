"""``Choice``: a decision of `AutoML.rank`; ``draw_index`` draws its action."""

from __future__ import annotations

from collections.abc import Hashable

import msgspec
import numpy as np
from numpy.typing import NDArray


class Choice(msgspec.Struct, frozen=True, eq=False):
    """The action that was drawn, and the probabilities from which it was drawn.

    Attributes
    ----------
    action : int
        Index of the action, from 0.
    action_id : hashable
        Its key, if the actions were a mapping; else the index.
    probability : float
        The probability of this action.
    pmf : float32[n_actions]
        The probability of each action.
    event_id : str
        The id of the decision, for learning its reward later.
    """

    action: int
    action_id: Hashable
    probability: float
    pmf: NDArray[np.float32]
    event_id: str


def draw_index(probabilities: list[float], uniform: float) -> int:
    """Return the index at which the cumulative probability passes `uniform`, a number in [0, 1).

    The sum of the probabilities may differ a little from 1. An action with probability 0 is never drawn.

    >>> draw_index([0.25, 0.5, 0.25], 0.3), draw_index([0.0, 1.0], 0.0)
    (1, 1)
    """
    left = uniform * sum(probabilities)
    for action, probability in enumerate(probabilities):
        left -= probability
        if left < 0:  # never after a probability of 0, which leaves the rest as it was
            return action
    return max((action for action, probability in enumerate(probabilities) if probability > 0), default=0)
