"""FirstLines: the first lines of a source, as VW's ``--examples`` counts them, even within an event."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from onlineauto.formats.sources.source import opened

if TYPE_CHECKING:
    from onlineauto.formats.sources.source import ByteSource, Source


class FirstLines(io.BufferedIOBase):
    r"""A binary file of the first `n` lines of a source; empty lines count too.

    Examples
    --------
    >>> file = FirstLines(b"a\nb\nc\n", 2)
    >>> b"".join(iter(file.read1, b""))
    b'a\nb\n'

    Raises
    ------
    InputError
        The source cannot be opened, or read.
    """

    def __init__(self, source: Source | ByteSource, n: int) -> None:
        self._bytes = opened(source)
        self.name = self._bytes.name
        self._left = n

    def readable(self) -> bool:
        """Return True: the file can be read."""
        return True

    def close(self) -> None:
        """Close the file and its source; garbage collection does the same."""
        self._bytes.close()
        super().close()

    def read1(self, size: int = -1, /) -> bytes:
        """Return up to `size` bytes, none after the last of the lines."""
        if self._left <= 0:
            self._bytes.close()
            return b""
        data = self._bytes.read(size if size >= 0 else io.DEFAULT_BUFFER_SIZE)
        lines = data.count(b"\n")
        if lines >= self._left:
            data = _cut(data, self._left)
        self._left -= lines
        return data


def _cut(data: bytes, n: int) -> bytes:
    """Return the first `n` lines of `data`, which has at least that many."""
    end = 0
    for _ in range(n):
        end = data.index(b"\n", end) + 1
    return data[:end]
