"""The champion test beside VW's: how soon what is better is found, how often what is not, and after a flip.

    python -m bench.champion [--streams 2000] [--json FILE]

Logs are simulated (`bench.champion.__main__`): the champion's ε-greedy policy, or a uniform one, logs
one of 8 actions with rewards of 0 or 1, or one of 12 with graded ones. VW's test is two robust intervals;
ours is the paired test with the mean reward as baseline, with weak predictions of rewards ("predicted"),
without a known floor ("unknown"), or with predictions and a floor and range learnt on the way ("learnt", the
search's default). All have the level 0.0125, which is what VW gives each of 4 live configs.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench import kit
from onlineauto.estimators import paired_kernels as paired
from onlineauto.estimators import robust_kernels as robust
from onlineauto.estimators.paired_kernels import is_better, observe, observe_predicted
from onlineauto.estimators.robust_kernels import is_better as is_robustly_better
from onlineauto.estimators.robust_kernels import observe as observe_one
from onlineauto.estimators.scale_kernels import FLOOR, HIGH, LOW, SCALE_SIZE, widen
from onlineauto.estimators.scale_kernels import LEARNT as FLOOR_IS_LEARNT
from onlineauto.jit import inline_kernel, kernel, local_array

LEVEL = 0.0125

VW, PAIRED, PREDICTED, UNKNOWN, LEARNT = range(5)
"""Tests: two robust intervals; ours, with predicted rewards, without a known floor, with a learnt one."""
Event = tuple[bool, float, float, float, float]
"""Whether the two disagree, importance weights of challenger and champion, reward, and its prediction."""
_evidence, _state, _scale = (
    local_array(shape, np.float64) for shape in ((2, 2, robust.SIZE), paired.SIZE, SCALE_SIZE)
)


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
    """Return the event at which the challenger wins, counted from 1, or `events` + 1."""
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
    """Return the event of each stream at which the challenger wins, or `events` + 1."""
    test = robust.Test(np.float64(alpha), np.float64(1e-6))
    return np.array(
        [_first_event(log, which, seed, events, alpha, test) for seed in range(streams)], np.int64
    )


_NAMES = {VW: "VW", PAIRED: "paired", PREDICTED: "predicted", UNKNOWN: "unknown", LEARNT: "learnt"}
_OURS = (PAIRED, PREDICTED, UNKNOWN, LEARNT)
_FLIP = 40_000


@dataclass(frozen=True, slots=True)
class Power:
    """Median events until what is better is found."""

    rewards: str
    epsilon: float
    gain: float
    events: dict[str, float]

    def ratio(self, test: str) -> float:
        """Return the ratio of VW's number of events to ours."""
        return self.events["VW"] / self.events[test]


@dataclass(frozen=True, slots=True)
class Null:
    """Share of streams in which a challenger is promoted that is never ahead on average."""

    name: str
    streams: int
    wrong: dict[str, float]


@dataclass(frozen=True, slots=True)
class Delay:
    """Median events from a flip, after which the challenger is better, until it is found."""

    flip: int
    events: dict[str, float]


def powers(streams: int) -> Iterator[Power]:
    """Yield the rows of the grid."""
    for binary in (True, False):
        for epsilon in (0.05, 0.1, 0.2, 1.0):
            for gain, disagree in ((0.02, 0.1), (0.05, 0.2), (0.1, 0.3)):
                log = Log(epsilon, 8 if binary else 12, disagree, gain / disagree, binary=binary)
                yield Power("binary" if binary else "graded", epsilon, gain, medians(log, streams))


