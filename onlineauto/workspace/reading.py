"""Reading without learning: ``onlineauto.read``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.engine.stream.source import open_source
from onlineauto.features.event import events
from onlineauto.workspace.options import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Unpack

    from onlineauto.features.block import Block
    from onlineauto.features.event import Event
    from onlineauto.formats.lines.diagnostics import Diagnostics
    from onlineauto.formats.sources.source import Source
    from onlineauto.workspace.option_types import Options


class Reading:
    """The blocks of a source, from `read`. One thread can iterate them once."""

    def __init__(self, source: Source, **options: Unpack[Options]) -> None:
        self._reader = open_source(source, REGISTRY.from_keywords(**options))

    @property
    def diagnostics(self) -> Diagnostics:
        """Problems with lines so far."""
        return self._reader.diagnostics

    def __iter__(self) -> Iterator[Block]:
        """Yield the blocks."""
        return iter(self._reader)

    def events(self) -> Iterator[Event]:
        """Yield the events one by one, as Python values."""
        for block in self:
            yield from events(block)


def read(source: Source, **options: Unpack[Options]) -> Reading:
    r"""Return a reading of VW text, JSON or a file of blocks, to iterate by block or by event.

    Parameters
    ----------
    source : path, bytes, binary file or None
        ``"-"`` and None are standard input; gzip, zstd and files of blocks are recognised.
    **options
        Options as on the command line; ``cb_adf`` and the like determine the format of labels and events.

    Returns
    -------
    Reading
        Iterating it yields `Block`, its ``events()`` yields `Event`.

    Raises
    ------
    InputError
        The source cannot be read.
    OptionError
        An option is unknown or out of range.

    Examples
    --------
    >>> text = b"shared |u tom\n0:-1:0.5 |a politics\n|a sports\n"
    >>> [event] = read(text, cb_adf=True).events()
    >>> event.actions[0].costs
    ((0, -1.0, 0.5),)
    """
    return Reading(source, **options)
