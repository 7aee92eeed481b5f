"""Sources of bytes: a file, standard input, bytes or an open binary file; gzip or not."""

from __future__ import annotations

import io
import os
import sys
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING

from onlineauto.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ByteSource", "Source"]

Source = str | os.PathLike[str] | bytes | IO[bytes] | None
"""A path, ``"-"`` or None for standard input, the text itself as bytes, or an open binary file."""

_GZIP_MAGIC = b"\x1f\x8b"
_GZIP = 31  # zlib's name for the gzip container
_CHUNK = 1 << 16


class ByteSource:
    """A stream of bytes, unpacked if it is gzip.

    Parameters
    ----------
    source : path, bytes, binary file or None
        ``"-"`` and None are standard input. A file that was open already is left open.
    name : str, optional
        Its name in messages; the path by default.

    Attributes
    ----------
    name : str
        Its name in messages.

    Raises
    ------
    InputError
        There is no such file, or it cannot be opened.
    """

    def __init__(self, source: Source, *, name: str | None = None) -> None:
        self._owned: IO[bytes] | None = None
        file = self._open(source)
        self.name = name if name is not None else _name(source)
        self._read_some: Callable[[int], bytes | None] = getattr(file, "read1", None) or file.read
        self._begun = False
        self._ahead = b""
        self._gunzip: _Gunzip | None = None

    def _open(self, source: Source) -> IO[bytes]:
        if source is None or source == "-":
            return sys.stdin.buffer
        if isinstance(source, bytes):
            return io.BytesIO(source)
        if not isinstance(source, str | os.PathLike):
            return source
        try:
            self._owned = Path(source).open("rb", buffering=0)  # noqa: SIM115 (closed by close)
        except OSError as error:
            raise InputError(f"{os.fspath(source)}: {_reason(error)}") from error
        return self._owned

    def _begin(self) -> None:
        """Find out from the first two bytes whether this is gzip."""
        self._begun = True
        while len(self._ahead) < len(_GZIP_MAGIC):
            more = self._read_raw(len(_GZIP_MAGIC) - len(self._ahead))
            if not more:
                break
            self._ahead += more
        if self._ahead == _GZIP_MAGIC:
            self._gunzip = _Gunzip()

    def _read_raw(self, size: int) -> bytes:
        try:
            return self._read_some(size) or b""
        except OSError as error:
            raise InputError(_reason(error)) from error

    def read(self, size: int) -> bytes:
        """Read up to `size` bytes, as soon as there are some; none is the end.

        Raises
        ------
        InputError
            The bytes cannot be read, or are no gzip after all; the message says why, not where.
        """
        if not self._begun:
            self._begin()
        if self._ahead and self._gunzip is None:
            ahead, self._ahead = self._ahead[:size], self._ahead[size:]
            return ahead
        if self._gunzip is None:
            return self._read_raw(size)
        while True:
            data = self._gunzip.take(size)
            if data:
                return data
            packed = self._ahead or self._read_raw(_CHUNK)
            self._ahead = b""
            if not packed:
                self._gunzip.end()
                return b""
            self._gunzip.give(packed)

    def close(self) -> None:
        """Close the file, if it was opened here; nothing more is read."""
        self._begun, self._ahead, self._gunzip = True, b"", None
        self._read_some = lambda _: b""
        if self._owned is not None:
            self._owned.close()


class _Gunzip:
    """Members of a gzip stream, unpacked one after the other as their bytes come."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP)
        self._packed = b""
        self._begun = False
        self._error: InputError | None = None
        self._salvaged = b""  # what comes before the error

    def give(self, packed: bytes) -> None:
        """Hand over bytes to unpack."""
        self._packed += packed

    def take(self, size: int) -> bytes:
        """Unpack at most `size` bytes; none if more are needed first."""
        while self._packed and self._error is None:
            if not self._begun and not self._skip_padding():
                break
            data = self._unpack(size)
            if data:
                return data
        if self._begun and self._error is None and (held := self._member.decompress(b"", size)):
            return held  # which it took in with the last bytes, for which there was no room
        data, self._salvaged = self._salvaged[:size], self._salvaged[size:]
        if not data and self._error is not None:
            raise self._error
        return data

    def _unpack(self, size: int) -> bytes:
        before = self._member.copy()
        try:
            data = self._member.decompress(self._packed, size)
        except zlib.error as error:
            self._error = InputError(f"the gzip data are damaged ({error})")
            self._salvaged = _salvage(before, self._packed)
            return b""
        self._begun = True
        self._packed = self._member.unconsumed_tail
        if self._member.eof:
            self._packed = self._member.unused_data
            self._member = zlib.decompressobj(_GZIP)
            self._begun = False
        return data

    def _skip_padding(self) -> bool:
        """Drop zeros between members; whether anything is left."""
        self._packed = self._packed.lstrip(b"\0")
        return bool(self._packed)

    def end(self) -> None:
        """No more bytes come: complain if a member is not complete."""
        if self._begun:
            raise InputError("the gzip data end too early: the file is truncated")


def _salvage(member: zlib._Decompress, packed: bytes) -> bytes:
    """Unpack up to the byte that is wrong."""
    data = b""
    try:
        for i in range(len(packed)):
            data += member.decompress(packed[i : i + 1])
    except zlib.error:
        pass
    return data


def _name(source: Source) -> str:
    if source is None or source == "-":
        return "<stdin>"
    if isinstance(source, bytes):
        return "<bytes>"
    if isinstance(source, str | os.PathLike):
        return os.fspath(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "<file>"


def _reason(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, IsADirectoryError):
        return "is a directory, not a file of events"
    if isinstance(error, PermissionError):
        return "may not be read"
    return error.strerror or str(error)
