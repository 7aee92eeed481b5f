"""Recursive least squares: learns a linear prediction from one event at a time, as if refitted on all.

It forgets slowly: an event counts less by a factor after each later one. What no event speaks of would then
become ever less sure, so the variance of a weight is cut off at that before the first event.

Rounding must not make the covariance other than symmetric and positive: what is wrong with it would grow with
each event that is forgotten, until the weights were anything. So it is changed by the same product above the
diagonal as below, and no event makes it smaller by more than a factor of about a million.

To change the covariance is most of the work. Once there have been many events it hardly changes, and may take
one event in several, as so many: then the weights alone learn the others. A large covariance takes longer to
read than to compute with. So events may wait until there are several, which are learnt one after the other
from one look at it; and it is changed for several at once. Until then it is known as the older one, less a
product for each of these events:

    P = s (P₀ - Σ u uᵀ), which an event with the gains g = P x and the variance v turns into
    (P - g gᵀ / v) / f = s/f (P₀ - Σ u uᵀ - w wᵀ) with w = g / √(s v).

Source: Haykin, *Adaptive filter theory*, chapter on recursive least squares.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from onlineauto.jit import inline_kernel, kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LATE = 8
"""Events of which the covariance of a regression takes account together."""

WAITING = 4
"""Events that a regression learns together: its covariance is read once for all of them."""

SURE = 1e-6


class Regression(NamedTuple):
    """Recursive least squares for each action."""

    weights: NDArray[np.float64]  # [actions, inputs]
    spread: NDArray[np.float64]  # [actions, inputs, inputs]: covariance of the weights, but for what is late
    late: NDArray[np.float64]  # [actions, LATE, inputs]: what is not subtracted from it yet, as factors
    n_late: NDArray[np.int64]  # [actions]: how many there are
    scale: NDArray[np.float64]  # [actions]: what the covariance is then multiplied by
    waiting: NDArray[np.float64]  # [actions, WAITING, inputs]: inputs of events that are still to be learnt
    observed: NDArray[np.float64]  # [actions, WAITING, 3]: what they led to, see `Observed`
    n_waiting: NDArray[np.int64]  # [actions]: how many there are
    prepared: NDArray[np.int64]  # [2]: numbers of inputs and of actions whose weights have a variance
    gains: NDArray[np.float64]  # [WAITING, inputs]: scratch


class Observed(NamedTuple):
    """An event: what its inputs have led to, and for how much it counts."""

    target: float
    noise: float  # variance of the target
    keeps: float  # part of what is known that is not forgotten
    times: int  # for how many events the covariance takes this one


@inline_kernel
def _all_have(inputs: NDArray[np.float64], at: int) -> bool:
    """Return whether no event has 0 for an input."""
    product = 1.0
    for event in range(len(inputs)):
        product = 0.0 if inputs[event, at] == 0.0 else product
    return bool(product > 0.0)


@kernel
def _multiply_together(
    spread: NDArray[np.float64], inputs: NDArray[np.float64], n: int, gains: NDArray[np.float64]
) -> tuple[int, int]:
    """Add to the first `n` gains of four events the rows of the covariance for inputs that all of them have.

    Four rows are added in one pass over the gains, and up to three are left. Returns the row from which on
    they are, and how many were added.
    """
    found, j, k, m, left, added = 0, 0, 0, 0, 0, 0
    first, second, third, fourth = gains[0], gains[1], gains[2], gains[3]
    o, p, q, r = inputs[0], inputs[1], inputs[2], inputs[3]
    for row in range(n):
        if not _all_have(inputs, row):
            continue
        found += 1
        if found == 1:
            j = row
        elif found == 2:
            k = row
        elif found == 3:
            m = row
        else:
            found, left, added = 0, row + 1, added + 4
            a, b, c, d = spread[j], spread[k], spread[m], spread[row]
            oj, ok, om, on = o[j], o[k], o[m], o[row]
            pj, pk, pm, pn = p[j], p[k], p[m], p[row]
            qj, qk, qm, qn = q[j], q[k], q[m], q[row]
            rj, rk, rm, rn = r[j], r[k], r[m], r[row]
            for i in range(n):
                w, x, y, z = a[i], b[i], c[i], d[i]
                first[i] += (w * oj + x * ok) + (y * om + z * on)
                second[i] += (w * pj + x * pk) + (y * pm + z * pn)
                third[i] += (w * qj + x * qk) + (y * qm + z * qn)
                fourth[i] += (w * rj + x * rk) + (y * rm + z * rn)
    return left, added


@kernel
def _multiply(
    spread: NDArray[np.float64],
    inputs: NDArray[np.float64],
    event: int,
    left: int,
    gains: NDArray[np.float64],
) -> None:
    """Add to the gains of an event the rows of the covariance for its inputs; most of these may be 0.

    Rows before `left` for inputs that all events have were added before. Four are added in one pass over the
    gains.
    """
    n, found, j, k, m, own = len(gains), 0, 0, 0, 0, inputs[event]
    for row in range(n):
        if own[row] == 0.0 or (row < left and _all_have(inputs, row)):
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
            x, y, z, u = own[j], own[k], own[m], own[row]
            for i in range(n):
                gains[i] += (a[i] * x + b[i] * y) + (c[i] * z + d[i] * u)
    for last in range(found):
        at = j if last == 0 else (k if last == 1 else m)
        one, times = spread[at], own[at]
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
    unsure = observed.keeps * max(observed.noise, SURE * known) + known
    if not unsure > 0.0 or not math.isfinite(error):
        return 0.0, 1.0
    step = error / unsure
    for i in range(n):
        weights[i] += gains[i] * step
    if observed.times == 0:
        return 0.0, 1.0
    for _ in range(observed.times):
        keeps *= observed.keeps
    return keeps * max(observed.noise / observed.times, SURE * known) + known, keeps


@kernel
def learn_lately(
    regression: Regression,
    action: int,
    inputs: NDArray[np.float64],
    gains: NDArray[np.float64],
    observed: Observed,
    together: int,
) -> None:
    """Let the regression of an action learn what the inputs have led to, as soon as so many events wait.

    `together` is 1 or `WAITING`. `gains` is scratch for `WAITING` events.
    """
    waits, n = regression.n_waiting[action], len(inputs)
    row, known = regression.waiting[action, waits], regression.observed[action, waits]
    for i in range(n):
        row[i] = inputs[i]
    known[0], known[1], known[2] = observed.target, observed.noise, observed.times
    regression.n_waiting[action] += 1
    if waits + 1 >= together:
        _learn_waiting(regression, action, n, gains, observed.keeps)


@kernel
def _learn_waiting(
    regression: Regression, action: int, n: int, gains: NDArray[np.float64], keeps: float
) -> None:
    """Let an action's `n` weights learn the events that wait; the covariance does so later."""
    waits, late, taken = regression.n_waiting[action], regression.late[action], 0
    spread, waiting = regression.spread[action], regression.waiting[action, :waits]
    for event in range(waits):
        taken += regression.observed[action, event, 2] > 0.0
    if regression.n_late[action] + taken > LATE:
        catch_up(regression, action, n)
    gains[:waits, :n] = 0.0
    left, added = _multiply_together(spread, waiting, n, gains) if waits == WAITING else (0, 0)
    for event in range(waits if added < n else 0):
        _multiply(spread, waiting, event, left, gains[event, :n])
    for event in range(waits):
        inputs, own, known = waiting[event, :n], gains[event, :n], regression.observed[action, event]
        n_late, scale = regression.n_late[action], regression.scale[action]
        for k in range(n_late):
            row, product = late[k], 0.0
            for i in range(n):
                product += row[i] * inputs[i]
            for i in range(n):
                own[i] -= row[i] * product
        for i in range(n):
            own[i] *= scale
        observed = Observed(known[0], known[1], keeps, int(known[2]))
        unsure, remains = _learn_weights(regression.weights[action], inputs, own, observed)
        if not unsure > 0.0:
            continue
        part, row = 1.0 / math.sqrt(scale * unsure), late[n_late]
        for i in range(n):
            row[i] = own[i] * part
        regression.scale[action] = scale / remains
        regression.n_late[action] += 1
    regression.n_waiting[action] = 0


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
    gains[:] = 0.0
    for row in range(n):
        if inputs[row] != 0.0:
            one, times = spread[row], inputs[row]
            for i in range(n):
                gains[i] += one[i] * times
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
def cut_off(spread: NDArray[np.float64], n: int, most: float, factors: NDArray[np.float64]) -> None:
    """Reduce the variance of each of the first `n` weights to `most`, if it is larger.

    `factors` is scratch for them.
    """
    larger = False
    for i in range(n):
        larger = larger or spread[i, i] > most
        factors[i] = math.sqrt(most / spread[i, i]) if spread[i, i] > most else 1.0
    for i in range(n if larger else 0):
        row, factor = spread[i], factors[i]
        for j in range(n):
            row[j] *= factor * factors[j]  # (i, j) and (j, i) get the same
