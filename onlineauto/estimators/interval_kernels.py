"""Intervals for people: bounds on a mean, valid at all times at once, from sums and squares alone.

Observations x have means μ, and lie at most b below a number m that is known before them. For a stake λ <
1/b, exp(λ(x - m) - ψ(λb)(x - m)²/b²) ≤ 1 + λ(x - m) with ψ(z) = -ln(1 - z) - z. So the product of exp(λ(x -
μ) - ψ(λb)(x - m)²/b²) over all observations is at most 1 on average, and ever reaches 1/α with probability at
most α. Solved for the sum of μ, that is a lower bound. We take the best bound of a grid of stakes, each with
a share of α. Upper bounds are lower bounds of -x.

The first b fixes the grid. When b grows, stakes that have become too large are left out.

Source: Howard, Ramdas, McAuliffe, Sekhon, *Time-uniform, nonparametric, nonasymptotic confidence sequences*,
2021 (empirical Bernstein).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.estimators.scale_kernels import FLOOR, HIGH, LOW, in_unit
from onlineauto.jit import entry_kernel, inline_kernel, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

GAIN, GAIN_SQUARES, LOSS, LOSS_SQUARES, FIRST_BOUND, BOUND = range(6)
"""Entries of sums: Σ of x and of (x - m)², the same two for the bound on -x; the first and the largest b."""

SUMS = 6
"""Length of sums; new sums are all zeros."""

REWARDS, WEIGHT, POLICY_SIZE = SUMS, SUMS + 1, SUMS + 2
"""Entries of a policy's state after its sums: Σ of rewards times squared weights, Σ of squared weights; and
the length of the state."""

_STAKES = 48
_LARGEST = 0.75
_STAKE = np.array([_LARGEST * 1.6**-n for n in range(_STAKES)])
_LOG_SHARE = np.array([-math.log((n + 1.0) * (n + 2.0)) for n in range(_STAKES)])


@inline_kernel
def tally(sums: NDArray[np.float64], up: float, down: float, centre: float, bound: float) -> None:
    """Add an observation `up` ≥ `centre` - `bound`, and its negative, or one of that mean, as `down`."""
    sums[GAIN] += up
    sums[GAIN_SQUARES] += (up - centre) * (up - centre)
    sums[LOSS] += down
    sums[LOSS_SQUARES] += (down + centre) * (down + centre)
    if sums[FIRST_BOUND] == 0.0:
        sums[FIRST_BOUND] = bound
    sums[BOUND] = max(sums[BOUND], bound)


@kernel
def lower_sum(total: float, squares: float, first: float, bound: float, alpha: float) -> float:
    """Return a lower bound on a sum of means, wrong with probability at most `alpha`; -inf without data."""
    best = -np.inf
    if first > 0.0:
        for j in range(_STAKES):
            stake = _STAKE[j] / first
            z = stake * bound
            if z <= _LARGEST:
                psi = (-math.log1p(-z) - z) / (bound * bound)
                best = max(best, total - (psi * squares - math.log(alpha) - _LOG_SHARE[j]) / stake)
    return best


@entry_kernel
def interval(sums: NDArray[np.float64], alpha: float) -> tuple[float, float]:
    """Return bounds on the sum of the means; each is wrong with probability at most `alpha` / 2."""
    first, bound = sums[FIRST_BOUND], sums[BOUND]
    low = lower_sum(sums[GAIN], sums[GAIN_SQUARES], first, bound, alpha / 2.0)
    high = -lower_sum(sums[LOSS], sums[LOSS_SQUARES], first, bound, alpha / 2.0)
    return low, high


@entry_kernel
@inline_kernel
def observe_policy(
    state: NDArray[np.float64], scale: NDArray[np.float64], w: float, reward: float, most: float
) -> None:
    """Add an event to the reward of one policy: `w` is 1/p if it would choose the logged action, else 0.

    If only 1/`most` of the events with the reward 0 are known, `w` is `most` times as large for these.
    Rewards and weights beyond the scale and `most`/floor are clipped.
    """
    width = scale[HIGH] - scale[LOW]
    if not width > 0.0:
        return
    r = in_unit((reward - scale[LOW]) / width)
    c = state[REWARDS] / state[WEIGHT] if state[WEIGHT] > 0.0 else 0.5
    centre = scale[LOW] + c * width
    if scale[FLOOR] > 0.0:
        largest = most / scale[FLOOR]
        w = min(w, largest)
        x = centre + w * (r - c) * width
        tally(state, x, -x, centre, width * most / scale[FLOOR])
    else:
        tally(state, scale[LOW] + w * r * width, w * (1.0 - r) * width - scale[HIGH], centre, width)
    state[REWARDS] += w * w * r
    state[WEIGHT] += w * w


@inline_kernel
def observe_loss(state: NDArray[np.float64], loss: float, bound: float) -> None:
    """Add a loss as the reward -`loss`, clipped to `bound`, the largest loss known before this one."""
    if not bound > 0.0:
        return
    loss = min(loss, bound)
    mean = state[REWARDS] / state[WEIGHT] if state[WEIGHT] > 0.0 else 0.0
    tally(state, -loss, loss, -mean, bound)
    state[REWARDS] += loss
    state[WEIGHT] += 1.0
