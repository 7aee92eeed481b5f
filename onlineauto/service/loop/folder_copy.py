"""``FolderCopy``: keeps a copy of a service's folder on another disk; ``restore_folder`` begins from one.

The copy of the log has the same bytes at the same positions, so a copied folder is a service's folder itself.
A snapshot is put into place once the copy of the log has all records that the snapshot has learnt.
"""

from __future__ import annotations

import os
import shutil
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from onlineauto.errors import InputError
from onlineauto.service.log.gaps import fill_gaps
from onlineauto.service.log.log_copier import LogCopier
from onlineauto.service.log.record import is_whole, read_record
from onlineauto.service.log.segment_log import SegmentLog
from onlineauto.service.loop.folder_lock import FolderLock
from onlineauto.workspace.model_file import replace_file

if TYPE_CHECKING:
    from typing import Self

_CHUNK: Final = 1 << 20
_COMPARED: Final = 1 << 16
"""Bytes at the end of a copy that are compared with the log before the copy is continued."""
_SHARE: Final = 10.0
"""The next copy of a snapshot waits for this multiple of the duration of the last one."""
_SNAPSHOT: Final = "snapshot.oam"


class OtherLogError(InputError):
    """A folder has the copy of another log or more of this log, or is that of the service itself."""


class FolderCopy(LogCopier):
    """Copies the log, the models, the journals, the tokens and the snapshot of a service to a folder.

    Parameters
    ----------
    folder : path
        The folder of the service.
    log : SegmentLog
        Its log.
    target : path
        The folder of the copy, which must exist: if its disk is away, the copy must not begin elsewhere.

    Raises
    ------
    OtherLogError
        By `__enter__`: the folder has a copy that must not be overwritten. Other problems are failures.
    """

    def __init__(
        self, folder: str | os.PathLike[str], log: SegmentLog, target: str | os.PathLike[str]
    ) -> None:
        super().__init__(log, str(target))
        self._from, self._to = Path(folder), Path(target)
        self._copy: SegmentLog | None = None
        self._lock: FolderLock | None = None
        self._versions: dict[str, tuple[int, int, int]] = {}
        self._snapshot_at = 0.0

    def __enter__(self) -> Self:
        """Open the copy, if its disk is there, and start the thread."""
        try:
            self._open()
        except OtherLogError:
            self.close()
            raise
        except (InputError, OSError) as error:
            self.failed(error)
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        """Copy the rest, and unlock the folder."""
        self._snapshot_at = 0.0
        super().__exit__(*error)
        self.close()

    def step(self) -> int:
        """Copy what is new; return 0, since a step copies all of it."""
        try:
            copy = self._open()
            models = [path.relative_to(self._from) for path in (self._from / "models").glob("*.oam")]
            end = self.log.durable
            for name in (Path("tokens"), Path("rounds"), *models):  # before the records that name the models
                self._copy_file(name)
            self._copy_log(copy, end)
            self._copy_snapshot(copy)
            for path in (self._to / "models").glob("*.oam"):
                if path.relative_to(self._to) not in models:
                    path.unlink()
        except BaseException:
            self.close()  # the next step opens the copy again, and cuts off what is incomplete
            raise
        return 0

    def _copy_log(self, copy: SegmentLog, end: int) -> None:
        """Append the records up to a position to the copy."""
        most = min(_CHUNK, self.log.segment_bytes)
        while self.position < end:
            lines, size = [], 0
            for _, line in self.log.lines(self.position, end):
                lines.append(line)
                size += len(line)
                if size >= most:
                    break
            copy.append(lines)
            copy.sync()
            self.position = copy.end

    def _copy_snapshot(self, copy: SegmentLog) -> None:
        """Replace the snapshot, and remove the records before it that the log no longer has."""
        path, begin, now = self._from / _SNAPSHOT, self.log.begin, time.monotonic()
        if now < self._snapshot_at or not path.exists() or _version(path) == self._versions.get(_SNAPSHOT):
            return
        version, new = _version(path), self._to / f"{_SNAPSHOT}.new"
        _copy(path, new)
        for journal in (self._from / "journals").glob("*.jsonl"):
            self._copy_file(journal.relative_to(self._from))
        self.log.refresh()
        self._copy_log(copy, self.log.durable)
        new.replace(self._to / _SNAPSHOT)
        self._versions[_SNAPSHOT] = version
        copy.remove_first(copy.old_segments(begin))
        self._snapshot_at = now + _SHARE * (time.monotonic() - now)

    def _copy_file(self, name: Path) -> None:
        """Copy a file of the folder unless the copy has its version."""
        path = self._from / name
        if path.exists() and (version := _version(path)) != self._versions.get(str(name)):
            (self._to / name).parent.mkdir(exist_ok=True)
            _copy(path, self._to / name)
            self._versions[str(name)] = version

    def _open(self) -> SegmentLog:
        """Return the copy of the log, opened again if it was moved or has failed.

        Raises
        ------
        OtherLogError
            It is not the beginning of the log, or it is within the folder of the service.
        """
        if self._copy is not None and self.position >= self.log.begin:
            segment, _ = self._copy.place_of(self._copy.end)
            if (self._to / "log" / segment).exists():
                return self._copy
        self.close()
        if not self._to.is_dir():
            raise InputError(f"the folder {self._to} does not exist: make it on the second disk")
        own, target = (Path(os.path.realpath(each)) for each in (self._from, self._to))
        if target.is_relative_to(own):
            raise OtherLogError(
                f"{self._to} is within the folder {self._from} of the service, and would be lost with it: "
                "name a folder on another disk"
            )
        self._lock = FolderLock(self._to)
        segments = self._to / "log"
        segments.mkdir(mode=0o700, exist_ok=True)
        if not any(segments.glob("*.dsjson")):
            (segments / f"{self.log.begin:020d}.dsjson").touch(mode=0o600)
        copy = self._copy = SegmentLog(segments, segment_bytes=self.log.segment_bytes, keep_damaged=True)
        if copy.end < self.log.begin:  # the log has lost the records that follow
            copy.close()
            for path in segments.glob("*.dsjson"):
                path.unlink()
            return self._open()
        if copy.end > self.log.durable:
            raise OtherLogError(
                f"{self._to} has the log up to position {copy.end}, and {self._from} only up to "
                f"{self.log.durable}: restore the folder from it, or name an empty folder"
            )
        begin = max(copy.begin, self.log.begin, copy.end - _COMPARED)
        if _between(copy, begin, copy.end) != _between(self.log, begin, copy.end):
            raise OtherLogError(
                f"{self._to} has the copy of another log than that of {self._from}, or features were erased "
                "in one of them only: name an empty folder"
            )
        self.position = copy.end
        return copy

    def close(self) -> None:
        """Close and unlock the copy; the next step opens it again."""
        copy, self._copy, lock, self._lock = self._copy, None, self._lock, None
        self._versions.clear()  # another disk may be there next time
        try:
            if copy is not None:
                copy.close()
        finally:
            if lock is not None:
                lock.release()


