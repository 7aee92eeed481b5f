"""``SegmentLog``: an append-only file in segments. An incomplete tail is cut off; other damage is kept.

A position in the log is the number of bytes before it, counted over all segments; each segment is named
after the position of its first byte. So positions stay valid when old segments are removed.

A record is a line of JSON that ends with its checksum, and a decision is a line of dsjson::

    {"Type":"rank","EventId":"e1","Timestamp":"…","a":[2,1],"p":[0.9,0.1],…,"c":{…},"crc":"0b7e1d5a"}

A newline ends a record. JSON contains no raw newline, so it frames the record as well as a length would, and
people, ``jq`` and Vowpal Wabbit can read the file. The checksum is the CRC-32 of all bytes before its member.

`GroupCommit` writes all records submitted since its last write, with one flush: in the thread that submits
them while the disk is fast, else in a separate thread. A group that cannot be written, for example because
the disk is full, is kept and written again until it is in the log, because the table of decisions already has
its records. Its callers get the error at once, and new records are rejected until the group is written.
"""

from __future__ import annotations

import itertools
import logging
import math
import os
import re
import shutil
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from contextvars import copy_context
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias
from zlib import crc32

import msgspec

from onlineauto.errors import InputError
from onlineauto.formats.decisions.dsjson import LogRecord, stamp

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from onlineauto.formats.sources.replaced_file import Alone

_NAME: Final = re.compile(r"(\d{20})\.dsjson")
SEGMENTS: Final = "[0-9]" * 20 + ".dsjson"
"""The pattern of the names of segments, for `Path.glob`."""
_CHUNK: Final = 1 << 20
_MOST_OPENED: Final = 16
"""Maximum number of segments that are open for reading."""
_NEAR: Final = 1 << 16
"""Number of bytes before and behind a line that are read with it, because most decisions are joined roughly
in the order of their lines."""
_BLANKS: Final = 1 << 20
"""Length in bytes of a line of blanks, which a reader of the log skips as a damaged record."""

_TAIL: Final = len(b',"crc":"00000000"}\n')
_DECODER = msgspec.json.Decoder(LogRecord)


class RecordsAnswer(msgspec.Struct):
    """The answer to ``POST /v1/records``: the position from which more records are wanted."""

    position: int


def sealed(record: bytes) -> bytes:
    r"""Return a JSON object as the line of a record, with its checksum.

    >>> sealed(b'{"Type":"tick"}')
    b'{"Type":"tick","crc":"53c100da"}\n'
    """
    body = record[:-1]
    return b'%b,"crc":"%08x"}\n' % (body, crc32(body))


def is_whole(line: bytes) -> bool:
    r"""Return whether a line is a record with the right checksum.

    >>> is_whole(sealed(b'{"Type":"tick"}')), is_whole(b'{"Type":"tock","crc":"53c100da"}\n')
    (True, False)
    """
    return line[-_TAIL:] == b',"crc":"%08x"}\n' % crc32(line[:-_TAIL])


def taken_over(line: bytes, *, source: str, behind: int, time: float, no_room: bool = False) -> bytes:
    """Return a record of another log as a line of this log, with its source and position."""
    origin = {
        "Source": source,
        "Behind": behind,
        "Taken": stamp(time),
        **({"NoRoom": True} if no_room else {}),
    }
    return sealed(line[:-_TAIL] + b"," + msgspec.json.encode(origin)[1:])


def read_record(line: bytes, *, where: str = "the log") -> LogRecord:
    """Return the members of a record that the join reads."""
    if not is_whole(line):
        raise InputError(f"{where}: the record is damaged: its checksum does not match its content")
    try:
        return _DECODER.decode(line)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"{where}: not a record of a service's log: {error}") from None


