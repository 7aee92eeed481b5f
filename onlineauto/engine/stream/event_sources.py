"""Sources of events by position: datasets, and all other sources by the number of their events."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from onlineauto.engine.stream.position import behind
from onlineauto.errors import InputError
from onlineauto.formats.lines.event_source import EventSource
from onlineauto.formats.options import InputOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onlineauto.engine.stream.position import Position
    from onlineauto.features.block import Block
    from onlineauto.formats.lines.diagnostics import Diagnostics
    from onlineauto.options import Configuration

__all__ = ["BlocksByPosition", "with_datasets"]


def with_datasets(source: Any, configuration: Configuration) -> Any:
    """Return a source; as a `DatasetSource` if it is a path of Parquet, or several of them.

    Raises
    ------
    InputError
        Some of several paths are of Parquet and some are not.
    """
    if isinstance(source, EventSource):
        return source
    from onlineauto.formats.datasets.files import is_dataset

    if isinstance(source, list | tuple):
        paths = [each for each in source if isinstance(each, os.PathLike)]  # texts are events, not paths
        found = [is_dataset(each) for each in paths] if len(paths) == len(source) else []
    else:
        found = [is_dataset(source)]
    if not any(found):
        return source
    if not all(found):
        raise InputError("some of the files are Parquet and some are not: read them in two runs")
    from onlineauto.formats.datasets.dataset_source import DatasetSource

    return DatasetSource(source, configuration[InputOptions].columns)


class BlocksByPosition:
    """The blocks of any source, from a position on.

    A position in a file of text, JSON or blocks, or in an iterable, is the number of events before it. These
    are read again. An `EventSource` is read from its own position.

    Parameters
    ----------
    source : Sources
    read : BlockSource
        Reads the blocks of the source.
    """

    def __init__(self, source: Any, read: Any) -> None:
        self._source, self._read, self._skipped = source, read, 0

    def seek(self, position: Position) -> None:
        """Let the next blocks begin at a position of a pass."""
        if not isinstance(self._source, EventSource):
            self._skipped = position.events
        else:
            self._source.seek((position.at or {}) if position.events else None)

    def blocks(self, configuration: Configuration, found: Diagnostics) -> Iterator[Block]:
        """Yield the blocks from the position on.

        Raises
        ------
        InputError
            There are fewer events than before the position.
        """
        blocks = iter(self._read(self._source, configuration, found))
        return behind(self._skipped, blocks) if self._skipped else blocks
