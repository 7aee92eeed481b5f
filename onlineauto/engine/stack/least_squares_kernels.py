"""Recursive least squares: learns a linear prediction from one event at a time, as if refitted on all.

It forgets slowly: an event counts less by a factor after each later one. What no event speaks of would then
become ever less sure, so the variance of a weight is cut off at that before the first event.

Rounding must not make the covariance other than symmetric and positive: what is wrong with it would grow with
each event that is forgotten, until the weights were anything. So it is changed by the same product above the
diagonal as below, and no event makes it smaller by more than a factor of about a million.

To change the covariance is most of the work. Once there have been many events it hardly changes, and may take
one event in several, as so many: then the weights alone learn the others.

Source: Haykin, *Adaptive filter theory*, chapter on recursive least squares.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from onlineauto.jit import kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SURE = 1e-6


class Observed(NamedTuple):
    """An event: what its inputs have led to, and for how much it counts."""

    target: float
    noise: float  # variance of the target
    keeps: float  # part of what is known that is not forgotten
    times: int  # for how many events the covariance takes this one


@kernel
def learn_squares(
    weights: NDArray[np.float64],
    spread: NDArray[np.float64],
    inputs: NDArray[np.float64],
    gains: NDArray[np.float64],
    observed: Observed,
) -> None:
    """Learn what the inputs have led to.

    `spread` is the covariance of at least so many weights, and `gains` scratch of their number.
    """
    n, error, keeps = len(inputs), observed.target, 1.0
    for i in range(n):
        gains[i] = 0.0
        error -= weights[i] * inputs[i]
    fours = n - n % 4
    for j in range(0, fours, 4):  # four rows in one pass over the gains
        x, y, z, u = inputs[j], inputs[j + 1], inputs[j + 2], inputs[j + 3]
        if x != 0.0 or y != 0.0 or z != 0.0 or u != 0.0:
            a, b, c, d = spread[j], spread[j + 1], spread[j + 2], spread[j + 3]
            for i in range(n):
                gains[i] += (a[i] * x + b[i] * y) + (c[i] * z + d[i] * u)
    for j in range(fours, n):
        row, x = spread[j], inputs[j]
        for i in range(n):
            gains[i] += row[i] * x
    known = 0.0
    for i in range(n):
        known += gains[i] * inputs[i]
    unsure = observed.keeps * max(observed.noise, _SURE * known) + known
    if not unsure > 0.0 or not math.isfinite(error):
        return
    step = error / unsure
    for i in range(n):
        weights[i] += gains[i] * step
    if observed.times == 0:
        return
    for _ in range(observed.times):
        keeps *= observed.keeps
    unsure = keeps * max(observed.noise / observed.times, _SURE * known) + known
    scale = 1.0 / keeps
    part = math.sqrt(scale / unsure)
    for i in range(n):
        gains[i] *= part
    for i in range(n):
        row, gain = spread[i], gains[i]
        for j in range(n):
            row[j] = row[j] * scale - gain * gains[j]  # (i, j) and (j, i) get the same


@kernel
def cut_off(spread: NDArray[np.float64], n: int, most: float) -> None:
    """Reduce the variance of each of the first `n` weights to `most`, if it is larger."""
    for i in range(n):
        if spread[i, i] > most:
            factor = math.sqrt(most / spread[i, i])
            for j in range(n):
                spread[i, j] *= factor
                spread[j, i] *= factor
