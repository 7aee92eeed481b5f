"""Losses: kernels compared with reference implementations and with laws of the formulas."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, isclose, log

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from onlineauto.learners import loss_kernels
from onlineauto.learners.rule import LOSSES as CODES
from tests.naive.losses import LOSSES, TEXTBOOK, make_loss

pytestmark = pytest.mark.lane("sampled")

F = np.float32
ANY = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 2.0, 44.0, -44.0, 50.0, -50.0, 88.0, -105.0]),
    st.floats(-60, 60, width=32),
    st.floats(width=32, allow_nan=False, allow_infinity=False),
).map(F)
POSITIVE = st.one_of(st.floats(0, 30, width=32), st.floats(0, float(F(3e38)), width=32)).map(F)
SHARE = st.floats(0, 1, width=32).map(F)
MODERATE = st.floats(-6, 6).map(F)
COUNTS = st.sampled_from([0.0, 1.0, 2.0, 5.0]).map(F)
SIGNS = st.sampled_from([-1.0, 1.0]).map(F)
SMALL_STEP = st.floats(0.01, 3).map(F)

each_loss = pytest.mark.parametrize("name", LOSSES)
each_smooth_loss = pytest.mark.parametrize("name", ["squared", "logistic", "poisson", "expectile"])


def bits(value: float | np.float32) -> int | str:
    """Return a key by which floats are equal: their bits, or NaN."""
    return "nan" if np.isnan(value) else int(F(value).view(np.uint32))


def parameters(name: str, share: np.float32) -> tuple[np.float32, np.float32]:
    """τ or q, or the labels for never and always."""
    return (share, F(1)) if name in ("quantile", "expectile") else (F(-1), F(1))


def label_of(name: str, sign: np.float32, count: np.float32, any_: np.float32) -> np.float32:
    return {"hinge": sign, "logistic": sign, "poisson": count}.get(name, any_)


def kernel(function: str, name: str, low: np.float32, high: np.float32) -> Callable[..., float]:
    """Return a kernel of `loss_kernels` for one loss."""
    compiled = getattr(loss_kernels, function)
    return lambda *arguments: float(compiled(CODES[name], low, high, *arguments))


def test_codes_are_those_of_the_kernels() -> None:
    assert list(CODES) == list(LOSSES)
    assert list(CODES.values()) == list(range(len(LOSSES)))


@each_loss
@given(p=ANY, y=ANY, low=ANY, high=ANY, share=SHARE)
@example(p=F(-3), y=F(-1), low=F(-1), high=F(2), share=F(0.25))
@example(p=F(5), y=F(2), low=F(-1), high=F(2), share=F(0.25))
@example(p=F(5), y=F(1), low=F(-1), high=F(2), share=F(0.25))
@example(p=F(1), y=F(1), low=F(0), high=F(1), share=F(0.5))
def test_value_and_derivative(
    name: str, p: np.float32, y: np.float32, low: np.float32, high: np.float32, share: np.float32
) -> None:
    low, high = min(low, high), max(low, high)
    first, second = parameters(name, share)
    twin = make_loss(name, first, second)
    with np.errstate(all="ignore"):
        expected = twin.value(p, y, low, high), twin.slope(p, y, low, high), twin.slope_squared(p, y)
    value = kernel("loss_value", name, first, second)(p, y, low, high)
    slope = kernel("loss_slope", name, first, second)(p, y, low, high)
    squared = kernel("loss_slope_squared", name, first, second)(p, y)
    assert list(map(bits, (value, slope, squared))) == list(map(bits, expected))


@each_loss
@given(p=ANY, y=ANY, scale=POSITIVE, reach=POSITIVE, share=SHARE)
@example(p=F(0), y=F(1), scale=F(1e-4), reach=F(1e-3), share=F(0.5))
@example(p=F(0), y=F(1), scale=F(0.5), reach=F(2), share=F(0.5))
@example(p=F(0), y=F(1), scale=F(0.5), reach=F(0), share=F(0.5))
@example(p=F(1), y=F(50), scale=F(1), reach=F(1), share=F(0.5))
@example(p=F(60), y=F(0), scale=F(1e20), reach=F(1e10), share=F(0.5))
def test_steps(
    name: str, p: np.float32, y: np.float32, scale: np.float32, reach: np.float32, share: np.float32
) -> None:
    first, second = parameters(name, share)
    twin = make_loss(name, first, second)
    with np.errstate(all="ignore"):
        expected = twin.step(p, y, scale, reach), twin.plain_step(p, y, scale)
    step = kernel("loss_step", name, first, second)(p, y, scale, reach)
    plain = kernel("loss_plain_step", name, first, second)(p, y, scale)
    assert [bits(step), bits(plain)] == list(map(bits, expected))


@given(p=MODERATE, y=ANY, scale=SMALL_STEP, reach=SMALL_STEP, never=ANY, gap=SMALL_STEP)
def test_logistic_between_other_labels(
    p: np.float32, y: np.float32, scale: np.float32, reach: np.float32, never: np.float32, gap: np.float32
) -> None:
    with np.errstate(all="ignore"):
        always = never + gap
        twin = make_loss("logistic", never, always)
        expected = twin.value(p, y, F(0), F(0)), twin.step(p, y, scale, reach)
    value = kernel("loss_value", "logistic", never, always)(p, y, F(0), F(0))
    step = kernel("loss_step", "logistic", never, always)(p, y, scale, reach)
    assert [bits(value), bits(step)] == list(map(bits, expected))


# -- what the formulas promise -------------------------------------------------------------------------


@each_loss
@given(p=MODERATE, sign=SIGNS, count=COUNTS, any_=MODERATE, share=SHARE)
def test_value_equals_the_formula(
    name: str, p: np.float32, sign: np.float32, count: np.float32, any_: np.float32, share: np.float32
) -> None:
    y = label_of(name, sign, count, any_)
    low, high = parameters(name, share)
    value = kernel("loss_value", name, low, high)(p, y, F(-100), F(100))
    expected = TEXTBOOK[name](float(p), float(y), float(low))
    if name == "poisson":  # the deviance: twice the negative log-likelihood, 0 at the best prediction
        expected = 2 * (expected - (float(y) - float(y) * log(y + 1e-6)))
    assert isclose(value, expected, rel_tol=1e-4, abs_tol=1e-4)


@each_loss
@given(p=MODERATE, sign=SIGNS, count=COUNTS, any_=MODERATE, share=SHARE)
def test_derivative_equals_the_numeric_derivative(
    name: str, p: np.float32, sign: np.float32, count: np.float32, any_: np.float32, share: np.float32
) -> None:
    y = label_of(name, sign, count, any_)
    low, high = parameters(name, share)
    kink = 1 / float(y) if name == "hinge" else float(y)
    assume(abs(float(p) - kink) > 1e-4)
    slope = kernel("loss_slope", name, low, high)(p, y, F(-100), F(100))
    h = 1e-6
    up, down = (TEXTBOOK[name](float(p) + d, float(y), float(low)) for d in (h, -h))
    assert isclose(slope, (up - down) / (2 * h), rel_tol=1e-3, abs_tol=1e-3)
    squared = kernel("loss_slope_squared", name, low, high)(p, y)
    assert isclose(squared, slope * slope, rel_tol=1e-4, abs_tol=1e-6)


@each_loss
@given(p=MODERATE, sign=SIGNS, count=COUNTS, any_=MODERATE, share=SHARE, reach=SMALL_STEP)
def test_a_small_step_follows_the_derivative(
    name: str,
    p: np.float32,
    sign: np.float32,
    count: np.float32,
    any_: np.float32,
    share: np.float32,
    reach: np.float32,
) -> None:
    y = label_of(name, sign, count, any_)
    low, high = parameters(name, share)
    kink = 1 / float(y) if name == "hinge" else float(y)
    assume(abs(float(p) - kink) > 1e-2)
    scale = F(1e-3) if name == "poisson" else F(1e-7)  # Poisson's has no branch for tiny steps
    slope = kernel("loss_slope", name, low, high)(p, y, F(-100), F(100))
    plain = kernel("loss_plain_step", name, low, high)(p, y, scale)
    assert isclose(plain, -slope * float(scale), rel_tol=1e-5, abs_tol=1e-12)
    step = kernel("loss_step", name, low, high)(p, y, scale, F(1e-3) if name == "poisson" else reach)
    assert isclose(step, plain, rel_tol=2e-3, abs_tol=1e-4 if name == "poisson" else 1e-9)


def flow(name: str, p: float, y: float, low: float, scale: float, reach: float) -> float:
    """Return the limit of many small steps: du/dh = -slope(p + u·reach), by Runge and Kutta's rule."""

    def speed(u: float) -> float:
        here, h = p + u * reach, 1e-5
        return (TEXTBOOK[name](here - h, y, low) - TEXTBOOK[name](here + h, y, low)) / (2 * h)

    u, h = 0.0, scale / 400
    for _ in range(400):
        a = speed(u)
        b = speed(u + h / 2 * a)
        c = speed(u + h / 2 * b)
        u += h / 6 * (a + 2 * b + 2 * c + speed(u + h * c))
    return u


