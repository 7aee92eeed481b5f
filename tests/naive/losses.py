"""Losses: one class each, by their formulas, in float32 step by step.

Numba calls the C library's functions of floats, and so do these; NumPy's own differ in the last bit.
"""

# ruff: noqa: ARG002 - every loss takes the range of labels, and only the squared ones use it

from __future__ import annotations

import ctypes
import ctypes.util
import math
from collections.abc import Callable
from typing import Protocol

import numpy as np

F = np.float32
_LIBRARY = ctypes.CDLL(ctypes.util.find_library("m"))


def _function(name: str, arguments: int) -> Callable[..., np.float32]:
    function = getattr(_LIBRARY, name)
    function.restype = ctypes.c_float
    function.argtypes = [ctypes.c_float] * arguments

    def call(*values: np.float32) -> np.float32:
        return F(function(*map(float, values)))

    return call


exp = _function("expf", 1)
log = _function("logf", 1)
log1p = _function("log1pf", 1)
expm1 = _function("expm1f", 1)
power = _function("powf", 2)


class Loss(Protocol):
    """A loss of one prediction p and one label y; labels so far lie within [low, high]."""

    def value(self, p: np.float32, y: np.float32, low: np.float32, high: np.float32) -> np.float32: ...
    def slope(self, p: np.float32, y: np.float32, low: np.float32, high: np.float32) -> np.float32: ...
    def slope_squared(self, p: np.float32, y: np.float32) -> np.float32: ...
    def step(self, p: np.float32, y: np.float32, scale: np.float32, reach: np.float32) -> np.float32: ...
    def plain_step(self, p: np.float32, y: np.float32, scale: np.float32) -> np.float32: ...


def squared_step(error: np.float32, scale: np.float32, reach: np.float32) -> np.float32:
    """Return the decay of the error: error · (1 - exp(-2 scale reach)) / reach."""
    if float(scale * reach) < 1e-6:
        return F(2) * error * scale
    return error * (F(1) - exp(F(-2) * scale * reach)) / reach


class Classic:
    def value(self, p: np.float32, y: np.float32, low: np.float32, high: np.float32) -> np.float32:
        return (p - y) * (p - y)

    def slope(self, p: np.float32, y: np.float32, low: np.float32, high: np.float32) -> np.float32:
        return F(2) * (p - y)

    def slope_squared(self, p: np.float32, y: np.float32) -> np.float32:
        return F(4) * (p - y) * (p - y)

    def step(self, p: np.float32, y: np.float32, scale: np.float32, reach: np.float32) -> np.float32:
        return F(2) * (y - p) * scale

    def plain_step(self, p: np.float32, y: np.float32, scale: np.float32) -> np.float32:
        return F(2) * (y - p) * scale


class Squared(Classic):
    """Beyond the labels seen it grows linearly, and not at all on the side of the outermost label."""

    def value(self, p: np.float32, y: np.float32, low: np.float32, high: np.float32) -> np.float32:
        if low <= p <= high:
            return super().value(p, y, low, high)
        edge, beyond = (low, low - p) if p < low else (high, p - high)
        if y == edge:
            return F(0)
        gap = y - low if p < low else high - y
        return F(float(gap * gap) + 2 * float(gap) * float(beyond))

    def slope(self, p: np.float32, y: np.float32, low: np.float32, high: np.float32) -> np.float32:
        return F(2) * (sorted([low, p, high])[1] - y)

    def step(self, p: np.float32, y: np.float32, scale: np.float32, reach: np.float32) -> np.float32:
        return squared_step(y - p, scale, reach)


