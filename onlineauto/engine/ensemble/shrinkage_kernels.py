"""Shrinkage: the ensemble's scores are shrunk towards the mean score, and towards those of `means`.

Weights of members are learnt so that scores predict costs. But a choice depends only on the differences
between the scores of actions, which are small, and the best of many scores is too good by its luck. So a
score is

    level + α (score - level) + β (mean - its level),

where a level is the mean over the actions of an event, and `mean` is the score of the member `means`, which
knows no context. α and β, from 0 to 1, are learnt by least squares with slow forgetting from the logged
actions: of the difference between the cost and the level. An event counts as in the combiner, but for the
root of its rank only: with many actions, few events would count else. Before the first event both are 1/2.

Source: Efron and Morris, *Data analysis using Stein's estimator and its generalizations*, 1975.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.records.ensemble import Shrinkage
from onlineauto.jit import inline_kernel, kernel, short_loop

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.records.ensemble import Ensemble

SHRINKAGE_KEEPS = 0.9998
"""Part of the earlier information that the factors retain at each event."""

_FIRST = 0.5
"""Both factors before the first event."""

_PRIOR_VARIANCE = 0.25
"""Variance of both factors before the first event."""


@inline_kernel
def can_shrink(ensemble: Ensemble, scored: NDArray[np.bool_], n: int) -> bool:
    """Return whether scores of an event of `n` actions are shrunk: `means` scored them."""
    return bool(ensemble.means >= 0 and n > 1 and scored[ensemble.means])


@inline_kernel
def mean_score(score: NDArray[np.float32], n: int, column: int) -> float:
    """Return the mean of the scores of `n` actions in a column."""
    total = 0.0
    for action in range(n):
        short_loop()
        total += np.float64(score[action, column])
    return total / n


@inline_kernel
def _means_column(ensemble: Ensemble, score: NDArray[np.float32]) -> int:
    """Return the column of the scores of `means`."""
    return int(score.shape[1] - 1 - len(ensemble.members.rests) + ensemble.means)


@inline_kernel
def find_factors(sums: NDArray[np.float64]) -> tuple[float, float]:
    """Return both factors, α and β: the least squares solution between 0 and 1, given the sums.

    The prior is normal, with the means 1/2 of α and 1 of α + β. The variance of the costs is the noise.
    """
    if not (sums[Shrinkage.EVENTS] > 0.0 and sums[Shrinkage.COST] > 0.0):
        return _FIRST, _FIRST
    prior = sums[Shrinkage.COST] / (sums[Shrinkage.EVENTS] * _PRIOR_VARIANCE)
    a, b, c = sums[Shrinkage.OWN] + 2.0 * prior, sums[Shrinkage.BOTH] + prior, sums[Shrinkage.MEANS] + prior
    u, v = sums[Shrinkage.OWN_COST] + (1.0 + _FIRST) * prior, sums[Shrinkage.MEANS_COST] + prior
    determinant = a * c - b * b
    if not determinant > 0.0:
        return _FIRST, _FIRST
    alpha, beta = (u * c - v * b) / determinant, (v * a - u * b) / determinant
    if not (0.0 <= alpha <= 1.0 and 0.0 <= beta <= 1.0):  # the solution is on an edge of the square
        least = np.inf
        for edge in range(4):
            end = np.float64(edge % 2)
            x = y = end
            if edge < 2:
                y = min(max((v - b * x) / c, 0.0), 1.0)
            else:
                x = min(max((u - b * y) / a, 0.0), 1.0)
            loss = x * (a * x + 2.0 * (b * y - u)) + y * (c * y - 2.0 * v)
            if loss < least:
                least, alpha, beta = loss, x, y
    return alpha, beta


@kernel
def shrink_scores(ensemble: Ensemble, score: NDArray[np.float32], n: int) -> None:
    """Shrink the ensemble's scores of `n` actions, which `can_shrink`."""
    column, means = score.shape[1] - 1, _means_column(ensemble, score)
    level, mean_level = mean_score(score, n, column), mean_score(score, n, means)
    alpha, beta = find_factors(ensemble.shrinkage)
    for action in range(n):
        short_loop()
        own, mean = score[action, column] - level, score[action, means] - mean_level
        score[action, column] = np.float32(level + alpha * own + beta * mean)


@kernel
def learn_shrinkage(
    ensemble: Ensemble,
    score: NDArray[np.float32],
    action: int,
    n: int,
    cost: float,
    own: float,
    weight: float,
) -> None:
    """Learn the factors from the cost of the logged action of an event of `n` actions, which `can_shrink`.

    `own` is the ensemble's score of the action before shrinkage. The level of the shrunk scores is that of
    the scores themselves.
    """
    sums, means = ensemble.shrinkage, _means_column(ensemble, score)
    width = ensemble.range[1] - ensemble.range[0]
    level = mean_score(score, n, score.shape[1] - 1)
    x = (own - level) / width
    y = (score[action, means] - mean_score(score, n, means)) / width
    z = (cost - level) / width
    for i in range(len(sums)):
        short_loop()
        sums[i] *= SHRINKAGE_KEEPS
    sums[Shrinkage.EVENTS] += weight
    sums[Shrinkage.OWN] += weight * x * x
    sums[Shrinkage.BOTH] += weight * x * y
    sums[Shrinkage.MEANS] += weight * y * y
    sums[Shrinkage.OWN_COST] += weight * x * z
    sums[Shrinkage.MEANS_COST] += weight * y * z
    sums[Shrinkage.COST] += weight * z * z
