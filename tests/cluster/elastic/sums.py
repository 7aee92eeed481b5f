"""A model of whole numbers whose gradient depends on all blocks: a stale or mixed read changes the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

SIZES = {0: 1, 1: 3, 2: 2, 3: 2, 4: 5, 5: 1, 6: 1}
LAST = 24
"""Ticks of the stream."""
BATCH = 12
_PRIME = 2**61 - 1


class SumShard:
    """A block that is one number."""

    def __init__(self, value: int) -> None:
        self.value = self.before = value

    def read(self, keys: Any) -> int:
        return self.value

    def read_before(self, keys: Any) -> int:
        return self.before

    def apply(self, updates: Sequence[int]) -> None:
        self.before = self.value
        self.value = (self.value + sum(updates)) % _PRIME

    def dump(self) -> int:
        return self.value


class SumShards:
    def make(self, block: int) -> SumShard:
        return SumShard(block + 1)

    def load(self, block: int, payload: int) -> SumShard:
        return SumShard(payload)


class SumWork:
    """Each item of the batch of a tick adds to all blocks; ranks share the items."""

    def needed_keys(self, tick: int, rank: int, n: int) -> dict[int, None] | None:
        return dict.fromkeys(SIZES) if tick < LAST else None

    def compute(self, tick: int, rank: int, n: int, values: Mapping[int, int]) -> dict[int, int]:
        return gradient(tick, range(rank * BATCH // n, (rank + 1) * BATCH // n), values)


def gradient(tick: int, items: Iterable[int], values: Mapping[int, int]) -> dict[int, int]:
    mixed = sum(value * (2 * block + 3) for block, value in values.items())
    return {
        block: sum((tick + 1) * (item + 7) * (block + 1) * (mixed % 1_000_003 + value) for item in items)
        for block, value in values.items()
    }


def run_alone() -> list[dict[int, int]]:
    """Return the blocks at each version, as one process makes them."""
    values = {block: block + 1 for block in SIZES}
    versions = [values]
    for tick in range(LAST):
        step = gradient(tick, range(BATCH), values)
        values = {block: (value + step[block]) % _PRIME for block, value in values.items()}
        versions.append(values)
    return versions


ALONE = run_alone()