class Expectile(Squared):
    """Squared loss, weighted by q if the prediction is too large and by 1 - q if it is too small."""

    def __init__(self, q: np.float32) -> None:
        self.q = q

    def side(self, p: np.float32, y: np.float32) -> np.float32:
        return self.q if y < p else F(1) - self.q

    def value(self, p: np.float32, y: np.float32, low: np.float32, high: np.float32) -> np.float32:
        return super().value(p, y, low, high) * self.side(p, y)

    def slope(self, p: np.float32, y: np.float32, low: np.float32, high: np.float32) -> np.float32:
        return super().slope(p, y, low, high) * self.side(p, y)

    def slope_squared(self, p: np.float32, y: np.float32) -> np.float32:
        return super().slope_squared(p, y) * (self.side(p, y) * self.side(p, y))

    def step(self, p: np.float32, y: np.float32, scale: np.float32, reach: np.float32) -> np.float32:
        return squared_step(y - p, self.side(p, y) * scale, reach)

    def plain_step(self, p: np.float32, y: np.float32, scale: np.float32) -> np.float32:
        return F(2) * (y - p) * (self.side(p, y) * scale)


class Hinge:
    def value(self, p: np.float32, y: np.float32, low: np.float32, high: np.float32) -> np.float32:
        return max(F(0), F(1) - y * p)

    def slope(self, p: np.float32, y: np.float32, low: np.float32, high: np.float32) -> np.float32:
        return -y if y * p < F(1) else F(0)

    def slope_squared(self, p: np.float32, y: np.float32) -> np.float32:
        return self.slope(p, y, F(0), F(0)) * self.slope(p, y, F(0), F(0))

    def step(self, p: np.float32, y: np.float32, scale: np.float32, reach: np.float32) -> np.float32:
        """Return a step that ends at the margin."""
        left = F(1) - y * p
        if y * p >= F(1):
            return F(0)
        return y * scale if scale * reach < left else y * (left / reach)

    def plain_step(self, p: np.float32, y: np.float32, scale: np.float32) -> np.float32:
        return y * scale if y * p < F(1) else F(0)


class Quantile:
    def __init__(self, tau: np.float32) -> None:
        self.tau = tau

    def value(self, p: np.float32, y: np.float32, low: np.float32, high: np.float32) -> np.float32:
        return self.tau * (y - p) if y - p > 0 else -(F(1) - self.tau) * (y - p)

    def slope(self, p: np.float32, y: np.float32, low: np.float32, high: np.float32) -> np.float32:
        return {0: F(0), 1: -self.tau, -1: F(1) - self.tau}[int(np.sign(y - p))]

    def slope_squared(self, p: np.float32, y: np.float32) -> np.float32:
        return self.slope(p, y, F(0), F(0)) * self.slope(p, y, F(0), F(0))

    def step(self, p: np.float32, y: np.float32, scale: np.float32, reach: np.float32) -> np.float32:
        """Return a step that ends at the label."""
        left = y - p
        if left == 0:
            return F(0)
        speed = self.tau if left > 0 else self.tau - F(1)
        return speed * scale if abs(speed * (scale * reach)) < abs(left) else left / reach

    def plain_step(self, p: np.float32, y: np.float32, scale: np.float32) -> np.float32:
        return -self.slope(p, y, F(0), F(0)) * scale if y != p else F(0)


def overshoot(given: float) -> np.float32:
    """W(e^x) - x, W being the Lambert function: one step of Fritsch's iteration from two simple starts."""
    x = np.float64(given)
    if x >= 1:
        start = float(0.86 * x + 0.01)
        error = x - math.log(start) - start
    else:
        start = math.exp(0.8 * x - 0.65)
        error = 0.2 * x + 0.65 - start
    one = 1 + start
    two = 2 * one * (one + 2 * error / 3)
    return F(start * (1 + error / one * (two - error) / (two - 2 * error)) - x)


