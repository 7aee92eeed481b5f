"""Contracts between the protocol and the model: a block on a server, and the work of a worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Shard(Protocol):
    """A block on a server."""

    def read(self, keys: Any) -> Any:
        """Return the values of keys now, as a copy that does not change with the block."""

    def read_before(self, keys: Any) -> Any:
        """Return the values of keys before the last `apply`."""

    def apply(self, updates: Sequence[Any]) -> None:
        """Apply the updates of one tick, in order of rank."""

    def dump(self) -> Any:
        """Return a copy of the whole block, for `Shards.load`."""


class Shards(Protocol):
    """Creates blocks."""

    def make(self, block: int) -> Shard:
        """Return a block before the first event."""

    def load(self, block: int, payload: Any) -> Shard:
        """Return the block from the result of `Shard.dump`."""


class PartWork(Protocol):
    """The work of a worker: the values of blocks that a part needs, and the updates that it computes.

    Both methods depend only on their arguments, so any worker may do a part, and more than once.
    """

    def needed_keys(self, tick: int, rank: int, n: int) -> Mapping[int, Any] | None:
        """Return the keys that worker `rank` of `n` needs at a tick, by block; None after the last tick."""

    def compute(self, tick: int, rank: int, n: int, values: Mapping[int, Any]) -> Mapping[int, Any]:
        """Return the updates of blocks from their values at this tick."""
