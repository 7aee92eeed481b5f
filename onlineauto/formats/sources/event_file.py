"""EventFile: events from Python as a binary file, which the readers of text can read."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from onlineauto.errors import EventTypeError

if TYPE_CHECKING:
    from collections.abc import Iterator


class EventFile(io.BufferedIOBase):
    r"""A binary file that consists of the texts of events, one after the other.

    Parameters
    ----------
    texts : iterator of str or bytes
        One event each, with all its lines.
    multiline : bool
        Whether an empty line must end each event.
    name : str
        Name of the file in messages.

    Examples
    --------
    >>> EventFile(iter(["1 |a x", b"0 |a y"]), multiline=False).read1(100)
    b'1 |a x\n'

    Raises
    ------
    TypeError
        One of the texts is neither str nor bytes. Raised by reading.
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
        """Return the text of the next event with its end, empty if there is none."""
        for text in self._texts:
            if not isinstance(text, str | bytes):
                raise EventTypeError(f"an event is text (str or bytes) or a Block, not {type(text).__name__}")
            data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
            return data.rstrip(b"\r\n") + self._end
        return b""
