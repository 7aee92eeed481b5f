"""Events of plain VW text, found without being parsed: a worker reads its part of a file itself.

The coordinator only looks for the lines that end events. What a worker reads must be as it was when the
events were counted, without malformed lines, and without namespaces that the coordinator has not seen.
Otherwise the worker raises `UnexpectedEventsError`, and the coordinator parses the events and hands them
over, which locates problems and numbers namespaces in the order of the stream.
"""

from __future__ import annotations

import io
import os
import weakref
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from onlineauto.cluster.partitions.cutting import join_blocks
from onlineauto.engine.stream.dialect import NATIVE, dialect_of
from onlineauto.engine.stream.source import check_labels, kind_of, open_lines
from onlineauto.errors import InputError
from onlineauto.features.block import Block, Namespaces
from onlineauto.formats.blocks.file import BEGIN
from onlineauto.formats.lines.diagnostics import Diagnostics
from onlineauto.formats.lines.line_reader import LARGEST_EVENT
from onlineauto.formats.options import TEXT, InputOptions, format_of
from onlineauto.formats.sources.source import ByteSource

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from onlineauto.engine.stream.source import Sources
    from onlineauto.options import Configuration

_WINDOW = 1 << 18
"""Bytes in which ends of events are looked for at a time; they fit into a cache."""
_FEW, _PASSES = 64, 8
"""Blanks are skipped a byte at a time in all lines together; after some passes, in few lines, by line."""
_TAB, _NEWLINE, _RETURN, _BLANK = 9, 10, 13, 32
_SHORTER = "the file has become shorter while it was read"
_MARK = np.frombuffer(b"\xef\xbb\xbf", np.uint8)


class UnexpectedEventsError(InputError):
    """A part of a file is not what its coordinator expects, so the coordinator must read it."""


class TextPart(NamedTuple):
    """A part of a file: `n` events in the bytes [begin, end), after a number of lines."""

    path: str
    inode: int  # of the file
    size: int
    modified: int
    begin: int
    end: int
    line: int
    n: int


class EventRange(NamedTuple):
    """Consecutive events of a file: where they begin, and where each of them ends."""

    begin: int
    ends: NDArray[np.int64]

    def __len__(self) -> int:
        """Return the number of events."""
        return len(self.ends)

    def offset(self, event: int) -> int:
        """Return the offset at which an event begins, or at which the last one ends."""
        return int(self.ends[event - 1]) if event else self.begin


