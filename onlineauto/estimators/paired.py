"""``ChampionTest``: does a challenger earn more than the champion? Valid at every event."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.errors import InputError, OptionError
from onlineauto.estimators.difference_kernels import SEEN, SPREAD_SIZE, observe_any_difference, share
from onlineauto.estimators.interval_kernels import POLICY_SIZE, interval, observe_policy
from onlineauto.estimators.paired_kernels import (
    BETTER,
    SIZE,
    WORSE,
    T,
    is_better,
    is_worse,
    level,
    observe,
    observe_difference,
    observe_predicted,
)
from onlineauto.estimators.scale_kernels import OUTSIDE, make_scale, widen

if TYPE_CHECKING:
    from numpy.typing import NDArray


class ChampionTest:
    """A test whether a challenger earns more than the champion, or less, on the same logged events.

    A challenger is wrongly declared better only if it was not ahead on average since the start, nor since any
    of the events 1024, 2048, 4096, ... The probability of that is at most `alpha`, no matter when the test is
    read and how the advantage changes. `onlineauto.estimators.paired_kernels` gives the reasons.

    Examples
    --------
    Action 0 is logged in three of four events, action 1 in the fourth. Action 1 pays more often.

    >>> test = ChampionTest(alpha=0.05, floor=0.25)
    >>> for event in range(400):
    ...     logged = int(event % 4 == 0)
    ...     reward = float(event % 8 == 0) if logged else float(event % 5 == 1)
    ...     test.update(1, 0, logged=logged, p=0.25 if logged else 0.75, reward=reward)
    >>> test.better, test.worse
    (True, False)
    >>> low, high = test.difference
    >>> 0 < low < high < 1
    True
    >>> low, high = test.champion
    >>> round(low, 2), round(high, 2)
    (0.09, 0.31)

    Source: see `onlineauto.estimators.paired_kernels`.
    """

    def __init__(
        self, alpha: float = 0.05, *, k: int = 1, floor: float = 0.0, low: float = 0.0, high: float = 1.0
    ) -> None:
        if not 0 < alpha < 1:
            raise OptionError(f"alpha must be above 0 and below 1, not {alpha!r}")
        if not k >= 1:
            raise OptionError(f"k counts tests from 1, not {k!r}")
        if not 0 <= floor <= 1:
            raise OptionError(f"floor must be a probability, not {floor!r}")
        if not -math.inf < low < high < math.inf:
            raise OptionError(
                f"low and high must be finite, and low less than high, not {low!r} and {high!r}"
            )
        self._alpha = float(alpha)
        self._level = float(level(alpha, k))
        self._scale = make_scale(low, high, floor=floor)
        self._state = np.zeros(SIZE)
        self._spread = np.zeros(SPREAD_SIZE)
        self._champion = np.zeros(POLICY_SIZE)
        self._events = 0

    def update(
        self,
        challenger: int,
        champion: int,
        *,
        logged: int,
        p: float,
        reward: float,
        predicted: tuple[float, float] | None = None,
    ) -> None:
        """Add one logged event."""
        if not 0 < p <= 1:
            raise InputError(f"a probability is above 0 and at most 1, not {p!r}")
        if not math.isfinite(reward):
            raise InputError(f"a reward is a finite number, not {reward!r}")
        w1, w0 = (1.0 / p if logged == action else 0.0 for action in (challenger, champion))
        self._events += 1
        observe_policy(self._champion, self._scale, w0, float(reward), 1.0)
        if challenger != champion and predicted is None:
            observe(self._state, self._scale, w1, w0, float(reward))
        elif challenger != champion and predicted is not None:
            q1, q0 = predicted
            observe_predicted(self._state, self._scale, w1, w0, float(reward), (float(q1), float(q0)), 0.0)
        widen(self._scale, float(reward), float(p), 1)

    def update_difference(self, difference: float, bound: float | None = None) -> None:
        """Add a gain of the challenger that is known exactly: the champion's loss minus the challenger's.

        Use either this or `update` for all events of a test.
        """
        if not (math.isfinite(difference) and (bound is None or 0 < bound < math.inf)):
            raise InputError(f"a difference is finite and its bound above 0, not {difference!r}, {bound!r}")
        self._events += 1
        if bound is None:
            observe_any_difference(self._state, self._spread, float(difference), 0.0)
        else:
            observe_difference(self._state, float(difference), float(bound), 0.0)

    @property
    def _present_level(self) -> float:
        return self._level * (float(share(self._spread)) if self._spread[SEEN] else 1.0)

    @property
    def better(self) -> bool:
        """True if the challenger is now proved to be better."""
        return bool(is_better(self._state, self._present_level))

    @property
    def worse(self) -> bool:
        """True if the challenger is now proved to be worse."""
        return bool(is_worse(self._state, self._present_level))

    @property
    def evidence(self) -> tuple[float, float]:
        """Evidence for better and for worse: 1 before the first event; 1 / level or more is a proof."""
        if not self._state[T]:
            return 1.0, 1.0
        return float(self._state[BETTER]), float(self._state[WORSE])

    @property
    def difference(self) -> tuple[float, float]:
        """Bounds on the challenger's mean gain per event; wrong at any time with probability `alpha`."""
        return self._mean(self._state)

    @property
    def champion(self) -> tuple[float, float]:
        """Bounds on the champion's mean reward over the logged events."""
        return self._mean(self._champion)

    @property
    def updates(self) -> int:
        """Number of events added."""
        return self._events

    @property
    def outside(self) -> int:
        """Number of events with a reward outside the known range, or with a propensity below the floor."""
        return int(self._scale[OUTSIDE])

    def _mean(self, sums: NDArray[np.float64]) -> tuple[float, float]:
        low, high = interval(sums, self._alpha)
        return float(low) / max(self._events, 1), float(high) / max(self._events, 1)
