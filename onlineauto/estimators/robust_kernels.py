"""Robust confidence sequence: an anytime-valid lower bound on the mean of heavy-tailed observations.

Observations x ≥ 0 have means μ ≤ 1 and may be arbitrarily large, such as rewards over propensities. A bet
with stake λ against "the mean is μ" has, after t observations of sum S, wealth of at least exp(λ (S - tμ) -
v(λ)). The stakes λⱼ = ½ · 1.6^-(j+½), j = 0, 1, ... bet at once, each with a share of the capital. The lower
bound is the μ at which their total wealth is 2/α: for the true mean it ever reaches that with probability at
most α/2.

The state of one sequence is a float64 array of `SIZE`; a new state is all zeros.

Source: Mineiro, *A lower confidence sequence for the changing mean of non-negative right heavy-tailed
observations with bounded mean*, 2022; VW ``confidence_sequence_robust``, whose constants these are.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlineauto.jit import entry_kernel, inline_kernel, kernel, local_array, short_loop
from onlineauto.state.stored import MOST

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.state.stored import Stored

T, SUM, LOW, MID, USED, HISTOGRAM = range(6)
"""Entries of a state: number of observations, their sum, squared errors up to 0, those up to 1, index after
the last bucket in use, and the start of the histogram of larger errors."""

LIMIT = 2.0**256
"""Largest size of an observation: the product of any two float32 numbers. A larger one is clipped, after
which a lower bound is still valid. NaN counts as 0."""

LARGEST_WEIGHT = 2.0**40
"""Largest importance weight. Beyond it, rounding can outweigh everything else in a wealth and make bounds
arbitrary. Clipping a larger weight leaves both bounds valid; VW does not clip."""

_BUCKETS = 448  # an error is at most 2 · LIMIT, which lies in bucket 439
SIZE = HISTOGRAM + 2 * _BUCKETS
"""Length of a state. Bucket n has two entries: the weight of the point 1.5ⁿ, and the weight of the correction
for interpolating between 1.5ⁿ and 1.5ⁿ⁺¹."""

LOWER, UPPER = 0, 1
"""Rows of an estimator, float64[2, SIZE]: one for observations w·r, one for w·(1 - r)."""

BY_MEANS, BY_WEALTH, IN_FULL = 0, 1, 2
"""The basis of a comparison: means alone, the wealth at a few points (mostly one), or both bounds."""

_BASE = 1.5
_LOG_BASE = math.log(_BASE)
_STAKES = 512  # later stakes are too small to matter, for any observations
_of_stakes = local_array(_STAKES, np.float64)
_LOG_XI = math.log1p(1.6 - 1)
_SCALE = 0.5 * (1.0 + 1.4406337969700393 / (float(np.float32(0.95)) * 1.6449340668482264))
_LOG_SCALE = math.log1p(_SCALE - 1.0)
_J = np.arange(_STAKES)
_STAKE = 0.5 * np.vectorize(math.exp)(-(_J + 0.5) * _LOG_XI)
_LOG_SHARE = _LOG_SCALE + math.log1p(1.6 - 2.0) - (1 + _J) * _LOG_XI
_LOG_REST = _LOG_SCALE - _J * _LOG_XI  # log of the initial capital of the stakes from j on
_INT_MIN = -(2.0**31)
_POINT = np.array([_BASE**n for n in range(_BUCKETS)])
_ATTEMPTS = 7

_TABLED_STAKES, _TABLED_POINTS = 32, 64  # the table covers only common stakes and errors
_Z = np.outer(_STAKE[:_TABLED_STAKES], _POINT[:_TABLED_POINTS])
_WEAK = _Z - np.vectorize(math.log1p)(_Z)
_STRONG = ((_BASE - 1.0) * _Z / (1.0 + _BASE * _Z)) ** 2


class Test(NamedTuple):
    """The confidence of a bound, and the precision of its computation."""

    alpha: np.float64  # each of the two bounds is wrong with probability at most alpha / 2
    tol_x: np.float64


@kernel
def add(state: NDArray[np.float64], x: float) -> None:
    """Add one observation."""
    if not abs(x) <= LIMIT:
        x = LIMIT if x > 0.0 else -LIMIT if x < 0.0 else 0.0
    error = x - min(1.0, (state[SUM] + 0.5) / (state[T] + 1.0))
    if error <= 0.0:
        state[LOW] += error * error
    elif error <= 1.0:
        state[MID] += error * error
    else:
        n = min(max(math.floor(math.log(error) / _LOG_BASE), 0), _BUCKETS - 2)
        point = _POINT[n]
        share = (_BASE * point - error) / ((_BASE - 1.0) * point)
        at = HISTOGRAM + 2 * n
        state[at] += share
        state[at + 1] -= 0.5 * share * (1.0 - share)
        state[at + 2] = state[at + 2] + 1.0 - share
        state[USED] = max(state[USED], n + 2.0)
    state[SUM] += x
    state[T] += 1.0


@kernel
def observe(estimator: NDArray[np.float64], w: float, r: float) -> None:
    """Add a reward `r` and its importance weight `w`, 0 if the policy would not choose the logged action."""
    add(estimator[LOWER], w * r)
    add(estimator[UPPER], w * (1.0 - r))


@inline_kernel
def observe_nothing(evidence: NDArray[np.float64], slot: int, policy: int) -> None:
    """Add a weight of 0 to the estimator ``evidence[slot, policy]``, like `observe`."""
    for bound in range(2):
        short_loop()
        sums = evidence[slot, policy, bound, SUM]
        times = evidence[slot, policy, bound, T]
        mean = min(1.0, (sums + 0.5) / (times + 1.0))
        if mean >= 0.0:
            evidence[slot, policy, bound, LOW] += mean * mean
            evidence[slot, policy, bound, T] = times + 1.0
        else:
            add(evidence[slot, policy, bound], 0.0)


@kernel
def _variance(state: NDArray[np.float64], stake: float, root: float) -> float:
    """Return v, the term by which the spread lowers log wealth, by VW's operations (`root` is √(t+1))."""
    low = state[LOW] / ((state[T] + 1.0) - root * stake)
    mid = state[MID] / (state[T] + 1.0)
    v: float = 0.0
    for n in range(min(int(state[USED]), _BUCKETS)):
        weak = state[HISTOGRAM + 2 * n]
        strong = state[HISTOGRAM + 2 * n + 1]
        if weak != 0.0 or strong != 0.0:
            x = _POINT[n] / root
            gap = stake * (_BASE - 1.0) * x / (1.0 + stake * _BASE * x)
            v += weak * (stake * x - math.log1p(stake * x))
            v += strong * (gap * gap)
    v += 0.5 * (stake * stake) * (low + mid)
    return v