class TextFile:
    """A file of plain text, read from a position that can move back."""

    def __init__(self, path: str, configuration: Configuration, problems: Diagnostics) -> None:
        self.file, self._state = _opened(path)
        weakref.finalize(self, self.file.close)
        self._path = path
        self._configuration, self._problems = configuration, problems
        self._multiline = kind_of(configuration).endswith("adf")
        self.namespaces = Namespaces()
        self._at = self._scanned = self._lines = 0
        self._ends = np.zeros(0, np.int64)
        self._windows = [(0, 0)]  # positions, ascending, and the number of lines before each
        self._is_open = False  # whether an event has begun before the scanned position
        self._is_ended = False  # what is written later is not read

    def look_ahead(self, n: int, *, to_end: bool = False) -> None:
        """Find the ends of the next `n` events.

        If the file has fewer, `to_end` says whether it ends here, so that a last event is complete. Otherwise
        the rest of this event, and others, may be written until they are taken.
        """
        ends, left = [self._ends], n - len(self._ends)
        try:
            while left > 0 and not self._is_ended and (lines := self._lines_from(self._scanned)):
                ends.append(self._scan(lines))
                left -= len(ends[-1])
            if left > 0 and to_end and not self._is_ended:
                ends.append(self._end())
        finally:
            self._ends = np.concatenate(ends)

    def density(self) -> float:
        """Return the number of events per byte at the beginning of the file."""
        self.look_ahead(1, to_end=True)
        return (len(self._ends) + self._is_open) / max(self._scanned, 1)

    def take(self, n: int) -> EventRange:
        """Return the next `n` events, or those that are left, and move behind them.

        If fewer are left, the file ends here: like a reader, it does not follow a file that grows for ever.
        """
        try:
            self.look_ahead(n, to_end=True)
        except InputError:
            if not len(self._ends):
                raise
        stretch, self._ends = EventRange(self._at, self._ends[:n]), self._ends[n:]
        self._at = stretch.offset(len(stretch))
        return stretch

    def move_back(self, stretch: EventRange) -> None:
        """Move to the beginning of the events that were taken last."""
        self._at, self._ends = stretch.begin, np.concatenate([stretch.ends, self._ends])

    def read(self, n: int) -> list[Block]:
        """Parse the next `n` events, or those that are left; malformed ones are located and not counted.

        Raises
        ------
        InputError
            No event is left, and the file has become shorter, or is not text.
        """
        blocks: list[Block] = []
        try:
            while n > 0 and len(stretch := self.take(n)):
                part = self._part(stretch, 0, len(stretch))
                for block in read_part(self.file, part, self._configuration, self.namespaces, self._problems):
                    n -= len(block)
                    blocks.append(block)
        except InputError:
            if not blocks:
                raise
        return blocks

    def unread(self, stretch: EventRange, begin: int, end: int, seen: NDArray[np.bool_]) -> UnreadBlock:
        """Return the events [begin, end) of a stretch as a block that is not read yet."""
        part = self._part(stretch, begin, end)
        return UnreadBlock(part, self._configuration, self.namespaces, seen, source=self)

    def _part(self, stretch: EventRange, begin: int, end: int) -> TextPart:
        first, last = stretch.offset(begin), stretch.offset(end)
        while len(self._windows) > 1 and self._windows[1][0] <= stretch.begin:
            del self._windows[0]
        start, lines = next(window for window in reversed(self._windows) if window[0] <= first)
        lines += self._bytes(start, first).count(b"\n")
        state = self._state
        return TextPart(
            self._path, state.st_ino, state.st_size, state.st_mtime_ns, first, last, lines, end - begin
        )

    def _bytes(self, begin: int, end: int) -> bytes:
        self.file.seek(begin)
        data = self.file.read(end - begin)
        while len(data) < end - begin:
            if not (more := self.file.read(end - begin - len(data))):
                raise InputError(f"{self._path}: {_SHORTER}")
            data += more
        return data

    def _grow(self) -> int:
        """Return the size of the file, which may have grown."""
        state = os.fstat(self.file.fileno())
        if state.st_size < self._state.st_size:
            raise InputError(f"{self._path}: {_SHORTER}")
        self._state = state
        return state.st_size

    def _scan(self, data: bytes) -> NDArray[np.int64]:
        """Return the ends of the events that end in the next lines; the last line may have no newline."""
        begin = self._scanned
        text = np.frombuffer(data if data.endswith(b"\n") else data + b"\n", np.uint8)
        newline = text == _NEWLINE
        ends, self._is_open = find_events(text, newline, multiline=self._multiline, is_open=self._is_open)
        self._scanned = begin + len(data)
        self._lines += int(np.count_nonzero(newline[: len(data)]))
        self._windows.append((self._scanned, self._lines))
        return np.minimum(begin + ends, self._scanned)

    def _end(self) -> NDArray[np.int64]:
        """Return the ends of the events that the end of the file ends."""
        self._is_ended = True
        rest = self._bytes(self._scanned, self._state.st_size)
        ends = self._scan(rest) if rest else np.zeros(0, np.int64)
        if self._is_open:
            ends, self._is_open = np.append(ends, self._scanned), False
        return ends

    def _lines_from(self, begin: int) -> bytes:
        """Return whole lines from a position on, at least one; none if the next line has no newline yet."""
        size = _WINDOW
        while size <= LARGEST_EVENT:
            is_last = begin + size >= self._state.st_size and begin + size >= self._grow()
            data = self._bytes(begin, self._state.st_size if is_last else begin + size)
            cut = data.rfind(b"\n") + 1
            if cut or is_last:
                return data[:cut]
            size *= 2
        raise InputError(f"{self._path}: no event ends within {LARGEST_EVENT} bytes; is this text?")


