"""EventReader: the interface of the readers of all formats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from onlineauto.features.block import Block
    from onlineauto.features.namespaces import Namespaces
    from onlineauto.formats.lines.diagnostics import Diagnostics


class EventReader(Protocol):
    """A reader of events in blocks; can be iterated once.

    Attributes
    ----------
    name : str
        Name of the source in messages.
    namespaces : Namespaces
        Names seen so far, shared by all blocks.
    diagnostics : Diagnostics
        Problems found so far.
    """

    name: str
    namespaces: Namespaces
    diagnostics: Diagnostics

    def __iter__(self) -> Iterator[Block]:
        """Yield the blocks."""

    def blocks(self) -> Generator[Block]:
        """Yield the blocks, from a generator that must be closed if it is not exhausted."""
