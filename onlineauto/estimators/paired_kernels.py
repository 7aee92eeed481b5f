"""The champion test: does a challenger earn more than the champion? The answer is valid at every event.

Only events on which the two would act differently count; where they agree, neither gains on the other. An
action a was logged with propensity p and had the reward r. Let wᵢ be 1/p if policy i would have chosen a, and
else 0. With any numbers q₁, q₀ in [0, 1] that are chosen before r is known, the increment

    d = w₁(r - q₁) - w₀(r - q₀) + q₁ - q₀

has the mean μ, the advantage of the challenger (1) over the champion (0). The numbers can be a learner's
predictions of the two rewards (doubly robust). If both are the mean reward c so far, d is (w₁ - w₀)(r - c),
which varies far less than the difference of w₁r and w₀r.

**Bets.** A bet with a fixed stake λ has the wealth ∏(1 + λd). No factor may be negative. With 1/p ≤ B and q₁
≤ κ, q₀ ≥ 1 - κ, d is at least -(B - 1)κ - 1. So the bet lowers q₁ to κ and raises q₀ to 1 - κ, with κ such
that no event loses more than ¾; that leaves μ unchanged. For λ ≤ ¾/B, κ is 1 and q₁ and q₀ are unchanged.
Larger stakes pay where rewards vary little.

If B is unknown, κ is 0 in every bet: d is w₁r + w₀(1 - r) - 1 ≥ -1, and any p is allowed. (Rewards cannot be
centred then. In contexts where the challenger's action is hardly ever logged, the test only measures whether
the champion earns less than elsewhere. That says nothing about the challenger.)

If B is the largest 1/p seen so far, half of the capital is in bets with B, and half in bets without it.

**Why it holds.** Divided by ∏(1 + λμ), a wealth is a martingale from 1, and ∏(1 + λμ) ≤ exp(λ ∑μ). So while
∑μ ≤ 0, however the signs of μ change, a wealth that starts with 1 ever reaches 1/α with probability at most
α. (Stakes may shrink on the way, for example when the range of rewards grows: by summation by parts ∑λμ ≤ 0
if every partial sum ∑μ so far is.)

Nine tenths of the capital are spread over `N` stakes at the start. A share of the rest joins after 1024,
2048, 4096, ... events, in bets that ignore the events before. So a challenger that was worse for a long time
need not earn back what it lost. All capital on one stake is multiplied by the same factors, whenever it
joined, so one number for each stake is enough. (Capital could join at every event at no further cost; the
null hypothesis would then be that the challenger was never ahead over any span.) All bets together are one
e-process for "the challenger was not ahead on average, neither since its start nor since any of these
events". Bets that learn their stakes do not have this property: they win where signs merely alternate.

**Events that are left out.** Of the events with the reward 0, only a random share 1/k may be known (see
`onlineauto.engine.event.keep_kernels`). Each of them counts k times, and the mean increment stays μ. Let r₀
in [0, 1] be the reward 0. With q₁ and q₀ at most 1/k from r₀, no increment of these events is below -B/k, so
k times the increment is at least -B. The bets lose no more than if all events were known. Where rewards are
rare the predictions lie within 1/k of r₀ anyway. (Stakes above ¾/B are not used then. Without a floor,
increments are divided by k.)

**Worse** is the same test with the roles exchanged. A sum is clipped to [1e-200, 1e200]. The lower limit adds
so little that alpha rises by a factor of 1 + 1e-180.

The state of one challenger is a float64 array of `SIZE`; a new state is all zeros. Retain it while a
challenger pauses. A challenger that starts from scratch, or faces another champion, needs a new test with a
separate `level`.

Source: Choe and Ramdas, *Comparing sequential forecasters*, 2021; Waudby-Smith and others, *Anytime-valid
off-policy inference for contextual bandits*, 2022; Waudby-Smith and Ramdas, *Estimating means of bounded
random variables by betting*, 2020.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.estimators.interval_kernels import SUMS, tally
from onlineauto.estimators.scale_kernels import FLOOR, HIGH, LEARNT, LOW, in_unit, is_beyond
from onlineauto.jit import entry_kernel, inline_kernel, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

T, NEXT, RESERVE, SQUARES, WEIGHTED, BETTER, WORSE = range(SUMS, SUMS + 7)
"""Entries of a state after the sums of its interval: number of events, the number at which more capital
joins, capital in reserve, Σ of squared weights, Σ of rewards times these, and the evidence for better and for
worse."""

LANES = SUMS + 7
"""Index of the first wealth: `N` stakes on better, then `N` on worse, the largest first. If the floor is
learnt, 2 `N` stakes that need no floor follow."""

N = 24
_FREE = LANES + 2 * N
SIZE = _FREE + 2 * N
"""Length of a state."""

FIRST_RESTART = 1024.0

_MOST_LOST = 0.75
_RATIO = 1.6
_WIDE = 2  # number of stakes above ¾/B; more would find small gains later, fewer large gains later
_STAKE = np.array([_MOST_LOST * _RATIO ** (_WIDE - n) for n in range(N)])  # times 1/B
_NARROW = _RATIO**-_WIDE  # makes the largest stake of bets without a floor ¾
SHARES = np.array([[share**n for n in range(N)] for share in (0.9, 0.6)])  # row 0 if B is unknown, else row 1
SHARES /= SHARES.sum(axis=1, keepdims=True)
AT_START = 0.9
LEAST, LARGEST = 1e-200, 1e200


class EventTerms(NamedTuple):
    """The price and the weights of an event in a test of a pair."""

    price: float  # what the challenger must gain at least, in [0, 0.25), as a part of the range of rewards
    weight: float  # 1; for an event with the reward 0, `most`
    most: float  # only 1/most of the events with the reward 0 are known


def level(alpha: float, k: int) -> float:
    """Return the error probability of the `k`-th test ever started, from 1 on; their sum is `alpha`."""
    return alpha / (k * (k + 1.0))


@entry_kernel
@inline_kernel
def is_better(state: NDArray[np.float64], at_level: float) -> bool:
    """Return whether the challenger is proved to be better than the champion."""
    proved: bool = state[BETTER] * at_level >= 1.0
    return proved


@entry_kernel
@inline_kernel
def is_worse(state: NDArray[np.float64], at_level: float) -> bool:
    """Return whether the challenger is proved to be worse than the champion."""
    proved: bool = state[WORSE] * at_level >= 1.0
    return proved


@kernel
def _start(state: NDArray[np.float64], bounds: int, learnt: bool) -> None:
    """Add capital to the bets: 0.9 at first, then 1/((k+1)(k+2)) of the other tenth, k = 0, 1, ..."""
    if state[NEXT] == 0.0:
        share, state[RESERVE] = AT_START, 1.0 - AT_START
        state[NEXT] = FIRST_RESTART
    else:
        k = np.log2(state[NEXT] / FIRST_RESTART)
        share = state[RESERVE] / (k + 2.0)
        state[RESERVE] -= share
        state[NEXT] *= 2.0
    if learnt:
        share *= 0.5
    for j in range(N):
        state[LANES + j] += share * SHARES[bounds, j]
        state[LANES + N + j] += share * SHARES[bounds, j]
        if learnt:
            state[_FREE + j] += share * SHARES[0, j]
            state[_FREE + N + j] += share * SHARES[0, j]


@inline_kernel
def _open(state: NDArray[np.float64], known: int, learnt: bool) -> None:
    """Count an event, and start the bets that are due."""
    if state[T] >= state[NEXT]:
        _start(state, known, learnt)
    state[T] += 1.0


@inline_kernel
def _multiply(state: NDArray[np.float64], at: int, first: int, y: float) -> None:
    """Multiply the wealth of stakes `first` to `N` by 1 + stake * `y`; the stakes begin at ``state[at]``."""
    for j in range(first, N):
        state[at + j] = min(max(state[at + j] * (1.0 + _STAKE[j] * y), LEAST), LARGEST)


@inline_kernel
def _total(state: NDArray[np.float64], at: int) -> float:
    """Return the wealth of the `N` stakes from `at` on, added in four parallel sums."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for j in range(at, at + N, 4):
        a += state[j]
        b += state[j + 1]
        c += state[j + 2]
        d += state[j + 3]
    total: float = (a + b) + (c + d)
    return total


