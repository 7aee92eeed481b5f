"""Bagging: models that each learn an event a random number of times, and vote."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.explorers.ranking_kernels import DRAWN, count_leaders
from onlineauto.explorers.sample_kernels import mix_number, number_of, step_on
from onlineauto.jit import F32, inline_kernel, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.explorers.ranking_kernels import Exploration

_ONE = np.float32(1)
_MOST = 20
GREEDIFY = 0
"""Index, among the explorer's numbers, of the flag that the first model learns each event exactly once."""


@inline_kernel
def poisson(number: F32) -> int:
    """Return a count from the Poisson distribution of mean 1, given a uniform number (float32) in [0, 1)."""
    chance = np.exp(np.float64(-1.0))
    through, count = chance, 0
    while np.float64(number) > through and count < _MOST:
        count += 1
        chance /= count
        through += chance
    return count


@kernel
def draw_time(at: Exploration, policy: int) -> int:
    """Draw the number of times that a model learns an event; 1 for the first model of a greedified bag."""
    if at.numbers[GREEDIFY] > 0.0 and policy == 0:
        return 1
    if at.quirks.steps_generator:
        at.random[0] = step_on(at.random[0])
        return poisson(number_of(at.random[0]))
    at.counts[DRAWN] += 1
    return poisson(mix_number(at.random[0], np.uint64(at.counts[DRAWN] - 1)))


@inline_kernel
def add_vote(
    score: NDArray[np.float32],
    n: int,
    first_only: bool,
    votes: NDArray[np.float32],
    sums: NDArray[np.float32],
    order: NDArray[np.int32],
    ranked: NDArray[np.float32],
) -> None:
    """Add a model's vote, shared by its best actions, to `votes`, and its scores to `sums`."""
    leading = count_leaders(score, n, first_only, order, ranked)
    for i in range(n):
        sums[order[i]] += ranked[i]
        if i < leading:
            votes[order[i]] += _ONE / np.float32(leading)
