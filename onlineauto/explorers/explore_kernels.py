"""From ranked scores to probabilities, by the explorer that is chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.explorers._kernels import LEARNT, rank_by_probability
from onlineauto.explorers.bag_kernels import count_votes
from onlineauto.explorers.cover_kernels import cover_floor
from onlineauto.explorers.first_kernels import first
from onlineauto.explorers.floor_kernels import hold_floor
from onlineauto.explorers.greedy_kernels import greedy
from onlineauto.explorers.regcb_kernels import regcb, regcb_optimistic
from onlineauto.explorers.rnd_kernels import rnd
from onlineauto.explorers.softmax_kernels import softmax
from onlineauto.explorers.squarecb_kernels import greediness, squarecb, squarecb_elim
from onlineauto.explorers.synthcover_kernels import see_cost, synthcover
from onlineauto.jit import F32, entry_kernel, inline_kernel, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.explorers._kernels import Exploration

GREEDY, FIRST, SOFTMAX, SQUARECB, REGCB, SYNTHCOVER, BAG, COVER, RND, EPSILON_DECAY = range(10)
"""Codes of explorers."""

PLAUSIBLE, VOTES, BONUS, SUMS, WORK, FILLED = 0, 0, 0, 1, 2, 3
"""Rows of the explorers' room: plausible costs, lowest and highest, or votes and summed scores, or bonuses;
scratch."""

ROWS = 4

_ONE = np.float32(1)


@kernel
def _pour(
    at: Exploration, order: NDArray[np.int32], score: NDArray[np.float32], n: int, room: NDArray[np.float32]
) -> None:
    """Synthetic cover; it lists the likeliest first, of those alike the last."""
    if n == 1:
        score[0] = _ONE
        return
    filled, pmf = room[FILLED], room[PLAUSIBLE]
    for i in range(n):
        filled[order[i]] = score[i]
    synthcover(pmf, filled, n, at.costs, at.psi, at.size)
    hold_floor(pmf, n, at.epsilon, True, room[WORK])
    for action in range(n):
        filled[action] = -np.float32(action)
    rank_by_probability(pmf, filled, n, order)
    for i in range(n):
        score[i] = pmf[order[i]]


@kernel
def _count(
    at: Exploration, order: NDArray[np.int32], score: NDArray[np.float32], n: int, room: NDArray[np.float32]
) -> None:
    """Make probabilities of the votes of several policies; the likeliest is listed first."""
    votes = room[VOTES]
    if at.code == BAG:
        count_votes(votes, n)
        hold_floor(votes, n, at.epsilon, True, room[WORK])
    else:
        least = cover_floor(at.epsilon, at.decays, at.counts[LEARNT], n)
        hold_floor(votes, n, least * np.float32(n), not at.nounif, room[WORK])
    rank_by_probability(votes, room[SUMS], n, order)
    for i in range(n):
        score[i] = votes[order[i]]


@kernel
def _explore_otherwise(
    at: Exploration, order: NDArray[np.int32], score: NDArray[np.float32], n: int, room: NDArray[np.float32]
) -> None:
    learnt = at.counts[LEARNT]
    if at.code == SYNTHCOVER:
        _pour(at, order, score, n, room)
        return
    if at.code in (BAG, COVER):
        _count(at, order, score, n, room)
        return
    if at.code == REGCB:
        if at.optimistic:
            regcb_optimistic(score, order, n, room, at.first_only, at.exact)
        else:
            regcb(score, order, n, room)
        return
    if at.code == FIRST:
        first(score, n, bool(learnt < at.tau))
    elif at.code == SOFTMAX:
        softmax(score, n, at.lambda_)
    elif at.code == RND:
        rnd(score, order, n, room[BONUS])
    elif at.code == SQUARECB:
        gamma = greediness(at.gamma_scale, at.gamma_exponent, learnt)
        if at.elim:
            squarecb_elim(score, order, n, gamma, room, at.exact)
            if at.exact:  # which has no floor there
                return
        else:
            squarecb(score, n, gamma)
    hold_floor(score, n, at.epsilon, True, room[WORK])


@inline_kernel
def explore(
    at: Exploration, order: NDArray[np.int32], score: NDArray[np.float32], n: int, room: NDArray[np.float32]
) -> None:
    """Replace ranked scores by probabilities; an explorer may list the actions in another order then.

    Parameters
    ----------
    order : int32[n]
        Actions by rank.
    score : float32[n]
        Their scores.
    room : float32[ROWS, at least n]
        Plausible costs by action, if the explorer goes by them, and scratch.
    """
    if at.code == GREEDY:
        greedy(score, n, at.epsilon, at.first_only)
    elif n > 0:
        _explore_otherwise(at, order, score, n, room)


@entry_kernel
def explore_ranked(
    at: Exploration, order: NDArray[np.int32], score: NDArray[np.float32], room: NDArray[np.float32]
) -> None:
    """`explore`, for callers that are not kernels."""
    explore(at, order, score, len(score), room)


@inline_kernel
def taught_probability(at: Exploration, probability: F32, action: int, n: int) -> F32:
    """Probability (float32) that the learners are told of: 1, for regression; VW forgets the last action."""
    if at.regresses and (action < n - 1 or not at.exact):
        return _ONE
    return probability


@inline_kernel
def note_cost(at: Exploration, cost: F32) -> None:
    """Take note of a cost that is learnt."""
    if at.code == SYNTHCOVER:
        see_cost(at.costs, cost)


@inline_kernel
def note_learnt(at: Exploration) -> None:
    """Take note that an event is learnt."""
    at.counts[LEARNT] += 1