@inline_kernel
def _sum_up(state: NDArray[np.float64], learnt: bool) -> None:
    state[BETTER] = state[RESERVE] + _total(state, LANES)
    state[WORSE] = state[RESERVE] + _total(state, LANES + N)
    if learnt:
        state[BETTER] += _total(state, _FREE)
        state[WORSE] += _total(state, _FREE + N)


@inline_kernel
def increment(w1: float, w0: float, r: float, q1: float, q0: float) -> float:
    """Return the gain of policy 1 over policy 0, estimated from one event."""
    return w1 * (r - q1) - w0 * (r - q0) + q1 - q0


@inline_kernel
def _settle(
    state: NDArray[np.float64],
    at: int,
    weights: tuple[float, float],
    r: float,
    predicted: tuple[float, float],
    floor: float,
    counts: EventTerms,
) -> None:
    """Apply a logged event to the bets of one side: policy 1 must gain more than the price."""
    (w1, w0), (q1, q0) = weights, predicted
    price = counts.price
    if floor == 0.0:
        y = (increment(w1, w0, r, 0.0, 1.0) - price) * (counts.weight / counts.most)
        _multiply(state, at, 0, y * _NARROW)
        return
    if counts.most > 1.0:
        y = max((increment(w1, w0, r, q1, q0) - price) * counts.weight * floor, -1.0)
        for j in range(_WIDE):
            state[at + j] = min(max(state[at + j] * (1.0 + _MOST_LOST * y), LEAST), LARGEST)
        _multiply(state, at, _WIDE, y)
        return
    for j in range(_WIDE):
        stake = min(_STAKE[j] * floor, _MOST_LOST)
        most = 1.0 if floor == 1.0 else min((_MOST_LOST / stake - 1.0) * floor / (1.0 - floor), 1.0)
        d = increment(w1, w0, r, min(q1, most), max(q0, 1.0 - most)) - price
        state[at + j] = min(max(state[at + j] * (1.0 + stake * d), LEAST), LARGEST)
    y = (increment(w1, w0, r, q1, q0) - price) * floor
    if y != 0.0:  # y is 0 if neither action was logged and q1 = q0
        _multiply(state, at, _WIDE, y)


