"""Position: the number of passes and events that a run has completed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from onlineauto.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from onlineauto.engine.stream.counters import Count
    from onlineauto.features.block import Block


class Position(NamedTuple):
    """The state that a run needs, besides the model, to continue over the same input."""

    passes: int = 0  # Number of completed passes.
    events: int = 0  # Number of events completed in the current pass, including held-out ones.
    # Counts of the held-out events, if any; see `onlineauto.engine.loop.holdout.Holdout`.
    held_out: Mapping[str, Count] | None = None
    # The position in a source that defines positions, such as the file and the row of a dataset.
    at: Mapping[str, Any] | None = None

    def where(self) -> Mapping[str, Any]:
        """Return the position in a source, for `EventSource.seek`."""
        return self.at if self.at is not None else {"events": self.events}


def skip_events(n: int, blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield the blocks without their first `n` events."""
    remaining = n
    for block in blocks:
        skipped = min(remaining, len(block))
        remaining -= skipped
        if not skipped or skipped < len(block):
            yield block.tail(skipped)
    if remaining:
        raise InputError(
            f"the input has {n - remaining} events, but the resumed run had completed {n}: "
            "is it another input?"
        )


def split_every(every: int, blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield the blocks, split so that one ends after every `every` events."""
    remaining = every
    for block in blocks:
        rest = block
        while len(rest) > remaining:
            yield rest.head(remaining)
            rest, remaining = rest.tail(remaining), every
        yield rest
        remaining = remaining - len(rest) or every
