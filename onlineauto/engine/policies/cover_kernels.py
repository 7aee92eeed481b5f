"""Online cover: each policy is rewarded for actions that earlier policies do not choose."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.explorers.explore_kernels import FILLED, SUMS, VOTES, WORK
from onlineauto.explorers.ranking_kernels import count_leaders
from onlineauto.jit import F32, inline_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.explorers.ranking_kernels import Exploration

_ZERO = np.float32(0)
_ONE = np.float32(1)


class CoverNumber(IntEnum):
    """Entries of `Exploration.numbers` under online cover."""

    PSI = 0  # the reward for diversity ψ
    FALLS = 1  # the flag that the floor of probabilities falls over time


@inline_kernel
def pseudo_cost(cost: F32, psi: F32, share: F32, least: F32, norm: F32) -> F32:
    """Return the cost (float32) that a policy learns for an action with probability `share` so far."""
    return cost - psi * least / (max(share, least) / norm)


@inline_kernel
def add_policy(
    at: Exploration, n: int, least: F32, norm: F32, explored: NDArray[np.float32], order: NDArray[np.int32]
) -> F32:
    """Add a policy's vote, shared by its best actions, and its scores to the sums; return the new norm.

    The policy's scores are in the explorer's scratch (`FILLED`). The norm (float32) is the sum of all shares,
    each at least the floor `least`. With the quirk `sums_by_rank` scores are added by their rank, like in
    VW, and not by their action.
    """
    votes, sums, ranked = explored[VOTES], explored[SUMS], explored[WORK]
    leading = count_leaders(explored[FILLED], n, at.first_only, order, ranked)
    share = _ONE / np.float32(at.policies) / np.float32(leading)
    for i in range(n):
        sums[i if at.quirks.sums_by_rank else order[i]] += ranked[i]
    for i in range(leading):
        before = votes[order[i]]
        if before < least:
            norm += max(_ZERO, share - (least - before))
        else:
            norm += share
        votes[order[i]] = before + share
    return norm
