"""Online cover: each policy is rewarded for actions that the policies before it do not choose."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.explorers._kernels import count_leaders
from onlineauto.jit import F32, inline_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ZERO = np.float32(0)
PSI, FALLS = 0, 1
"""Indices among the explorer's numbers: the reward for diversity ψ; the flag that the floor falls."""


@inline_kernel
def pseudo_cost(cost: F32, psi: F32, share: F32, least: F32, norm: F32) -> F32:
    """Return the cost (float32) that a policy learns for an action to which earlier ones give `share`."""
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
    """Add a policy's `part` to the votes of its best actions, and its scores to `sums`; return the new norm.

    The norm (float32) is the sum of all shares, each raised to the floor `least`. With the quirk `by_rank`
    scores are added by their rank, as in VW, and not by their action.
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
