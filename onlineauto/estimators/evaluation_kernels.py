"""The value of another policy, from a log: sums and intervals after every event, by three estimators.

Let w = π(a)/p be the policy's probability of the logged action over its propensity, and r the reward. Inverse
propensity scoring takes the mean of w·r. Self-normalised scoring divides the sum of w·r by that of w. The
doubly robust estimate is the mean of q + w·(r - q(a)). Here q(a) is the reward predicted for the logged
action before it was known, and q the predicted reward of the policy.

If the range of rewards or the smallest propensity is unknown, it is learnt. The first events are used for
that only. Otherwise the range of the first two rewards would be taken for the range of all.

The means of w·r and of w·(1 - r) are at least 0. That bounds the value without any knowledge of the logging
policy. The other two estimates vary less, but need its smallest propensity, whose inverse bounds w.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.estimators.interval_kernels import POLICY_SIZE, SUMS, interval, observe_policy, tally
from onlineauto.estimators.scale_kernels import FLOOR, HIGH, LOW, make_scale, widen
from onlineauto.jit import entry_kernel, inline_kernel, kernel, short_loop

if TYPE_CHECKING:
    from numpy.typing import NDArray

IPS, SNIPS, DR = range(3)
"""The three estimators."""

EVENTS, AWAITED, OBSERVED, WEIGHTS, SQUARES, REWARDS, ESTIMATES = range(7)
"""Entries of totals: number of events; number of first events that only teach the range; number of events in
the intervals; Σ w, Σ w², Σ w·r, and Σ of doubly robust estimates."""

TOTALS = 7
"""Length of totals."""


class Evidence(NamedTuple):
    """The evidence about a policy; see `make_evidence`."""

    open: NDArray[np.float64]  # scale without a floor
    floored: NDArray[np.float64]  # scale with a floor
    ips: NDArray[np.float64]  # [POLICY_SIZE]
    snips: NDArray[np.float64]  # [POLICY_SIZE]
    dr: NDArray[np.float64]  # [SUMS]
    totals: NDArray[np.float64]  # [TOTALS]


class Logged(NamedTuple):
    """Events of a log, and the choices of another policy in each event."""

    weight: NDArray[np.float64]  # [n]: w
    reward: NDArray[np.float64]  # [n]
    probability: NDArray[np.float64]  # [n]: propensity of the logged action
    action: NDArray[np.int64]  # [n]: index of the logged action among all actions
    start: NDArray[np.int64]  # [n, 2]: index of each event's first action, and the index after its last
    predicted: NDArray[np.float64]  # [all actions]: predicted reward
    pmf: NDArray[np.float64]  # [all actions]: probability under the policy; empty for the logging policy


@inline_kernel
def _predictions(scale: NDArray[np.float64], logged: Logged, i: int) -> tuple[float, float]:
    """Return the predicted reward of the logged action and of the policy, clipped to the known range."""
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
    """Add a doubly robust estimate within the scale, to which a reward outside is clipped."""
    low, high, floor = scale[LOW], scale[HIGH], scale[FLOOR]
    if not (high > low and floor > 0.0):
        return
    w, reward = min(w, 1.0 / floor), min(max(reward, low), high)
    x = expected + w * (reward - predicted)
    tally(sums, x, -x, expected, (high - low) / floor)


@entry_kernel
def bounds_of(evidence: Evidence, way: int, alpha: float) -> tuple[float, float]:
    """Return an interval on the mean value over the events so far; (-inf, inf) without an event."""
    sums = evidence.ips if way == IPS else evidence.snips if way == SNIPS else evidence.dr
    n = evidence.totals[OBSERVED]
    if n == 0.0:
        return -np.inf, np.inf
    low, high = interval(sums, alpha)
    scale = evidence.floored
    return max(low / n, scale[LOW]), min(high / n, scale[HIGH])


@entry_kernel
def evaluate_events(evidence: Evidence, logged: Logged, alpha: float, bounds: NDArray[np.float64]) -> None:
    """Add events to the evidence; `bounds`, float64[n, 3, 2] or empty, receives the intervals after each."""
    totals = evidence.totals
    for i in range(len(logged.weight)):
        w, reward = logged.weight[i], logged.reward[i]
        predicted, expected = _predictions(evidence.floored, logged, i)
        if totals[EVENTS] >= totals[AWAITED] and evidence.floored[HIGH] > evidence.floored[LOW]:
            totals[OBSERVED] += 1.0
            observe_policy(evidence.ips, evidence.open, w, reward, 1.0)
            observe_policy(evidence.snips, evidence.floored, w, reward, 1.0)
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


_AWAITED = 100


def make_evidence(low: float, high: float, *, floor: float | None) -> Evidence:
    """Return new evidence, see `onlineauto.estimators.evaluation_kernels`."""
    totals = np.zeros(TOTALS)
    if low > high or floor is None:
        totals[AWAITED] = _AWAITED
    return Evidence(
        open=make_scale(low, high, floor=0.0),
        floored=make_scale(low, high, floor=floor),
        ips=np.zeros(POLICY_SIZE),
        snips=np.zeros(POLICY_SIZE),
        dr=np.zeros(SUMS),
        totals=totals,
    )
