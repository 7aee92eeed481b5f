"""``Choice``: a decision of `AutoML.rank`."""

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