@each_smooth_loss
@given(
    p=st.floats(-3, 3).map(F),
    sign=SIGNS,
    count=COUNTS,
    any_=MODERATE,
    share=SHARE,
    scale=SMALL_STEP,
    reach=SMALL_STEP,
)
def test_a_step_equals_infinitely_many_small_steps(
    name: str,
    p: np.float32,
    sign: np.float32,
    count: np.float32,
    any_: np.float32,
    share: np.float32,
    scale: np.float32,
    reach: np.float32,
) -> None:
    y = label_of(name, sign, count, any_)
    low, high = parameters(name, share)
    step = kernel("loss_step", name, low, high)(p, y, scale, reach)
    expected = flow(name, float(p), float(y), float(low), float(scale), float(reach))
    # VW's Lambert function is good to 9e-5, which the step divides by the reach.
    slack = 3e-4 / float(reach)
    assert isclose(step, expected, rel_tol=2e-3, abs_tol=slack)


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "classic"])
@given(
    p=st.floats(-3, 3).map(F),
    sign=SIGNS,
    count=COUNTS,
    any_=MODERATE,
    share=SHARE,
    scale=SMALL_STEP,
    reach=SMALL_STEP,
)
def test_a_step_of_twice_the_weight_equals_two_steps(
    name: str,
    p: np.float32,
    sign: np.float32,
    count: np.float32,
    any_: np.float32,
    share: np.float32,
    scale: np.float32,
    reach: np.float32,
) -> None:
    y = label_of(name, sign, count, any_)
    step = kernel("loss_step", name, *parameters(name, share))
    once = step(p, y, F(2) * scale, reach)
    first = step(p, y, scale, reach)
    second = step(F(p + F(first) * reach), y, scale, reach)
    assert isclose(once, first + second, rel_tol=1e-3, abs_tol=4e-4 / float(reach))


@given(p=MODERATE, y=MODERATE, scale=SMALL_STEP, reach=SMALL_STEP, share=SHARE)
@pytest.mark.parametrize("name", ["squared", "quantile", "expectile"])
def test_step_never_overshoots_the_label(
    name: str, p: np.float32, y: np.float32, scale: np.float32, reach: np.float32, share: np.float32
) -> None:
    step = kernel("loss_step", name, *parameters(name, share))(p, y, scale, reach)
    moved = float(p) + step * float(reach)
    near, far = sorted((float(p), float(y)))
    assert near - 1e-5 <= moved <= far + 1e-5


def test_poisson_prediction_goes_to_the_logarithm_of_the_count() -> None:
    step = kernel("loss_step", "poisson", F(-1), F(1))
    assert isclose(1 + step(F(1), F(5), F(1e6), F(2)) * 2, log(5), rel_tol=1e-6)
    assert isclose(exp(1 + step(F(1), F(0), F(1e6), F(2)) * 2), 1 / (exp(-1) + 2e6), rel_tol=1e-4)
