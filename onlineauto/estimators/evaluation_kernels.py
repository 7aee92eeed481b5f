"""What a log says of another policy: sums and intervals after every event, three ways.

With w = π(a)/p the policy's probability of the logged action over the logged one, and r the reward: inverse
propensity scores take w·r, self-normalised ones divide their sum by that of w, doubly robust estimates take
q + w·(r - q(a)), where q(a) was predicted of the action before, and q of the policy's draw.

What is not known of rewards and probabilities is learnt, from some events alone at first: a range of hardly
more than the first two rewards would be taken for all there are.

The mean of w·r, and that of w·(1 - r), is at least 0, which bounds the value without anything known of the
logging policy. The other two vary less, and need its least probability: w is at most 1 over that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.estimators.interval_kernels import interval, observe_policy, tally
from onlineauto.estimators.scale_kernels import FLOOR, HIGH, LOW, widen
from onlineauto.jit import inline_kernel, kernel, short_loop

if TYPE_CHECKING:
    from numpy.typing import NDArray

IPS, SNIPS, DR = range(3)
"""The three ways."""

EVENTS, AWAITED, OBSERVED, WEIGHTS, SQUARES, REWARDS, ESTIMATES = range(7)
"""Entries of totals: events; how many only show the range of rewards; those in the intervals; Σ w, Σ w²,
Σ w·r, Σ of doubly robust estimates."""

TOTALS = 7
"""Length of totals."""


class Evidence(NamedTuple):
    """What is known of a policy; see `onlineauto.estimators.evidence`."""

    open: NDArray[np.float64]  # scale without a floor
    floored: NDArray[np.float64]  # and with one
    ips: NDArray[np.float64]  # [POLICY_SIZE]
    snips: NDArray[np.float64]  # [POLICY_SIZE]
    dr: NDArray[np.float64]  # [SUMS]
    totals: NDArray[np.float64]  # [TOTALS]


class Logged(NamedTuple):
    """Events of a log, as a policy sees them."""

    weight: NDArray[np.float64]  # [n]: w
    reward: NDArray[np.float64]  # [n]
    probability: NDArray[np.float64]  # [n]: that it was logged with
    action: NDArray[np.int64]  # [n]: place of the logged action among all
    start: NDArray[np.int64]  # [n, 2]: places of the first action of each event, and behind its last
    predicted: NDArray[np.float64]  # [actions of all events]: reward predicted of each
    pmf: NDArray[np.float64]  # [the same]: probability that the policy gives it; empty for what was logged


@inline_kernel
def _predictions(scale: NDArray[np.float64], logged: Logged, i: int) -> tuple[float, float]:
    """Rewards predicted of the logged action and of the policy's draw, all within the known range."""
    low, high = scale[LOW], scale[HIGH]
    if low > high:
        return 0.0, 0.0
    predicted = min(max(logged.predicted[logged.action[i]], low), high)
    if len(logged.pmf) == 0:
        return predicted, predicted
    expected = 0.0
    for action in range(logged.start[i, 0], logged.start[i, 1]):
        short_loop()
        expected += logged.pmf[action] * min(max(logged.predicted[action], low), high)
    return predicted, expected


@kernel
def observe_doubly(
    sums: NDArray[np.float64],
    scale: NDArray[np.float64],
    w: float,
    reward: float,
    predicted: float,
    expected: float,
) -> None:
    """Take in a doubly robust estimate; a reward beyond the scale counts as the nearest within.

    Both predictions are to be within it.
    """
    low, high, floor = scale[LOW], scale[HIGH], scale[FLOOR]
    if not (high > low and floor > 0.0):
        return
    w, reward = min(w, 1.0 / floor), min(max(reward, low), high)
    x = expected + w * (reward - predicted)
    tally(sums, x, -x, expected, (high - low) / floor)


@kernel
def bounds_of(evidence: Evidence, way: int, alpha: float) -> tuple[float, float]:
    """Interval on the mean value over the events so far; without any, all numbers."""
    sums = evidence.ips if way == IPS else evidence.snips if way == SNIPS else evidence.dr
    n = evidence.totals[OBSERVED]
    if n == 0.0:
        return -np.inf, np.inf
    low, high = interval(sums, alpha)
    scale = evidence.floored
    return max(low / n, scale[LOW]), min(high / n, scale[HIGH])


@kernel
def evaluate_events(evidence: Evidence, logged: Logged, alpha: float, bounds: NDArray[np.float64]) -> None:
    """Take in events, one after the other.

    The intervals after each are written into `bounds`, float64[n, 3, 2], unless that is empty.
    """
    totals = evidence.totals
    for i in range(len(logged.weight)):
        w, reward = logged.weight[i], logged.reward[i]
        predicted, expected = _predictions(evidence.floored, logged, i)
        if totals[EVENTS] >= totals[AWAITED] and evidence.floored[HIGH] > evidence.floored[LOW]:
            totals[OBSERVED] += 1.0
            observe_policy(evidence.ips, evidence.open, w, reward)
            observe_policy(evidence.snips, evidence.floored, w, reward)
            observe_doubly(evidence.dr, evidence.floored, w, reward, predicted, expected)
        totals[EVENTS] += 1.0
        totals[WEIGHTS] += w
        totals[SQUARES] += w * w
        totals[REWARDS] += w * reward
        totals[ESTIMATES] += expected + w * (reward - predicted)
        n = logged.start[i, 1] - logged.start[i, 0]
        widen(evidence.open, reward, logged.probability[i], n)
        widen(evidence.floored, reward, logged.probability[i], n)
        for way in range(3 if len(bounds) else 0):
            low, high = bounds_of(evidence, way, alpha)
            bounds[i, way, 0], bounds[i, way, 1] = low, high
