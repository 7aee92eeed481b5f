"""Merge: combine states that continued from a common base, each on separate events.

Sums add up. The wealth of a bet is a product of one factor for each event. So the base's wealth is multiplied
by its growth in each branch: ∏ Wᵢ/W₀. Each factor depends only on what its branch knew before the event. So
the product is the wealth of a single bettor on all events in the order of their arrival, and reaches 1/α by
chance with probability at most α. Ranges, bounds and bets may differ between branches. The rejected
hypothesis is therefore that the challenger was ahead in no branch.

Capital that joined during a branch counts as if it had joined at the base: a bet of W₀ + S has become Wᵢ. It
is taken from the reserve once. If a test on differences of losses restarted in a branch, the merged test
restarts at the base, under the remaining level. It has the gains of each branch since its restart.

Source: see `onlineauto.estimators.paired_kernels`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.estimators import difference_kernels as differences
from onlineauto.estimators import draw_kernels as draws
from onlineauto.estimators import scale_kernels as scales
from onlineauto.estimators.interval_kernels import BOUND, FIRST_BOUND, SUMS
from onlineauto.estimators.paired_kernels import (
    AT_START,
    BETTER,
    FIRST_RESTART,
    LANES,
    LARGEST,
    LEAST,
    NEXT,
    RESERVE,
    SHARES,
    WORSE,
    N,
    T,
)
from onlineauto.state.schema import add, by_entry, keep, largest, latest, smallest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    State = NDArray[np.float64]


def merge_sums(base: State, ends: Sequence[State]) -> State:
    """Return the sums of an interval, or the state of a policy, over all events."""
    state: State = base + sum(end - base for end in ends)
    for bound in (FIRST_BOUND, BOUND):
        state[bound] = max(branch[bound] for branch in (base, *ends))
    if base[FIRST_BOUND] > 0.0:
        state[FIRST_BOUND] = base[FIRST_BOUND]
    return state


def merge_tests(base: State, ends: Sequence[State], *, floor: bool) -> State:
    """Return the float64[SIZE] of a champion test on all events; `floor`: the least propensity is known."""
    state = base.copy()
    state[:LANES] += sum(end[:LANES] - base[:LANES] for end in ends)
    state[:SUMS] = merge_sums(base[:SUMS], [end[:SUMS] for end in ends])
    if not state[T] > base[T]:
        return state
    _merge_wealth(state, base, [(base, end) for end in ends], floor=floor)
    return state


def _merge_wealth(state: State, base: State, pairs: Sequence[tuple[State, State]], *, floor: bool) -> None:
    """Put into a state the base's wealth times its growth in each branch (before, after)."""
    with_free = any(end[LANES + 2 * N :].any() for _, end in pairs)
    lanes = np.tile(SHARES[int(floor)], 2), np.tile(SHARES[0], 2)
    share = np.concatenate(lanes) * (0.5 if with_free else 1.0)
    if not with_free:
        share[2 * N :] = 0.0

    def capital(before: State, reserve: float) -> State:
        """Return the wealth of the bets if all capital beyond this reserve had joined before."""
        reserved = before[RESERVE] if before[NEXT] else 1.0
        wealth: State = before[LANES:] + (reserved - reserve) * share
        return wealth

    state[RESERVE] = min([end[RESERVE] for _, end in pairs if end[NEXT]], default=1.0 - AT_START)
    if base[NEXT]:
        state[RESERVE] = min(state[RESERVE], base[RESERVE])
    state[NEXT] = max(FIRST_RESTART, *(end[NEXT] for _, end in pairs), base[NEXT])
    began = capital(base, state[RESERVE])
    wealth = np.log(np.where(began > 0.0, began, 1.0))
    for before, end in pairs:
        if end[NEXT]:
            before_all = capital(before, end[RESERVE])
            grown = (before_all > 0.0) & (end[LANES:] > 0.0)
            wealth += np.where(grown, np.log(np.where(grown, end[LANES:], 1.0)), 0.0)
            wealth -= np.where(grown, np.log(np.where(grown, before_all, 1.0)), 0.0)
    limits = np.log(LEAST), np.log(LARGEST)
    state[LANES:] = np.where(began > 0.0, np.exp(np.clip(wealth, *limits)), 0.0)
    better, worse = slice(LANES, LANES + N), slice(LANES + N, LANES + 2 * N)
    free = state[LANES + 2 * N :].reshape(2, N).sum(axis=1)
    state[BETTER] = state[RESERVE] + state[better].sum() + free[0]
    state[WORSE] = state[RESERVE] + state[worse].sum() + free[1]


def merge_difference_tests(
    base: tuple[State, State], ends: Sequence[tuple[State, State]]
) -> tuple[State, State]:
    """Return the merged (float64[SIZE], float64[SPREAD_SIZE]) of a test on differences of losses."""
    began, spread = base[0], base[1].copy()
    spreads = [end[1] for end in ends]
    learnt = np.array([branch[differences.SEEN] - spread[differences.SEEN] for branch in spreads])
    if not learnt.any():
        return began.copy(), spread
    square, seen = differences.SQUARES, differences.SEEN
    part = np.maximum(learnt, 0.0) / learnt.sum()
    spread[square] += sum(
        p * (branch[square] - spread[square]) for p, branch in zip(part, spreads, strict=True)
    )
    spread[seen] += learnt.sum()
    for entry in (differences.BOUND, differences.LATELY, differences.BEFORE, differences.NEXT):
        spread[entry] = max(branch[entry] for branch in spreads)
    spread[differences.RESTARTS] = max(branch[differences.RESTARTS] for branch in spreads)
    if spread[differences.RESTARTS] == base[1][differences.RESTARTS]:
        return merge_tests(began, [end[0] for end in ends], floor=True), spread
    fresh = np.zeros_like(began)
    pairs = [
        (fresh if branch[differences.RESTARTS] > base[1][differences.RESTARTS] else began, state)
        for state, branch in ends
    ]
    state = fresh.copy()
    state[:LANES] += sum(end[:LANES] - before[:LANES] for before, end in pairs)
    for bound in (FIRST_BOUND, BOUND):
        state[bound] = max([end[bound] for before, end in pairs if end[T] > before[T]], default=0.0)
    if state[T] > 0.0:
        _merge_wealth(state, fresh, pairs, floor=True)
    return state, spread


merge_scales = by_entry(
    keep,
    {scales.LOW: smallest, scales.FLOOR: smallest, scales.HIGH: largest}
    | dict.fromkeys((scales.OUTSIDE, scales.BELOW), add),
)
"""The scale that all events have widened."""

merge_draws = by_entry(
    latest,
    dict.fromkeys((draws.BY_CHANCE, draws.CHANGED, draws.CHANGES, draws.DUE), add) | {draws.LARGEST: largest},
)
"""The draws of all events; the latest is that of the last branch."""
