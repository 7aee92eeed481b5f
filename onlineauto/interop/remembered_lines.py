"""``RememberedLines``: a source whose lines can be read again while it is being parsed."""

from __future__ import annotations

import io
from collections import deque
from typing import TYPE_CHECKING

from onlineauto.formats.sources.source import ByteSource

if TYPE_CHECKING:
    from onlineauto.formats.sources.source import Source


class RememberedLines(io.BufferedIOBase):
    """A binary file over a source; it stores the lines read until a later line is requested."""

    def __init__(self, source: Source | ByteSource) -> None:
        self._source = source if isinstance(source, ByteSource) else ByteSource(source)
        self.name = self._source.name
        self._number = 1  # number of the first stored line
        self._lines: deque[bytes] = deque()
        self._rest = b""

    def readable(self) -> bool:
        """Return True: the file can be read."""
        return True

    def read1(self, size: int = -1, /) -> bytes:
        """Return up to `size` bytes."""
        data = self._source.read(size if size >= 0 else io.DEFAULT_BUFFER_SIZE)
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._lines.extend(lines)
        return data

    def close(self) -> None:
        """Close the source if this object opened it."""
        self._source.close()
        super().close()

    def text(self, number: int) -> str:
        """Return the line with this number; drop the lines before it."""
        while self._number < number:
            self._lines.popleft()
            self._number += 1
        line = self._lines[0] if self._lines else self._rest
        return line.decode("utf-8", "surrogateescape")