def find_events(
    text: NDArray[np.uint8], newline: NDArray[np.bool_], *, multiline: bool, is_open: bool
) -> tuple[NDArray[np.int64], bool]:
    r"""Return where events of whole lines end, and whether the last event is open at the end.

    An event is a line that is not empty or, if `multiline`, several that an empty line ends. A line of blanks
    is empty. `newline` marks the newlines, and `is_open` says whether an event has begun before the text.

    >>> text = np.frombuffer(b"a\nb\n\n \nc\n", np.uint8)
    >>> find_events(text, text == 10, multiline=True, is_open=False)
    (array([5]), True)
    >>> find_events(text, text == 10, multiline=False, is_open=False)
    (array([2, 4, 9]), False)
    """
    first = text[1:]
    start = np.flatnonzero(newline[:-1] & ((first <= _BLANK) | (first == _MARK[0]))) + 1
    if text[0] <= _BLANK or text[0] == _MARK[0]:
        start = np.append(0, start)
    start, end = _empty_lines(text, start)
    if not multiline:
        lines = np.flatnonzero(newline)
        return np.delete(lines, np.searchsorted(lines, end)) + 1, False
    if not len(end):
        return end, True
    closes = start != np.append(-1 if is_open else 0, end[:-1] + 1)
    return end[closes] + 1, bool(end[-1] + 1 < len(text))


