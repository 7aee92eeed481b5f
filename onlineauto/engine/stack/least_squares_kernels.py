"""Recursive least squares: learns a linear prediction from one event at a time, as if refitted on all.

It forgets slowly: an event counts less by a factor after each later one. What no event speaks of would then
become ever less sure, so the variance of a weight is cut off at that before the first event.

Rounding must not make the covariance other than symmetric and positive: what is wrong with it would grow with
each event that is forgotten, until the weights were anything. So it is changed by the same product above the
diagonal as below, and no event makes it smaller by more than a factor of about a million.

Source: Haykin, *Adaptive filter theory*, chapter on recursive least squares.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from onlineauto.jit import kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SURE = 1e-6


@kernel
def learn_squares(
    weights: NDArray[np.float64],
    spread: NDArray[np.float64],
    inputs: NDArray[np.float64],
    gains: NDArray[np.float64],
    target: float,
    noise: float,
    keeps: float,
) -> None:
    """Learn that the inputs have led to the target, with a variance of `noise`.

    `keeps` is the part that is not forgotten, `spread` the covariance of the weights, and `gains` scratch of
    their length.
    """
    n, error = len(inputs), target
    for i in range(n):
        gains[i] = 0.0
        error -= weights[i] * inputs[i]
    fours = n - n % 4
    for j in range(0, fours, 4):  # four rows in one pass over the gains
        a, b, c, d = spread[j], spread[j + 1], spread[j + 2], spread[j + 3]
        x, y, z, u = inputs[j], inputs[j + 1], inputs[j + 2], inputs[j + 3]
        for i in range(n):
            gains[i] += (a[i] * x + b[i] * y) + (c[i] * z + d[i] * u)
    for j in range(fours, n):
        row, x = spread[j], inputs[j]
        for i in range(n):
            gains[i] += row[i] * x
    known = 0.0
    for i in range(n):
        known += gains[i] * inputs[i]
    unsure = keeps * max(noise, _SURE * known) + known
    if not unsure > 0.0 or not math.isfinite(error):
        return
    scale, part = 1.0 / keeps, 1.0 / unsure
    for i in range(n):
        weights[i] += gains[i] * (error * part)
        row, gain = spread[i], gains[i]
        for j in range(n):
            row[j] = (row[j] - (gain * gains[j]) * part) * scale  # (i, j) and (j, i) get the same


@kernel
def cut_off(spread: NDArray[np.float64], n: int, most: float) -> None:
    """Reduce the variance of each of the first `n` weights to `most`, if it is larger."""
    for i in range(n):
        if spread[i, i] > most:
            factor = math.sqrt(most / spread[i, i])
            for j in range(n):
                spread[i, j] *= factor
                spread[j, i] *= factor
