"""Intervals for people: where a mean lies, at all times at once, from sums and squares alone.

Observations x have means μ, and lie at most b from a number m that was known before. For a stake λ < 1/b,
exp(λ(x - m) - ψ(λb)(x - m)²/b²) ≤ 1 + λ(x - m) with ψ(z) = -ln(1 - z) - z; so the product of exp(λ(x - μ) -
ψ(λb)(x - m)²/b²) over all observations is 1 on average at most, and at 1/α with probability α at most. Solved
for the sum of μ that is a lower bound; the best of a grid of stakes, each with a share of α, is taken. Upper
bounds are lower bounds of -x.

The grid is fixed by the first b. When b grows, stakes that it makes too large are left out.

Source: Howard, Ramdas, McAuliffe, Sekhon, *Time-uniform, nonparametric, nonasymptotic confidence sequences*,
2021 (empirical Bernstein).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.estimators.scale_kernels import FLOOR, HIGH, LOW, in_unit
from onlineauto.jit import inline_kernel, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

GAIN, GAIN_SQUARES, LOSS, LOSS_SQUARES, FIRST_BOUND, BOUND = range(6)
"""Entries of sums: x, its squared distances from m, the same two of what bounds -x; the first b, the last."""

SUMS = 6
"""Length of sums; all zeros are fresh ones."""

REWARDS, WEIGHT, POLICY_SIZE = SUMS, SUMS + 1, SUMS + 2
"""Entries of a policy's state after its sums: rewards times squared weights, squared weights; its length."""

_STAKES = 48
_LARGEST = 0.75
_STAKE = _LARGEST * 1.6 ** -np.arange(float(_STAKES))
_LOG_SHARE = -np.log((np.arange(_STAKES) + 1.0) * (np.arange(_STAKES) + 2.0))


@inline_kernel
def tally(sums: NDArray[np.float64], up: float, down: float, centre: float, bound: float) -> None:
    """Add an observation `up` at most `bound` below `centre`, and `down`, so much below -`centre`.

    `down` is -`up`, or another number whose mean is minus that of `up`.
    """
    sums[GAIN] += up
    sums[GAIN_SQUARES] += (up - centre) * (up - centre)
    sums[LOSS] += down
    sums[LOSS_SQUARES] += (down + centre) * (down + centre)
    if sums[FIRST_BOUND] == 0.0:
        sums[FIRST_BOUND] = bound
    sums[BOUND] = max(sums[BOUND], bound)


@kernel
def lower_sum(total: float, squares: float, first: float, bound: float, alpha: float) -> float:
    """Lower bound on a sum of means, wrong with probability `alpha` at most; -inf if nothing was seen."""
    best = -np.inf
    if first > 0.0:
        for j in range(_STAKES):
            stake = _STAKE[j] / first
            z = stake * bound
            if z <= _LARGEST:
                psi = (-math.log1p(-z) - z) / (bound * bound)
                best = max(best, total - (psi * squares - math.log(alpha) - _LOG_SHARE[j]) / stake)
    return best


@kernel
def interval(sums: NDArray[np.float64], alpha: float) -> tuple[float, float]:
    """Bounds on the sum of the means; either is wrong with probability `alpha` / 2 at most."""
    first, bound = sums[FIRST_BOUND], sums[BOUND]
    low = lower_sum(sums[GAIN], sums[GAIN_SQUARES], first, bound, alpha / 2.0)
    high = -lower_sum(sums[LOSS], sums[LOSS_SQUARES], first, bound, alpha / 2.0)
    return low, high


@inline_kernel
def observe_policy(state: NDArray[np.float64], scale: NDArray[np.float64], w: float, reward: float) -> None:
    """Take in an event for the reward of one policy: `w` is 1/p if it would have acted so, and else 0.

    A reward beyond the range of the scale, or a weight beyond 1/floor, counts as the nearest within.
    """
    width = scale[HIGH] - scale[LOW]
    if not width > 0.0:
        return
    r = in_unit((reward - scale[LOW]) / width)
    c = state[REWARDS] / state[WEIGHT] if state[WEIGHT] > 0.0 else 0.5
    centre = scale[LOW] + c * width
    if scale[FLOOR] > 0.0:
        w = min(w, 1.0 / scale[FLOOR])
        x = centre + w * (r - c) * width
        tally(state, x, -x, centre, width / scale[FLOOR])
    else:
        tally(state, scale[LOW] + w * r * width, w * (1.0 - r) * width - scale[HIGH], centre, width)
    state[REWARDS] += w * w * r
    state[WEIGHT] += w * w


@inline_kernel
def observe_loss(state: NDArray[np.float64], loss: float, bound: float) -> None:
    """Take in a loss, as the reward -`loss`; `bound` is the largest that is known before it, as it counts."""
    if not bound > 0.0:
        return
    loss = min(loss, bound)
    mean = state[REWARDS] / state[WEIGHT] if state[WEIGHT] > 0.0 else 0.0
    tally(state, -loss, loss, -mean, bound)
    state[REWARDS] += loss
    state[WEIGHT] += 1.0