class Logistic:
    """Mixture of the losses of the labels that mean always (1) and never (-1)."""

    def __init__(self, never: np.float32, always: np.float32) -> None:
        self.never, self.always = never, always

    def mix(self, y: np.float32, part: Callable[[np.float32], np.float32]) -> np.float32:
        share = (y - self.never) / (self.always - self.never)
        return share * part(F(1)) + (F(1) - share) * part(F(-1))

    def value(self, p: np.float32, y: np.float32, low: np.float32, high: np.float32) -> np.float32:
        return self.mix(y, lambda sign: log(F(1) + exp(-sign * p)))

    def slope(self, p: np.float32, y: np.float32, low: np.float32, high: np.float32) -> np.float32:
        return self.mix(y, lambda sign: -sign / (F(1) + exp(sign * p)))

    def slope_squared(self, p: np.float32, y: np.float32) -> np.float32:
        return self.slope(p, y, F(0), F(0)) * self.slope(p, y, F(0), F(0))

    def step(self, p: np.float32, y: np.float32, scale: np.float32, reach: np.float32) -> np.float32:
        def part(sign: np.float32) -> np.float32:
            odds = exp(sign * p)
            if float(scale * reach) < 1e-6:
                return sign * scale / (F(1) + odds)
            return -(sign * overshoot(float(scale * reach + sign * p + odds)) + p) / reach

        return self.mix(y, part)

    def plain_step(self, p: np.float32, y: np.float32, scale: np.float32) -> np.float32:
        return self.mix(y, lambda sign: sign * scale / (F(1) + exp(sign * p)))


class Poisson:
    """Deviance of a count whose logarithmic mean is predicted, cut off at ±44."""

    def mean(self, p: np.float32) -> np.float32:
        return exp(self.cut(p))

    def cut(self, p: np.float32) -> np.float32:
        return min(max(p, F(-44)), F(44))

    def value(self, p: np.float32, y: np.float32, low: np.float32, high: np.float32) -> np.float32:
        return F(2) * (y * (log(y + F(1e-6)) - self.cut(p)) - (y - self.mean(p)))

    def slope(self, p: np.float32, y: np.float32, low: np.float32, high: np.float32) -> np.float32:
        return self.mean(p) - y

    def slope_squared(self, p: np.float32, y: np.float32) -> np.float32:
        return (self.mean(p) - y) * (self.mean(p) - y)

    def step(self, p: np.float32, y: np.float32, scale: np.float32, reach: np.float32) -> np.float32:
        if y > 0 and y * scale * reach > F(44):
            return -(self.cut(p) - log(y)) / reach
        if y > 0:
            return y * scale - log1p(self.mean(p) * expm1(y * scale * reach) / y) / reach
        if not np.isfinite(self.mean(p) * scale * reach):
            return -(self.cut(p) + log(scale * reach)) / reach
        return -log1p(self.mean(p) * scale * reach) / reach

    def plain_step(self, p: np.float32, y: np.float32, scale: np.float32) -> np.float32:
        return (y - self.mean(p)) * scale


LOSSES = ("squared", "classic", "hinge", "logistic", "quantile", "expectile", "poisson")
"""Names, in the order of their codes."""


def make_loss(name: str, low: np.float32, high: np.float32) -> Loss:
    """Loss with its parameters: τ or q in `low`, the labels for never and always in `low` and `high`."""
    losses: dict[str, Callable[[], Loss]] = {
        "squared": Squared,
        "classic": Classic,
        "hinge": Hinge,
        "logistic": lambda: Logistic(low, high),
        "quantile": lambda: Quantile(low),
        "expectile": lambda: Expectile(low),
        "poisson": Poisson,
    }
    return losses[name]()


TEXTBOOK: dict[str, Callable[[float, float, float], float]] = {
    "squared": lambda p, y, _: (p - y) ** 2,
    "classic": lambda p, y, _: (p - y) ** 2,
    "hinge": lambda p, y, _: max(0.0, 1 - y * p),
    "logistic": lambda p, y, _: math.log1p(math.exp(-y * p)),
    "quantile": lambda p, y, tau: max(tau * (y - p), (tau - 1) * (y - p)),
    "expectile": lambda p, y, q: abs((y < p) - 1 + q) * (p - y) ** 2,
    "poisson": lambda p, y, _: math.exp(p) - y * p,
}
"""The losses in float64 as textbooks write them; Poisson's is the negative log-likelihood."""
