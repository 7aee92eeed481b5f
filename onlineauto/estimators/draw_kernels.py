"""Draws of a log's policy: how many events share one, and what a proof then takes.

A test of rewards divides by the logged probabilities. They say how likely an action was, but not whether it
was drawn anew for each event. If one draw holds for a session of 50 events, these are one observation, and a
test that takes them for 50 is sure of what it has seen but a few times.

**Estimate.** Given what happened before, the indicator of "the same action as in the event before", divided
by the probability of the logged action, has the mean 1 if each event has a draw of its own. So has the share
of all events so far that had the logged action, divided by the same. So the sum of 1/p over events whose
action changes is what these shares make it by chance, if draws are independent, and as many times less as
events share a draw.

That takes several draws. Until then the action was to change as often as the propensities of the event before
say, the sum of 1 - p, and the first draw that is shared would have it change never. But a log may list the
logged action first: it has no change where `_NEVER` are due, and nothing is known of its draws.

**Proof.** Over a block of L events that share a draw, the L-th root of the wealth of a bet, ∏(1 + λd)^(1/L),
is at most the mean of its factors. So it is a wealth that bets once a block. A proof by all events thus takes
the L-th power of the level. An estimate of L below `_FEW` counts as 1, so nothing changes for a log of
independent draws.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.jit import inline_kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LATEST, BY_CHANCE, CHANGED, LARGEST, CHANGES, PROPENSITY, DUE = range(7)
"""Entries of draws: the latest logged action, counted from 1; the sum of 1/p over changes of action, as it
would be by chance, and as it is; the largest 1/p; the number of these changes; the latest propensity; and the
number of changes that were due by propensities."""

DRAWS_SIZE = 7

_FEW, _LEAST, _NEVER = 1.5, 16.0, 256.0


@inline_kernel
def note_draw(draws: NDArray[np.float64], action: int, often: float, p: float) -> None:
    """Take note of a logged action, its propensity, and how `often` it was logged so far, in [0, 1]."""
    weight = 1.0 / p
    if draws[LATEST] > 0.0:
        draws[BY_CHANCE] += (1.0 - often) * weight
        draws[DUE] += max(1.0 - draws[PROPENSITY], 0.0)
        if draws[LATEST] != action + 1.0:
            draws[CHANGED] += weight
            draws[CHANGES] += 1.0
    draws[LARGEST] = max(draws[LARGEST], weight)
    draws[LATEST] = action + 1.0
    draws[PROPENSITY] = p


@inline_kernel
def events_per_draw(draws: NDArray[np.float64]) -> float:
    """Return how many events share a draw, 1 if each seems to have its own."""
    if not draws[LARGEST] > 0.0:
        return 1.0
    many: float = (draws[BY_CHANCE] + draws[LARGEST]) / (draws[CHANGED] + draws[LARGEST])
    if draws[CHANGES] < _LEAST and (draws[CHANGES] > 0.0 or draws[DUE] < _NEVER):
        many = max(many, (draws[DUE] + 1.0) / (draws[CHANGES] + 1.0))
    return many if many >= _FEW else 1.0


@inline_kernel
def tell_of_actions(draws: NDArray[np.float64]) -> bool:
    """Return whether logged losses tell of more actions than one; they do if there were no draws at all."""
    tell: bool = draws[LATEST] == 0.0 or draws[CHANGES] >= _LEAST
    return tell


@inline_kernel
def by_draws(level: float, events: float) -> float:
    """Return the level that a proof takes, if so many `events` share a draw."""
    return level if events == 1.0 else level**events
