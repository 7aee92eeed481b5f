"""Recursive least squares: learn a linear prediction from one event at a time, as if refitted on all.

Each learnt event reduces the weight of all earlier events by a factor. Without new information the variance
of a weight would then grow forever, so it is limited to its value before the first event.

Rounding must not make the covariance asymmetric or indefinite: each later event would amplify the error until
the weights were arbitrary. So entries above and below the diagonal are changed by the same product. No event
reduces the covariance by more than a factor of about a million, in float32 ten thousand.

Most of the work is the update of the covariance P. After many events P hardly changes. Then P may learn one
event in several, with the weight of several, while the weights learn every event. Reading a large P takes
longer than the arithmetic, so events may wait until there are several. They are learnt one after the other in
a single pass over P, and P is updated for several events at once. Until then P is represented by an older P₀
and one product for each of these events:

    P = s (P₀ - Σ u uᵀ), which an event with the gains g = P x and the variance v turns into
    (P - g gᵀ / v) / f = s/f (P₀ - Σ u uᵀ - w wᵀ) with w = g / √(s v).

Source: Haykin, *Adaptive filter theory*, chapter on recursive least squares.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlineauto.jit import inline_kernel, kernel
from onlineauto.jit.four import element, load_from, splat

if TYPE_CHECKING:
    from numpy.typing import NDArray

LATE = 8
"""Maximum number of pending updates of a covariance; they are applied together."""

WAITING = 4
"""Number of events that a regression learns together, reading its covariance once."""

SURE, SURE_32 = 1e-6, 1e-4
"""Minimum part of a prediction's variance that remains after an event: in float64 and in float32."""

_RISE = 1e-6


class Regression(NamedTuple):
    """Recursive least squares in float32: reading the covariances takes most of the time.

    Of costs, each action has a separate regression. Of classes, all share one covariance, since each event is
    learnt for all of them: there is one regression, whose outputs are the classes.
    """

    weights: NDArray[np.float32]  # [outputs, inputs]: of each action, or of each class
    spread: NDArray[np.float32]  # [actions, inputs, inputs]: P₀, the covariance without pending updates
    late: NDArray[np.float32]  # [actions, LATE, inputs]: the factors u of the pending updates
    n_late: NDArray[np.int64]  # [actions]: number of pending updates
    scale: NDArray[np.float64]  # [actions]: the factor s of the covariance
    waiting: NDArray[np.float32]  # [actions, WAITING, inputs]: inputs of events that wait to be learnt
    observed: NDArray[np.float64]  # [actions, WAITING, 3]: the targets of these events, see `Observed`
    n_waiting: NDArray[np.int64]  # [actions]: number of events that wait
    begun: NDArray[np.int64]  # [actions]: number of inputs whose weights have a variance
    prepared: NDArray[np.int64]  # [2]: numbers of known inputs and outputs
    gains: NDArray[np.float32]  # [WAITING, inputs]: scratch


class Prepared(IntEnum):
    """Entries of `Regression.prepared`."""

    INPUTS = 0
    OUTPUTS = 1


class Observed(NamedTuple):
    """The target of an event, and how much the event counts."""

    target: float  # a cost, or the index of a class
    noise: float  # variance of the target
    keeps: float  # factor by which earlier information is retained
    times: int  # how many times the covariance learns this event


@kernel
def leave_out(
    weights: NDArray[np.float64],
    spread: NDArray[np.float64],
    at: int,
    initial_variance: float,
    others: NDArray[np.float64],
) -> None:
    """Remove a weight: set it to 0, and the others to the least squares solution without its input.

    `initial_variance` is its variance afterwards, and `others` is scratch memory.
    """
    root = math.sqrt(spread[at, at])
    share = weights[at] / root
    for i in range(len(weights)):
        others[i] = spread[at, i] / root
    for i in range(len(weights)):
        weights[i] -= share * others[i]
        for j in range(len(weights)):
            spread[i, j] -= others[i] * others[j]
    weights[at] = 0.0
    spread[at, :] = 0.0
    spread[:, at] = 0.0
    spread[at, at] = initial_variance


@kernel
def dot(a_values: NDArray[np.float32], b_values: NDArray[np.float32], n: int) -> float:
    """Return the product of the first `n` numbers of two arrays.

    It is added up in sixteen sums, since each addition to a single sum would wait for the previous one.
    """
    zero = np.float32(0)
    a, b, c, d = splat(zero), splat(zero), splat(zero), splat(zero)
    n_sixteen, n_four = n - n % 16, n - n % 4
    for i in range(0, n_sixteen, 16):
        a = a + load_from(a_values, i) * load_from(b_values, i)
        b = b + load_from(a_values, i + 4) * load_from(b_values, i + 4)
        c = c + load_from(a_values, i + 8) * load_from(b_values, i + 8)
        d = d + load_from(a_values, i + 12) * load_from(b_values, i + 12)
    for i in range(n_sixteen, n_four, 4):
        a = a + load_from(a_values, i) * load_from(b_values, i)
    total = (a + b) + (c + d)
    result = np.float64((element(total, 0) + element(total, 1)) + (element(total, 2) + element(total, 3)))
    for i in range(n_four, n):
        result += a_values[i] * b_values[i]
    return result