@kernel
def _is_rich(
    state: NDArray[np.float64], variances: NDArray[np.float64], n_known: int, mu: float, threshold: float
) -> tuple[bool, int]:
    """Return whether the wealth at `mu` is at least exp(threshold), like VW, and the new `n_known`.

    `variances` has v of the first `n_known` stakes, at least 1; stakes are added up as long as necessary.
    """
    root = math.sqrt(state[T] + 1.0)
    y = state[SUM] - state[T] * mu
    wealth, peak, last = 0.0, _INT_MIN, -np.inf
    for j in range(_STAKES):
        if j >= n_known:
            most = last if last < peak else _STAKE[j] * y
            most += _LOG_REST[j] - threshold
            if most < 0.0 and wealth + math.exp(most) < 1.0:
                return False, n_known
            variances[j] = _variance(state, _STAKE[j] * root, root)
            n_known = j + 1
        peak = max(peak, last)
        last = _STAKE[j] * y - variances[j]
        term = last + _LOG_SHARE[j] - threshold
        if term >= 0.0:
            return True, n_known
        wealth += math.exp(term)
        if wealth >= 1.0:
            return True, n_known
    return False, n_known


@kernel
def _quick_variance(state: NDArray[np.float64], j: int) -> float:
    """Return v of stake j, like `_variance` apart from rounding; terms of stakes and points are tabulated."""
    used = min(int(state[USED]), _BUCKETS)
    if j >= _TABLED_STAKES or used > _TABLED_POINTS:
        root = math.sqrt(state[T] + 1.0)
        return _variance(state, _STAKE[j] * root, root)
    half = 0.5 * _STAKE[j] * _STAKE[j]
    v: float = half * (state[LOW] / (1.0 - _STAKE[j]) + state[MID])
    for n in range(used):
        short_loop()
        v += state[HISTOGRAM + 2 * n] * _WEAK[j, n] + state[HISTOGRAM + 2 * n + 1] * _STRONG[j, n]
    return v


@kernel
def _may_be_rich(state: NDArray[np.float64], mu: float, threshold: float) -> bool:
    """Return whether the wealth at `mu` may reach exp(threshold); if False, it surely does not.

    It takes a tenth of the time of `_is_rich`, and bounds the rest of the stakes safely: v is convex, so log
    wealth is concave in the stake and falls past its peak. `_is_rich` follows VW, which has two errors. The
    smallest number in its search for the peak is too large when observations are far below zero. And the peak
    that it finds may be a rounding error, which at weights of 1e13 outweighs everything. Either error can
    make its "no" wrong, never its "yes".
    """
    y = state[SUM] - state[T] * mu
    first = _quick_variance(state, 0)
    rounding = 1e-12 * (_STAKE[0] * (abs(state[SUM]) + state[T]) + first)
    wealth, peak, last = 0.0, -np.inf, -np.inf
    for j in range(_STAKES):
        if j > 0:
            most = last + rounding if last < peak else _STAKE[j] * y
            most += _LOG_REST[j] - threshold
            if most < 0.0 and wealth + math.exp(most) < 1.0:
                return False
        peak = max(peak, last)
        last = _STAKE[j] * y - (_quick_variance(state, j) if j > 0 else first)
        term = last + _LOG_SHARE[j] - threshold
        if term >= 0.0:
            return True
        wealth += math.exp(term)
        if wealth >= 1.0:
            return True
    return False


