"""Contracts between the protocol and what is learnt: a block on a server, and the part of a worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Shard(Protocol):
    """A block on a server."""

    def read(self, keys: Any) -> Any:
        """Return what a worker asks for, as it is now; it may not change when the block does."""

    def read_before(self, keys: Any) -> Any:
        """Return the same as it was before the last `apply`."""

    def apply(self, updates: Sequence[Any]) -> None:
        """Apply the updates of one tick, those of the worker with rank 0 first."""

    def dump(self) -> Any:
        """Return a copy of the whole block, for `Shards.load`."""


class Shards(Protocol):
    """Make blocks."""

    def make(self, block: int) -> Shard:
        """Return a block before the first event."""

    def load(self, block: int, payload: Any) -> Shard:
        """Return the block that was dumped."""


class Work(Protocol):
    """The part of a worker: what it needs of the blocks, and what it does with them.

    Both methods depend on their arguments alone. Then it does not matter who does a part, nor how often.
    """

    def wants(self, tick: int, rank: int, n: int) -> Mapping[int, Any] | None:
        """Return what a rank's part among `n` needs, by block; None if the stream ends before the tick."""

    def compute(self, tick: int, rank: int, n: int, values: Mapping[int, Any]) -> Mapping[int, Any]:
        """Return the updates of blocks, given their values at this tick."""