@inline_kernel
def shares_covariance(regression: Regression) -> bool:
    """Return whether the outputs are classes, at least two, which share one covariance."""
    return len(regression.weights) > len(regression.begun)


@inline_kernel
def _all_nonzero(inputs: NDArray[np.float32], at: int) -> bool:
    """Return whether all events have an input other than 0 at index `at`."""
    all_have = True
    for event in range(len(inputs)):
        all_have = all_have and inputs[event, at] != 0
    return all_have


@kernel
def _multiply_together(
    spread: NDArray[np.float32], inputs: NDArray[np.float32], n: int, gains: NDArray[np.float32]
) -> tuple[int, int]:
    """Add to the first `n` gains of four events the rows of the covariance for inputs that all of them have.

    Four rows are added in one pass over the gains, so that up to three rows remain. Returns the first
    remaining row and the number of added rows.
    """
    n_rows, j, k, m, left, added = 0, 0, 0, 0, 0, 0
    first, second, third, fourth = gains[0], gains[1], gains[2], gains[3]
    o, p, q, r = inputs[0], inputs[1], inputs[2], inputs[3]
    for row in range(n):
        if not _all_nonzero(inputs, row):
            continue
        n_rows += 1
        if n_rows == 1:
            j = row
        elif n_rows == 2:
            k = row
        elif n_rows == 3:
            m = row
        else:
            n_rows, left, added = 0, row + 1, added + 4
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
    spread: NDArray[np.float32],
    inputs: NDArray[np.float32],
    event: int,
    left: int,
    gains: NDArray[np.float32],
) -> None:
    """Add to the gains of an event the rows of the covariance for its inputs, most of which may be 0.

    Rows before `left` for inputs that all events have were added before. Four rows are added in one pass over
    the gains.
    """
    n, n_rows, j, k, m, own = len(gains), 0, 0, 0, 0, inputs[event]
    for row in range(n):
        if own[row] == 0 or (row < left and _all_nonzero(inputs, row)):
            continue
        n_rows += 1
        if n_rows == 1:
            j = row
        elif n_rows == 2:
            k = row
        elif n_rows == 3:
            m = row
        else:
            n_rows = 0
            a, b, c, d = spread[j], spread[k], spread[m], spread[row]
            x, y, z, u = own[j], own[k], own[m], own[row]
            for i in range(n):
                gains[i] += (a[i] * x + b[i] * y) + (c[i] * z + d[i] * u)
    for last in range(n_rows):
        at = j if last == 0 else (k if last == 1 else m)
        one, times = spread[at], own[at]
        for i in range(n):
            gains[i] += one[i] * times


@inline_kernel
def _learn_weights(
    weights: NDArray[Any],
    gains: NDArray[Any],
    error: float,
    variance: float,
    observed: Observed,
    least: float,
) -> tuple[float, float]:
    """Update the weights with an event from its gains, its error and the `variance` of its prediction.

    At least the part `least` of that variance remains. An event that float32 cannot hold is not learnt.
    Returns two values: the variance of the event for the covariance, 0 if the covariance does not learn it;
    and the part of the information that is retained.
    """
    keeps, initial_variance = 1.0, observed.keeps * max(observed.noise, least * variance) + variance
    if not initial_variance > 0.0 or not math.isfinite(initial_variance) or not math.isfinite(error):
        return 0.0, 1.0
    step = gains.dtype.type(error / initial_variance)
    for i in range(len(gains)):
        weights[i] += gains[i] * step
    if observed.times == 0:
        return 0.0, 1.0
    for _ in range(observed.times):
        keeps *= observed.keeps
    return keeps * max(observed.noise / observed.times, least * variance) + variance, keeps


