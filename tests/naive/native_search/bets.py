"""The tests of a challenger: bets that it is better than the champion, and bets that it is worse.

A bet with the stake s multiplies its capital by 1 + s·d on each event, where d is the gain of the challenger
on the champion, in units of the largest possible gain. If the challenger is not better, no bet grows on
average, whatever its stake. So all bets together, which begin with a capital of 1, ever reach 1/α with
probability α at most. A capital of 1/α is a proof at level α.

24 stakes share nine tenths of the capital from the first event on. The rest joins after 1024, 2048, 4096, ...
events, so that a challenger that was worse for long need not win back its losses.

**By rewards.** Only events on which both would act differently are used. With w the importance weight of the
event for each (1/p if its action is the logged one, else 0), r the reward, and q the reward that the champion
predicts for the action of each,

    d = w₁(r - q₁) - w₀(r - q₀) + q₁ - q₀

is on average the gain of the challenger (1) on the champion (0). It is at least -1/floor, where floor is the
least probability of an action. A learnt floor may be wrong, so half of the capital is in bets without a
floor: with q₁ = 0 and q₀ = 1, d is at least -1 whatever the probabilities are.

**By losses.** On every event d is the champion's loss minus the challenger's, which is known, but its range
is not. It is assumed to be within a bound that is learnt from earlier differences. If that bound proves much
too large, the test restarts with half of its level.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tests.naive.native_search.scale import in_unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tests.naive.native_search.scale import Scale

    Capital = NDArray[np.float64]

N = 24
WIDE = 2
"""Number of stakes above ¾, whose losses are limited event by event."""
STAKES = np.array([0.75 * 1.6 ** (WIDE - n) for n in range(N)])  # powers by NumPy depend on the processor
WITHIN = 1.6**-WIDE
"""Makes the largest stake ¾."""
FIRST_RESTART = 1024.0


def shares(ratio: float) -> Capital:
    """Parts of the capital, the one of the largest stake first."""
    powers = np.array([ratio**n for n in range(N)])
    return np.asarray(powers / powers.sum())


MANY_LARGE, EVEN = shares(0.6), shares(0.9)
"""Shares of capital of the stakes, with a known bound of d, and without a floor."""


def level_of_test(alpha: float, k: int) -> float:
    """Level of the `k`-th test that is ever begun: 1/(k(k+1)) of all, so that together they err with α."""
    return alpha / (k * (k + 1.0))


def settled(capital: Capital, y: float, *, first: int = 0) -> Capital:
    """Capital after a gain `y` of the side that was bet on; from stake `first` on, the others are settled."""
    won = np.minimum(np.maximum(capital * (1.0 + STAKES * y), 1e-200), 1e200)
    return np.concatenate([capital[:first], won[first:]])


def total(capital: Capital) -> float:
    """Sum of the capital, in four columns, as the kernel adds it up."""
    a, b, c, d = capital.reshape(-1, 4).sum(axis=0).tolist()
    return float((a + b) + (c + d))


class Bets:
    """The capital of both sides, and the reserve that has not joined yet."""

    def __init__(self) -> None:
        self.events = 0
        self.reserve = 1.0
        self.joins = 0.0
        """When the next capital joins."""
        self.better, self.worse = np.zeros(N), np.zeros(N)
        self.free_better, self.free_worse = np.zeros(N), np.zeros(N)
        """The half that does without a floor, while that is learnt."""

    def open_event(self, spread: Capital, *, halves: bool) -> None:
        """Count an event, and let capital join that is due."""
        if self.events >= self.joins:
            if self.joins == 0.0:
                joining, self.reserve, self.joins = 0.9, 1.0 - 0.9, FIRST_RESTART
            else:
                joining = self.reserve / (math.log2(self.joins / FIRST_RESTART) + 2.0)
                self.reserve, self.joins = self.reserve - joining, 2.0 * self.joins
            if halves:
                joining *= 0.5
                self.free_better = self.free_better + joining * EVEN
                self.free_worse = self.free_worse + joining * EVEN
            self.better, self.worse = self.better + joining * spread, self.worse + joining * spread
        self.events += 1

    def evidence(self, *, halves: bool) -> tuple[float, float]:
        """Capital of those who bet on better, and on worse; 0 before the first event."""
        if not self.events:
            return 0.0, 0.0
        better, worse = self.reserve + total(self.better), self.reserve + total(self.worse)
        if halves:
            better, worse = better + total(self.free_better), worse + total(self.free_worse)
        return better, worse


def gain(w1: float, w0: float, r: float, q1: float, q0: float) -> float:
    """Return the estimated gain of policy 1 on policy 0 from one event."""
    return w1 * (r - q1) - w0 * (r - q0) + q1 - q0


class RewardTest:
    """A test of whether a challenger earns more than the champion."""

    def __init__(self) -> None:
        self.bets = Bets()
        self.better = self.worse = 0.0

    def observe(
        self, scale: Scale, w1: float, w0: float, reward: float, q1: float, q0: float, price: float
    ) -> None:
        """Take in an event on which the challenger (1) and the champion (0) would act differently.

        To be better, the challenger must gain more than `price`. What is beyond the scale counts as the
        nearest within; for the side that this hurts, as the worst there can be.
        """
        if not scale.width > 0.0:
            return
        floor, halves, bets = scale.floor, scale.learns_floor, self.bets
        r, w1_free, w0_free = scale.part(reward), w1, w0
        beyond = not scale.low <= reward <= scale.high
        if floor > 0.0:
            beyond = beyond or max(w1, w0) * floor > 1.0 + 1e-6
            w1, w0 = min(w1, 1.0 / floor), min(w0, 1.0 / floor)
            q1, q0 = scale.part(q1), scale.part(q0)
        else:
            q1, q0 = 0.0, 1.0
        bets.open_event(MANY_LARGE if floor > 0.0 else EVEN, halves=halves)
        up = gain(w1, w0, r, q1, q0)
        down = -up if floor > 0.0 else gain(w0, w1, r, 0.0, 1.0)
        for_better, for_worse = (r, q1, q0), (r, q0, q1)
        if beyond and up < 0.0:
            worst = 1.0 if w0 > 0.0 else 0.0
            for_better = (worst, 1.0 - worst, 1.0 - worst)
        if beyond and down < 0.0:
            worst = 1.0 if w1 > 0.0 else 0.0
            for_worse = (worst, 1.0 - worst, 1.0 - worst)
        bets.better = self._settled(bets.better, w1, w0, *for_better, floor, price)
        bets.worse = self._settled(bets.worse, w0, w1, *for_worse, floor, 0.0)
        if halves:
            up, down = gain(w1_free, w0_free, r, 0.0, 1.0) - price, gain(w0_free, w1_free, r, 0.0, 1.0)
            bets.free_better = settled(bets.free_better, up * WITHIN)
            bets.free_worse = settled(bets.free_worse, down * WITHIN)
        self.better, self.worse = bets.evidence(halves=halves)

    @staticmethod
    def _settled(
        capital: Capital,
        w1: float,
        w0: float,
        r: float,
        q1: float,
        q0: float,
        floor: float,
        price: float,
    ) -> Capital:
        """Capital of the bets on policy 1 after an event."""
        if floor == 0.0:
            return settled(capital, (gain(w1, w0, r, 0.0, 1.0) - price) * WITHIN)
        wide = []
        for j in range(WIDE):  # q is moved as far as it takes for no event to lose more than ¾
            stake = min(float(STAKES[j]) * floor, 0.75)
            most = 1.0 if floor == 1.0 else min((0.75 / stake - 1.0) * floor / (1.0 - floor), 1.0)
            d = gain(w1, w0, r, min(q1, most), max(q0, 1.0 - most)) - price
            wide.append(min(max(float(capital[j]) * (1.0 + stake * d), 1e-200), 1e200))
        y = (gain(w1, w0, r, q1, q0) - price) * floor
        narrow = settled(capital, y, first=WIDE) if y != 0.0 else capital
        return np.concatenate([wide, narrow[WIDE:]])


class LossTest:
    """A test of whether the predictions of a challenger have a lower loss on logged actions."""

    FEW, MEMORY, TIMES, TIMES_WITHIN = 32, 256.0, 8.0, 2.0

    def __init__(self) -> None:
        self.bets = Bets()
        self.better = self.worse = 0.0
        self.seen = 0
        self.mean_square = 0.0
        self.bound = 0.0
        self.largest_lately = self.largest_before = 0.0
        """Of this half of the differences and of the half before."""
        self.next_half = 0.0
        self.restarts = 0

    @property
    def share(self) -> float:
        """Return the share of the level for this test: a half, halved again by each restart."""
        return float(0.5 ** (1.0 + self.restarts))

    def observe(self, d: float, price: float, reach: float | None = None) -> None:
        """Take in the champion's loss less the challenger's, and learn how large differences are.

        `reach` is the largest size that this one can have, if known.
        """
        if self.bound > 0.0 and d != 0.0:
            self._bet(d, price, max(self.bound, reach or 0.0))
        self.seen += 1
        self.mean_square += (d * d - self.mean_square) / min(float(self.seen), self.MEMORY)
        self.largest_lately = max(self.largest_lately, abs(d))
        if self.seen < self.FEW:
            return
        if self.seen >= self.next_half:
            self.largest_before, self.largest_lately = self.largest_lately, 0.0
            self.next_half = 2.0 * self.seen
        largest = max(self.largest_before, self.largest_lately) if reach is None else 0.0
        times = self.TIMES if reach is None else self.TIMES_WITHIN
        bound = max(times * math.sqrt(self.mean_square), largest)
        if bound > 2.0 * self.bound or largest > self.bound:
            self.bound = bound
        elif bound < 0.25 * self.bound:
            self.bound = bound
            self.restarts += 1
            self.bets = Bets()
            self.better = self.worse = 0.0

    def _bet(self, d: float, price: float, bound: float) -> None:
        bets = self.bets
        bets.open_event(MANY_LARGE, halves=False)
        y = 2.0 * in_unit(0.5 + 0.5 * (d / bound)) - 1.0
        bets.better = settled(bets.better, (y - price) * WITHIN)
        bets.worse = settled(bets.worse, -y * WITHIN)
        self.better, self.worse = bets.evidence(halves=False)
