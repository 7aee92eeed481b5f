"""Losses of one prediction, the importance-aware steps that minimise them, and the targets of ``--cb_type``.

Every loss is an int code (see `onlineauto.learners.rule.LOSSES`) with two parameters. `low` is the τ of the
quantile loss or the q of the expectile loss. `low` and `high` are the labels for the probabilities 0 and 1 of
the logistic loss. Arithmetic is float32, in Vowpal Wabbit's order, and float64 where VW uses double.

Source: Karampatziakis & Langford, *Online Importance Weight Aware Updates*, 2011; Bietti, Agarwal & Langford,
*A Contextual Bandit Bake-off*, 2021, section 3 and VW ``gen_cs_example`` (targets).
"""

from __future__ import annotations

import math

import numpy as np

from onlineauto.jit import F32, inline_kernel, kernel

SQUARED, CLASSIC, HINGE, LOGISTIC, QUANTILE, EXPECTILE, POISSON = 0, 1, 2, 3, 4, 5, 6

_ZERO = np.float32(0)
_ONE = np.float32(1)
_TWO = np.float32(2)
_FOUR = np.float32(4)
_EXP_LIMIT = np.float32(44)  # exp(44)² is still finite
_TINY = np.float32(1e-6)

MTR, IPS, DR = range(3)
_SAFE = np.float32(1e-3)


@inline_kernel
def mtr_weight(probability: F32, clip_p: F32, events: int, actions: int) -> F32:
    """Return the importance weight (float32) of the logged action; `events` events had `actions` actions."""
    return _ONE / max(probability, clip_p) * (np.float32(events) / np.float32(actions))


@inline_kernel
def ips_cost(cost: F32, probability: F32, clip_p: F32) -> F32:
    """Return the inverse propensity score (float32) of the logged action's cost."""
    propensity = max(probability, clip_p)
    return cost / (_SAFE if propensity <= _ZERO else propensity)


@inline_kernel
def dr_cost(cost: F32, probability: F32, clip_p: F32, estimate: F32) -> F32:
    """Return the doubly robust cost (float32) of the logged action; `estimate` is its predicted cost."""
    return estimate + (cost - estimate) / max(probability, clip_p)


@inline_kernel
def _squared_loss(prediction: F32, label: F32, minimum: F32, maximum: F32) -> F32:
    if minimum <= prediction <= maximum:
        return (prediction - label) * (prediction - label)
    if prediction < minimum:
        if label == minimum:
            return _ZERO
        gap = label - minimum
        return np.float32(np.float64(gap * gap) + 2.0 * gap * (minimum - prediction))
    if label == maximum:
        return _ZERO
    gap = maximum - label
    return np.float32(np.float64(gap * gap) + 2.0 * gap * (prediction - maximum))


@inline_kernel
def _logistic(prediction: F32, sign: F32) -> F32:
    return math.log(_ONE + math.exp(-sign * prediction))


@inline_kernel
def _clamp(prediction: F32) -> F32:
    if prediction > _EXP_LIMIT:
        return _EXP_LIMIT
    if prediction < -_EXP_LIMIT:
        return -_EXP_LIMIT
    return prediction


@kernel
def loss_value(
    code: int, low: F32, high: F32, prediction: F32, label: F32, minimum: F32, maximum: F32
) -> F32:
    """Return the loss (float32) of `prediction`; all labels so far are in [`minimum`, `maximum`]."""
    if code == SQUARED:
        return _squared_loss(prediction, label, minimum, maximum)
    if code == CLASSIC:
        return (prediction - label) * (prediction - label)
    if code == HINGE:
        margin = _ONE - label * prediction
        return max(_ZERO, margin)
    if code == LOGISTIC:
        share = (label - low) / (high - low)
        return share * _logistic(prediction, _ONE) + (_ONE - share) * _logistic(prediction, -_ONE)
    if code == QUANTILE:
        error = label - prediction
        return low * error if error > _ZERO else -(_ONE - low) * error
    if code == EXPECTILE:
        side = low if label - prediction < _ZERO else _ONE - low
        return _squared_loss(prediction, label, minimum, maximum) * side
    clamped = _clamp(prediction)
    return _TWO * (label * (math.log(label + _TINY) - clamped) - (label - math.exp(clamped)))


@inline_kernel
def _squared_slope(prediction: F32, label: F32, minimum: F32, maximum: F32) -> F32:
    inside = min(max(prediction, minimum), maximum)
    return _TWO * (inside - label)


@inline_kernel
def _logistic_slope(prediction: F32, sign: F32) -> F32:
    return -sign / (_ONE + math.exp(sign * prediction))


@kernel
def loss_slope(
    code: int, low: F32, high: F32, prediction: F32, label: F32, minimum: F32, maximum: F32
) -> F32:
    """Return the first derivative (float32) of the loss in the prediction."""
    if code == SQUARED:
        return _squared_slope(prediction, label, minimum, maximum)
    if code == CLASSIC:
        return _TWO * (prediction - label)
    if code == HINGE:
        return _ZERO if label * prediction >= _ONE else -label
    if code == LOGISTIC:
        share = (label - low) / (high - low)
        return share * _logistic_slope(prediction, _ONE) + (_ONE - share) * _logistic_slope(prediction, -_ONE)
    if code == QUANTILE:
        error = label - prediction
        if error == _ZERO:
            return _ZERO
        return -low if error > _ZERO else _ONE - low
    if code == EXPECTILE:
        side = low if label - prediction < _ZERO else _ONE - low
        return _squared_slope(prediction, label, minimum, maximum) * side
    return math.exp(_clamp(prediction)) - label


