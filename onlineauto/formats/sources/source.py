"""ByteSource: bytes from a path, standard input, bytes or an open binary file, decompressed if necessary."""

from __future__ import annotations

import io
import os
import stat
import sys
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol

from onlineauto.errors import EventTypeError, InputError, install_hint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE_MAGICS = tuple(bytes([first]) + b"\x2a\x4d\x18" for first in range(0x50, 0x60))
"""A zstd file may begin with a skippable frame: ``pzstd`` writes one."""
_GZIP = 31  # zlib's `wbits` for the gzip container


class Unpacker(Protocol):
    """A consumer of packed bytes that produces unpacked ones."""

    def give(self, packed: bytes) -> None:
        """Append packed bytes to the input."""

    def take(self, size: int) -> bytes:
        """Return at most `size` unpacked bytes; none if more packed bytes are needed first."""

    def end(self) -> None:
        """End the input; raise an error if it is incomplete."""


def may_be_packed(begin: bytes) -> bool:
    """Return whether bytes are an incomplete prefix of a format's magic."""
    magics = (_GZIP_MAGIC, _ZSTD_MAGIC, *_SKIPPABLE_MAGICS)
    return any(magic.startswith(begin) and magic != begin for magic in magics)


def unpacker_for(begin: bytes) -> Unpacker | None:
    """Return the unpacker for a source with these first bytes, None if it is not packed.

    >>> unpacker_for(b"1 |a x") is None
    True
    """
    if begin.startswith(_GZIP_MAGIC):
        return _Gunzip()
    if begin.startswith((_ZSTD_MAGIC, *_SKIPPABLE_MAGICS)):
        try:
            from onlineauto.formats.sources.unzstd import Unzstd
        except ImportError:
            raise InputError(f"zstd needs a package: {install_hint('zstd')}") from None
        return Unzstd()
    return None


class _Gunzip:
    """An unpacker of gzip streams, which consist of one or more members."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP)
        self._packed = b""
        self._begun = False
        self._error: InputError | None = None
        self._salvaged = b""  # the bytes before the error

    def give(self, packed: bytes) -> None:
        self._packed += packed

    def take(self, size: int) -> bytes:
        while self._packed and self._error is None:
            if not self._begun:
                self._packed = self._packed.lstrip(b"\0")  # zeros between members
                if not self._packed:
                    break
            data = self._unpack(size)
            if data:
                return data
        if self._begun and self._error is None and (rest := self._member.decompress(b"", size)):
            return rest  # output of the decompressor from an earlier call that exceeded `size`
        data, self._salvaged = self._salvaged[:size], self._salvaged[size:]
        if not data and self._error is not None:
            raise self._error
        return data

    def _unpack(self, size: int) -> bytes:
        """Return at most `size` bytes of the current member; store an error to raise it later."""
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

    def end(self) -> None:
        if self._begun:
            raise InputError("the gzip data end too early: the file is truncated")


def _salvage(member: zlib._Decompress, packed: bytes) -> bytes:
    """Return the unpacked bytes before the first damaged byte."""
    data = b""
    try:
        for i in range(len(packed)):
            data += member.decompress(packed[i : i + 1])
    except zlib.error:
        pass
    return data


class SingleCaller:
    """A context manager that one caller at a time can enter, in any thread; it rejects others. Can be copied.

    >>> turn = SingleCaller("events.txt")
    >>> with turn, turn:
    ...     pass
    Traceback (most recent call last):
    onlineauto.errors.InputError: events.txt: it is being read already; open it once for each reader
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._free = [name]

    def __enter__(self) -> None:
        try:
            self._free.pop()  # atomic: only one thread succeeds
        except IndexError:
            raise InputError(
                f"{self._name}: it is being read already; open it once for each reader"
            ) from None

    def __exit__(self, *_: object) -> None:
        self._free.append(self._name)


Source = str | os.PathLike[str] | bytes | IO[bytes] | None
"""A path, ``"-"`` or None for standard input, the text itself as bytes, or an open binary file."""

_CHUNK = 1 << 16


