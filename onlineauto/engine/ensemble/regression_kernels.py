"""Regressions of members: least squares for each action, learnt from four events at a time.

Each action has a separate regression. If there are too many actions, they share one. Source:
`least_squares_kernels`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.ensemble.least_squares_kernels import (
    WAITING,
    Observed,
    Prepared,
    begin_weight,
    catch_up,
    cut_off,
    dot,
    learn_lately,
    raise_variances,
)
from onlineauto.engine.records.ensemble import MOST_ACTIONS, Known
from onlineauto.features.hash_constants import GOLDEN
from onlineauto.jit import entry_kernel, inline_kernel, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.ensemble.least_squares_kernels import Regression
    from onlineauto.engine.ensemble.member import Lesson
    from onlineauto.engine.records.ensemble import Inputs


_GOLDEN = np.uint64(GOLDEN)


KEEPS = 0.9995
_ROUND = 64
_ALONE, _OFTEN, EACH = 64, 512, 4
"""A regression learns its first `_ALONE` events one by one, and later events several at a time. The
covariance learns each of the first `_OFTEN` events, and later one event in `EACH`."""
_LEAST = 0.01
"""Minimum probability of a class of which a regression has the logarithm."""
_QUARTER = np.uint64(1) << np.uint64(62)


@kernel
def _clear(regression: Regression, action: int, inputs: int) -> None:
    """Reset an action's regression on `inputs` inputs to its state before the first event."""
    n = regression.begun[action]
    regression.weights[action, :inputs] = 0.0
    regression.spread[action, :n, :n] = 0.0
    regression.late[action, :, :n] = 0.0
    regression.n_late[action], regression.scale[action] = 0, 1.0
    regression.n_waiting[action], regression.begun[action] = 0, 0


@kernel
def renew_weight(regression: Regression, at: int, initial_variance: float) -> None:
    """Begin the weights of an input again, which is now another one."""
    for action in range(min(regression.prepared[Prepared.OUTPUTS], MOST_ACTIONS)):
        n = regression.begun[action]
        if at < n:
            catch_up(regression, action, n)
            regression.weights[action, at] = 0.0
            regression.waiting[action, :, at] = 0.0
            regression.spread[action, at, :n] = 0.0
            regression.spread[action, :n, at] = 0.0
            begin_weight(regression, action, at, initial_variance)


@entry_kernel
def grow_regression(regression: Regression, inputs: Inputs, n: int) -> None:
    """Note the known actions and `n` inputs.

    When the actions become joined, their regressions are reset, and the common one begins from scratch.
    Members call this kernel by its address in `Units`.
    """
    known, prepared = inputs.tally[Known.ACTIONS], regression.prepared
    if known > MOST_ACTIONS and prepared[Prepared.OUTPUTS] <= MOST_ACTIONS:
        for action in range(prepared[Prepared.OUTPUTS]):
            _clear(regression, action, n)
    prepared[Prepared.INPUTS], prepared[Prepared.OUTPUTS] = n, known


@inline_kernel
def score_of(regression: Regression, action: int, inputs: NDArray[np.float32], n: int) -> float:
    """Return the prediction of a regression for an action."""
    return dot(regression.weights[action], inputs, n)


@kernel
def score_classes(
    regression: Regression, inputs: NDArray[np.float32], score: NDArray[np.float64], first: int, k: int
) -> None:
    """Write the predictions for `k` classes into the row `first`, and their logarithms into the next one."""
    for c in range(k):
        score[first, c] = dot(regression.weights[c], inputs, len(inputs))
        score[first + 1, c] = math.log(min(max(score[first, c], _LEAST), 1.0))


@inline_kernel
def times_of(n_seen: int) -> int:
    """Return how many times the covariance learns event number `n_seen`: later one event in `EACH`, for all.

    These are at irregular intervals. A regular interval could miss whole kinds of events, because events
    often recur in a cycle, such as hours.
    """
    if n_seen <= _OFTEN:
        return 1
    return EACH if np.uint64(n_seen) * _GOLDEN < _QUARTER else 0


def times_taken(before: int, after: int) -> int:
    """Return the total weight of the covariance's updates by the events after `before`, up to `after`."""
    alone = max(min(after, _OFTEN) - before, 0)
    numbers = np.arange(max(before, _OFTEN) + 1, after + 1, dtype=np.uint64)
    return alone + EACH * int(np.count_nonzero(numbers * _GOLDEN < _QUARTER))


@entry_kernel
def learn_regression(
    regression: Regression,
    lesson: Lesson,
    inputs: NDArray[np.float32],
    n_seen: int,
    initial_variance: float,
    keeps: float,
) -> None:
    """Update the regression of the logged action with its cost, after `n_seen` events of that action.

    Of classes, `lesson.known` is 0, and `lesson.cost` the class.
    `initial_variance` is the variance of a weight before the first event. A weight gets it only now, since
    memory that an action's regression does not need costs more than the work. Members call this kernel by its
    address in `Units`, so that it is compiled once for all members.
    """
    n, action, gains = len(inputs), lesson.known, regression.gains
    for i in range(regression.begun[action], n):
        begin_weight(regression, action, i, initial_variance)
    regression.begun[action] = max(regression.begun[action], n)
    noise = 1.0 / lesson.weight
    observed = Observed(lesson.cost, noise, keeps, times_of(n_seen))
    together = WAITING if n_seen > _ALONE else 1
    learn_lately(regression, action, inputs, gains, observed, together)
    if n_seen % _ROUND == 0:
        catch_up(regression, action, n)
        cut_off(regression.spread[action], n, initial_variance, gains[0])
        raise_variances(regression.spread[action], n, initial_variance)
