"""EventReader: what a reader of any format is to those who take its blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from onlineauto.features.block import Block
    from onlineauto.features.namespaces import Namespaces
    from onlineauto.formats.lines.diagnostics import Diagnostics

__all__ = ["EventReader"]


class EventReader(Protocol):
    """Reads events in blocks; gone through once.

    Attributes
    ----------
    name : str
        Name of the source in messages.
    namespaces : Namespaces
        Names met so far, shared by all blocks.
    diagnostics : Diagnostics
        What was wrong with the input so far.
    """

    name: str
    namespaces: Namespaces
    diagnostics: Diagnostics

    def __iter__(self) -> Iterator[Block]:
        """Yield the blocks."""

    def blocks(self) -> Generator[Block]:
        """Yield the same; to be closed, if it is not gone through to the end."""
