"""Merging the slow, obvious way: events with the weights that they have in the end, and cells by formula."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Fitted(NamedTuple):
    """Weighted normal equations, one event at a time."""

    information: NDArray[np.float64]
    products: NDArray[np.float64]

    @property
    def weights(self) -> NDArray[np.floating]:
        return np.linalg.solve(self.information, self.products)

    @property
    def spread(self) -> NDArray[np.floating]:
        return np.linalg.inv(self.information)


def share(learnt: Sequence[int], at: int, keeps: float) -> float:
    """Return the factor of a branch: its part of all events, discounted together like for one learner."""
    everything = sum(learnt)
    one_learner = math.fsum(keeps**back for back in range(everything))
    branch = math.fsum(keeps**back for back in range(learnt[at]))
    return learnt[at] / everything * one_learner / branch


def fit(
    began: Fitted, inputs: NDArray[np.float64], targets: NDArray[np.float64], counts: NDArray[np.float64]
) -> Fitted:
    """Normal equations with events that count so much."""
    information, products = began.information.copy(), began.products.copy()
    for row, target, count in zip(inputs, targets, counts, strict=True):
        information += count * np.outer(row, row)
        products += count * target * row
    return Fitted(information, products)


def fit_branches(
    began: Fitted,
    branches: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]],
    *,
    keeps: float,
) -> Fitted:
    """Normal equations of the base and of all branches' events, each with its weight in the end."""
    learnt = [len(targets) for _, targets in branches]
    all_left = keeps ** sum(learnt)
    result = Fitted(began.information * all_left, began.products * all_left)
    for at, (inputs, targets) in enumerate(branches):
        back = np.arange(len(targets))[::-1]
        result = fit(result, inputs, targets, np.array(share(learnt, at, keeps) * keeps**back))
    return result


def cell(
    base: tuple[float, float],
    ends: Sequence[tuple[float, float]],
    learnt: Sequence[int],
    *,
    keeps: float,
    limit: float,
    bounds: tuple[float, float],
) -> tuple[float, float]:
    """Return the weight and the variance of a cell of a table; `limit` is the largest precision."""
    least, unsure = bounds
    times = []
    for end, most in zip(ends, learnt, strict=True):
        left = 1 - 1 / (end[1] or unsure) / limit
        lasted = math.log(left) / math.log(keeps) if left > 0 else math.inf
        times.append(min(lasted, most) if end != base else 0.0)
    sure, product = 1 / (base[1] or unsure), base[0] / (base[1] or unsure)
    precision, products, everything = sure, product, sum(times)
    for end, since in zip(ends, times, strict=True):
        if since:
            part = since / everything * (1 - keeps**everything) / (1 - keeps**since)
            precision += part * (1 / (end[1] or unsure) - sure)
            products += part * (end[0] / (end[1] or unsure) - product)
    precision = max(precision, 1 / unsure)
    known = any(spread for _, spread in (base, *ends))
    return products / precision, min(max(1 / precision, least), unsure) if known else 0.0
