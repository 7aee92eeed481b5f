"""Rank trials with several losses: by fronts that do not dominate each other, and within a front.

A trial dominates another one if none of its losses is higher and one is lower. The first front are the trials
that no other dominates, the second front those that are dominated only by the first front, and so on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

_LARGEST = 1e300
_REFERENCE = 1.5
"""The reference point of hypervolumes, for a front whose losses are scaled to the range from 0 to 1."""
_CELLS = 20_000
"""Maximum number of cells of a grid for hypervolumes, so rows: 140 with 3 objectives, 26 with 4."""
_BATCH = 16
"""Number of rows whose gains are computed together."""


def front(losses: np.ndarray) -> np.ndarray:
    """Return the rows of losses, float64[n, k], that no other row dominates: int64[m], in order.

    >>> front(np.array([[0, 2], [1, 1], [2, 2], [2, 0], [1, 1]])).tolist()
    [0, 1, 3, 4]
    """
    rows = np.lexsort(losses.T[::-1])  # a row is dominated only by rows before it
    index = 0
    while index < len(rows):
        row = losses[rows[index]]
        others = losses[rows[index + 1 :]]
        left = (others < row).any(axis=1) | (others == row).all(axis=1)
        rows = np.concatenate([rows[: index + 1], rows[index + 1 :][left]])
        index += 1
    return np.sort(rows)


def ranked(losses: np.ndarray, enough: int) -> np.ndarray:
    """Return the rows by their fronts, the best first: int64[n].

    The rows of the front that exceeds `enough` are sorted: with two objectives by distance, so that a row
    that is near others comes later, and with more by what each adds to the hypervolume of the rows before it.
    All rows after this front are in their order.

    Source: Deb, Pratap, Agarwal and Meyarivan: A fast and elitist multiobjective genetic algorithm, 2002;
    Guerreiro, Fonseca and Paquete: Greedy hypervolume subset selection in low dimensions, 2016.
    """
    left, order = np.arange(len(losses)), np.empty(0, dtype=np.int64)
    while len(order) < enough and len(left):
        chosen = left[front(losses[left])]
        left = np.setdiff1d(left, chosen, assume_unique=True)
        if len(order) + len(chosen) > enough:
            if losses.shape[1] > 2:
                chosen = by_hypervolume(losses, chosen, enough - len(order))
            else:
                chosen = spread(losses, chosen)
        order = np.concatenate([order, chosen])
    return np.concatenate([order, left])


def spread(losses: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Sort the rows of a front so that each beginning of the result covers the front evenly.

    Again and again, the row with the least distance between its neighbours is removed and put last.
    """
    remaining, removed = rows, list[int]()
    scaled = np.zeros(losses.shape)
    scaled[rows] = _scaled(losses[rows])
    while len(remaining) > 2:
        distance = np.zeros(len(remaining))
        for column in scaled[remaining].T:
            order = np.argsort(column, kind="stable")
            gaps = np.full(len(remaining), np.inf)
            gaps[1:-1] = column[order][2:] - column[order][:-2]
            distance[order] += gaps
        nearest = int(np.argmin(distance))
        removed.append(int(remaining[nearest]))
        remaining = np.delete(remaining, nearest)
    return np.array([*remaining.tolist(), *reversed(removed)], dtype=np.int64)


def by_hypervolume(losses: np.ndarray, rows: np.ndarray, enough: int) -> np.ndarray:
    """Sort a front so that each of the first `enough` rows adds the most to the hypervolume of those before.

    The number of these rows is bounded, because the time grows exponentially with the number of objectives;
    the others follow by distance. What a row adds only decreases with the rows before it, so it is computed
    again only while its former value is among the largest.
    """
    scaled = _scaled(losses[rows])
    gains = (_REFERENCE - scaled).prod(axis=1)
    chosen = list[int]()
    enough = min(enough, len(rows))
    while len(chosen) < min(enough, _CELLS ** (1 / (losses.shape[1] - 1)) - 1):
        added, computed = added_volumes(scaled[chosen], _REFERENCE), set[int]()
        while (best := int(np.argmax(gains))) not in computed:
            batch = np.argsort(-gains, kind="stable")[:_BATCH]
            gains[batch] = added(scaled[batch])
            gains[chosen] = -1.0
            computed.update(batch.tolist())
        chosen.append(best)
        gains[best] = -1.0
    others = rows[gains >= 0]
    return np.concatenate([rows[chosen], spread(losses, others) if len(chosen) < enough else others])


def added_volumes(points: np.ndarray, reference: float) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function of rows that returns what each adds to the hypervolume of points, float64[n, k].

    The points divide the space of all objectives but the last into cells. Above each cell, what the points
    dominate begins at the least of some last losses.

    >>> added = added_volumes(np.array([[1.0, 2.0, 2.0]]), 3.0)
    >>> added(np.array([[2.0, 1.0, 2.0], [2.0, 2.0, 2.0]])).tolist()
    [1.0, 0.0]
    """
    points = points[(points < reference).all(axis=1)]
    n, axes = len(points), points.shape[1] - 1
    lowest = np.full((n + 1,) * axes, reference)
    order = np.argsort(points[:, :-1], axis=0, kind="stable")
    ranks = np.argsort(order, axis=0, kind="stable") + 1
    np.minimum.at(lowest, tuple(ranks.T), points[:, -1])
    for axis in range(axes):
        lowest = np.minimum.accumulate(lowest, axis=axis)
    edges = np.full((n + 2, axes), reference)
    edges[0] = -np.inf
    edges[1:-1] = np.take_along_axis(points[:, :-1], order, axis=0)

    def added(rows: np.ndarray) -> np.ndarray:
        heights = np.maximum(lowest - rows[:, -1].reshape(-1, *[1] * axes), 0)
        widths = np.maximum(edges[1:] - np.maximum(edges[:-1], rows[:, None, :-1]), 0)
        for axis in reversed(range(axes)):
            heights = np.einsum("r...c,rc->r...", heights, widths[:, :, axis])
        return np.asarray(heights)

    return added


def _scaled(losses: np.ndarray) -> np.ndarray:
    """Return losses from 0 to 1 for each objective."""
    finite = np.clip(losses, -_LARGEST, _LARGEST)
    above = finite - finite.min(axis=0)
    return np.asarray(above / np.maximum(above.max(axis=0), 1e-300))
