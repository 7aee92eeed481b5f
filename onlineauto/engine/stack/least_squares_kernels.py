"""Recursive least squares: learns a linear prediction from one event at a time, as if refitted on all.

It forgets slowly: an event counts less by a factor after each later one. What no event speaks of would then
become ever less sure, so the variance of a weight is cut off at that before the first event.

Rounding must not make the covariance other than symmetric and positive: what is wrong with it would grow with
each event that is forgotten, until the weights were anything. So it is changed by the same product above the
diagonal as below, and no event makes it smaller by more than a factor of about a million.

To change the covariance is most of the work. Once there have been many events it hardly changes, and may take
one event in several, as so many: then the weights alone learn the others. And a large covariance is changed
for several events at once. Until then it is known as the older one, less a product for each of these events:

    P = s (P₀ - Σ u uᵀ), which an event with the gains g = P x and the variance v turns into
    (P - g gᵀ / v) / f = s/f (P₀ - Σ u uᵀ - w wᵀ) with w = g / √(s v).

Source: Haykin, *Adaptive filter theory*, chapter on recursive least squares.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from onlineauto.engine.event.state import LATE
from onlineauto.jit import inline_kernel, kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from onlineauto.engine.event.state import Regression

_SURE = 1e-6


class Observed(NamedTuple):
    """An event: what its inputs have led to, and for how much it counts."""

    target: float
    noise: float  # variance of the target
    keeps: float  # part of what is known that is not forgotten
    times: int  # for how many events the covariance takes this one


@kernel
def _multiply(spread: NDArray[np.float64], inputs: NDArray[np.float64], gains: NDArray[np.float64]) -> None:
    """Fill the gains with the product of the covariance and the inputs; most inputs may be 0.

    Four rows are added in one pass over the gains.
    """
    n, found, j, k, m = len(inputs), 0, 0, 0, 0
    for i in range(n):
        gains[i] = 0.0
    for row in range(n):
        if inputs[row] == 0.0:
            continue
        found += 1
        if found == 1:
            j = row
        elif found == 2:
            k = row
        elif found == 3:
            m = row
        else:
            found = 0
            a, b, c, d = spread[j], spread[k], spread[m], spread[row]
            x, y, z, u = inputs[j], inputs[k], inputs[m], inputs[row]
            for i in range(n):
                gains[i] += (a[i] * x + b[i] * y) + (c[i] * z + d[i] * u)
    for left in range(found):
        at = j if left == 0 else (k if left == 1 else m)
        one, times = spread[at], inputs[at]
        for i in range(n):
            gains[i] += one[i] * times


@kernel
def _learn_weights(
    weights: NDArray[np.float64],
    inputs: NDArray[np.float64],
    gains: NDArray[np.float64],
    observed: Observed,
) -> tuple[float, float]:
    """Let the weights learn an event from its gains.

    Returns what the covariance takes the variance of the event for, 0 if it takes no account of it; and what
    part of what is known is left.
    """
    n, error, known, keeps = len(inputs), observed.target, 0.0, 1.0
    for i in range(n):
        error -= weights[i] * inputs[i]
    for i in range(n):
        known += gains[i] * inputs[i]
    unsure = observed.keeps * max(observed.noise, _SURE * known) + known
    if not unsure > 0.0 or not math.isfinite(error):
        return 0.0, 1.0
    step = error / unsure
    for i in range(n):
        weights[i] += gains[i] * step
    if observed.times == 0:
        return 0.0, 1.0
    for _ in range(observed.times):
        keeps *= observed.keeps
    return keeps * max(observed.noise / observed.times, _SURE * known) + known, keeps


@kernel
def learn_lately(
    regression: Regression,
    action: int,
    inputs: NDArray[np.float64],
    gains: NDArray[np.float64],
    observed: Observed,
) -> None:
    """Let the regression of an action learn what the inputs have led to; its covariance does so later."""
    n, late, n_late = len(inputs), regression.late[action], regression.n_late[action]
    scale = regression.scale[action]
    _multiply(regression.spread[action], inputs, gains)
    for k in range(n_late):
        row, known = late[k], 0.0
        for i in range(n):
            known += row[i] * inputs[i]
        for i in range(n):
            gains[i] -= row[i] * known
    for i in range(n):
        gains[i] *= scale
    unsure, keeps = _learn_weights(regression.weights[action], inputs, gains, observed)
    if not unsure > 0.0:
        return
    part, row = 1.0 / math.sqrt(scale * unsure), late[n_late]
    for i in range(n):
        row[i] = gains[i] * part
    regression.scale[action] = scale / keeps
    regression.n_late[action] += 1
    if n_late + 1 == LATE:
        catch_up(regression, action, n)


@inline_kernel
def begin_weight(regression: Regression, action: int, at: int, unsure: float) -> None:
    """Give a new weight of an action its variance, now that the covariance may be late."""
    regression.spread[action, at, at] = unsure / regression.scale[action]


@kernel
def catch_up(regression: Regression, action: int, n: int) -> None:
    """Let the covariance of an action's `n` weights take account of the events for which it is late."""
    late, scale = regression.late[action], regression.scale[action]
    if regression.n_late[action] == 0:
        return
    a, b, c, d = late[0], late[1], late[2], late[3]
    e, f, g, h = late[4], late[5], late[6], late[7]
    for i in range(n):
        row = regression.spread[action, i]
        t, u, v, w, x, y, z, o = a[i], b[i], c[i], d[i], e[i], f[i], g[i], h[i]
        for j in range(n):  # (i, j) and (j, i) get the same
            first = (t * a[j] + u * b[j]) + (v * c[j] + w * d[j])
            second = (x * e[j] + y * f[j]) + (z * g[j] + o * h[j])
            row[j] = (row[j] - (first + second)) * scale
    late[:, :n] = 0.0
    regression.n_late[action], regression.scale[action] = 0, 1.0


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
    n = len(inputs)
    _multiply(spread, inputs, gains)
    unsure, keeps = _learn_weights(weights, inputs, gains, observed)
    if not unsure > 0.0:
        return
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
