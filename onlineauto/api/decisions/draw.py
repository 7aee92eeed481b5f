"""``drawn``: draws an action from the probabilities of all actions."""

from __future__ import annotations


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
    return max((action for action, each in enumerate(probabilities) if each > 0), default=0)