NULLS = {
    "eps .05, differ in .2, mean .5": Log(0.05, 8, 0.2, 0.0, binary=True),
    "eps .1, differ in .2, mean .5": Log(0.1, 8, 0.2, 0.0, binary=True),
    "eps .2, differ in .2, mean .5": Log(0.2, 8, 0.2, 0.0, binary=True),
    "eps .1, differ in .05, mean .1": Log(0.1, 8, 0.05, 0.0, mean=0.1, spread=0.05, binary=True),
    "eps .05, differ in .02, mean .05": Log(0.05, 8, 0.02, 0.0, mean=0.05, spread=0.03, binary=True),
    "uniform, differ in .3, mean .5": Log(1.0, 8, 0.3, 0.0, binary=True),
    "uniform of 2, always differ": Log(1.0, 2, 1.0, 0.0, binary=True),
    "eps .1, differ in .3, two rewards": Log(0.1, 8, 0.3, 0.0, spread=0.45),
    "eps .01 of 20, heavy tails": Log(0.01, 20, 0.3, 0.0, binary=True),
    "alternating, eps .1": Log(0.1, 8, 0.2, 0.25, period=256, binary=True),
    "alternating, uniform": Log(1.0, 8, 0.3, 0.33, period=256, binary=True),
    "optimistic predictions, eps .05": Log(0.05, 8, 0.2, 0.0, optimism=0.2, binary=True),
    "optimistic predictions, eps .1": Log(0.1, 8, 0.2, 0.0, optimism=0.2, binary=True),
    "optimistic, eps .1, mean .1": Log(0.1, 8, 0.05, 0.0, 0.1, 0.05, binary=True, optimism=0.2),
    "slightly worse, uniform": Log(1.0, 8, 0.3, -0.01, binary=True),
}
"""Challengers that are never ahead on average."""


def medians(log: Log, streams: int) -> dict[str, float]:
    """Return the median event at which each test promotes the challenger."""
    events = {
        name: first_events(log, which, streams=streams, events=10**7, alpha=LEVEL)
        for which, name in _NAMES.items()
    }
    return {name: float(np.median(found)) for name, found in events.items()}


def nulls(streams: int, events: int = 50_000) -> Iterator[Null]:
    """Yield the shares of false promotions, looked for after every event."""
    for name, log in NULLS.items():
        ends = {
            _NAMES[which]: first_events(log, which, streams=streams, events=events, alpha=LEVEL)
            for which in _OURS
        }
        wrong = {test: float(np.mean(found <= events)) for test, found in ends.items()}
        yield Null(name, streams, wrong)


def delays(streams: int) -> Iterator[Delay]:
    """Yield after how many events of being better a challenger is found that was as much worse before."""
    for flip in (0, _FLIP // 4, _FLIP):
        log = Log(0.2, 8, 0.2, 0.25, binary=True, flip=flip)
        yield Delay(flip, {name: events - flip for name, events in medians(log, streams).items()})


def allowed(streams: int) -> float:
    """Return the level and four standard errors."""
    return LEVEL + 4 * math.sqrt(LEVEL * (1 - LEVEL) / streams)


def verdicts(power: list[Power], null: list[Null], delay: list[Delay]) -> dict[str, bool]:
    """Return each target of the test, and whether it is met."""
    best = [max(row.ratio("paired"), row.ratio("predicted")) for row in power]
    binary = [row for row in power if row.rewards == "binary"]
    uniform = [ratio for row, ratio in zip(power, best, strict=True) if row.epsilon == 1]
    return {
        "5 times fewer events, median": float(np.median([row.ratio("paired") for row in binary])) >= 5,
        "5 times fewer with predictions, median": float(np.median(best)) >= 5,
        "30 times fewer on uniform logs, median": float(np.median(uniform)) >= 30,
        "false promotions as allowed": all(
            share <= allowed(row.streams) for row in null for share in row.wrong.values()
        ),
        "a quarter of VW's delay after a flip": delay[-1].events["paired"] <= delay[-1].events["VW"] / 4,
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables; write JSON if asked to; fail if what is asked does not hold."""
    options = kit.parser(
        __doc__, streams=kit.Option(2000, "of each null; a 20th for each median"), json=Path
    ).parse_args(argv)
    few = max(options.streams // 20, 5)
    power = kit.printed(powers(few))
    null = kit.printed(nulls(options.streams))
    delay = kit.printed(delays(few))
    print(f"allowed share of false promotions: {allowed(options.streams):.2%}")
    verdict = verdicts(power, null, delay)
    kit.write_json(options.json, {"power": power, "null": null, "delay": delay, "verdicts": verdict})
    return kit.print_verdicts(verdict)


if __name__ == "__main__":
    sys.exit(main())
