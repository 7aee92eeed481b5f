"""Rank trials with several losses: by fronts that do not dominate each other, and by distance within a front.

A trial dominates another one if none of its losses is higher and one is lower. The first front are the trials
that no other dominates, the second front those that are dominated only by the first front, and so on.
"""

from __future__ import annotations

import numpy as np

_LARGEST = 1e300


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

    The rows of the front that exceeds `enough` are sorted by distance: a row that is near others comes later.
    All rows after this front are in their order.

    Source: Deb, Pratap, Agarwal and Meyarivan: A fast and elitist multiobjective genetic algorithm, 2002.
    """
    left, order = np.arange(len(losses)), np.empty(0, dtype=np.int64)
    while len(order) < enough and len(left):
        chosen = left[front(losses[left])]
        left = np.setdiff1d(left, chosen, assume_unique=True)
        if len(order) + len(chosen) > enough:
            chosen = spread(losses, chosen)
        order = np.concatenate([order, chosen])
    return np.concatenate([order, left])


def spread(losses: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Sort the rows of a front so that each beginning of the result covers the front evenly.

    Again and again, the row with the least distance between its neighbours is removed and put last.
    """
    remaining, removed = rows, list[int]()
    finite = np.clip(losses, -_LARGEST, _LARGEST)
    scaled = finite - finite[rows].min(axis=0)
    scaled = scaled / np.maximum(scaled[rows].max(axis=0), 1e-300)
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
