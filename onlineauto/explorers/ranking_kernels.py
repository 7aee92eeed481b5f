"""Define the record of exploration that every explorer reads, note costs in it, and rank actions.

Scores are costs: the lowest score is the best. Ranked scores begin with the best one.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.jit import F32, entry_kernel, inline_kernel, kernel, short_loop

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.explorers.quirks import ExploringQuirks

LEARNT, DRAWN = 0, 1
"""Entries of the counts: events learnt; actions drawn."""

LOW, HIGH = 0, 1
"""Indices of the range of costs: the lowest and the highest."""

VOTES, BONUS, UNSURE, SUMS, WORK, FILLED, PART, PLACED = 0, 0, 0, 1, 2, 3, 4, 5
"""Rows of the explorers' scratch. The first two have the lowest and the highest plausible cost, or votes and
summed scores, or bonuses. The last two are those of new actions: learnt parts, and scores by action."""

ROWS = 6

_ONE = np.float32(1)
_KEEPS = 0.999
"""Factor of the earlier errors for each learnt event: about the last 1,000 errors count."""
_FEW = 32  # inserted one by one; more are sorted by a heap
_TOLERANCE = np.float32(0.0001)


ALONE, BAG, COVER, RND, EPSILON_DECAY = range(5)
"""Codes of how an explorer's models learn; the first is for a single model."""


class Errors(IntEnum):
    """Entries of `Exploration.errors`: sums over the learnt events."""

    EVENTS = 0  # number of events
    MEAN = 1  # mean cost
    SQUARES = 2  # sum of the squared differences of costs from their mean
    RECENT = 3  # number of recent events, of which older ones count less
    RECENT_SQUARES = 4  # sum of the squared errors of predictions of recent events


class Exploration(NamedTuple):
    """The options of exploration, and the state that it depends on."""

    policy_kind: int  # how several models learn, see above
    direct: bool  # ε-greedy: the loop computes it without a call
    active: bool  # scores become probabilities
    bounds: bool  # the explorer reads plausible costs
    regresses: bool  # costs are learnt without importance weights
    samples: bool  # an action is drawn, and put first
    sees_costs: bool  # the explorer reads the range of the costs learnt
    sees_errors: bool  # the explorer reads the typical error of predictions
    quirks: ExploringQuirks
    epsilon: F32
    first_only: bool
    numbers: NDArray[np.float64]  # parameters of the chosen explorer, in its own order
    mellowness: F32  # of plausible costs
    low: F32  # lowest possible cost; NaN is the lowest that was learnt
    high: F32
    policies: int  # number of models of the explorer; 0 if it uses the costs' model alone
    counts: NDArray[np.int64]  # [2], see the entries above
    costs: NDArray[np.float32]  # [2]: LOW, HIGH of the costs learnt and 0
    errors: NDArray[np.float64]  # [5], see `Errors`
    random: NDArray[np.uint64]  # [1]: state of VW's generator; otherwise the seed
    times: NDArray[np.int64]  # [policies]: how often each learns the current event
    guesses: NDArray[np.float32]  # [policies]: each one's guess for the logged action


@inline_kernel
def _is_before(score: NDArray[np.float32], one: int, other: int) -> bool:
    """Return whether action `one` ranks before `other`: by score, then by number."""
    return bool(score[one] < score[other] or (score[one] == score[other] and one < other))


@inline_kernel
def _sift(score: NDArray[np.float32], order: NDArray[np.int32], root: int, n: int) -> None:
    """Restore the heap of `n` actions below `root`; the first action of the heap is ranked last."""
    action = order[root]
    child = 2 * root + 1
    while child < n:
        short_loop()
        if child + 1 < n and _is_before(score, order[child], order[child + 1]):
            child += 1
        if not _is_before(score, action, order[child]):
            break
        order[root] = order[child]
        root, child = child, 2 * child + 1
    order[root] = action


