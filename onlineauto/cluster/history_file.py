"""``HistoryFile``: a history that one process writes while the cluster works."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from onlineauto.cluster.history import Head, History, Record
from onlineauto.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

try:
    import fcntl
except ImportError:  # this system has no flock()
    fcntl = None  # type: ignore[assignment]


class HistoryFile:
    """Appends records to a file, which another cluster may continue after this one has ended or crashed.

    Each slot is on the disk before the next slot begins. An incomplete last line after a crash is removed.

    Parameters
    ----------
    path : str or path
        The file, which is created if it does not exist.
    head : Head
        The cluster.

    Attributes
    ----------
    found : History
        The history that was in the file.

    Raises
    ------
    InputError
        The file is not a history, has other resources than the cluster, or is written by another process.
    OSError
        The file cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str], head: Head) -> None:
        self._file = Path(path).open("ab")  # noqa: SIM115 - stays open while the cluster works
        try:
            self._lock(path)
            content = Path(path).read_bytes()
            self.found = History.parse(content, name=os.fspath(path)) if content else History(head)
            if self.found.head.capacity.keys() != head.capacity.keys():
                ours, theirs = sorted(head.capacity), sorted(self.found.head.capacity)
                raise InputError(
                    f"{os.fspath(path)}: the history of a cluster with {', '.join(theirs)}, but this one has "
                    f"{', '.join(ours)}; give it another file"
                )
            torn = len(content) - (content.rfind(b"\n") + 1)
            if torn:
                self._file.truncate(len(content) - torn)
            self.append([head])
        except BaseException:
            self._file.close()
            raise

    def append(self, lines: Iterable[Head | Record]) -> None:
        """Write lines and wait until they are on the disk."""
        self._file.write(b"".join(msgspec.json.encode(each) + b"\n" for each in lines))
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file, so that another cluster may continue it."""
        self._file.close()

    def _lock(self, path: str | os.PathLike[str]) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"{os.fspath(path)} is in use by another cluster: give another file") from None
