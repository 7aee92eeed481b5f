"""Position: the number of passes and events that a run has completed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from onlineauto.engine.stream.source import can_be_read_again
from onlineauto.errors import InputError
from onlineauto.features.block import Namespaces
from onlineauto.formats.lines.diagnostics import Diagnostics
from onlineauto.formats.lines.event_source import EventSource
from onlineauto.formats.sources.source import name_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping

    from onlineauto.engine.stream.counters import Count
    from onlineauto.engine.stream.source import BlockSource, Sources
    from onlineauto.features.block import Block
    from onlineauto.formats.lines.event_source import EventReader, EventRules
    from onlineauto.options import Configuration


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


class PositionedBlocks:
    """An `EventSource` made from any source: its position is the number of events, which are read again."""

    def __init__(self, source: Sources, configuration: Configuration, read: BlockSource) -> None:
        self._source, self._configuration, self._read = source, configuration, read
        self._inner = source if isinstance(source, EventSource) else None
        self.name = "<events>"
        if self._inner is not None:
            self.name = self._inner.name
        elif source is None or isinstance(source, str | bytes | os.PathLike):
            self.name = name_of(source)
        self.events_before = 0

    @property
    def can_be_read_again(self) -> bool:
        """True if a second pass gives the same events."""
        return can_be_read_again(self._source)

    def seek(self, position: Mapping[str, Any] | None) -> None:
        """Set the position from which the next reader begins; None is the beginning."""
        self.events_before = 0 if position is None else position["events"]
        if self._inner is not None:
            self._inner.seek(None if position == {"events": 0} else position)

    def open(self, rules: EventRules, found: Diagnostics | None = None) -> EventReader:  # noqa: ARG002
        """Return a reader of the events from the position on; the rules are taken from the options."""
        return _PositionedReader(self, Diagnostics() if found is None else found)

    def blocks(self, problems: Diagnostics) -> Iterator[Block]:
        """Yield the blocks from the position on."""
        blocks = iter(self._read(self._source, self._configuration, problems))
        skipped = 0 if self._inner is not None else self.events_before
        return skip_events(skipped, blocks) if skipped else blocks

    def position(self, events: int) -> dict[str, Any]:
        """Return the position after a number of events of this pass."""
        return {"events": events} if self._inner is None else self._inner.position(events)


class _PositionedReader:
    """Reads the blocks of `PositionedBlocks`; can be iterated once."""

    def __init__(self, source: PositionedBlocks, problems: Diagnostics) -> None:
        self.name, self.namespaces, self.diagnostics = source.name, Namespaces(), problems
        self._source = source

    def __iter__(self) -> Iterator[Block]:
        """Yield the blocks."""
        return self.blocks()

    def blocks(self) -> Generator[Block]:
        """Yield the blocks, from a generator that must be closed if it is not exhausted."""
        for block in self._source.blocks(self.diagnostics):
            self.namespaces = block.namespaces
            yield block