class Restored(NamedTuple):
    """The log of a restored folder, and what is lost in it.

    Attributes
    ----------
    begin, end : int
        Its first position, and the position behind its last record.
    latest : str
        The time of its last record, or "" if it has none.
    torn : int
        The number of bytes of an incomplete record that were cut off its end.
    gaps, damaged : list of tuple of int
        The first position, and the position behind the last one, of each missing and of each damaged part.
    """

    begin: int
    end: int
    latest: str
    torn: int
    gaps: list[tuple[int, int]]
    damaged: list[tuple[int, int]]


def restore_folder(source: Path, folder: Path) -> Restored:
    """Copy a copied folder to where a service continues from it, and check each record of its log.

    Raises
    ------
    InputError
        The source has no log, or the folder has one.
    OSError
        A file cannot be read or written.
    """
    if not any((source / "log").glob("*.dsjson")):
        raise InputError(f"{source} is not the copy of a service's folder: it has no log")
    if any((folder / "log").glob("*.dsjson")):
        raise InputError(f"{folder} has a log, which is not overwritten: restore into an empty folder")
    shutil.copytree(source, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("lock", "*.new"))
    gaps = fill_gaps(folder / "log")
    log = SegmentLog(folder / "log", keep_damaged=True)
    damaged: list[tuple[int, int]] = []
    latest = b""
    for position, line in log.lines(log.begin):
        if is_whole(line):
            latest = line
        elif not any(begin <= position < end for begin, end in gaps):
            begin = damaged.pop()[0] if damaged and damaged[-1][1] == position else position
            damaged.append((begin, position + len(line)))
    log.close()
    time_of_last = read_record(latest).time.isoformat(timespec="milliseconds") if latest else ""
    return Restored(log.begin, log.end, time_of_last, log.torn, gaps, damaged)


def _version(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino


def _copy(path: Path, target: Path) -> None:
    with path.open("rb") as file:
        replace_file(target, iter(partial(file.read, _CHUNK), b""))


def _between(log: SegmentLog, begin: int, end: int) -> bytes:
    return b"".join(line for _, line in log.lines(begin, end))