@inline_kernel
def baseline(state: NDArray[np.float64]) -> float:
    """Return the mean reward so far, weighted to minimise the variance of increments; used as q₁ and q₀."""
    c: float = state[WEIGHTED] / state[SQUARES] if state[SQUARES] > 0.0 else 0.5
    return c


@entry_kernel
@inline_kernel
def observe_predicted(
    state: NDArray[np.float64],
    scale: NDArray[np.float64],
    w1: float,
    w0: float,
    reward: float,
    predicted: tuple[float, float],
    price: float,
) -> None:
    """Add a logged event; all events are known, see `observe_counted`."""
    observe_counted(state, scale, (w1, w0), reward, predicted, EventTerms(price, 1.0, 1.0))


@entry_kernel
@inline_kernel
def observe_counted(
    state: NDArray[np.float64],
    scale: NDArray[np.float64],
    weights: tuple[float, float],
    reward: float,
    predicted: tuple[float, float],
    counts: EventTerms,
) -> None:
    """Add a logged event on which the challenger (1) and the champion (0) would act differently.

    `weights` are importance weights, of which at least one is 0. `predicted` are q₁ and q₀, the rewards
    predicted for the two actions before this reward was known; without a floor they are not used. `counts`
    has the price by which the challenger must be better, and how many events this event stands for.

    A reward outside the range of `scale`, or a weight beyond 1/floor, is clipped. For the side that loses by
    the event, it counts as the worst possible. So the test is about rewards clipped to what was known before
    them. If in some contexts an action has a smaller propensity than the floor, the error of the test is at
    most their share (twice that, if q₁ and q₀ differ).
    """
    width, (w1, w0) = scale[HIGH] - scale[LOW], weights
    if not width > 0.0 or (counts.most > 1.0 and is_beyond(scale, 0.0)):
        return
    floor, learnt = scale[FLOOR], scale[LEARNT] > 0.0
    r = in_unit((reward - scale[LOW]) / width)
    beyond = is_beyond(scale, reward)
    w1_free, w0_free = w1, w0
    if floor > 0.0:
        beyond = beyond or max(w1, w0) * floor > 1.0 + 1e-6
        w1, w0 = min(w1, 1.0 / floor), min(w0, 1.0 / floor)
        q1, q0 = in_unit((predicted[0] - scale[LOW]) / width), in_unit((predicted[1] - scale[LOW]) / width)
        if counts.most > 1.0:
            zero, near = -scale[LOW] / width, 1.0 / counts.most
            q1, q0 = min(max(q1, zero - near), zero + near), min(max(q0, zero - near), zero + near)
    else:
        q1, q0 = 0.0, 1.0
    _open(state, 1 if floor > 0.0 else 0, learnt)
    up = increment(w1, w0, r, q1, q0) * counts.weight
    down = -up if floor > 0.0 else increment(w0, w1, r, 0.0, 1.0) * counts.weight
    tally(state, up * width, down * width, 0.0, width / floor if floor > 0.0 else width * counts.most)
    r_up, q1_up, q0_up, r_down, q1_down, q0_down = r, q1, q0, r, q1, q0
    if beyond and up < 0.0:
        r_up = 1.0 if w0 > 0.0 else 0.0
        q1_up = q0_up = 1.0 - r_up
    if beyond and down < 0.0:
        r_down = 1.0 if w1 > 0.0 else 0.0
        q1_down = q0_down = 1.0 - r_down
    _settle(state, LANES, (w1, w0), r_up, (q1_up, q0_up), floor, counts)
    free = EventTerms(0.0, counts.weight, counts.most)
    _settle(state, LANES + N, (w0, w1), r_down, (q0_down, q1_down), floor, free)
    if learnt:
        _settle_freely(state, w1_free, w0_free, r, counts)
    _sum_up(state, learnt)


