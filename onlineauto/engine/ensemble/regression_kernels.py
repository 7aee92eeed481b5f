"""Regressions of members: least squares for each action, learnt from four events at a time.

Each action has a separate regression. If there are too many actions, they share one. Source:
`least_squares_kernels`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.ensemble.least_squares_kernels import (
    WAITING,
    Observed,
    begin_weight,
    catch_up,
    cut_off,
    learn_lately,
)
from onlineauto.engine.records.ensemble import MOST_ACTIONS, Known
from onlineauto.jit import entry_kernel, inline_kernel, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.ensemble.least_squares_kernels import Regression
    from onlineauto.engine.ensemble.member import Lesson
    from onlineauto.engine.records.ensemble import Inputs


class Prepared(IntEnum):
    """Entries of `Regression.prepared`: the numbers of prepared inputs and actions."""

    INPUTS = 0
    ACTIONS = 1


KEEPS = 0.9995
_ROUND = 64
_ALONE, _OFTEN, EACH = 64, 512, 4
"""A regression learns its first `_ALONE` events one by one, and later events several at a time. The
covariance learns each of the first `_OFTEN` events, and later one event in `EACH`."""
_MIX = np.uint64(0x9E3779B97F4A7C15)
_QUARTER = np.uint64(1) << np.uint64(62)


@kernel
def _clear(regression: Regression, inputs: int) -> None:
    """Reset the first regression, which has used `inputs` inputs, to its state before the first event."""
    regression.weights[0, :inputs] = 0.0
    regression.spread[0, :inputs, :inputs] = 0.0
    regression.late[0, :, :inputs] = 0.0
    regression.n_late[0], regression.scale[0], regression.n_waiting[0] = 0, 1.0, 0


@entry_kernel
def grow_regression(regression: Regression, inputs: Inputs, n: int, unsure: float) -> None:
    """Prepare the regressions for new actions and for `n` inputs, some of which may be new.

    `unsure` is the variance of a weight before the first event. When the actions become joined, their common
    regression begins from scratch. Members call this kernel by its address in `Units`.
    """
    known, prepared = inputs.tally[Known.ACTIONS], regression.prepared
    joins = known > MOST_ACTIONS
    if joins and prepared[Prepared.ACTIONS] <= MOST_ACTIONS:
        _clear(regression, n)
        prepared[Prepared.ACTIONS] = 0
    for action in range(1 if joins else known):
        if action >= prepared[Prepared.ACTIONS]:
            for i in range(n):
                regression.spread[action, i, i] = unsure
        else:
            for i in range(prepared[Prepared.INPUTS], n):
                begin_weight(regression, action, i, unsure)
    prepared[Prepared.INPUTS], prepared[Prepared.ACTIONS] = n, known


@kernel
def score_of(regression: Regression, action: int, inputs: NDArray[np.float64], n: int) -> float:
    """Return the prediction of a regression for an action; four sums are accumulated in parallel."""
    a, b, c, d, weights = 0.0, 0.0, 0.0, 0.0, regression.weights[action]
    for i in range(0, n - 3, 4):
        a += weights[i] * inputs[i]
        b += weights[i + 1] * inputs[i + 1]
        c += weights[i + 2] * inputs[i + 2]
        d += weights[i + 3] * inputs[i + 3]
    for i in range(n - n % 4, n):
        a += weights[i] * inputs[i]
    total: float = (a + b) + (c + d)
    return total


@inline_kernel
def _is_taken(seen: int) -> bool:
    """Return whether the covariance learns event number `seen`: one in `EACH`, at irregular intervals.

    A regular interval could miss whole kinds of events, because events often recur in a cycle, such as hours.
    """
    return bool(np.uint64(seen) * _MIX < _QUARTER)


def times_taken(before: int, after: int) -> int:
    """Return the total weight of the covariance's updates by the events after `before`, up to `after`."""
    alone = max(min(after, _OFTEN) - before, 0)
    numbers = np.arange(max(before, _OFTEN) + 1, after + 1, dtype=np.uint64)
    return alone + EACH * int(np.count_nonzero(numbers * _MIX < _QUARTER))


@entry_kernel
def learn_regression(
    regression: Regression, lesson: Lesson, inputs: NDArray[np.float64], seen: int, unsure: float
) -> None:
    """Let the regression of the logged action learn its cost, after `seen` events of that action.

    `unsure` is the variance of a weight before the first event. Members call this kernel by its address in
    `Units`, so that it is compiled once for all members.
    """
    n, action, gains = len(inputs), lesson.known, regression.gains
    noise = 1.0 / lesson.weight
    times = 1
    if seen > _OFTEN:
        times = EACH if _is_taken(seen) else 0
    observed, together = Observed(lesson.cost, noise, KEEPS, times), WAITING if seen > _ALONE else 1
    learn_lately(regression, action, inputs, gains, observed, together)
    if seen % _ROUND == 0:
        catch_up(regression, action, n)
        cut_off(regression.spread[action], n, unsure, gains[0])