class ByteSource:
    """A stream of bytes, decompressed if it is gzip or zstd."""

    def __init__(self, source: Source, *, name: str | None = None) -> None:
        self._owned: IO[bytes] | None = None
        file = self._open(source)
        self.name = name if name is not None else name_of(source)
        self._read_some: Callable[[int], bytes | None] = getattr(file, "read1", None) or file.read
        self._begun = False
        self._ahead = b""
        self._unpacker: Unpacker | None = None
        self._peeked = b""
        self._failure: InputError | None = None

    def _open(self, source: Source) -> IO[bytes]:
        """Return the binary file of a source, opened if it is a path."""
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
        """Detect compression from the first bytes, reading no more bytes than necessary."""
        self._begun = True
        while may_be_packed(self._ahead):
            more = self._read_raw(1)
            if not more:
                break
            self._ahead += more
        self._unpacker = unpacker_for(self._ahead)

    def _read_raw(self, size: int) -> bytes:
        try:
            return self._read_some(size) or b""
        except OSError as error:
            raise InputError(_reason(error)) from error

    def begins_with(self, magic: bytes) -> bool:
        """Return whether the unpacked bytes begin with `magic`, without consuming them or reading more.

        >>> source = ByteSource(b"1 |a x")
        >>> source.begins_with(b"1 |"), source.read(3), source.read(3)
        (True, b'1 |', b'a x')
        """
        try:
            while len(self._peeked) < len(magic) and magic.startswith(self._peeked):
                more = self._next(len(magic) - len(self._peeked))
                if not more:
                    break
                self._peeked += more
        except InputError as error:  # `read` raises the error later, at its position
            self._failure = error
        return self._peeked.startswith(magic)

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes, as soon as there are some; none at the end.

        Raise `InputError` with the reason, but no position, if the bytes cannot be read or unpacked.
        """
        if self._peeked:
            data, self._peeked = self._peeked[:size], self._peeked[size:]
            return data
        if self._failure is not None:
            raise self._failure
        return self._next(size)

    def _next(self, size: int) -> bytes:
        """Return up to `size` unpacked bytes as soon as there are some; none at the end."""
        if not self._begun:
            self._begin()
        if self._unpacker is None:
            if not self._ahead:
                return self._read_raw(size)
            data, self._ahead = self._ahead[:size], self._ahead[size:]
            return data
        while True:
            data = self._unpacker.take(size)
            if data:
                return data
            packed = self._ahead or self._read_raw(_CHUNK)
            self._ahead = b""
            if not packed:
                self._unpacker.end()
                return b""
            self._unpacker.give(packed)

    def plain_file(self) -> int | None:
        """Return the descriptor of an uncompressed regular file that this source has opened, else None."""
        if not self._begun:
            self.begins_with(b"\0")
        if self._owned is None or self._unpacker is not None:
            return None
        descriptor = self._owned.fileno()
        return descriptor if stat.S_ISREG(os.fstat(descriptor).st_mode) else None

    def close(self) -> None:
        """Close the file if this source has opened it; nothing more can be read."""
        self._begun, self._ahead, self._peeked = True, b"", b""
        self._unpacker = self._failure = None
        self._read_some = lambda _: b""
        if self._owned is not None:
            self._owned.close()


def as_byte_source(source: Source | ByteSource, *, name: str | None = None) -> ByteSource:
    """Return a source as a `ByteSource`; open it if necessary."""
    return source if isinstance(source, ByteSource) else ByteSource(source, name=name)


def name_of(source: Source) -> str:
    """Return the name of a source in messages."""
    if source is None or source == "-":
        return "<stdin>"
    if isinstance(source, bytes):
        return "<bytes>"
    if isinstance(source, str | os.PathLike):
        return os.fspath(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "<file>"


def _reason(error: OSError) -> str:
    """Return the reason why a file cannot be read, for messages."""
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, IsADirectoryError):
        return "is a directory, not a file of events"
    if isinstance(error, PermissionError):
        return "may not be read"
    return error.strerror or str(error)


class EventFile(io.BufferedIOBase):
    r"""A binary file that consists of the texts of events.

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
            data = b"\n".join(data.split(b"\n", self._left)[: self._left]) + b"\n"
        self._left -= lines
        return data