@kernel
def learn_lately(
    regression: Regression,
    action: int,
    inputs: NDArray[np.float32],
    gains: NDArray[np.float32],
    observed: Observed,
    together: int,
) -> None:
    """Queue an event for the regression of an action; learn the queued events once there are `together`.

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
    regression: Regression, action: int, n: int, gains: NDArray[np.float32], keeps: float
) -> None:
    """Update the `n` weights of an action, or of each class, with the waiting events; P follows later."""
    waits, late, taken = regression.n_waiting[action], regression.late[action], 0
    classes = shares_covariance(regression)
    first, end = (0, regression.prepared[Prepared.OUTPUTS]) if classes else (action, action + 1)
    spread, waiting = regression.spread[action], regression.waiting[action, :waits]
    for event in range(waits):
        taken += regression.observed[action, event, 2] > 0.0
    if regression.n_late[action] + taken > LATE:
        catch_up(regression, action, n)
    gains[:waits, :n] = 0
    left, added = _multiply_together(spread, waiting, n, gains) if waits == WAITING else (0, 0)
    for event in range(waits if added < n else 0):
        _multiply(spread, waiting, event, left, gains[event, :n])
    for event in range(waits):
        inputs, own, known = waiting[event, :n], gains[event, :n], regression.observed[action, event]
        n_late, scale = regression.n_late[action], regression.scale[action]
        for k in range(n_late):
            row, product = late[k], np.float32(dot(late[k], inputs, n))
            for i in range(n):
                own[i] -= row[i] * product
        factor = np.float32(scale)
        for i in range(n):
            own[i] *= factor
        observed = Observed(known[0], known[1], keeps, int(known[2]))
        variance, initial_variance, remains = dot(own, inputs, n), 0.0, 1.0
        for output in range(first, end):
            target = observed.target
            if classes:
                target = 1.0 if output == int(observed.target) else 0.0
            error = target - dot(regression.weights[output], inputs, n)
            initial_variance, remains = _learn_weights(
                regression.weights[output], own, error, variance, observed, SURE_32
            )
        if not initial_variance > 0.0:
            continue
        part, row = np.float32(1.0 / math.sqrt(scale * initial_variance)), late[n_late]
        for i in range(n):
            row[i] = own[i] * part
        regression.scale[action] = scale / remains
        regression.n_late[action] += 1
    regression.n_waiting[action] = 0


@inline_kernel
def begin_weight(regression: Regression, action: int, at: int, initial_variance: float) -> None:
    """Set the variance of an action's new weight, even if updates of the covariance are pending."""
    regression.spread[action, at, at] = initial_variance / regression.scale[action]


@kernel
def catch_up(regression: Regression, action: int, n: int) -> None:
    """Apply the pending updates to the covariance of an action's `n` weights."""
    late, scale = regression.late[action], np.float32(regression.scale[action])
    if regression.n_late[action] == 0:
        return
    a, b, c, d = late[0], late[1], late[2], late[3]
    e, f, g, h = late[4], late[5], late[6], late[7]
    for i in range(n):
        row = regression.spread[action, i]
        t, u, v, w, x, y, z, o = a[i], b[i], c[i], d[i], e[i], f[i], g[i], h[i]
        for j in range(n):  # the same product for (i, j) and (j, i)
            first = (t * a[j] + u * b[j]) + (v * c[j] + w * d[j])
            second = (x * e[j] + y * f[j]) + (z * g[j] + o * h[j])
            row[j] = (row[j] - (first + second)) * scale
    late[:, :n] = 0
    regression.n_late[action], regression.scale[action] = 0, 1.0


@kernel
def learn_squares(
    weights: NDArray[np.float64],
    spread: NDArray[np.float64],
    inputs: NDArray[np.float64],
    gains: NDArray[np.float64],
    observed: Observed,
) -> None:
    """Learn the target of an event's inputs.

    `spread` is the covariance of at least as many weights as inputs, and `gains` scratch of that size.
    """
    n = len(inputs)
    gains[:] = 0.0
    for row in range(n):
        if inputs[row] != 0.0:
            one, times = spread[row], inputs[row]
            for i in range(n):
                gains[i] += one[i] * times
    error, known = observed.target, 0.0
    for i in range(n):
        error -= weights[i] * inputs[i]
        known += gains[i] * inputs[i]
    initial_variance, keeps = _learn_weights(weights, gains[:n], error, known, observed, SURE)
    if not initial_variance > 0.0:
        return
    scale = 1.0 / keeps
    part = math.sqrt(scale / initial_variance)
    for i in range(n):
        gains[i] *= part
    for i in range(n):
        row, gain = spread[i], gains[i]
        for j in range(n):
            row[j] = row[j] * scale - gain * gains[j]  # the same product for (i, j) and (j, i)


@kernel
def cut_off(spread: NDArray[Any], n: int, most: float, factors: NDArray[Any]) -> None:
    """Reduce the variance of each of the first `n` weights to `most`, if it is larger.

    `factors` is scratch of size `n`.
    """
    larger = False
    for i in range(n):
        larger = larger or spread[i, i] > most
        factors[i] = math.sqrt(most / spread[i, i]) if spread[i, i] > most else 1.0
    for i in range(n if larger else 0):
        row, factor = spread[i], factors[i]
        for j in range(n):
            row[j] *= factor * factors[j]  # the same product for (i, j) and (j, i)


@inline_kernel
def raise_variances(spread: NDArray[np.float32], n: int, most: float) -> None:
    """Add a millionth of `most`, the largest variance, to the variance of each of the first `n` weights.

    Rounding in float32 may leave the variance of a sum of weights below 0. Without this, it would grow with
    every event that reduces the weight of earlier ones.
    """
    for i in range(n):
        spread[i, i] += np.float32(_RISE * most)
