"""Synthetic cover: pour probability onto the best action, bit by bit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.explorers._kernels import HIGH, LOW
from onlineauto.jit import F32, inline_kernel, kernel, short_loop

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ZERO = np.float32(0)
_ONE = np.float32(1)


@inline_kernel
def see_cost(costs: NDArray[np.float32], cost: F32) -> None:
    """Widen the range of costs."""
    costs[LOW] = min(costs[LOW], cost)
    costs[HIGH] = max(costs[HIGH], cost)


@kernel
def synthcover(
    pmf: NDArray[np.float32],
    cost: NDArray[np.float32],
    n: int,
    costs: NDArray[np.float32],
    psi: F32,
    size: int,
) -> None:
    """Fill in the probabilities of two or more actions, by their numbers; `cost` is what is filled up.

    Parameters
    ----------
    costs : float32[2]
        Range that costs are clipped to.
    psi : float32
        How much a cost rises by all of the probability.
    size : int
        Into how many bits it is divided.
    """
    bit = _ONE / np.float32(size)
    for action in range(n):
        pmf[action], cost[action] = _ZERO, max(costs[LOW], min(cost[action], costs[HIGH]))
    poured = 0
    while poured < size:
        best = 0
        for action in range(1, n):
            short_loop()
            best = action if cost[action] < cost[best] else best
        second = np.float32(np.inf)
        for action in range(n):
            short_loop()
            second = min(second, cost[action]) if action != best else second
        while True:  # at least once, so that a cost that is no number stops nothing
            pmf[best] += bit
            cost[best] += bit * psi
            poured += 1
            if poured >= size or not second >= cost[best]:
                break
