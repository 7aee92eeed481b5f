"""``events_of``: count or estimate the events of a stream without reading all of it."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from onlineauto.engine.stream.source import can_be_read_again
from onlineauto.formats.sources.source import ByteSource

if TYPE_CHECKING:
    from onlineauto.cluster.elastic.running.recipe import Recipe

_SOME: Final = 1 << 22
"""Number of bytes at the beginning of a stream from which its events are estimated."""


def events_of(recipe: Recipe) -> tuple[int, bool] | None:
    """Return the number of events of the stream of a recipe, and whether this number is exact.

    The events of the first 4 MB are counted, and extrapolated to the size of the stream. None if the stream
    is compressed, or its size is unknown.

    Raises
    ------
    InputError
        The stream cannot be read.
    """
    if not can_be_read_again(recipe.source):
        return None
    source, some = ByteSource(recipe.source), b""
    try:
        descriptor = source.plain_file()
        while len(some) < _SOME and (more := source.read(_SOME - len(some))):
            some += more
        if descriptor is not None:
            size = os.fstat(descriptor).st_size
        elif isinstance(recipe.source, bytes) and recipe.source.startswith(some):
            size = len(recipe.source)
        else:
            return None
    finally:
        source.close()
    counted = replace(recipe, source=some).feed(2**62).count()
    return (counted, True) if len(some) >= size else (round(counted * size / len(some)), False)
