"""The members that cross the slow, obvious way: a dictionary of products, of which each has a weight.

A product is named by the cell that the kernels put it into, so that those that share a cell share a weight.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations

Names = Sequence[tuple[int, int]]
"""Of each feature that may be crossed: its hash by itself, and in pairs and triples."""

MIX, WHOLE = 0x9E3779B97F4A7C15, 2**64
MOST, RARE = (64, 24, 10), 16
MOST_KEYS, OF_ACTION = 8, 2**42
SPREAD, SURE, KEEPS, LATEST = 0.1, 1e-7, 0.9995, 1000


def mixed(key: int) -> int:
    for _ in range(2):
        key = (key ^ key >> 32) * MIX % WHOLE
    return key ^ key >> 32


def of_word(feature: int) -> int:
    return mixed(feature)


def of_bin(number: int, part: int) -> int:
    return mixed((number + 1 << 8) + part + 2**40)


def of_group(number: int, group: int) -> int:
    return mixed((number + 1 << 8) + group + 2**41)


def cell_of(product: int, key: int, *, bits: int = 18) -> int:
    """Return the cell of a product with a key, in a table of so many bits."""
    return ((product ^ (key | 3)) * MIX % WHOLE >> 64 - bits) // 4 * 4 + key % 4


class Crosses:
    """Three members: single features with the action, pairs too, and triples too."""

    def __init__(self) -> None:
        self.widest = 0
        self.wide = [0] * len(MOST)
        """Wide events, by what they were too wide for, the narrowest first."""
        self.mean = 0.0
        self.weights: list[dict[int, float]] = [defaultdict(float) for _ in MOST]
        self.spread: list[dict[int, float]] = [defaultdict(lambda: SPREAD) for _ in MOST]

    @property
    def works(self) -> tuple[bool, ...]:
        return tuple(self.widest <= most for most in MOST)

    def _cells(self, context: Names, keys: Sequence[int], order: int) -> list[int]:
        """Return the cells of all products that a member has."""
        context = context[: MOST[0]]
        products = [0, *(single for single, _ in context)]
        widest = max(self.widest, len(context))
        for size in range(2, order + 1):
            if widest <= MOST[size - 1]:
                products += [mixed(sum(some) % WHOLE) for some in combinations([b for _, b in context], size)]
        return [cell_of(product, key) for key in keys for product in products]

    def scores(self, context: Names, keys: Sequence[int]) -> list[float | None]:
        """Return the scores of an event, None of a member for which it is too wide."""
        return [
            None
            if len(context) > MOST[order - 1]
            else self.mean
            + math.fsum(self.weights[order - 1][cell] for cell in self._cells(context, keys, order))
            for order in (1, 2, 3)
        ]

    def note_width(self, n: int, events: int, wide: list[int]) -> None:
        """Note how wide an event is; `wide` counts for each limit the events that were wider."""
        for at, limit in enumerate(sorted(MOST)):
            if n > limit >= self.widest:
                wide[at] += 1
                if wide[at] <= RARE or 8 * wide[at] <= events:
                    n = limit
        self.widest = max(self.widest, n)

    def learn(
        self,
        context: Names,
        keys: Sequence[int],
        cost: float,
        weight: float,
        events: int,
        learns: Sequence[bool],
    ) -> None:
        """Learn an event, before which there were so many; only some members learn."""
        self.note_width(min(len(context), MOST[0] + 1), events, self.wide)
        for order, works in enumerate(self.works, 1):
            weights, spread = self.weights[order - 1], self.spread[order - 1]
            cells = self._cells(context, keys, order)
            error = cost - self.mean - math.fsum(weights[cell] for cell in cells)
            total = 1 / weight + math.fsum(spread[cell] for cell in cells)
            if works and learns[order - 1] and len(context) <= MOST[order - 1]:
                for cell in cells:
                    weights[cell] += spread[cell] * error / total
                    spread[cell] *= (1 - spread[cell] / total) / KEEPS
                    spread[cell] = min(max(spread[cell], SURE), SPREAD)
        self.mean += (cost - self.mean) / max(min(events + 1, LATEST) / weight, 1)


def key_of(index: int) -> int:
    """Return the key of an action that has separate products; keys come in groups of four."""
    return mixed(index // 4 + OF_ACTION) // 4 * 4 + index % 4


def keys_of(whole: int, parts: Names) -> list[int]:
    """Return the keys of an action of many: one for each of its features, and one for all together."""
    named = [coarse for _, coarse in parts[:MOST_KEYS]]
    return [mixed((key + OF_ACTION) % WHOLE) for key in (*named, whole)]