@inline_kernel
def _threshold(test: Test) -> float:
    """Return the log wealth that proves a point to be below the mean."""
    return -math.log(test.alpha / 2.0)


@kernel
def lower_root(state: NDArray[np.float64], test: Test) -> float:
    """Return a lower bound on the mean, in [0, 1], within `tol_x` of the point with wealth 2/alpha."""
    threshold, variances = _threshold(test), _of_stakes()
    root = math.sqrt(state[T] + 1.0)
    variances[0] = _variance(state, _STAKE[0] * root, root)
    variances[1] = _variance(state, _STAKE[1] * root, root)
    rich, known = _is_rich(state, variances, 2, 0.0, threshold)
    if not rich:
        return 0.0
    rich, known = _is_rich(state, variances, known, 1.0, threshold)
    if rich:
        return 1.0
    lower, upper, mid = 0.0, 1.0, 0.0
    while upper >= lower + test.tol_x:
        mid = (lower + upper) / 2
        if mid in (lower, upper):
            break
        rich, known = _is_rich(state, variances, known, mid, threshold)
        if rich:
            lower = mid
        else:
            upper = mid
    return mid


@entry_kernel
def lower_bound(estimator: NDArray[np.float64], test: Test) -> float:
    """Return a lower bound on the reward of a policy."""
    return lower_root(estimator[LOWER], test)


@entry_kernel
def upper_bound(estimator: NDArray[np.float64], test: Test) -> float:
    """Return an upper bound on the reward of a policy."""
    return 1.0 - lower_root(estimator[UPPER], test)


@inline_kernel
def _slack(mean: float, test: Test) -> float:
    """Return the maximum distance of a bound above the root: `tol_x`, and a million rounding errors."""
    return test.tol_x + 1e-9 * (1.0 + mean)


@kernel
def _settle(
    challenger: NDArray[np.float64], champion: NDArray[np.float64], test: Test, s: float, u: float
) -> tuple[bool, int]:
    """Return `is_better`, decided by a point between the bounds if one is found, else by the bounds."""
    if test.alpha <= 1.0:
        m = low = 1.0 - min(1.0, u + _slack(u, test))
        high = min(1.0, s + _slack(s, test))
        for attempt in range(_ATTEMPTS):
            if _may_be_rich(challenger[LOWER], max(0.0, m - _slack(s, test)), _threshold(test)):
                low = m
            elif attempt == 0 or not _may_be_rich(
                champion[UPPER], max(0.0, 1.0 - m - _slack(u, test)), _threshold(test)
            ):
                return (
                    False,
                    BY_WEALTH,
                )  # in the first attempt, `u` itself proves that m is below the upper bound
            else:
                high = m
            m = (low + high) / 2
    return lower_bound(challenger, test) > upper_bound(champion, test), IN_FULL


@inline_kernel
def is_better(challenger: NDArray[np.float64], champion: NDArray[np.float64], test: Test) -> tuple[bool, int]:
    """Return whether ``lower_bound(challenger) > upper_bound(champion)``, and the basis of the decision.

    It is false if any point m is known to lie between the bounds. The bounds are computed only if no such
    point is found.

    * No root is above the mean. v(λ) ≥ 0, because no interpolated term is below the term that it replaces:
      z - log1p(z) is strongly convex, and the second entry of a bucket is the correction that this allows. So
      at a μ above the mean no bet has won, and the wealth is at most the initial capital, 0.96 < 2/alpha.
    * The wealth falls with μ, and so does the wealth of the first j stakes, for every j. A μ counts as below
      the root by that alone. So if at some point the wealth of all stakes is too small, the root is below it.
    * The returned bound is at most `tol_x` above the root, by either method.
    """
    s, u = challenger[LOWER, SUM], champion[UPPER, SUM]
    if test.alpha <= 1.0:
        if not (s > 0.0 and u > 0.0):
            return False, BY_MEANS  # the lower bound is 0, or the upper bound is 1
        s /= challenger[LOWER, T]
        u /= champion[UPPER, T]
        if s + _slack(s, test) <= 1.0 - min(1.0, u + _slack(u, test)):
            return False, BY_MEANS
    return _settle(challenger, champion, test, s, u)


_LARGEST_SUM = 2.0**640
"""No sum of a sequence is as large: errors are below 2^257, their squares below 2^514, counts below 2^62."""


def stored_evidence(stored: Stored, array: NDArray[Any]) -> NDArray[Any]:
    """Return stored states of robust confidence sequences, in the shape of `array`."""
    values = stored.array_between(array, -_LARGEST_SUM, _LARGEST_SUM)
    if (values[..., T] < 0).any() or (values[..., T] > MOST).any():
        raise stored.fail("the states of confidence sequences")
    return values
