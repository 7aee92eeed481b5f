"""Draws of a log's policy: the number of events that share a draw, and the level of proofs that follows.

A test of rewards divides by the logged probabilities. A probability says how likely an action was, but not
whether it was drawn separately for each event. If one draw covers a session of 50 events, these are a single
observation. A test that counts 50 observations then claims a certainty that it does not have.

**Estimate.** Consider the indicator of "the same action as in the event before", divided by the probability
of the logged action. Given the past, its mean is 1 if each event has a separate draw. The share of all events
so far with the logged action, divided by the same probability, has the mean 1 too. With independent draws,
the sum of 1/p over events whose action changes is therefore close to the sum expected from these shares. If L
events share a draw, it is L times smaller. The ratio estimates L.

The estimate needs several draws. Before that, the expected number of changes is the sum of 1 - p over the
propensities of the previous events, and a single shared draw would show no change at all. But a log may list
the logged action first. Such a log has no change where `_NEVER` changes are expected, and nothing is known
about its draws.

**Proof.** Over a block of L events that share a draw, the L-th root of the wealth of a bet, ∏(1 + λd)^(1/L),
is at most the mean of its factors. So the root is the wealth of a bettor that bets once per block, and a
proof by all events needs the L-th power of the level. An estimate of L below `_FEW` counts as 1, so nothing
changes for a log of independent draws.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.jit import inline_kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LATEST, BY_CHANCE, CHANGED, LARGEST, CHANGES, PROPENSITY, DUE = range(7)
"""Entries of draws:

- LATEST, PROPENSITY: the latest logged action, counted from 1, and its propensity;
- BY_CHANCE, CHANGED: the sum of 1/p over changes of action, as expected and as observed;
- LARGEST, CHANGES, DUE: the largest 1/p, and the numbers of observed and of expected changes.
"""

DRAWS_SIZE = 7

_FEW, _LEAST, _NEVER = 1.5, 16.0, 256.0


@inline_kernel
def note_draw(draws: NDArray[np.float64], action: int, often: float, p: float) -> None:
    """Record a logged action, its propensity, and `often`, the part of events so far that logged it."""
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
    """Return the estimated number of events that share a draw, 1 if each event seems to have its own."""
    if not draws[LARGEST] > 0.0:
        return 1.0
    many: float = (draws[BY_CHANCE] + draws[LARGEST]) / (draws[CHANGED] + draws[LARGEST])
    if draws[CHANGES] < _LEAST and (draws[CHANGES] > 0.0 or draws[DUE] < _NEVER):
        many = max(many, (draws[DUE] + 1.0) / (draws[CHANGES] + 1.0))
    return many if many >= _FEW else 1.0


@inline_kernel
def tell_of_actions(draws: NDArray[np.float64]) -> bool:
    """Return whether logged losses inform about several actions; a log without draws counts as if."""
    tell: bool = draws[LATEST] == 0.0 or draws[CHANGES] >= _LEAST
    return tell


@inline_kernel
def level_per_draw(level: float, events: float) -> float:
    """Return the significance level to use if `events` events share one random draw."""
    return level if events == 1.0 else level**events
