"""Binary files for the readers of text: events from Python, and the first lines of a source."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from onlineauto.errors import EventTypeError
from onlineauto.formats.sources.source import as_byte_source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onlineauto.formats.sources.source import ByteSource, Source


class EventFile(io.BufferedIOBase):
    r"""A binary file that consists of the texts of events.

    Examples
    --------
    >>> EventFile(iter(["1 |a x", b"0 |a y"]), multiline=False).read1(100)
    b'1 |a x\n'
    """

    def __init__(self, texts: Iterator[str | bytes], *, multiline: bool, name: str = "<events>") -> None:
        self.name = name
        self._texts = texts
        self._end = b"\n\n" if multiline else b"\n"
        self._rest = b""

    def readable(self) -> bool:
        """Return True: the file can be read."""
        return True

    def read1(self, size: int = -1, /) -> bytes:
        """Return up to `size` bytes, of at most one event."""
        if not self._rest:
            self._rest = self._next()
        n = size if size >= 0 else len(self._rest)
        data, self._rest = self._rest[:n], self._rest[n:]
        return data

    def _next(self) -> bytes:
        """Return the text of the next event with its final newlines; empty after the last event."""
        for text in self._texts:
            if not isinstance(text, str | bytes):
                raise EventTypeError(f"an event is text (str or bytes) or a Block, not {type(text).__name__}")
            data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
            return data.rstrip(b"\r\n") + self._end
        return b""


class FirstLines(io.BufferedIOBase):
    r"""A binary file of the first `n` lines of a source; empty lines count too.

    Examples
    --------
    >>> file = FirstLines(b"a\nb\nc\n", 2)
    >>> b"".join(iter(file.read1, b""))
    b'a\nb\n'
    """

    def __init__(self, source: Source | ByteSource, n: int) -> None:
        self._bytes = as_byte_source(source)
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
        """Return up to `size` bytes; none after the last line."""
        if self._left <= 0:
            self._bytes.close()
            return b""
        data = self._bytes.read(size if size >= 0 else io.DEFAULT_BUFFER_SIZE)
        lines = data.count(b"\n")
        if lines >= self._left:
            data = _first_lines(data, self._left)
        self._left -= lines
        return data


def _first_lines(data: bytes, n: int) -> bytes:
    """Return the first `n` lines of `data`, which has at least that many."""
    end = 0
    for _ in range(n):
        end = data.index(b"\n", end) + 1
    return data[:end]
