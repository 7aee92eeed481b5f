"""Online cover: policies that each are paid for choosing what those before them do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.explorers._kernels import count_leaders
from onlineauto.jit import F32, inline_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ZERO = np.float32(0)
PSI, FALLS = 0, 1
"""Places among the numbers of the explorer: what choosing otherwise is paid; whether the floor falls."""


@inline_kernel
def pseudo_cost(cost: F32, psi: F32, share: F32, least: F32, norm: F32) -> F32:
    """Cost (float32) that a policy is taught of an action which those before it give this share."""
    return cost - psi * least / (max(share, least) / norm)


@inline_kernel
def add_policy(
    score: NDArray[np.float32],
    n: int,
    first_only: bool,
    part: F32,
    least: F32,
    norm: F32,
    votes: NDArray[np.float32],
    sums: NDArray[np.float32],
    by_rank: bool,
    order: NDArray[np.int32],
    ranked: NDArray[np.float32],
) -> F32:
    """Add the part of a policy to the actions that lead, and its scores; return the new norm (float32).

    The norm is what all shares sum up to, once each is raised to the floor. VW adds scores `by_rank`, where
    it means to add those of one action.
    """
    leading = count_leaders(score, n, first_only, order, ranked)
    share = part / np.float32(leading)
    for i in range(n):
        sums[i if by_rank else order[i]] += ranked[i]
    for i in range(leading):
        before = votes[order[i]]
        if before < least:
            norm += max(_ZERO, share - (least - before))
        else:
            norm += share
        votes[order[i]] = before + share
    return norm