def _empty_lines(
    text: NDArray[np.uint8], start: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where the empty lines among lines begin, and their newlines."""
    offsets, empty = start.copy(), []
    marked = np.flatnonzero(text[offsets] == _MARK[0])
    marked = marked[offsets[marked] + len(_MARK) <= len(text)]
    offsets[marked] += len(_MARK) * (text[offsets[marked, None] + np.arange(len(_MARK))] == _MARK).all(axis=1)
    n_passes = 0
    while len(offsets) > _FEW or (len(offsets) and n_passes < _PASSES):
        ended, blank = _first_bytes(text, offsets)
        empty.append((start[ended], offsets[ended]))
        start, offsets = start[blank], offsets[blank] + 1
        n_passes += 1
    if len(offsets):
        data = text.tobytes()
        newline = np.array([data.index(b"\n", offset) for offset in offsets.tolist()])
        ended = np.array(
            [not data[i:j].lstrip(b" \t\r") for i, j in zip(offsets.tolist(), newline.tolist(), strict=True)]
        )
        empty.append((start[ended], newline[ended]))
    starts, ends = (
        (np.concatenate(lines) for lines in zip(*empty, strict=True)) if empty else (start, offsets)
    )
    order = np.argsort(ends)
    return starts[order], ends[order]


def _first_bytes(
    text: NDArray[np.uint8], offsets: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return for each position whether the byte there is a newline, and whether it is a blank."""
    byte = text[offsets]
    return byte == _NEWLINE, (byte == _BLANK) | (byte == _TAB) | (byte == _RETURN)


class UnreadBlock(Block):
    """Events of a part of a file, which are parsed when one of the arrays is needed."""

    __slots__ = ("_configuration", "_source", "part", "seen")

    part: TextPart
    seen: NDArray[np.bool_]  # whether the coordinator has seen features of each namespace
    _configuration: Configuration
    _source: TextFile | None  # the file, if this process has opened it

    def __init__(
        self,
        part: TextPart,
        configuration: Configuration,
        namespaces: Namespaces,
        seen: NDArray[np.bool_],
        *,
        source: TextFile | None = None,
    ) -> None:
        for name, value in zip(
            ("part", "_configuration", "namespaces", "seen", "_source"),
            (part, configuration, namespaces, seen, source),
            strict=True,
        ):
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        """Return the number of events."""
        return self.part.n

    def __getattr__(self, name: str) -> Any:
        """Parse the events, and return an attribute of the block."""
        names = [column.name for column in fields(Block)]
        if name not in names:
            raise AttributeError(name)
        try:
            block = join_blocks(list(self.pieces(self._source)))
        except InputError as error:
            raise UnexpectedEventsError(f"{self.part.path} has changed while it was read") from error
        for column in names:
            object.__setattr__(self, column, getattr(block, column))
        return getattr(block, name)

    def pieces(self, source: TextFile | None = None) -> Iterator[Block]:
        """Yield the events in blocks of bounded size; without a `source` the file is opened by its name."""
        part, problems, n = self.part, Diagnostics(), 0
        with nullcontext(source.file) if source else _opened_part(part) as file:
            for block in read_part(
                file, part, self._configuration, self.namespaces, problems, seen=self.seen
            ):
                n += len(block)
                if problems.total or n > part.n:
                    break
                yield block
        if problems.total or n != part.n:
            raise UnexpectedEventsError(f"{part.path}: {n} events and not {part.n}, or problems")


class _Bytes(io.RawIOBase):
    """The bytes of a part of a file, which others may read in between."""

    def __init__(self, file: io.FileIO, part: TextPart) -> None:
        self.name, self._file, self._at, self._end = part.path, file, part.begin, part.end

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Read bytes into `buffer`, and return their number."""
        wanted = memoryview(buffer)[: self._end - self._at]
        self._file.seek(self._at)
        n = self._file.readinto(wanted) or 0
        if len(wanted) and not n:
            raise InputError(_SHORTER)
        self._at += n
        return n


def read_part(
    file: io.FileIO,
    part: TextPart,
    configuration: Configuration,
    namespaces: Namespaces,
    problems: Diagnostics,
    *,
    seen: NDArray[np.bool_] | None = None,
) -> Iterator[Block]:
    """Yield the events of a part of a file in blocks that have `namespaces`; new names are added."""
    reader = open_lines(cast("Any", _Bytes(file, part)), configuration, diagnostics=problems)
    reader.begin_after(part.line)
    number, is_known = np.zeros(0, np.int32), np.zeros(0, np.bool_)
    for block in check_labels(reader, configuration, problems):
        names, hashes = block.namespaces.names, block.namespaces.hashes
        for name, hash_ in zip(names[len(number) :], hashes[len(number) :], strict=True):
            index = namespaces.names.index(name) if name in namespaces.names else -1
            if index < 0 and seen is None:
                index = namespaces.add(name, hash_)
            number = np.append(number, np.int32(index))
            is_known = np.append(is_known, seen is None or bool(0 <= index < len(seen) and seen[index]))
        column = block.spans["namespace"][:-1]
        if not is_known[column].all():  # a namespace without features has no span
            name = names[column[np.argmin(is_known[column])]]
            raise UnexpectedEventsError(f"{part.path}: a namespace is new: {name!r}")
        column[:] = number[column]
        object.__setattr__(block, "namespaces", namespaces)
        yield block


def _opened(path: str) -> tuple[io.FileIO, os.stat_result]:
    """Return an unbuffered file and its state."""
    try:
        file = Path(path).open("rb", buffering=0)  # noqa: SIM115 - the caller closes it
    except OSError as error:
        raise UnexpectedEventsError(f"{path}: {error.strerror or error}") from error
    return file, os.fstat(file.fileno())


def _opened_part(part: TextPart) -> io.FileIO:
    """Return the file of a part, or a copy of it on another machine.

    A file that grows has the same number, and a copy the same size and time.
    """
    file, state = _opened(part.path)
    is_copy = (state.st_size, state.st_mtime_ns) == (part.size, part.modified)
    if not is_copy and (state.st_ino != part.inode or state.st_size < part.end):
        file.close()
        raise UnexpectedEventsError(f"{part.path} has changed")
    return file


def text_paths(source: Sources, configuration: Configuration) -> list[str]:
    """Return the files of a source if all are plain text and read by position; else none."""
    is_native = dialect_of(configuration) is NATIVE and format_of(configuration) is TEXT
    if not is_native or configuration[InputOptions].examples >= 0:
        return []
    if isinstance(source, list | tuple):  # a text in a list is an event
        paths = [os.fspath(path) if isinstance(path, os.PathLike) else None for path in source]
    else:
        paths = [os.fspath(source) if isinstance(source, str | os.PathLike) else None]
    plain = [path for path in paths if isinstance(path, str) and _is_plain_text(path)]
    return plain if len(plain) == len(paths) else []


def estimated_events(paths: Sequence[str], configuration: Configuration) -> int:
    """Return about how many events files of text have, by their sizes and the first one that has events."""
    densities = (TextFile(path, configuration, Diagnostics()).density() for path in paths)
    density = next((density for density in densities if density), 0)
    return round(density * sum(Path(path).stat().st_size for path in paths))


def _is_plain_text(path: str) -> bool:
    """Return whether a path is a regular file that is neither compressed nor one of blocks."""
    if path == "-" or not Path(path).is_file():
        return False
    source = ByteSource(path)
    try:
        return not source.begins_with(BEGIN) and source.plain_file() is not None
    finally:
        source.close()
