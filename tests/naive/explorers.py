"""Explorers: probabilities of ranked scores, in single precision step by step."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence

import numpy as np

from onlineauto.explorers.sample_kernels import mix_state

F = np.float32
Scores = list[np.float32]


def floored(pmf: Sequence[np.float32], epsilon: np.float32) -> Scores:
    """Return the nearest distribution in which every action has epsilon / n."""
    n = F(len(pmf))
    if epsilon == 0:
        return list(pmf)
    if epsilon > F(0.999):
        return [F(1) / n] * len(pmf)
    least = epsilon / n
    above, total = 0, F(0)
    at = F(max(pmf))
    for i, chance in enumerate(sorted(pmf, reverse=True)):
        total = total + chance
        if chance > (F(len(pmf) - i - 1) * least + total - F(1)) / (F(i) + F(1)) + least:
            above, at = i, total
    taken = ((F(len(pmf) - above) - F(1)) * least + at - F(1)) / (F(above) + F(1))
    return [max(chance - taken, least) for chance in pmf]


def first(scores: Scores, *, tau: int, learnt: int) -> Scores:
    n = len(scores)
    return [F(1) / F(n)] * n if learnt < tau else [F(1), *[F(0)] * (n - 1)]


def softmax(scores: Scores, lambda_: np.float32, exp: Callable[[np.float32], np.float32]) -> Scores:
    powers = [exp(-lambda_ * (score - min(scores))) for score in scores]
    total = F(0)
    for power in powers:
        total = total + power
    return [power / total for power in powers]


def rnd(scores: Scores, bonuses: Sequence[np.float32], exp: Callable[[np.float32], np.float32]) -> Scores:
    """`bonuses` are by rank, as the scores are."""
    most = max(F(1e-3), *bonuses)
    lowered = [score - F(0.5772156649) * (bonus - most) for score, bonus in zip(scores, bonuses, strict=True)]
    return softmax(lowered, F(1) / most, exp)


def gamma_of(scale: np.float32, exponent: np.float32, learnt: int) -> np.float32:
    return scale * F(math.pow(learnt, float(exponent)))


def _rest(pmf: Scores, place: int) -> Scores:
    """Return the probabilities with that at `place` set to the rest of the others."""
    total = F(0)
    for i, chance in enumerate(pmf):
        if i != place:
            total = total + chance
    return [*pmf[:place], F(1) - total, *pmf[place + 1 :]]


def squarecb(scores: Scores, gamma: np.float32) -> Scores:
    return _rest([F(1) / (F(len(scores)) + gamma * (score - scores[0])) for score in scores], 0)


def scaled_squarecb(
    scores: Scores, scale: float, error: float, unsure: Sequence[float], learnt: int
) -> Scores:
    """`unsure` are the mean squared distances of members from the ensemble, by rank."""
    chances = []
    for score, away in zip(scores, unsure, strict=True):
        deviation = np.sqrt(error**2 + (unsure[0] + away) / 4)
        gamma = min(scale * np.sqrt(len(scores) * learnt) / deviation, 1e30) if error > 0 else 0.0
        chances.append(F(1 / (len(scores) + gamma * (float(score) - float(scores[0])))))
    return _rest(chances, 0)


def typical_error(costs: Sequence[float], predictions: Sequence[float]) -> float:
    """Return the root of the discounted mean squared error, or the deviation of the costs."""
    if len(set(costs)) < 2:
        return 0.0
    errors = [(cost - prediction) ** 2 for cost, prediction in zip(costs, predictions, strict=True)]
    recent = [0.999 ** (len(costs) - 1 - i) for i in range(len(costs))]
    return float(min(np.std(costs), np.sqrt(np.average(errors, weights=recent))))


def squarecb_elim(
    scores: Scores, plausible: Sequence[tuple[np.float32, np.float32]], gamma: np.float32
) -> Scores:
    """`plausible` is by rank."""
    limit = min([high for _, high in plausible if not np.isnan(high)], default=np.finfo(F).max)
    left = [i for i, (low, _) in enumerate(plausible) if low <= limit]
    n, first = F(len(left)), left[0] if left else 0
    best = scores[first] if left else np.finfo(F).max
    with np.errstate(all="ignore"):
        pmf = [F(1) / (n + gamma * (score - best)) for score in scores]
    gone = [low > limit for low, _ in plausible]
    return _rest([F(0) if gone[i] else chance for i, chance in enumerate(pmf)], first)


def regcb(plausible: Sequence[tuple[np.float32, np.float32]]) -> Scores:
    limit = min([high for _, high in plausible if not np.isnan(high)], default=np.finfo(F).max)
    left = [low <= limit for low, _ in plausible]
    return [F(1) / F(sum(left)) if stays else F(0) for stays in left]


def regcb_optimistic(
    plausible: Sequence[tuple[np.float32, np.float32]],
    order: Sequence[int],
    *,
    first_only: bool,
) -> Scores:
    """`plausible` is by rank, `order` are the numbers of the actions."""
    least = min([low for low, _ in plausible if not np.isnan(low)], default=None)
    tied = [i for i, (low, _) in enumerate(plausible) if low == least]
    if first_only or not tied:
        tied = [min(tied or range(len(order)), key=lambda i: order[i])]
    share = F(1) / F(len(tied))
    return [share if i in tied else F(0) for i in range(len(plausible))]


def largest_weight(distance: np.float32, allowed: np.float32, sensitivity: np.float32) -> np.float32:
    with np.errstate(all="ignore"):
        upper = min(distance / sensitivity, np.finfo(F).max)
        if upper * distance * distance <= allowed:
            return upper
        lower = F(0)
        for _ in range(20):
            weight = (upper + lower) / F(2)
            left = distance - sensitivity * weight
            excess = weight * (distance * distance - left * left) - allowed
            lower, upper = (lower, weight) if excess > 0 else (weight, upper)
            if abs(excess) <= F(1e-6) or upper - lower <= F(1e-6):
                break
        return lower


def cost_range(
    prediction: np.float32,
    sensitivities: tuple[np.float32, np.float32],
    allowed: np.float32,
    low: np.float32,
    high: np.float32,
) -> tuple[np.float32, np.float32]:
    """Lowest and highest plausible cost, by the sensitivities to low - 1 and high + 1."""
    down, up = sensitivities
    lowest, highest = low, high
    with np.errstate(all="ignore"):
        if not prediction < low and np.isfinite(down) and down > 0:
            lowest = prediction - down * largest_weight(prediction - low + F(1), allowed, down)
        if not prediction > high and np.isfinite(up) and up > 0:
            highest = prediction + up * largest_weight(high + F(1) - prediction, allowed, up)
    return F(np.clip(lowest, low, high)), F(np.clip(highest, low, high))  # NaN stays NaN


def synthcover(costs: Scores, low: np.float32, high: np.float32, *, psi: np.float32, size: int) -> Scores:
    """By action: bit by bit onto the action that costs least now, the lower number first among equals."""
    left = [max(low, min(cost, high)) for cost in costs]
    pmf = [F(0)] * len(left)
    bit = F(1) / F(size)
    poured_onto = None
    for _ in range(size):
        least = min(left)
        if poured_onto is None or left[poured_onto] > least:  # it is left where it is while it ties
            poured_onto = left.index(least)
        pmf[poured_onto] = pmf[poured_onto] + bit
        left[poured_onto] = left[poured_onto] + bit * psi
    return pmf


APART = 0xD6E8FEB86659FD93
"""Between the numbers of two members."""
_LOGF = ctypes.CDLL("libm.so.6").logf
_LOGF.restype, _LOGF.argtypes = ctypes.c_float, [ctypes.c_float]


def merand48(state: int) -> tuple[np.float32, int]:
    """Return the next number and state of VW's generator."""
    state = (state * 0xEECE66D5DEECE66D + 2147483647) % 2**64
    return F((state // 2**25 % 2**23) / 2**23), state


def normal(state: int) -> np.float32:
    """Return the next normal number of VW's generator."""
    while True:
        first, state = merand48(state)
        second, state = merand48(state)
        x, y = F(2) * first - F(1), F(2) * second - F(1)
        size = x * x + y * y
        if 0 < size < 1:
            return F(x * np.sqrt(F(-2) * F(_LOGF(float(size))) / size))


def guess(
    features: Sequence[tuple[int, np.float32]], *, seed: int, member: int, spread: np.float32
) -> np.float32:
    """Return the guess of a member of ``--rnd`` for an example with these hashes of names, and values."""
    squares = total = F(0)
    for name, x in features:
        number = normal(int(mix_state(np.uint64(seed), np.uint64((name + member * APART) % 2**64))))
        squares, total = squares + x * x, total + x * number
    return F(spread * total / np.sqrt(F(2) * max(F(1e-12), squares)))