class SegmentLog:
    """Lines in segments. One thread at a time appends and syncs; any number of threads read.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> line = sealed(b'{"Type":"tick"}')
    >>> with TemporaryDirectory() as folder:
    ...     log = SegmentLog(folder)
    ...     log.append([line, line])
    ...     log.sync()
    ...     list(log.lines(0)) == [(0, line), (len(line), line)], log.durable == 2 * len(line)
    ...     log.close()
    (True, True)
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        segment_bytes: int = 64 << 20,
        read_only: bool = False,
        keep_damaged: bool = False,
        alone: Alone = nullcontext,
    ) -> None:
        self._keep_damaged = keep_damaged
        self.alone = alone  # Files are made, cut and removed within it.
        # Raises an error if another process may write; called before a write, and before records count.
        self.fence: Callable[[], object] | None = None
        # Writes the records up to a position elsewhere, before they count.
        self.mirror: Callable[[int], object] | None = None
        self.folder, self.segment_bytes, self.torn = Path(folder), segment_bytes, 0
        self._file = -1
        self._is_torn = False
        self._near = 0, b""
        self._opened: dict[int, int] = {}  # file descriptors of the segments that were read last
        self._reading = threading.Lock()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._starts = self._segment_starts()
            if read_only:
                self.refresh()
                return
            self._open_last()
        except OSError as error:
            raise InputError(f"cannot keep a log in {self.folder}: {error.strerror or error}") from None
        self.end = self.durable = self._starts[-1] + os.fstat(self._file).st_size

    @property
    def begin(self) -> int:
        """The position of the first available line."""
        return self._starts[0]

    def append(self, lines: Sequence[bytes]) -> None:
        """Write lines behind the last one, in one call; `sync` waits until the disk has them."""
        if self.fence is not None:
            self.fence()
        if self._is_torn:
            self.cut_back()
        if self.end - self._starts[-1] >= self.segment_bytes:
            self._rotate()
        data = memoryview(b"".join(lines))
        size = len(data)
        while data:
            data = data[os.write(self._file, data) :]
        self.end += size

    def sync(self) -> None:
        """Wait until the disk has confirmed everything that was appended."""
        end = self.end
        os.fdatasync(self._file)
        if self.mirror is not None:
            self.mirror(end)
        if self.fence is not None:
            self.fence()
            self._check_in_place()
        self.durable = end

    def cut_back(self) -> None:
        """Remove the bytes that the disk has not confirmed, after `append` or `sync` has failed.

        A disk that reports an error may have lost any of these bytes, so the caller writes all of them again.
        """
        self._is_torn = True
        self.end = self.durable
        os.ftruncate(self._file, self.end - self._starts[-1])
        self._is_torn = False

    def refresh(self) -> None:
        """Find the lines that another process has appended, if the log is open for reading only."""
        if self._file < 0:
            self._starts = self._segment_starts()
            self.end = self.durable = self._starts[-1] + self._good_bytes(self._path(self._starts[-1]))

    def place_of(self, position: int) -> tuple[str, int]:
        """Return the name of the segment that contains a position, and the offset in it."""
        start = self._starts[max(bisect_right(self._starts, position) - 1, 0)]
        return self._path(start).name, position - start

    def lines(self, position: int, end: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Yield each line from a position on, with its own position, up to `end` or what is durable now."""
        end = self.durable if end is None else end
        if not self._starts[0] <= position <= end:
            raise InputError(f"{self.folder} has the positions {self._starts[0]} to {end}, not {position}")
        rest = b""
        while position + len(rest) < end:
            data = self._read(position + len(rest), min(_CHUNK, end - position - len(rest)))
            *whole, rest = (rest + data).split(b"\n")
            for text in whole:
                yield position, text + b"\n"
                position += len(text) + 1

    def line_at(self, position: int, size: int) -> bytes:
        """Return the line of `size` bytes at a position; lines around it are then in memory."""
        begin, near = self._near
        offset = position - begin
        if offset < 0:  # a line further back is an exception
            return self._read(position, size)
        if offset + size > len(near):
            start = self._starts[bisect_right(self._starts, position) - 1]
            begin = max(start, position - _NEAR)
            near = self._read(begin, max(min(self.durable, position + _NEAR), position + size) - begin)
            self._near, offset = (begin, near), position - begin
        return near[offset : offset + size]

    def replace(self, lines: Mapping[int, bytes]) -> None:
        """Overwrite lines by lines of the same length, by position, in a log that no process appends to.

        Each segment is copied, changed and synced, and the copy then replaces the segment: after a crash,
        each line is either the old one or the new one.
        """
        by_segment: dict[int, list[int]] = {}
        for position in lines:
            by_segment.setdefault(self._starts[bisect_right(self._starts, position) - 1], []).append(position)
        for start, positions in by_segment.items():
            copy = self.folder / f"{start:020d}.new"
            shutil.copyfile(self._path(start), copy)
            with copy.open("r+b") as file:
                for position in positions:
                    file.seek(position - start)
                    file.write(lines[position])
                file.flush()
                os.fsync(file.fileno())
            shutil.copystat(self._path(start), copy)  # removal of old segments goes by the time of the file
            copy.replace(self._path(start))
            sync_path(self.folder)
            self._forget(start)
            if start == self._starts[-1] and self._file >= 0:
                os.close(self._file)
                self._open_last()

    def old_segments(self, position: int, *, written_before: float = math.inf) -> int:
        """Return the number of segments that end before a position and were last written before a time."""
        count = 0
        for start in self._starts[: max(bisect_right(self._starts, position) - 1, 0)]:
            if self._path(start).stat().st_mtime >= written_before:
                break
            count += 1
        return count

    def remove_first(self, count: int) -> None:
        """Remove the first `count` segments."""
        with self.alone():
            gone, self._starts = self._starts[:count], self._starts[count:]
            for start in gone:
                self._path(start).unlink(missing_ok=True)
                self._forget(start)

    def close(self) -> None:
        """Sync and close the file; nothing can be appended after this."""
        file, self._file = self._file, -1
        try:
            if file >= 0:
                os.fdatasync(file)
        finally:
            if file >= 0:
                os.close(file)
            for start in list(self._opened):
                self._forget(start)

    def _path(self, start: int) -> Path:
        return self.folder / f"{start:020d}.dsjson"

    def _check_in_place(self) -> None:
        """Raise an error if another process has replaced the open segment."""
        if not os.fstat(self._file).st_nlink:
            path = self._path(self._starts[-1])
            raise OSError(f"another process has replaced {path}: restart this one, which cannot write to it")

    def _segment_starts(self) -> tuple[int, ...]:
        """Return the positions at which the segments begin; create the first segment if there is none."""
        names = sorted(path.name for path in self.folder.iterdir())
        starts = tuple(int(match[1]) for name in names if (match := _NAME.fullmatch(name)))
        for start, following in itertools.pairwise(starts):
            missing = following - start - self._path(start).stat().st_size
            if missing:
                how = "bytes are missing" if missing > 0 else "bytes are too many"
                raise InputError(
                    f"{self._path(start)} does not end where the next segment begins: {abs(missing)} {how}. "
                    "Restore the file from a backup; or, to continue without the lost part: "
                    f"onlineauto loop {self.folder.parent} --fill_gaps"
                )
        return starts or (0,)

    def _open_last(self) -> None:
        """Open the last segment for appending, without its incomplete tail."""
        path = self._path(self._starts[-1])
        with self.alone():
            is_new = not path.exists()
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            if is_new:
                sync_path(self.folder)
                return
            good, size = self._good_bytes(path), os.fstat(self._file).st_size
            if good < size:
                os.ftruncate(self._file, good)
                os.fsync(self._file)
                self.torn = size - good

    def _good_bytes(self, path: Path) -> int:
        """Return the length of a segment without its incomplete tail: the last line, if it has no end.

        Without `keep_damaged`, damaged lines at the end are the tail, too.
        """
        good = read = 0
        with path.open("rb") as file:
            for line in file:
                read += len(line)
                if not (line.endswith(b"\n") if self._keep_damaged else is_whole(line)):
                    continue
                if good != read - len(line):
                    raise InputError(
                        f"{path} is damaged at byte {good}: intact records follow, so this is not a torn "
                        "tail; restore the file, or cut it there to continue without what follows"
                    )
                good = read
        return good

    def _rotate(self) -> None:
        """End the segment, and begin a new one."""
        self.sync()
        path = self._path(self.end)
        with self.alone():
            file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            sync_path(self.folder)
        except OSError:
            os.close(file)
            raise
        os.close(self._file)
        self._file = file
        self._starts = (*self._starts, self.end)

    def _read(self, position: int, size: int) -> bytes:
        """Return up to `size` bytes at a position, from one segment."""
        starts = self._starts
        start = starts[bisect_right(starts, position) - 1]
        with self._reading:  # so that no other thread closes the file before it is read
            descriptor = self._opened.pop(start, -1)
            if descriptor < 0:
                if len(self._opened) >= _MOST_OPENED:
                    os.close(self._opened.pop(next(iter(self._opened))))
                descriptor = os.open(self._path(start), os.O_RDONLY)
            self._opened[start] = descriptor
            return os.pread(descriptor, size, position - start)

    def _forget(self, start: int) -> None:
        """Close the file of a segment that was opened for reading."""
        self._near = 0, b""
        with self._reading:
            if start in self._opened:
                os.close(self._opened.pop(start))


