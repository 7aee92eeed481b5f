"""``drawn``: an action, drawn from the probabilities of all."""

from __future__ import annotations


def drawn(probabilities: list[float], uniform: float) -> int:
    """Return the index at which the sum of the probabilities passes `uniform`, a number from [0, 1).

    The probabilities may sum up to a little more or less than 1. One of 0 is never drawn.

    >>> drawn([0.25, 0.5, 0.25], 0.3), drawn([0.0, 1.0], 0.0), drawn([0.5, 0.5, 0.0], 1 - 2**-53)
    (1, 1, 1)
    """
    left = uniform * sum(probabilities)
    last = 0
    for action, probability in enumerate(probabilities):
        if probability > 0:
            left -= probability
            last = action
            if left < 0:
                break
    return last
