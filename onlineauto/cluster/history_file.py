"""``HistoryFile``: a history that one process writes while the cluster works."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from onlineauto.cluster.history import Head, History, Record
from onlineauto.errors import InputError, OutputError

if TYPE_CHECKING:
    from collections.abc import Iterable

try:
    import fcntl
except ImportError:  # this system has no flock()
    fcntl = None  # type: ignore[assignment]

_LOG = logging.getLogger("onlineauto")
_BEGIN = b'{"type":"head"'


class HistoryFile:
    """Appends records to a file, which another cluster may continue after this one has ended or crashed.

    Each slot is on the disk before the next slot begins. An incomplete last line after a crash is removed.
    Records that cannot be written, because the disk is full, wait for the next slot.
    """

    def __init__(self, path: str | os.PathLike[str], head: Head) -> None:
        self._file = Path(path).open("ab", buffering=0)  # noqa: SIM115 - stays open while the cluster works
        self._unwritten, self._failed = b"", False
        try:
            self._lock(path)
            content = Path(path).read_bytes()
            self._size = content.rfind(b"\n") + 1
            complete, incomplete = content[: self._size].strip(b"\n"), content[self._size :]
            # A file whose first line is incomplete counts as new, because it has no record yet.
            is_new = not complete and _BEGIN.startswith(incomplete[: len(_BEGIN)])
            self.found = History(head) if is_new else History.parse(content, name=os.fspath(path))
            if self.found.head.capacity.keys() != head.capacity.keys():
                requested, recorded = sorted(head.capacity), sorted(self.found.head.capacity)
                raise InputError(
                    f"{os.fspath(path)}: the history of a cluster with {', '.join(recorded)}, "
                    f"but this one has {', '.join(requested)}; give it another file"
                )
            self._file.truncate(self._size)
            self._unwritten = _encode_lines([head])
            self._write()
        except BaseException:
            self._file.close()
            raise

    def append(self, lines: Iterable[Head | Record]) -> None:
        """Write lines and wait until they are on the disk; keep them for the next call if that fails."""
        self._unwritten += _encode_lines(lines)
        try:
            self._write()
        except OSError as error:
            if not self._failed:
                _LOG.warning(
                    "%s cannot be written, and its records wait: %s", self._file.name, error.strerror
                )
            self._failed = True
        else:
            self._failed = False

    def close(self) -> None:
        """Close the file, so that another cluster may continue it."""
        try:
            self._write()
        except OSError as error:
            count = self._unwritten.count(b"\n")
            raise OutputError(
                f"{self._file.name} lacks its last {count} records: {error.strerror}; history() has them"
            ) from None
        finally:
            self._file.close()

    def _write(self) -> None:
        """Write the lines that wait; remove a part that was written if that fails."""
        rest = memoryview(self._unwritten)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
            os.fsync(self._file.fileno())
        except OSError:
            self._file.truncate(self._size)
            raise
        self._size += len(self._unwritten)
        self._unwritten = b""

    def _lock(self, path: str | os.PathLike[str]) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"{os.fspath(path)} is in use by another cluster: give another file") from None


def _encode_lines(lines: Iterable[Head | Record]) -> bytes:
    return b"".join(msgspec.json.encode(each) + b"\n" for each in lines)