@inline_kernel
def _settle_freely(state: NDArray[np.float64], w1: float, w0: float, r: float, counts: EventTerms) -> None:
    """Apply a logged event to the bets that need no floor."""
    part = counts.weight / counts.most * _NARROW
    _multiply(state, _FREE, 0, (increment(w1, w0, r, 0.0, 1.0) - counts.price) * part)
    _multiply(state, _FREE + N, 0, increment(w0, w1, r, 0.0, 1.0) * part)


@entry_kernel
@inline_kernel
def observe(
    state: NDArray[np.float64], scale: NDArray[np.float64], w1: float, w0: float, reward: float
) -> None:
    """Add a logged event like `observe_predicted`, with the mean reward so far as both predictions."""
    width = scale[HIGH] - scale[LOW]
    c = baseline(state)
    q = scale[LOW] + c * width
    observe_predicted(state, scale, w1, w0, reward, (q, q), 0.0)
    if width > 0.0:
        weight = (w1 - w0) * (w1 - w0)
        state[SQUARES] += weight
        state[WEIGHTED] += weight * in_unit((reward - scale[LOW]) / width)


@entry_kernel
@inline_kernel
def observe_difference(state: NDArray[np.float64], d: float, bound: float, price: float) -> None:
    """Add a gain `d` of the challenger that is known exactly, such as the champion's loss minus its own.

    A size beyond `bound`, known before, is clipped; bounds must not shrink. 0 and NaN are ignored. To be
    better the challenger must gain more than `price`, in [0, 0.25), as a part of the bound.
    """
    if not (abs(d) > 0.0 and bound > 0.0):
        return
    _open(state, 1, False)
    y = 2.0 * in_unit(0.5 + 0.5 * (d / bound)) - 1.0
    tally(state, y * bound, -y * bound, 0.0, bound)
    _multiply(state, LANES, 0, (y - price) * _NARROW)
    _multiply(state, LANES + N, 0, -y * _NARROW)
    _sum_up(state, False)
