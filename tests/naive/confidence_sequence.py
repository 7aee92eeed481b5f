"""Vowpal Wabbit's robust confidence sequence, without caches and shortcuts."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

K = 1.5
XI = 1.6
ETA = float(np.float32(0.95))
ZETA = 1.6449340668482264
POLYLOG = 1.4406337969700393
INT_MIN = float(-(2**31))


def log_sum_exp(terms: list[float]) -> float:
    largest = max(terms)
    total = 0.0
    for term in terms:  # not by sum(), which is more exact in later Pythons
        total += math.exp(term - largest)
    return math.log(total) + largest


class GTilde:
    """Sums of the observations and of their errors."""

    def __init__(self) -> None:
        self.sum_x = 0.0
        self.sum_low_v = 0.0
        self.sum_mid_v = 0.0
        self.t = 0
        self.histogram: dict[tuple[int, bool], float] = {}

    def add(self, x: float) -> None:
        error = x - min(1.0, (self.sum_x + 0.5) / (self.t + 1))
        if error <= 0.0:
            self.sum_low_v += error * error
        elif error <= 1.0:
            self.sum_mid_v += error * error
        else:
            self.insert(error)
        self.sum_x += x
        self.t += 1

    def insert(self, x: float) -> None:
        n = math.floor(math.log(x) / math.log(K))
        x1 = K**n
        alpha = (K * x1 - x) / ((K - 1.0) * x1)
        for key, plus, minus in (
            ((n, False), alpha, 0.0),
            ((n + 1, False), 1.0, alpha),
            ((n, True), 0.0, 0.5 * alpha * (1 - alpha)),
        ):
            self.histogram[key] = self.histogram.get(key, 0.0) + plus - minus

    def variance(self, lam_sqrt_tp1: float) -> float:
        low = self.sum_low_v / ((self.t + 1) - math.sqrt(self.t + 1) * lam_sqrt_tp1)
        mid = self.sum_mid_v / (self.t + 1)
        return 0.5 * (lam_sqrt_tp1 * lam_sqrt_tp1) * (low + mid) + self.histogram_variance(lam_sqrt_tp1)

    def histogram_variance(self, lam_sqrt_tp1: float) -> float:
        total = 0.0
        for (n, strong), weight in sorted(self.histogram.items()):
            x = K**n / math.sqrt(self.t + 1)
            if strong:
                gap = lam_sqrt_tp1 * (K - 1) * x / (1 + lam_sqrt_tp1 * K * x)
                value = gap * gap
            else:
                value = lam_sqrt_tp1 * x - math.log1p(lam_sqrt_tp1 * x)
            total += weight * value
        return total


class Sequence:
    """One lower confidence sequence."""

    def __init__(self, *, tol_x: float = 1e-6) -> None:
        self.tol_x = tol_x
        self.scale = 0.5 * (1.0 + POLYLOG / (ETA * ZETA))
        self.g = GTilde()

    def add(self, x: float) -> None:
        self.g.add(x)

    def lam_sqrt_tp1(self, j: int) -> float:
        return 0.5 * math.exp(-((j + 0.5) * math.log1p(XI - 1) - 0.5 * math.log(self.g.t + 1)))

    def log_weight(self, j: int) -> float:
        return math.log1p(self.scale - 1.0) + math.log1p(XI - 2.0) - (1 + j) * math.log1p(XI - 1)

    def log_remaining_weight(self, j: int) -> float:
        return math.log1p(self.scale - 1.0) - j * math.log1p(XI - 1)

    def log_wealth(self, mu: float, s: float, threshold: float, memo: dict[int, float]) -> float:
        t = self.g.t
        y = s / math.sqrt(t + 1) - (t / math.sqrt(t + 1)) * mu
        log_es = [self.lam_sqrt_tp1(j) * y - v for j, v in sorted(memo.items())]
        while True:
            j = len(log_es)
            lower = log_sum_exp([log_es[i] + self.log_weight(i) for i in range(j)])
            if lower >= threshold:
                return lower
            peak = max([INT_MIN, *log_es[:-1]])
            most = log_es[-1] if log_es[-1] < peak else self.lam_sqrt_tp1(j) * y
            upper = log_sum_exp([lower, self.log_remaining_weight(j) + most])
            if upper < threshold:
                return upper
            if j not in memo:
                memo[j] = self.g.variance(self.lam_sqrt_tp1(j))
            log_es.append(self.lam_sqrt_tp1(j) * y - memo[j])

    def lower_bound(self, alpha: float) -> float:
        """Return VW's ``lb_log_wealth``; `alpha` is the level of this bound alone."""
        threshold = -math.log(alpha)
        memo = {j: self.g.variance(self.lam_sqrt_tp1(j)) for j in range(2)}
        if self.log_wealth(0.0, self.g.sum_x, threshold, memo) <= threshold:
            return 0.0
        if self.log_wealth(1.0, self.g.sum_x, threshold, memo) >= threshold:
            return 1.0
        return self.root(self.g.sum_x, threshold, memo)

    def root(self, s: float, threshold: float, memo: dict[int, float]) -> float:
        def f(mu: float) -> float:
            return self.log_wealth(mu, s, threshold, memo) - threshold

        return bisect(f, 0.0, 1.0, self.tol_x)


def bisect(f: Callable[[float], float], lower: float, upper: float, tol_x: float) -> float:
    assert f(lower) * f(upper) < 0
    mid = lower
    while upper >= lower + tol_x:
        mid = (lower + upper) / 2
        if f(mid) == 0.0:
            break
        if f(mid) * f(lower) < 0.0:
            upper = mid
        else:
            lower = mid
    return mid


class Estimator:
    """Bounds on the reward of a policy, from both sides."""

    def __init__(self, *, alpha: float = 0.05, tol_x: float = 1e-6) -> None:
        self.alpha = alpha
        self.lower = Sequence(tol_x=tol_x)
        self.upper = Sequence(tol_x=tol_x)

    def update(self, w: float, r: float) -> None:
        self.lower.add(w * r)
        self.upper.add(w * (1.0 - r))

    def lower_bound(self) -> float:
        return self.lower.lower_bound(self.alpha / 2.0)

    def upper_bound(self) -> float:
        return 1 - self.upper.lower_bound(self.alpha / 2.0)


def is_better(challenger: Estimator, champion: Estimator) -> bool:
    return challenger.lower_bound() > champion.upper_bound()
