"""New actions: place them among the scores of an event, and bound their probabilities."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tests.naive.native_search.events import Groups

F = np.float32


def learnt_part(own: Groups, learnt_cells: Collection[int], mask: int) -> np.float32:
    """Return the fraction of an action's features that were learnt."""
    cells = [hash_ & mask for features in own.values() for hash_, x in features if x != 0]
    unlearnt = sum(cell not in learnt_cells for cell in cells)
    return F(1) - F(unlearnt) / F(len(cells)) if unlearnt else F(1)


def is_new(parts: Sequence[np.float32], learnt: int) -> list[bool]:
    """Return which actions are new, by their learnt parts and the number of events learnt."""
    new = [bool(part <= F(7 / 8)) for part in parts]
    return new if learnt >= 10 * len(parts) and not all(new) else [False] * len(parts)


def placed(
    scores: Sequence[np.float32], parts: Sequence[np.float32], new: Sequence[bool], *, tries: bool
) -> list[np.float32]:
    """Return scores in which new actions have the places that their learnt parts give them."""
    known = sorted(score for score, is_one in zip(scores, new, strict=True) if not is_one)
    mean = F(sum(map(float, known)) / len(known))
    best = known[0]
    result = list(scores)
    for action, (score, part) in enumerate(zip(scores, parts, strict=True)):
        if new[action] and np.isfinite(mean):
            own = min(max(score, best), known[-1]) if np.isfinite(score) else mean
            result[action] = best if tries and part <= F(3 / 4) else part * own + (F(1) - part) * mean
    return result


def bounded(
    pmf: Sequence[np.float32], new: Sequence[bool], order: Sequence[int]
) -> tuple[list[np.float32], list[int]]:
    """Return bounded probabilities, and the order with the best action that is not new first."""
    first = next(action for action in order if not new[action])
    most = F(1) / F(len(pmf))
    result, excess = list(pmf), F(0)
    for action in order:
        if new[action] and pmf[action] > most:
            excess, result[action] = excess + (pmf[action] - most), most
    result[first] = result[first] + excess
    return result, [first, *(action for action in order if action != first)]
