"""Read and learn at once: the next block is read while the caller is busy with the last one."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from onlineauto.formats.lines.diagnostics import Diagnostics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onlineauto.features.block import Block
    from onlineauto.formats.lines.event_reader import EventReader
    from onlineauto.formats.sources.source import Source

__all__ = ["pays", "read_ahead"]

_SMALL = 1 << 18
"""Bytes that are read in less time than it takes to start a thread for them."""


class _Step(NamedTuple):
    """What reading on gave: a block, or why there is none; and what was wrong with the input meanwhile."""

    block: Block | None
    found: Diagnostics
    error: Exception | None


def pays(source: Source) -> bool:
    """Whether a source is large, and never keeps its reader waiting."""
    if isinstance(source, bytes):
        return len(source) > _SMALL
    if not isinstance(source, str | os.PathLike) or source == "-" or not os.path.isfile(source):  # noqa: PTH113
        return False
    return os.path.getsize(source) > _SMALL  # noqa: PTH202 - a path may be text


def read_ahead(reader: EventReader) -> Iterator[Block]:
    """Yield the blocks of a reader, read by a thread that is one block ahead.

    What is wrong with lines is reported with the block that follows them, as without the thread. All that
    this changes is when things happen: nothing depends on it.
    """
    diagnostics, blocks = reader.diagnostics, reader.blocks()

    def step() -> _Step:
        reader.diagnostics = found = Diagnostics()
        try:
            return _Step(next(blocks, None), found, None)
        except Exception as error:  # to be raised by whoever waits for the block
            return _Step(None, found, error)

    try:
        with ThreadPoolExecutor(1, thread_name_prefix="onlineauto-read") as thread:
            ahead = thread.submit(step)
            while True:
                block, found, error = ahead.result()
                if block is not None:
                    ahead = thread.submit(step)
                diagnostics.add(found)
                if error is not None:
                    raise error
                if block is None:
                    return
                yield block
    finally:
        reader.diagnostics = diagnostics
        blocks.close()
