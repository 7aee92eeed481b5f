"""What every test of a challenger against the champion has to keep to."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Estimator", "check_estimator"]


class Estimator(Protocol):
    """A test of a challenger against the champion, such as `onlineauto.estimators.paired.ChampionTest`."""

    def update(self, challenger: int, champion: int, *, logged: int, p: float, reward: float) -> None:
        """Take in a logged event: what each would do, what was done, how likely that was, and its reward."""

    @property
    def better(self) -> bool:
        """Whether the challenger is proved to be better."""

    @property
    def worse(self) -> bool:
        """Whether the challenger is proved to be worse."""


class _Event(NamedTuple):
    """The challenger's action is 1 where the two differ, the champion's always 0."""

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
    """Events on which the two differ; the challenger loses for half a period, gains for the other half."""
    u, v = rng.random((2, events)).tolist()
    for t in range(events):
        logged = int(u[t] < likely)
        now = -gain if 2 * (t % max(period, 1)) < period else gain
        reward = v[t] < mean + now * (logged - 0.5)
        yield _Event(True, logged, likely if logged else 1 - likely, float(reward))


def _rising(rng: np.random.Generator, events: int) -> Iterator[_Event]:
    """The two agree while rewards are low and differ while they are high: averages over either mislead."""
    for t, event in enumerate(_log(rng, events, mean=0.9)):
        low = t < events // 2
        yield event._replace(differ=not low, reward=event.reward * (rng.random() < 0.2 if low else 1.0))


_NULLS: dict[str, tuple[_Log, float]] = {
    "two equals": (_log, 0.5),
    "advantages that alternate": (partial(_log, gain=0.9, period=64), 0.5),
    "rewards that rise": (_rising, 0.5),
    "heavy tails": (partial(_log, likely=0.01, mean=0.2), 0.01),
}
"""Logs of a challenger that is never ahead on average, and their least probabilities."""


def check_estimator(
    make: Callable[[float, float], Estimator],
    *,
    alpha: float = 0.05,
    streams: int = 60,
    events: int = 1000,
    seed: int = 0,
) -> None:
    """Hold a test of challengers to what the search expects of it.

    It is looked at after every event. A challenger that is never ahead on average is found to be better in a
    share of the streams of at most `alpha` and four standard errors: if both earn the same, if advantages
    alternate, if rewards rise meanwhile, and if weights have heavy tails. Two that always agree are never
    told apart. Far more reward is found to be better, far less to be worse.

    Parameters
    ----------
    make : callable
        Makes a fresh test from `alpha` and the least probability of a logged action.
    alpha : float, default 0.05
        Level.
    streams, events : int, default 60 and 1000
        How many logs of each kind, and how long. 2,000 logs of 20,000 events leave little room for error.
    seed : int, default 0
        Of the logs.

    Raises
    ------
    AssertionError
        Says which expectation it does not meet.

    Examples
    --------
    >>> from onlineauto.estimators.paired import ChampionTest
    >>> check_estimator(lambda alpha, floor: ChampionTest(alpha, floor=floor), streams=5)
    """
    rng = np.random.default_rng(seed)
    allowed = alpha + 4 * math.sqrt(alpha * (1 - alpha) / streams)
    for name, (log, floor) in _NULLS.items():
        better = sum(_run(make(alpha, floor), log(rng, events)) == "better" for _ in range(streams))
        _require(
            better <= allowed * streams,
            f"{name}: better in {better} of {streams} streams, more than {allowed:.1%}",
        )
    agreeing = (event._replace(differ=False) for event in _log(rng, events, mean=0.7))
    _require(not _run(make(alpha, 0.5), agreeing), "two that always agree are told apart")
    for gain, expected in ((0.8, "better"), (-0.8, "worse")):
        found = _run(make(alpha, 0.5), _log(rng, events, gain=gain))
        _require(found == expected, f"a gain of {gain} in every event: found {found or 'nothing'}")


def _run(estimator: Estimator, log: Iterator[_Event]) -> str:
    """Whether it is found to be better at any time; if not, whether worse."""
    worse = False
    for event in log:
        estimator.update(int(event.differ), 0, logged=event.logged, p=event.p, reward=event.reward)
        if estimator.better:
            return "better"
        worse = worse or estimator.worse
    return "worse" if worse else ""


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)
