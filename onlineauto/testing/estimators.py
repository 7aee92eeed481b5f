"""The conformance suite of estimators: tests of a challenger against the champion."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Estimator(Protocol):
    """A test of a challenger against the champion, such as `onlineauto.estimators.paired.ChampionTest`."""

    def update(self, challenger: int, champion: int, *, logged: int, p: float, reward: float) -> None:
        """Add one logged event: both actions, the logged action, its propensity `p`, and its reward."""

    @property
    def better(self) -> bool:
        """True if the challenger is proved to be better."""

    @property
    def worse(self) -> bool:
        """True if the challenger is proved to be worse."""


class _Event(NamedTuple):
    """One event of a log. The champion's action is 0; the challenger's is 1 if `differ`, else 0."""

    differ: bool
    logged: int
    p: float
    reward: float


class _Log(Protocol):
    def __call__(self, rng: np.random.Generator, events: int, /) -> Iterator[_Event]: ...


def _log(
    rng: np.random.Generator,
    events: int,
    *,
    likely: float = 0.5,
    mean: float = 0.5,
    gain: float = 0.0,
    period: int = 0,
) -> Iterator[_Event]:
    """Yield events with different actions; the challenger loses for half a `period`, then gains."""
    u, v = rng.random((2, events)).tolist()
    for t in range(events):
        logged = int(u[t] < likely)
        now = -gain if 2 * (t % max(period, 1)) < period else gain
        reward = v[t] < mean + now * (logged - 0.5)
        yield _Event(True, logged, likely if logged else 1 - likely, float(reward))


def _rising_rewards(rng: np.random.Generator, events: int) -> Iterator[_Event]:
    """Yield events with different actions only while rewards are high, so that averages mislead."""
    for t, event in enumerate(_log(rng, events, mean=0.9)):
        low = t < events // 2
        yield event._replace(differ=not low, reward=event.reward * (rng.random() < 0.2 if low else 1.0))


_NULLS: dict[str, tuple[_Log, float]] = {
    "two equals": (_log, 0.5),
    "advantages that alternate": (partial(_log, gain=0.9, period=64), 0.5),
    "rewards that rise": (_rising_rewards, 0.5),
    "heavy tails": (partial(_log, likely=0.01, mean=0.2), 0.01),
}
"""Logs on which the challenger is never better on average, each with its smallest propensity."""


def check_estimator(
    make: Callable[[float, float], Estimator],
    *,
    alpha: float = 0.05,
    streams: int = 60,
    events: int = 1000,
    seed: int = 0,
) -> None:
    """Check a test of challengers against the requirements of the search.

    The test is read after every event. On logs whose challenger is never better on average (equal rewards,
    alternating advantages, rising rewards, heavy-tailed weights), it may call the challenger better in a
    share of at most `alpha`, plus four standard errors, of the logs. It never distinguishes a challenger from
    a champion with the same actions. It calls a challenger with a far larger reward better, and one with a
    far smaller reward worse.

    Parameters
    ----------
    make : callable
        Returns a new test, from `alpha` and the smallest propensity of a log.
    alpha : float, default 0.05
        Level of the test.
    streams, events : int, default 60 and 1000
        Number of logs of each kind, and their length. 2,000 logs of 20,000 events make the check precise.
    seed : int, default 0
        Seed of the logs.

    Raises
    ------
    AssertionError
        If a requirement is violated; the message names the requirement.

    Examples
    --------
    >>> from onlineauto.estimators.paired import ChampionTest
    >>> check_estimator(lambda alpha, floor: ChampionTest(alpha, floor=floor), streams=5)
    """
    rng = np.random.default_rng(seed)
    allowed = alpha + 4 * math.sqrt(alpha * (1 - alpha) / streams)
    for name, (log, floor) in _NULLS.items():
        better = sum(_run(make(alpha, floor), log(rng, events)) == "better" for _ in range(streams))
        assert better <= allowed * streams, (
            f"{name}: better in {better} of {streams} streams, more than {allowed:.1%}"
        )
    agreeing = (event._replace(differ=False) for event in _log(rng, events, mean=0.7))
    assert not _run(make(alpha, 0.5), agreeing), "two that always agree are distinguished"
    for gain, expected in ((0.8, "better"), (-0.8, "worse")):
        outcome = _run(make(alpha, 0.5), _log(rng, events, gain=gain))
        assert outcome == expected, f"a gain of {gain} in every event: found {outcome or 'nothing'}"


def _run(estimator: Estimator, log: Iterator[_Event]) -> str:
    """Return "better" or "worse" if the test ever decides so about the challenger, else ""."""
    worse = False
    for event in log:
        estimator.update(int(event.differ), 0, logged=event.logged, p=event.p, reward=event.reward)
        if estimator.better:
            return "better"
        worse = worse or estimator.worse
    return "worse" if worse else ""
