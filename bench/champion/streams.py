"""Simulated logs of two policies, and when a test says that the challenger is the better one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlineauto.estimators import paired_kernels as paired
from onlineauto.estimators import robust_kernels as robust
from onlineauto.estimators.paired_kernels import is_better, observe, observe_predicted
from onlineauto.estimators.robust_kernels import is_better as is_robustly_better
from onlineauto.estimators.robust_kernels import observe as observe_one
from onlineauto.estimators.scale_kernels import FLOOR, HIGH, LOW, SCALE_SIZE, widen
from onlineauto.estimators.scale_kernels import LEARNT as FLOOR_IS_LEARNT
from onlineauto.jit import inline_kernel, kernel, local_array

VW, PAIRED, PREDICTED, UNKNOWN, LEARNT = range(5)
"""Tests: two robust intervals; ours, with predicted rewards, without a known floor, with a learnt one."""


class Log(NamedTuple):
    """A log of ε-greedy exploration around the champion, and how the challenger differs from it."""

    epsilon: float  # 1 is uniform
    actions: int
    disagree: float  # share of events
    gap: float  # what the challenger gains there
    mean: float = 0.5
    spread: float = 0.32  # by which the context moves rewards up or down
    binary: bool = False  # rewards are 0 or 1
    flip: int = 0  # events before which the challenger loses as much
    period: int = 0  # of a challenger that loses and gains in turn
    optimism: float = 0.0  # by which predictions favour the challenger

    @property
    def floor(self) -> float:
        """Least probability of an action."""
        return self.epsilon / self.actions


Event = tuple[bool, float, float, float, float]
"""Whether the two disagree, importance weights of challenger and champion, reward, and its prediction."""


_evidence, _state, _scale = (
    local_array(shape, np.float64) for shape in ((2, 2, robust.SIZE), paired.SIZE, SCALE_SIZE)
)


@inline_kernel
def _number() -> float:
    """Return a number from 0 to 1 of the compiled code's own generator: kernels take no other."""
    return np.random.random()  # noqa: NPY002


@kernel
def _draw(log: Log, t: int) -> Event:
    """Event `t`."""
    sign = -1.0 if t < log.flip or (log.period > 0 and 2 * (t % log.period) < log.period) else 1.0
    disagree = _number() < log.disagree
    least = log.epsilon / log.actions
    u = _number()
    w1, w0, mean = 0.0, 0.0, log.mean
    if u < 1.0 - log.epsilon + least:
        w0 = 1.0 / (1.0 - log.epsilon + least)
        if disagree:
            mean -= sign * log.gap / 2.0
        else:
            w1 = w0
    elif disagree and u < 1.0 - log.epsilon + 2.0 * least:
        w1 = 1.0 / least
        mean += sign * log.gap / 2.0
    shift = log.spread if _number() < 0.5 else -log.spread
    reward = mean + shift
    if log.binary:
        reward = 1.0 if _number() < reward else 0.0
    return disagree, w1, w0, reward, log.mean + shift / 2.0


@kernel
def _first_event(log: Log, which: int, seed: int, events: int, alpha: float, test: robust.Test) -> int:
    """When a stream is over."""
    np.random.seed(seed)  # noqa: NPY002
    evidence, state, scale = _evidence(), _state(), _scale()
    evidence[:] = state[:] = scale[:] = 0.0
    scale[HIGH], scale[FLOOR] = 1.0, 0.0 if which == UNKNOWN else log.epsilon / log.actions
    if which == LEARNT:
        scale[LOW], scale[HIGH], scale[FLOOR], scale[FLOOR_IS_LEARNT] = np.inf, -np.inf, 1.0, 1.0
    for t in range(events):
        disagree, w1, w0, reward, q = _draw(log, t)
        if which == VW:
            observe_one(evidence[0], w1, reward)
            observe_one(evidence[1], w0, reward)
            if t >= log.flip and is_robustly_better(evidence[0], evidence[1], test)[0]:
                return t + 1
        elif disagree:
            if which in (PREDICTED, LEARNT):
                observe_predicted(state, scale, w1, w0, reward, (q + log.optimism, q), 0.0)
            else:
                observe(state, scale, w1, w0, reward)
            if is_better(state, alpha):
                return t + 1
        if which == LEARNT:
            weight = max(w1, w0)
            widen(scale, reward, 1.0 / weight if weight > 0.0 else log.epsilon / log.actions, log.actions)
    return events + 1


def first_events(log: Log, which: int, *, streams: int, events: int, alpha: float) -> NDArray[np.int64]:
    """When each of so many streams is over: the event at which the challenger wins, or `events` + 1."""
    test = robust.Test(np.float64(alpha), np.float64(1e-6))
    return np.array(
        [_first_event(log, which, seed, events, alpha, test) for seed in range(streams)],
        np.int64,
    )
