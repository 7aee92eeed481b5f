"""Recursive least squares: learns a linear prediction from one event at a time, as if refitted on all.

It forgets slowly: an event counts less by a factor after each later one. What no event speaks of would then
become ever less sure, so the variance of a weight is cut off at that before the first event.

Source: Haykin, *Adaptive filter theory*, chapter on recursive least squares.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from onlineauto.jit import kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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
    n = len(inputs)
    for i in range(n):
        gains[i] = 0.0
    error = target
    for j in range(n):
        x = inputs[j]
        if x != 0.0:
            error -= weights[j] * x
            row = spread[j]
            for i in range(n):
                gains[i] += row[i] * x
    unsure = keeps * noise
    for i in range(n):
        unsure += gains[i] * inputs[i]
    if not unsure > 0.0 or not math.isfinite(error):
        return
    scale = 1.0 / keeps
    for i in range(n):
        weights[i] += gains[i] * error / unsure
        row, gain = spread[i], gains[i] / unsure
        for j in range(n):
            row[j] = (row[j] - gain * gains[j]) * scale


@kernel
def cut_off(spread: NDArray[np.float64], n: int, most: float) -> None:
    """Reduce the variance of each of the first `n` weights to `most`, if it is larger."""
    for i in range(n):
        if spread[i, i] > most:
            factor = math.sqrt(most / spread[i, i])
            for j in range(n):
                spread[i, j] *= factor
                spread[j, i] *= factor