@inline_kernel
def loss_slope_squared(code: int, low: F32, high: F32, prediction: F32, label: F32) -> F32:
    """Return the square of the derivative (float32), as the adaptive rule accumulates it."""
    if code in (SQUARED, CLASSIC):
        return _FOUR * (prediction - label) * (prediction - label)
    if code == EXPECTILE:
        side = low * low if label - prediction < _ZERO else (_ONE - low) * (_ONE - low)
        return _FOUR * (prediction - label) * (prediction - label) * side
    slope = loss_slope(code, low, high, prediction, label, _ZERO, _ZERO)
    return slope * slope


@inline_kernel
def _squared_step(prediction: F32, label: F32, scale: F32, per_update: F32) -> F32:
    if scale * per_update < 1e-6:  # for small x, 1 - exp(-x) is x; this avoids the cancellation
        return _TWO * (label - prediction) * scale
    return (label - prediction) * (_ONE - math.exp(-_TWO * scale * per_update)) / per_update


@inline_kernel
def _lambert(x: float) -> F32:
    """Return W(exp(x)) - x within 9e-5, where W is the Lambert function."""
    if x >= 1.0:
        w = 0.86 * x + 0.01
        r = x - math.log(w) - w
    else:
        w = math.exp(0.8 * x - 0.65)
        r = 0.2 * x + 0.65 - w
    t = 1.0 + w
    u = 2.0 * t * (t + 2.0 * r / 3.0)
    return np.float32(w * (1.0 + r / t * (u - r) / (u - 2.0 * r)) - x)


@inline_kernel
def _logistic_step(prediction: F32, sign: F32, scale: F32, per_update: F32) -> F32:
    growth = math.exp(sign * prediction)
    if scale * per_update < 1e-6:
        return sign * scale / (_ONE + growth)
    w = _lambert(np.float64(scale * per_update + sign * prediction + growth))
    return -(sign * w + prediction) / per_update


@inline_kernel
def _poisson_step(prediction: F32, label: F32, scale: F32, per_update: F32) -> F32:
    clamped = _clamp(prediction)
    mean = math.exp(clamped)
    if label > _ZERO:
        exponent = label * scale * per_update
        if exponent > _EXP_LIMIT:
            return -(clamped - math.log(label)) / per_update
        return label * scale - math.log1p(mean * math.expm1(exponent) / label) / per_update
    inner = mean * scale * per_update
    if not math.isfinite(inner):
        return -(clamped + math.log(scale * per_update)) / per_update
    return -math.log1p(inner) / per_update


@kernel
def loss_step(
    code: int, low: F32, high: F32, prediction: F32, label: F32, scale: F32, per_update: F32
) -> F32:
    """Return the importance-aware step (float32), for `scale`: learning rate × importance weight."""
    if code == SQUARED:
        return _squared_step(prediction, label, scale, per_update)
    if code == CLASSIC:
        return _TWO * (label - prediction) * scale
    if code == HINGE:
        if label * prediction >= _ONE:
            return _ZERO
        error = _ONE - label * prediction
        return label * (scale if scale * per_update < error else error / per_update)
    if code == LOGISTIC:
        share = (label - low) / (high - low)
        up = _logistic_step(prediction, _ONE, scale, per_update)
        down = _logistic_step(prediction, -_ONE, scale, per_update)
        return share * up + (_ONE - share) * down
    if code == QUANTILE:
        error = label - prediction
        if error == _ZERO:
            return _ZERO
        if error > _ZERO:
            return low * scale if low * (scale * per_update) < error else error / per_update
        reach = -(_ONE - low) * (scale * per_update)
        return (low - _ONE) * scale if reach > error else error / per_update
    if code == EXPECTILE:
        side = low if label - prediction < _ZERO else _ONE - low
        return _squared_step(prediction, label, side * scale, per_update)
    return _poisson_step(prediction, label, scale, per_update)


@inline_kernel
def loss_plain_step(code: int, low: F32, high: F32, prediction: F32, label: F32, scale: F32) -> F32:
    """Return the plain gradient step (float32), for learners without ``--invariant``."""
    if code in (SQUARED, CLASSIC):
        return _TWO * (label - prediction) * scale
    if code == HINGE:
        return _ZERO if label * prediction >= _ONE else label * scale
    if code == LOGISTIC:
        share = (label - low) / (high - low)
        up = scale / (_ONE + math.exp(prediction))
        down = -scale / (_ONE + math.exp(-prediction))
        return share * up + (_ONE - share) * down
    if code == QUANTILE:
        error = label - prediction
        if error == _ZERO:
            return _ZERO
        return low * scale if error > _ZERO else -(_ONE - low) * scale
    if code == EXPECTILE:
        side = low if label - prediction < _ZERO else _ONE - low
        return _TWO * (label - prediction) * (side * scale)
    return (label - math.exp(_clamp(prediction))) * scale
