"""``FrameEvaluation``: the values of policies from a frame of logged decisions, and the set of best ones.

Let w = π(a)/p be a policy's probability of the logged action over its propensity, and r the reward. The value
of a policy is the mean of w·r, and its interval that of the self-normalised estimate of `Evaluation`.

**Pairs.** The difference of two policies is estimated on the same rows. With c, the mean reward of earlier
rows, (w₁ - w₀)(r - c) has the difference of the two values as its mean. Its size is at most the range of
rewards over the smallest propensity, so `onlineauto.estimators.interval_kernels` bounds its sum at all times
at once. A row in which two policies choose alike adds nothing, so similar policies are told apart early.

**The set.** One policy is proved to be better than another if the lower bound of their difference is above 0.
Of k policies there are k(k - 1) such statements, and each has an equal share of α. So with probability 1 - α
all of them are true after every row. The set of policies that no other is proved to be better than then
always contains the policy that is best on average so far.

**Support.** If the probabilities of all actions are known, a policy's share of actions that were never logged
is known, too. It may have had any reward, so it widens the intervals. Apart from this share, the mean of w is
1. If an interval on that mean does not contain 1, the propensities are not those of the log, or some actions
could not be logged in some contexts. Then the policy has no interval, and stays in the set.

Source: Waudby-Smith, Wu, Ramdas, Karampatziakis, Mineiro, *Anytime-valid off-policy inference for contextual
bandits*, 2022; Hansen, Lunde, Nason, *The model confidence set*, 2011, for the set.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.errors import OptionError
from onlineauto.estimators.interval_kernels import (
    BOUND,
    FIRST_BOUND,
    GAIN,
    GAIN_SQUARES,
    LOSS,
    LOSS_SQUARES,
    SUMS,
    interval,
)
from onlineauto.evaluation.evaluation import LOGGED, Bounded
from onlineauto.evaluation.frame_log import FrameLog, Target

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from onlineauto.pictures.picture import Picture

_POINTS = 200
"""Number of points of the history."""
_AWAITED = 100
"""Number of first rows that only teach the range of rewards and the least propensity, if these are learnt."""
_FEW = 100.0
"""Effective sample size below which an estimate is doubted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameValue:
    """The estimated value of one policy, and how well the log supports it.

    Attributes
    ----------
    policy : str
        Name of the policy.
    estimate : Bounded
        Mean reward; mean cost, if costs are given.
    worse_than : tuple of str
        Policies that are proved to be better; empty for a policy of the set of best ones.
    effective_sample_size : float
        Number of rows with the same precision if the policy itself had logged them: (Σ w)² / Σ w².
    mean_weight : float
        Mean of w, which is close to 1 if the log supports the policy.
    largest_weights : list of (int, float)
        The three rows that count most, from 0 in the frame, and their weights.
    never_logged : dict of action to float
        Actions that the policy chooses and the log never has, with the policy's mean probability of each;
        empty if only the probabilities of logged actions are known.
    is_supported : bool
        False if the mean of w is proved not to be 1: the estimate is then wrong, and has no interval.
    """

    policy: str
    estimate: Bounded
    worse_than: tuple[str, ...]
    effective_sample_size: float
    mean_weight: float
    largest_weights: list[tuple[int, float]]
    never_logged: dict[Any, float]
    is_supported: bool


@dataclass(frozen=True, slots=True)
class FramePoint:
    """The state after a number of rows.

    Attributes
    ----------
    events : int
        Number of rows.
    time : object
        Time of the last of them; None without times.
    intervals : dict of str to (float, float)
        Interval of the value of each policy.
    best : tuple of str
        The set of best policies.
    """

    events: int
    time: Any
    intervals: dict[str, tuple[float, float]]
    best: tuple[str, ...]


