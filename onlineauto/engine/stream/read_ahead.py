"""Read ahead: a thread reads the next block while the caller works on the previous one."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from onlineauto.formats.lines.diagnostics import Diagnostics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onlineauto.features.block import Block
    from onlineauto.formats.lines.event_source import EventReader
    from onlineauto.formats.sources.source import Source

_SMALL = 1 << 18
"""Number of bytes below which reading is faster than starting a thread."""


class _Step(NamedTuple):
    """One step of reading: a block, or None at the end or after an error; and its diagnostics."""

    block: Block | None
    found: Diagnostics
    error: Exception | None


def saves_time(source: Source) -> bool:
    """Return whether reading ahead saves time: the source is a large file, or many bytes, and not a pipe."""
    if isinstance(source, bytes):
        return len(source) > _SMALL
    if not isinstance(source, str | os.PathLike) or source == "-" or not os.path.isfile(source):  # noqa: PTH113
        return False
    return os.path.getsize(source) > _SMALL  # noqa: PTH202 - a path may be text


def read_ahead(reader: EventReader) -> Iterator[Block]:
    """Yield the blocks of a reader, read by a thread that is one block ahead, after their problems."""
    diagnostics, blocks = reader.diagnostics, reader.blocks()

    def step() -> _Step:
        reader.diagnostics = problems = Diagnostics()
        try:
            return _Step(next(blocks, None), problems, None)
        except Exception as error:  # The error is raised in the caller that waits for the block.
            return _Step(None, problems, error)

    try:
        with ThreadPoolExecutor(1, thread_name_prefix="onlineauto-read") as thread:
            ahead = thread.submit(step)
            while True:
                block, problems, error = ahead.result()
                if block is not None:
                    ahead = thread.submit(step)
                diagnostics.add(problems)
                if error is not None:
                    raise error
                if block is None:
                    return
                yield block
    finally:
        reader.diagnostics = diagnostics
        blocks.close()
