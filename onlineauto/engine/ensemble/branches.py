"""Branches: states that continued from a common base, each on separate events, and how statistics merge.

A statistic s that sums up events, of which older ones may count less, is merged as

    s = s₀ + Σ cᵢ (sᵢ - s₀)

with s₀ of the base and sᵢ of branch i. If nothing is forgotten, all cᵢ are 1: the changes of all branches are
added. If a statistic retains the part k(n) of its value while n events are learnt, then

    cᵢ = nᵢ/N · (1 - k(N)) / (1 - k(nᵢ)),  N = Σ nᵢ.

So the base, and all events since the base together, count as much as for a single learner of all events.
Within a branch, late events count somewhat less and early events somewhat more than that, by a factor between
k(N) and 1 / k(N). The longer the branches, the more cᵢ falls from 1 (a sum) to nᵢ/N (a mean).

Branches that are consecutive parts of one stream are *ordered*. If s retains the part k(n), then

    s = s₀ + Σ cᵢ (sᵢ - s₀) with cᵢ = k(number of events of the branches after i)

is exactly the statistic of a single learner: later events forget the changes of an early branch.

The statistics of least squares are A = P⁻¹ and b = A w. Merging takes n³ operations for n weights and each
state.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlineauto.engine.ensemble.member import ANY

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from numpy.typing import NDArray

    Kept = Callable[[NDArray[np.float64]], NDArray[np.float64]]


_NONE = np.zeros(0, np.int64)


class Branch(NamedTuple):
    """A state to be merged, or the base, and the merged index of each of its entries; -1 for none."""

    state: Any
    inputs: NDArray[np.int64]  # [inputs]: merged index of each input; several inputs may share one
    numbers: NDArray[np.int64]  # [numbers]: merged index of each number
    actions: NDArray[np.int64]  # [actions]: merged index of the action of each regression
    seen: NDArray[
        np.int64
    ]  # [actions + 1, 2]: number of events learnt with each merged action, then the total: at the base, now
    ordered: bool = False  # the branches are consecutive parts of one stream, in this order
    actions_here: Container[int] | None = None  # of the base: the merged actions to merge; None for all
    surest: float = 0.0  # of the base: the largest precision of the changed cells of any branch; 0 if unknown
    in_vectors: NDArray[np.int64] = _NONE  # merged index of each number in vectors; -1 for none


class Sums(NamedTuple):
    """The statistics of least squares."""

    information: NDArray[np.float64]  # [n, n]: the inverse of the covariance
    products: NDArray[np.float64]  # [n]: the information matrix times the weights


def without_learning(branch: Branch, base: Branch) -> Branch:
    """Return a branch that has learnt nothing since the base, to replace one that cannot be merged."""
    return base._replace(seen=np.repeat(branch.seen[:, :1], 2, axis=1))


def count_learnt(branches: Sequence[Branch]) -> list[int]:
    """Return the number of events that each branch has learnt since the base."""
    return [int(branch.seen[-1, 1] - branch.seen[-1, 0]) for branch in branches]


def exponential_retention(keeps: float) -> Kept:
    """Return k(n) of a statistic that is multiplied by `keeps` for each event."""
    return lambda n: np.exp(n * math.log(keeps))


def mean_retention(seen: NDArray[Any] | float, memory: float) -> Kept:
    """Return k(n) of a mean that had `seen` events at the base.

    From `memory` events on, each event moves the mean by 1 / `memory` of the distance to it.
    """
    began = np.minimum(seen, memory), np.maximum(seen, memory)

    def kept(n: NDArray[np.float64]) -> NDArray[np.float64]:
        part = began[0] / np.maximum(np.minimum(seen + n, memory), 1.0)
        return np.asarray(part * np.exp((began[1] - np.maximum(seen + n, memory)) / memory))

    return kept


def shares(learnt: Any, kept: Kept, *, ordered: bool = False) -> NDArray[np.float64]:
    """Return the cᵢ of branches from the number of events that each has `learnt`: float64[branches, ...].

    With `ordered`, the branches are consecutive, and the statistic forgets at the same rate at any time.
    """
    n = np.asarray(learnt, np.float64)
    if ordered:
        return np.asarray(kept(n[::-1].cumsum(axis=0)[::-1] - n))
    total = n.sum(axis=0)
    new, all_new = 1.0 - kept(n), 1.0 - kept(total)
    some = (n > 0.0) & (new > 0.0)
    part = np.divide(n, total, where=some, out=np.ones_like(n))
    counts: NDArray[np.float64] = part * np.divide(all_new, new, where=some, out=np.ones_like(n))
    return counts


def merge_statistic(base: Any, ends: Sequence[Any], parts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return s from the base's s₀, the branches' sᵢ and their cᵢ (`parts`)."""
    began = np.asarray(base, np.float64)
    total = began.copy()
    for end, part in zip(ends, parts, strict=True):
        total += part * (end - began)
    return total


def merge_mean(base: Branch, branches: Sequence[Branch]) -> NDArray[np.float64]:
    """Return the states' `mean` over all events of the base and of branches."""
    parts = shares(count_learnt(branches), mean_retention(float(base.seen[-1, 0]), ANY))
    return merge_statistic(base.state.mean, [branch.state.mean for branch in branches], parts)