class FrameEvaluation:
    """The values of policies on a frame of logged decisions; `Evaluation.from_frame` makes it.

    Attributes
    ----------
    values : list of FrameValue
        Of the logging policy, then of all others.
    best : tuple of str
        The policies that no other is proved to be better than. With probability 1 - `alpha`, the best policy
        is among them after every row at once.
    history : list of FramePoint
        Intervals and sets of best policies after up to 200 numbers of rows.
    events, skipped : int
        Number of rows that were used, and of rows without an action or a reward.
    """

    def __init__(
        self,
        log: FrameLog,
        targets: Mapping[str, Target],
        *,
        alpha: float,
        reward_range: tuple[float, float] | None,
        min_prob: float | None,
        sign: float,
        points: int = _POINTS,
    ) -> None:
        self._log, self._alpha, self._sign = log, alpha, sign
        self.events, self.skipped = len(log), log.n_rows - len(log)
        logged = Target(np.ones(len(log)), np.zeros(len(log)), {})
        self._targets = {LOGGED: logged, **targets}
        self._known = known = _Known(log, reward_range, min_prob)
        self._ends = np.unique(np.linspace(0, len(log), points + 1).astype(np.int64))[1:]  # without 0
        self._supported: dict[str, NDArray[np.bool_]] = {}
        self._slack: dict[str, NDArray[np.float64]] = {}
        self._sums: dict[tuple[str, ...], NDArray[np.float64]] = {}
        for at, (name, target) in enumerate(self._targets.items()):
            self._supported[name] = known.supports(target, self._ends, alpha / len(self._targets))
            # How much the actions that were never logged can change the value of the policy.
            missing = np.cumsum(target.missing)[self._ends - 1] / self._ends
            self._slack[name] = missing * np.maximum(known.high - known.low, 0.0)[self._ends]
            self._sums[name,] = known.sums(target, None, self._ends, is_log=name == LOGGED)
            for other in [*self._targets][:at]:
                self._sums[name, other] = known.sums(target, self._targets[other], self._ends)
        self.history = [self._point(at) for at in range(len(self._ends))]
        self.best = self.history[-1].best
        self.values = [self._value(name) for name in self._targets]

    def difference(self, policy: str, other: str) -> Bounded:
        """Return how much higher the mean reward, or cost, of one policy is than that of another.

        With probability 1 - `alpha`, the intervals of all pairs hold after every row at once.

        Raises
        ------
        OptionError
            If there is no such policy.
        """
        for name in (policy, other):
            if name not in self._targets:
                raise OptionError(f"there is no policy {name!r}; there are {', '.join(self._targets)}")
        low, high = self._difference(policy, other, len(self._ends) - 1)
        return self._signed(self._estimate(policy) - self._estimate(other), low, high)

    def warnings(self) -> Iterator[str]:
        """Yield a sentence for each reason to doubt the values."""
        if self.skipped:
            yield f"{self.skipped:,} of {self._log.n_rows:,} rows have no action or no reward: left out"
        if self._known.beyond:
            yield f"{self._known.beyond:,} {self._unit}s are outside the given range: taken as its bounds"
        if self._known.below:
            yield f"{self._known.below:,} rows were logged with less than the least probability given"
        for value in self.values:
            if not value.is_supported:
                yield (
                    f"{value.policy}: its weights have the mean {value.mean_weight:.3g}, not 1: propensities "
                    "are not those of the log, or the log could not choose what the policy chooses"
                )
            elif value.effective_sample_size < max(_FEW, 0.01 * self.events):
                row, weight = value.largest_weights[0]
                yield (
                    f"{value.policy}: {self.events:,} rows say as much as {value.effective_sample_size:,.0f} "
                    f"of its own; row {row} alone counts {weight:,.3g}"
                )
            if value.never_logged:
                actions = ", ".join(f"{action!r} ({p:.1%})" for action, p in value.never_logged.items())
                yield f"{value.policy} chooses actions that were never logged: {actions}"

    def plot(self, *, title: str | None = None, dark: bool = False) -> Picture:
        """Draw the value of each policy with its interval, and the narrowing of the intervals.

        The mark of a policy outside of the set of best ones is hollow.
        """
        from onlineauto.pictures.values import values

        earned = "earned" if self._sign > 0 else "cost"
        return values(
            {value.policy: value.estimate for value in self.values},
            {
                name: [(point.events, *point.intervals[name]) for point in self.history]
                for name in self._targets
            },
            title=title or f"What each policy would have {earned}",
            note=f"Self-normalised, with {100 * (1 - self._alpha):g} % confidence sequences, which hold "
            "after every row. Hollow: proved to be worse than another.",
            unit=self._unit,
            worse=[value.policy for value in self.values if value.worse_than],
            dark=dark,
        )

    def __str__(self) -> str:
        """Return a table of the values, and the warnings."""
        width = max(map(len, self._targets))
        lines = [f"average {self._unit} over {self.events:,} rows; *: no policy is proved to be better"]
        for value in self.values:
            mean = value.estimate
            lines.append(
                f"{' ' if value.worse_than else '*'} {value.policy:{width}} {mean.value:8.4f} "
                f"[{mean.low:.4f}, {mean.high:.4f}]  sample size {value.effective_sample_size:,.0f}"
            )
        return "\n".join([*lines, *(f"warning: {warning}" for warning in self.warnings())])

    __repr__ = __str__

    @property
    def _unit(self) -> str:
        return "reward" if self._sign > 0 else "cost"

    def _signed(self, value: float, low: float, high: float) -> Bounded:
        """Return a bounded reward in the unit that was given."""
        ends = sorted((self._sign * low + 0.0, self._sign * high + 0.0))
        return Bounded(self._sign * min(max(value, low), high) + 0.0, *ends)

    def _point(self, at: int) -> FramePoint:
        """Return the point number `at` of the history."""
        end, times = int(self._ends[at]), self._log.times
        bounded = {name: self._signed(0.0, *self._interval(name, at)) for name in self._targets}
        return FramePoint(
            end,
            None if times is None else times[end - 1],
            {name: (mean.low, mean.high) for name, mean in bounded.items()},
            tuple(name for name in self._targets if not self._better_than(name, at)),
        )

    def _value(self, name: str) -> FrameValue:
        target, at = self._targets[name], len(self._ends) - 1
        w = target.weight
        heaviest = np.argsort(-w, kind="stable")[:3]
        return FrameValue(
            policy=name,
            estimate=self._signed(self._estimate(name), *self._interval(name, at)),
            worse_than=tuple(self._better_than(name, at)),
            effective_sample_size=float(w.sum() ** 2 / (w @ w)) if w.any() else 0.0,
            mean_weight=float(w.mean()),
            largest_weights=[(int(self._log.row[i]), float(w[i])) for i in heaviest],
            never_logged=target.never_logged,
            is_supported=bool(self._supported[name][at]),
        )

    def _estimate(self, name: str) -> float:
        """Return the self-normalised estimate of the mean reward; 0 without any weight."""
        w = self._targets[name].weight
        return float(w @ self._log.reward / w.sum()) if w.any() else 0.0

    def _interval(self, name: str, at: int) -> tuple[float, float]:
        """Return bounds on the mean reward of a policy."""
        low, high = self._bounds_of((name,), at, self._alpha)
        if math.isinf(low):
            return low, high
        end = self._ends[at]
        return max(low, float(self._known.low[end])), min(high, float(self._known.high[end]))

    def _better_than(self, name: str, at: int) -> list[str]:
        """Return the policies that are proved to be better."""
        return [other for other in self._targets if self._difference(other, name, at)[0] > 0]

    def _difference(self, policy: str, other: str, at: int) -> tuple[float, float]:
        """Return bounds on the difference of the mean rewards of two policies."""
        if policy == other:
            return 0.0, 0.0
        if (policy, other) in self._sums:
            k = len(self._targets)
            return self._bounds_of((policy, other), at, self._alpha / (k * (k - 1) / 2))
        low, high = self._difference(other, policy, at)
        return -high, -low

    def _bounds_of(self, names: tuple[str, ...], at: int, level: float) -> tuple[float, float]:
        """Return bounds on the mean behind some sums; (-inf, inf) while there is too little evidence."""
        n = self._known.observed[self._ends[at]]
        if not (n and all(self._supported[name][at] for name in names)):
            return -math.inf, math.inf
        low, high = interval(self._sums[names][at], level)
        slack = sum(float(self._slack[name][at]) for name in names)
        return float(low / n - slack), float(high / n + slack)