def sync_path(path: Path) -> None:
    """Wait until the disk has a file or a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_last_segment(folder: Path, *, suffix: str, alone: Alone) -> None:
    """Replace the last segment of a log by a copy; what another process has open is then a removed file.

    `alone` excludes other processes that replace it, and raises an error if this one must not.
    """
    for path in sorted(folder.glob(SEGMENTS))[-1:]:
        copy = path.with_suffix(suffix)
        try:
            shutil.copy2(path, copy)
            sync_path(copy)
            with alone():
                copy.replace(path)
        finally:
            copy.unlink(missing_ok=True)
        sync_path(folder)


def fill_gaps(folder: Path) -> list[tuple[int, int]]:
    """Fill the gaps between the segments of a log that is not in use; return the positions of each gap."""
    paths = sorted(folder.glob(SEGMENTS))
    gaps = []
    for path, following in itertools.pairwise(paths):
        begin, end = int(path.stem) + path.stat().st_size, int(following.stem)
        if begin > end:
            raise InputError(
                f"{path} overlaps {following.name}: restore the file, or cut it to "
                f"{end - int(path.stem)} bytes"
            )
        if begin == end:
            continue
        gaps.append((begin, end))
        with path.open("ab") as file:
            for offset in range(begin, end, _BLANKS):
                file.write(b" " * (min(_BLANKS, end - offset) - 1) + b"\n")
            file.flush()
            os.fsync(file.fileno())
    return gaps


_LOG = logging.getLogger("onlineauto.service")
_RETRY: Final = 0.5
"""Seconds after which a failed write is repeated."""
_FAST: Final = 0.003
"""Mean seconds a group up to which the thread that submits records writes them."""
_GROUPS: Final = 16
"""Number of groups over which this mean is taken, roughly."""
Done: TypeAlias = Callable[[Exception | None], object]
"""Called once a line is in the log, or with the error that prevented the write."""


def call_all(waiting: Sequence[Done], error: Exception | None) -> None:
    """Call the callbacks of a group."""
    for done in waiting:
        done(error)


class GroupCommit:
    """Appends lines to a log in the order in which they are submitted, many at once."""

    def __init__(
        self, log: SegmentLog, *, deliver: Callable[[Sequence[Done], Exception | None], object] = call_all
    ) -> None:
        self.log, self.deliver, self.position = log, deliver, log.end
        self.failed: Exception | None = None
        self.groups = 0
        self._lines: list[bytes] = []
        self._waiting: list[Done] = []
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._closing = self._is_writing = False
        self._together = 0
        self._mean_seconds = 0.0
        target = copy_context().run  # so that its log records name the loop
        self._thread = threading.Thread(target=target, args=(self._run,), name="onlineauto-log", daemon=True)
        self._thread.start()

    def __len__(self) -> int:
        """Return the number of lines that wait to be written."""
        return len(self._lines)

    def submit(self, line: bytes, done: Done) -> int:
        """Queue a line and its callback; return the position that the line will have."""
        with self._lock:
            if self.failed is not None or self._closing:
                raise InputError(f"the log accepts no more records: {self.failed or 'it is closed'}")
            position = self.position
            self.position += len(line)
            self._lines.append(line)
            self._waiting.append(done)
            if not self._together:
                self._changed.notify()
            return position

    def __enter__(self) -> None:
        """Write all lines submitted within a ``with`` block in the same group."""
        self._together += 1

    def __exit__(self, *_: object) -> None:
        """Write these lines and call their callbacks here while the disk is fast, without another thread."""
        self._together -= 1
        if self._lines and not self._together:
            if self._mean_seconds < _FAST and self.failed is None:
                self._write_group(call_all)
            else:
                with self._lock:
                    self._changed.notify()

    def close(self) -> None:
        """Write all queued lines, and end the thread; the caller of a lost line has its error."""
        with self._lock:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._lock:
                if self.failed is not None:
                    self._changed.wait_for(lambda: self._closing, _RETRY)
                self._changed.wait_for(lambda: (self._lines or self._closing) and not self._is_writing)
                ends = self._closing and (not self._lines or self.failed is not None)
            self._write_group(self.deliver)
            if ends:
                return

    def _write_group(self, deliver: Callable[[Sequence[Done], Exception | None], object]) -> None:
        """Write the queued lines, unless another thread does; lines that cannot be written stay queued."""
        with self._lock:
            if self._is_writing or not self._lines:
                return
            self._is_writing = True
            lines, self._lines = self._lines, []
            waiting, self._waiting = self._waiting, []
        is_written = self._write(lines)
        with self._lock:
            self._is_writing = False
            if not is_written:  # records that arrived during the write join the next attempt
                self._lines = lines + self._lines
                waiting += self._waiting
                self._waiting = []
            if self._lines or self._closing:
                self._changed.notify()
        deliver(waiting, None if is_written else self.failed)

    def _write(self, lines: list[bytes]) -> bool:
        """Write a group, and return whether the disk has confirmed it."""
        begin = time.monotonic()
        try:
            self.log.append(lines)
            self.log.sync()
        except Exception as error:  # such as of memory: lines are not lost, and the next attempt may succeed
            self._mean_seconds = max(self._mean_seconds, _FAST)  # so that another thread makes it
            if self.failed is None:
                self.failed = error
                _LOG.error("the log cannot be written: %s", error, extra={"event": "log_not_writable"})
            with suppress(OSError):
                self.log.cut_back()
            return False
        self._mean_seconds += (time.monotonic() - begin - self._mean_seconds) / _GROUPS
        self.groups += 1
        if self.failed is not None:
            self.failed = None
            _LOG.warning("the log can be written again", extra={"event": "log_writable"})
        return True
