"""Events from Python as a binary file, so that they are read as any other."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["EventFile"]


class EventFile(io.BufferedIOBase):
    r"""Binary file of the texts of events, one after the other.

    Parameters
    ----------
    texts : iterator of str or bytes
        One event each, of as many lines as it has.
    multiline : bool
        Whether an empty line has to end each event.

    Examples
    --------
    >>> EventFile(iter(["1 |a x", b"0 |a y"]), multiline=False).read1(100)
    b'1 |a x\n'

    Raises
    ------
    TypeError
        From reading: one of them is not text.
    """

    def __init__(self, texts: Iterator[str | bytes], *, multiline: bool) -> None:
        self.name = "<events>"
        self._texts = texts
        self._end = b"\n\n" if multiline else b"\n"
        self._rest = b""

    def readable(self) -> bool:
        """Say that this is to read from."""
        return True

    def read1(self, size: int = -1, /) -> bytes:
        """Read up to `size` bytes, of one event at the most."""
        if not self._rest:
            self._rest = self._next()
        n = size if size >= 0 else len(self._rest)
        data, self._rest = self._rest[:n], self._rest[n:]
        return data

    def _next(self) -> bytes:
        for text in self._texts:
            if not isinstance(text, str | bytes):
                raise TypeError(f"an event is text (str or bytes) or a Block, not {type(text).__name__}")
            data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
            return data.rstrip(b"\r\n") + self._end
        return b""