class _Known:
    """The range of rewards and the largest weight, as known before each row and after the last one."""

    def __init__(
        self, log: FrameLog, reward_range: tuple[float, float] | None, min_prob: float | None
    ) -> None:
        n, p, reward = len(log), log.probability, log.reward
        low, high = (math.inf, -math.inf) if reward_range is None else reward_range
        floor = 1.0 if min_prob is None else min_prob
        least = p
        if len(log.choices) > 1:  # an action that was not logged has at most an equal share of the rest
            least = np.where(p < 1.0, np.minimum(p, (1.0 - p) / (len(log.choices) - 1)), p)
        self.beyond = int(np.sum((reward < low) | (reward > high))) if reward_range is not None else 0
        self.below = int(np.sum(p < floor * (1 - 1e-6))) if min_prob is not None else 0
        self.low = np.minimum.accumulate(np.append(low, reward))
        self.high = np.maximum.accumulate(np.append(high, reward))
        self._most = 1.0 / np.minimum.accumulate(np.append(floor, least))[:-1]
        awaited = _AWAITED if reward_range is None or min_prob is None else 0
        self._is_observed = (np.arange(n) >= awaited) & (self.high > self.low)[:-1]
        self.observed = np.append(0, np.cumsum(self._is_observed))
        self._low, self._high, reward = (  # rows that are not observed add nothing
            np.where(self._is_observed, values, 0.0) for values in (self.low[:-1], self.high[:-1], reward)
        )
        self._reward = np.clip(reward, self._low, self._high)

    def sums(
        self, target: Target, other: Target | None, ends: NDArray[np.int64], *, is_log: bool = False
    ) -> NDArray[np.float64]:
        """Return the sums of a policy, or of the difference of two, after numbers of rows, float64[n, 6]."""
        weight = np.minimum(target.weight, self._most)
        if other is not None:
            weight = weight - np.minimum(other.weight, self._most)
        squares = np.where(self._is_observed, weight * weight, 0.0)
        before, earned = (
            np.append(0.0, np.cumsum(terms)[:-1]) for terms in (squares, squares * self._reward)
        )
        centre = np.divide(earned, before, out=(self._low + self._high) / 2, where=before > 0)
        centre = np.clip(centre, self._low, self._high)
        apart = weight * (self._reward - centre)
        bound = (self._high - self._low) * (1.0 if is_log else self._most)
        return _sums_of(apart if other is not None else centre + apart, apart, bound, ends)

    def supports(self, target: Target, ends: NDArray[np.int64], level: float) -> NDArray[np.bool_]:
        """Return whether the mean weight can be 1 after numbers of rows, but for what was never logged."""
        x = np.where(self._is_observed, np.minimum(target.weight, self._most) + target.missing - 1.0, 0.0)
        below = _sums_of(x, x, np.where(self._is_observed, 1.0, 0.0), ends)  # no weight is below 0
        above = _sums_of(x, x, np.where(self._is_observed, self._most, 0.0), ends)
        both = zip(below, above, strict=True)
        return np.array([interval(low, level)[0] <= 0 <= interval(high, level)[1] for low, high in both])


def _sums_of(
    x: NDArray[np.float64], apart: NDArray[np.float64], bound: NDArray[np.float64], ends: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return sums for `interval` of observations that are `apart`, at most `bound`, from what was known."""
    sums, last = np.zeros((len(ends), SUMS)), ends - 1
    sums[:, GAIN], sums[:, GAIN_SQUARES] = np.cumsum(x)[last], np.cumsum(apart * apart)[last]
    sums[:, LOSS], sums[:, LOSS_SQUARES] = -sums[:, GAIN], sums[:, GAIN_SQUARES]
    first = int(np.argmax(bound > 0))
    sums[last >= first, FIRST_BOUND] = bound[first]
    sums[:, BOUND] = np.maximum.accumulate(bound)[last]
    return sums