@kernel
def rank(score: NDArray[np.float32], n: int, order: NDArray[np.int32]) -> None:
    """Write into `order` the actions 0 .. n-1 by (score, action), both ascending: best first."""
    for action in range(n):
        short_loop()
        i = action
        while n <= _FEW and i > 0 and score[action] < score[order[i - 1]]:
            short_loop()
            order[i] = order[i - 1]
            i -= 1
        order[i] = action
    if n > _FEW:
        for root in range(n // 2 - 1, -1, -1):
            _sift(score, order, root, n)
        for last in range(n - 1, 0, -1):
            order[0], order[last] = order[last], order[0]
            _sift(score, order, 0, last)


@inline_kernel
def _is_likelier(pmf: NDArray[np.float32], score: NDArray[np.float32], one: int, other: int) -> bool:
    """Return whether action `one` is listed before `other`: by probability, score, number."""
    if pmf[one] != pmf[other]:
        return bool(pmf[one] > pmf[other])
    return _is_before(score, one, other)


@kernel
def rank_by_probability(
    pmf: NDArray[np.float32], score: NDArray[np.float32], n: int, order: NDArray[np.int32]
) -> None:
    """Write into `order` the actions 0 .. n-1 by descending probability, then by ascending score."""
    for action in range(n):
        order[action] = action
    gap = 1
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap > 0:  # Shell sort: insertion sort with decreasing gaps
        for last in range(gap, n):
            action, i = order[last], last
            while i >= gap and _is_likelier(pmf, score, action, order[i - gap]):
                short_loop()
                order[i] = order[i - gap]
                i -= gap
            order[i] = action
        gap //= 3


@inline_kernel
def count_tied(score: NDArray[np.float32], n: int) -> int:
    """Return how many leading entries of ranked `score` are within 1e-4 (relative) of the first."""
    tied = 1
    while tied < n and abs(score[tied] - score[0]) <= _TOLERANCE * (abs(score[tied]) + abs(score[0])):
        short_loop()
        tied += 1
    return tied


@inline_kernel
def count_leaders(
    score: NDArray[np.float32],
    n: int,
    first_only: bool,
    order: NDArray[np.int32],
    ranked: NDArray[np.float32],
) -> int:
    """Rank the scores of actions into `order` and `ranked`; return how many lead, 1 if `first_only`."""
    rank(score, n, order)
    for i in range(n):
        short_loop()
        ranked[i] = score[order[i]]
    return 1 if first_only else count_tied(ranked, n)


@inline_kernel
def learnt_probability(exploration: Exploration, probability: F32, action: int, n: int) -> F32:
    """Return the probability (float32) by whose inverse learners weight a cost: 1 for regression."""
    if exploration.regresses and (action < n - 1 or not exploration.quirks.weighs_last_action):
        return _ONE
    return probability


@inline_kernel
def note_cost(exploration: Exploration, cost: F32) -> None:
    """Widen the range of costs to a learnt cost, if the explorer reads that range."""
    if exploration.sees_costs:
        exploration.costs[LOW] = min(exploration.costs[LOW], cost)
        exploration.costs[HIGH] = max(exploration.costs[HIGH], cost)


@inline_kernel
def note_value(exploration: Exploration, cost: float) -> None:
    """Add a cost to the sums for `typical_error`."""
    sums = exploration.errors
    sums[Errors.EVENTS] += 1.0
    difference = cost - sums[Errors.MEAN]
    sums[Errors.MEAN] += difference / sums[Errors.EVENTS]
    sums[Errors.SQUARES] += difference * (cost - sums[Errors.MEAN])


@kernel
def note_error(exploration: Exploration, cost: F32, prediction: F32, weight: F32) -> None:
    """Add a learnt cost and the error of its prediction, which counts `weight`, to the same sums."""
    sums, c = exploration.errors, np.float64(cost)
    note_value(exploration, c)
    error, times = c - np.float64(prediction), np.float64(weight)
    if math.isfinite(error * error):
        sums[Errors.RECENT] = _KEEPS * sums[Errors.RECENT] + times
        sums[Errors.RECENT_SQUARES] = _KEEPS * sums[Errors.RECENT_SQUARES] + times * (error * error)


@inline_kernel
def typical_error(exploration: Exploration) -> float:
    """Return the typical error of a prediction, at most the standard deviation of the costs.

    It is 0 as long as all costs are equal; but 1 if events were learnt whose errors are unknown.
    """
    sums = exploration.errors
    if not (sums[Errors.SQUARES] > 0.0 and sums[Errors.RECENT] > 0.0):
        return 1.0 if exploration.counts[LEARNT] > sums[Errors.EVENTS] else 0.0
    recent = sums[Errors.RECENT_SQUARES] / sums[Errors.RECENT]
    return math.sqrt(min(sums[Errors.SQUARES] / sums[Errors.EVENTS], recent))


@inline_kernel
def note_learnt(exploration: Exploration) -> None:
    """Count a learnt event."""
    exploration.counts[LEARNT] += 1


@entry_kernel
def note_outcome(exploration: Exploration, cost: F32, prediction: F32) -> None:
    """Count an event that Python code explores: its learnt cost, and what was predicted."""
    note_cost(exploration, cost)
    note_error(exploration, cost, prediction, _ONE)
    note_learnt(exploration)