def merge_moments(
    base: tuple[Any, Any], ends: Sequence[tuple[Any, Any]], parts: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean and the variance merged from those of the base and of branches."""
    mean = merge_statistic(base[0], [end[0] for end in ends], parts)
    squares = merge_statistic(base[1], [end[1] + (end[0] - base[0]) ** 2 for end in ends], parts)
    return mean, np.maximum(squares - (mean - base[0]) ** 2, 0.0)


def sums_of(weights: NDArray[np.float64], spread: NDArray[np.float64]) -> Sums:
    """Return the statistics of weights and their covariance."""
    information = np.linalg.inv(spread).astype(np.float64, copy=False)
    return Sums(information, information @ weights)


def merge_squares(
    base: Sums,
    ends: Sequence[Sums],
    parts: NDArray[np.float64],
    initial_variance: float,
    *,
    weights_of: Sequence[NDArray[np.float64]] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weights merged by least squares, and their covariance, symmetric to the last bit.

    No variance exceeds `initial_variance`. If rounding leaves less information about a direction than that
    variance has, the weights have no component in that direction. With nearly collinear inputs, statistics
    that forget, rest or are limited do not add up, so no weight is farther from those of the base and of the
    ends (`weights_of`, computed if None) than these are from each other.
    """
    information = merge_statistic(base.information, [end.information for end in ends], parts)
    products = merge_statistic(base.products, [end.products for end in ends], parts)
    information = 0.5 * (information + information.T)
    least = 0.5 / (len(information) * initial_variance)
    if _exceeds(information, least):
        spread = np.linalg.inv(information).astype(np.float64, copy=False)
        weights = spread @ products
    else:
        known, basis = np.linalg.eigh(information)
        weights = basis @ np.where(known > least, (basis.T @ products) / np.maximum(known, least), 0.0)
        known = np.maximum(known, least)
        information, spread = (basis * known) @ basis.T, (basis / known) @ basis.T
    if weights_of is None:
        weights_of = [np.linalg.inv(sums.information) @ sums.products for sums in (base, *ends)]
    least_of, width = np.min(weights_of, axis=0), np.ptp(weights_of, axis=0) + 1e-9  # more than rounding
    weights = _bounded(weights, information, np.array([least_of - width, least_of + 2.0 * width]))
    factors = np.minimum(1.0, np.sqrt(initial_variance / spread.diagonal()))
    spread = factors[:, None] * spread * factors
    return weights, 0.5 * (spread + spread.T)


def _bounded(
    best: NDArray[np.float64], information: NDArray[np.float64], bounds: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return weights within bounds: move the worst one to its bound, fit the others again, and so on."""
    (low, high), result, free = bounds, best.copy(), np.ones(len(best), np.bool_)
    while (excess := np.where(free, np.maximum(low - result, result - high), 0.0)).max(initial=0.0) > 0.0:
        at = int(excess.argmax())
        free[at], result[at] = False, np.clip(result[at], low[at], high[at])
        moved = information[np.ix_(free, ~free)] @ (result - best)[~free]
        result[free] = best[free] - np.linalg.solve(information[np.ix_(free, free)], moved)
    return result


def _exceeds(information: NDArray[np.float64], least: float) -> bool:
    """Return whether all eigenvalues exceed `least`: much faster than computing them."""
    shifted = information.copy()
    shifted[np.diag_indices_from(shifted)] -= least
    try:
        np.linalg.cholesky(shifted)
    except np.linalg.LinAlgError:
        return False
    return True


def merge_cells(
    base: tuple[NDArray[Any], NDArray[Any]],
    ends: Sequence[tuple[NDArray[Any], NDArray[Any]]],
    learnt: Sequence[int],
    *,
    keeps: float,
    bounds: tuple[float, float],
    surest: float = 0.0,
    ordered: bool = False,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return a table of weights and variances merged cell by cell, by precisions 1 / variance.

    The number of events that a cell has learnt is not stored, but is estimated from its precision. Precisions
    approach a limit, about the largest of all tables: the time to reach it is the time that a cell has learnt
    for, at most the events that the branch has `learnt`. So rare cells are added up, and cells that were in
    nearly every event are averaged. The running time is proportional to the number of changed cells.

    A table has weights and variances, float32[cells, n]; a variance of 0 means that the cell was never
    learnt. `learnt` are the events of each branch since the base, `keeps` is the factor by which a precision
    is multiplied when the cell is learnt, `bounds` are the smallest variance and that before the first event.
    `surest` is the largest precision of all tables, if these are only some of the cells; 0 computes it.
    """
    least, initial_variance = bounds
    weights, spread = base[0].copy(), base[1].copy()
    changes = [(end[0] != base[0]) | (end[1] != base[1]) for end in ends]
    rows = np.flatnonzero(np.logical_or.reduce(changes).any(axis=1))
    if not len(rows):
        return weights, spread
    tables = [(moments[0][rows], moments[1][rows]) for moments in (base, *ends)]
    sure = [
        1.0 / np.where(variance > 0.0, variance, initial_variance).astype(np.float64)
        for _, variance in tables
    ]
    times = []
    limit = surest or max(float(information.max()) for information in sure)
    for own, n, changed in zip(sure[1:], learnt, changes, strict=True):
        with np.errstate(divide="ignore"):
            since = np.minimum(np.log1p(-own / limit) / math.log(keeps), float(n))
        times.append(np.where(changed[rows], since, 0.0))
    parts = shares(times, exponential_retention(keeps), ordered=ordered)
    precision = np.maximum(merge_statistic(sure[0], sure[1:], parts), 1.0 / initial_variance)
    products = [one * variance[0] for one, variance in zip(sure, tables, strict=True)]
    weights[rows] = merge_statistic(products[0], products[1:], parts) / precision
    known = np.logical_or.reduce([variance > 0.0 for _, variance in tables])
    spread[rows] = np.where(known, np.clip(1.0 / precision, least, initial_variance), 0.0)
    return weights, spread
