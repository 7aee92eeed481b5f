"""The folder of a service: its lock, its identity in ``identity.json``, and its copy on another disk.

The copy of the log has the same bytes at the same positions, so a copied folder is a service's folder itself.
A snapshot is put into place once the copy of the log has all records that the snapshot has learnt. A copy has
the identity of its service, and no other folder is changed.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import threading
import time
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import msgspec

from onlineauto.errors import InputError
from onlineauto.service.learning.rounds import planned_parts
from onlineauto.service.log.log_copier import LogCopier
from onlineauto.service.log.segment_log import (
    SEGMENTS,
    SegmentLog,
    fill_gaps,
    is_whole,
    read_record,
    sync_path,
)
from onlineauto.workspace.model_file import read_file, replace_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from onlineauto.formats.sources.replaced_file import Alone

_CHUNK: Final = 1 << 20
_COMPARED: Final = 1 << 16
"""Bytes at the end of a copy that are compared with the log before the copy is continued."""
_SHARE: Final = 10.0
"""The next copy of a snapshot waits for this multiple of the duration of the last one."""
_SNAPSHOT: Final = "snapshot.oam"
_MODELS: Final = ("[0-9]" * 12 + "*.oam", "put-*.oam")
"""The names of models of a history; other models in the folder of a copy are not removed."""

_NAMES_MODEL: Final = b'{"Type":"model"'
_NAME: Final = "identity.json"
_FORMAT: Final = 1
NAMED_FILES: Final = ("models/*.oam", "rounds", "tokens", "source", "model", "loop.json", "route.json")
SERVICE_FILES: Final = ("snapshot.oam", f"log/{SEGMENTS}", "journals/*.jsonl", *NAMED_FILES)
"""The files of a service, in the order in which they can be copied while another process writes them."""


class FolderLock:
    """Locks a folder for this process, until `release` or the end of the process.

    With `replace`, the lock of another process is replaced: that process has lost its lease.
    """

    def __init__(
        self, folder: str | os.PathLike[str], *, use: str = "runs in", replace: bool = False
    ) -> None:
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
            self._path = Path(folder) / "lock"
            if replace:
                self._path.unlink(missing_ok=True)
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise InputError(f"cannot use the folder {folder}: {error.strerror}") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            raise InputError(f"another service {use} {folder}; each needs its own folder") from None

    def is_in_place(self) -> bool:
        """Return whether the locked folder is still at its path; another disk may be there."""
        try:
            return os.path.samestat(self._path.stat(), os.fstat(self._file))
        except OSError:
            return False

    def release(self) -> None:
        """Release the lock."""
        os.close(self._file)


class FolderIdentity(msgspec.Struct, frozen=True):
    """The random id of a service, followed by the ids of those from whose copies it was restored."""

    ids: tuple[str, ...]
    kind: Literal["service", "copy"] = "service"
    whole: bool = True
    format: int = _FORMAT

    @classmethod
    def read(cls, folder: Path) -> Self | None:
        """Return the identity of a folder, or None if it has none; a damaged file is an `InputError`."""
        try:
            identity = msgspec.json.decode((folder / _NAME).read_bytes(), type=cls)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            raise InputError(f"{folder / _NAME} is not the identity of a service: {error}") from None
        if identity.format != _FORMAT or not identity.ids:
            raise InputError(f"{folder / _NAME} has another format: a later version has written it")
        return identity

    def write(self, folder: Path, alone: Alone = nullcontext) -> None:
        """Replace the identity of a folder atomically, and wait for the disk."""
        replace_file(folder / _NAME, [msgspec.json.encode(self)], alone=alone)


def check_whole(folder: Path) -> FolderIdentity | None:
    """Return the identity of a folder; an unfinished copy or restore is an `InputError`."""
    identity = FolderIdentity.read(folder)
    if identity is not None and not identity.whole:
        is_copy = identity.kind == "copy"
        raise InputError(
            f"{folder} is not whole: {'the copy of a service' if is_copy else 'a restore'} to it has not "
            f"finished. Either {'let --ship or --backup finish' if is_copy else 'run the restore again'}; "
            f"or use what it has: onlineauto loop {folder} --fill_gaps"
        )
    return identity


def claim_folder(folder: Path, alone: Alone = nullcontext) -> None:
    """Check that a service may use a locked folder, and identify it; a copy is an `InputError`."""
    identity = check_whole(folder)
    if identity is None:
        FolderIdentity((secrets.token_hex(8),)).write(folder, alone)
    elif identity.kind == "copy":
        raise InputError(
            f"{folder} is the copy of a service, and stays as it is. Restore it to another folder, and serve "
            f"that: onlineauto loop NEW --restore {folder}"
        )


def promote_copy(folder: Path, alone: Alone) -> None:
    """Make the copy of a service a service, in place; the first service can no longer copy to it."""
    identity = check_whole(folder)
    if identity is not None and identity.kind == "copy":
        FolderIdentity((secrets.token_hex(8), *identity.ids)).write(folder, alone)


def service_file_in(folder: Path) -> str:
    """Return the name of a file or a folder as a service has it, or ""."""
    names = (*(pattern.partition("/")[0] for pattern in SERVICE_FILES), _NAME)
    return next((name for name in names if (folder / name).exists()), "")


class OtherLogError(InputError):
    """A folder has files of another service, other records or more of the log, or is within the service's."""


class FolderCopy(LogCopier):
    """Copies the folder of a service to an existing folder: if its disk is away, no other one is begun.

    `__enter__` raises `OtherLogError` if the folder must not be overwritten. Other problems are failures.
    With `fence`, the copy has each record before the record counts, and a problem at the start is an error;
    `fence` raises one if another process may write to the folder.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        log: SegmentLog,
        target: str | os.PathLike[str],
        *,
        fence: Callable[[], object] | None = None,
    ) -> None:
        super().__init__(log, str(target))
        self._fence, self._alone = fence, nullcontext if fence is None else log.alone
        self._writing, self._copying = threading.RLock(), threading.Lock()  # of the log; of other files
        self._from, self._to = Path(folder), Path(target)
        self._copy: SegmentLog | None = None
        self._lock: FolderLock | None = None
        self._identity = FolderIdentity(())
        self._versions: dict[str, tuple[int, int, int]] = {}
        self._snapshot_at = 0.0

    def __enter__(self) -> Self:
        """Open the copy, if its disk is there, and start the thread."""
        try:
            self._open(self.log.durable)
            if self._fence is not None:
                self.step()
                self.log.mirror = self._mirror
        except OtherLogError:
            self.close()
            raise
        except (InputError, OSError) as error:
            if self._fence is not None:
                self.close()
                raise InputError(f"the log cannot be copied to {self._to}: {error}") from None
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
            copy = self._copy_log()
            self._copy_snapshot(copy)
            for path in (path for names in _MODELS for path in (self._to / "models").glob(names)):
                if not (self._from / "models" / path.name).exists():
                    with self._alone():
                        path.unlink()
            self._identify(whole=True)
        except BaseException:
            self.close()  # the next step opens the copy again, and cuts off what is incomplete
            raise
        return 0

    def _copy_log(self) -> SegmentLog:
        """Append the records that are durable now to the copy, after the models that they name."""
        end = self.log.durable
        with self._writing:
            self._open(end)
        self._copy_named_files()
        with self._writing:
            copy = self._open(end)
            self._append(copy, end)
        return copy

    def _copy_named_files(self) -> None:
        with self._copying:
            for path in (path for pattern in NAMED_FILES for path in self._from.glob(pattern)):
                self._copy_file(path.relative_to(self._from))

    def _append(self, copy: SegmentLog, end: int) -> None:
        most = min(_CHUNK, self.log.segment_bytes)
        while self.position < end:
            lines, size = [], 0
            for _, line in self.log.lines(self.position, end):
                lines.append(line)
                size += len(line)
                if size >= most:
                    break
            if self.log.mirror is not None and any(line.startswith(_NAMES_MODEL) for line in lines):
                self._copy_named_files()
            copy.append(lines)
            copy.sync()
            self.position = copy.end

    def _mirror(self, end: int) -> None:
        """Append the records that the log is about to confirm; an error leaves the copy without them."""
        with self._writing:
            copy = self._open(end)
            try:
                self._append(copy, end)
            except BaseException:
                with suppress(OSError):
                    copy.cut_back()
                raise

    def _copy_snapshot(self, copy: SegmentLog) -> None:
        """Replace the snapshot, and remove the records before it that the log no longer has."""
        path, begin, now = self._from / _SNAPSHOT, self.log.begin, time.monotonic()
        if (self._identity.whole and now < self._snapshot_at) or not path.exists():
            return
        if _version(path) == self._versions.get(_SNAPSHOT):
            return
        version, new = _version(path), self._to / f"{_SNAPSHOT}.new"
        _copy(path, new, self._alone)
        for journal in (self._from / "journals").glob("*.jsonl"):
            self._copy_file(journal.relative_to(self._from))
        self.log.refresh()
        self._copy_log()
        with self._alone():
            new.replace(self._to / _SNAPSHOT)
        sync_path(self._to)
        self._versions[_SNAPSHOT] = version
        with self._writing:
            copy.remove_first(copy.old_segments(begin))
        self._snapshot_at = now + _SHARE * (time.monotonic() - now)

    def _copy_file(self, name: Path) -> None:
        """Copy a file of the folder unless the copy has its version."""
        path = self._from / name
        if path.exists() and (version := _version(path)) != self._versions.get(str(name)):
            (self._to / name).parent.mkdir(exist_ok=True)
            _copy(path, self._to / name, self._alone)
            self._versions[str(name)] = version

    def _open(self, end: int) -> SegmentLog:
        """Return the copy of the log, opened again if it was moved or has failed; reject any other folder.

        `end` is the position up to which the copy may have the log.
        """
        in_place = self._lock is not None and self._lock.is_in_place()
        if self._copy is not None and in_place and self.position >= self.log.begin:
            segment, _ = self._copy.place_of(self._copy.end)
            if (self._to / "log" / segment).exists():
                return self._copy
        self.close()
        if not self._to.is_dir():
            raise InputError(f"the folder {self._to} does not exist: make it on the second disk")
        if Path(os.path.realpath(self._to)).is_relative_to(os.path.realpath(self._from)):
            raise OtherLogError(
                f"{self._to} is within the folder {self._from} of the service, and would be lost with it: "
                "name a folder on another disk"
            )
        own = FolderIdentity.read(self._from)
        self._check_target(own)  # before the file of the lock is made in the folder
        self._lock = FolderLock(self._to, use="writes the copy")
        before = self._check_target(own)
        if own is None:
            raise InputError(f"{self._from} has no identity.json: start its service once, and copy it then")
        self._identity = before or FolderIdentity(own.ids, "copy", whole=False)
        if before is None:
            self._identity.write(self._to, self._alone)
        segments = self._to / "log"
        segments.mkdir(mode=0o700, exist_ok=True)
        if not any(segments.glob(SEGMENTS)):
            self._identify(whole=False)
            with self._alone():
                (segments / f"{self.log.begin:020d}.dsjson").touch(mode=0o600)
        copy = self._copy = SegmentLog(
            segments, segment_bytes=self.log.segment_bytes, keep_damaged=True, alone=self._alone
        )
        copy.fence = self._fence
        if copy.end > end:
            raise OtherLogError(
                f"{self._to} has the log up to position {copy.end}, and {self._from} only up to "
                f"{end}: restore the folder from it, or name an empty folder"
            )
        begin = max(copy.begin, self.log.begin, copy.end - _COMPARED)
        if (
            _between(copy, begin, copy.end) != _between(self.log, begin, copy.end)
            if begin < copy.end
            else self._identity.ids != own.ids  # without a record in common
        ):
            raise OtherLogError(
                f"{self._to} has the copy of another log than that of {self._from}, or features were erased "
                "in one of them only: name an empty folder"
            )
        self._identify(ids=own.ids)
        if not copy.begin <= self.log.begin <= copy.end:  # one of them has lost what the other needs
            self._identify(whole=False)
            copy.close()
            with self._alone():
                for path in sorted(segments.glob(SEGMENTS)):  # what is left at any instant is a log
                    path.unlink()
            return self._open(end)
        self.position = copy.end
        return copy

    def _check_target(self, own: FolderIdentity | None) -> FolderIdentity | None:
        """Return the identity of the target; reject all but an unused folder and a copy of this service."""
        try:
            identity, name = FolderIdentity.read(self._to), service_file_in(self._to)
        except InputError as error:
            raise OtherLogError(str(error)) from None
        if identity is None and name:
            why = f"has {name} and no identity.json that says whose copy it is"
        elif identity is not None and identity.kind != "copy":
            why = "is the folder of a service, and not a copy"
        elif identity is not None and (own is None or identity.ids[0] not in own.ids):
            why = f"has the copy of another service than that of {self._from}"
        else:
            return identity
        raise OtherLogError(
            f"{self._to} {why}, and stays as it is: restore the folder from it, or name an empty folder"
        )

    def _identify(self, **changes: Any) -> None:
        """Change the identity of the copy."""
        identity = msgspec.structs.replace(self._identity, **changes)
        if identity != self._identity:
            identity.write(self._to, self._alone)
            self._identity = identity

    def close(self) -> None:
        """Close and unlock the copy; the next step opens it again."""
        with self._writing:
            copy, self._copy, lock, self._lock = self._copy, None, self._lock, None
            self._versions.clear()  # another disk may be there next time
            try:
                if copy is not None:
                    copy.close()
            finally:
                if lock is not None:
                    lock.release()


class Restored(NamedTuple):
    """The log of a restored folder, and what is lost in it."""

    begin: int
    end: int
    latest: str  # the time of the last record, or ""
    torn: int  # number of bytes of an incomplete record that were cut off the end
    gaps: list[tuple[int, int]]  # the begin and the end of each missing part
    damaged: list[tuple[int, int]]
    learnt: int  # the position of the snapshot, which is put aside if the log ends before it


def restore_folder(source: Path, folder: Path) -> Restored:
    """Copy a copied folder to where a service continues from it, and check each record of its log.

    The folder is whole once the disk has all of it; a repeated call begins again. An `InputError` is raised
    if the source is not whole, if its log has lost both ends, or if the folder has files of a service.
    """
    copied = check_whole(source)
    segments = sorted((source / "log").glob(SEGMENTS))
    if not segments:
        raise InputError(f"{source} is not the copy of a service's folder: it has no log")
    check_unused(folder)  # before the file of the lock is made in the folder
    lock = FolderLock(folder)
    try:
        check_unused(folder)
        identity = FolderIdentity((secrets.token_hex(8), *(copied.ids if copied else ())))
        msgspec.structs.replace(identity, whole=False).write(folder)
        for pattern in SERVICE_FILES:
            for path in folder.glob(pattern):  # of an interrupted restore
                path.unlink()
            for path in sorted(source.glob(pattern)):
                target = folder / path.relative_to(source)
                target.parent.mkdir(exist_ok=True)
                shutil.copy2(path, target)
                sync_path(target)
                sync_path(target.parent)
        if not (folder / "log" / segments[0].name).exists():  # a service has removed it behind the snapshot
            raise InputError(f"{source} was changed while it was copied: run the restore again")
        restored = _check_log(folder)
        sync_path(folder.resolve().parent)
        identity.write(folder)
    finally:
        lock.release()
    return restored


def check_unused(folder: Path) -> None:
    """Reject a folder with files of a service, unless an unfinished restore has left them."""
    identity, name = FolderIdentity.read(folder), service_file_in(folder)
    if name and (identity is None or identity.whole or identity.kind == "copy"):
        raise InputError(f"{folder} has {name}, which is not overwritten: restore into an empty folder")


def _check_log(folder: Path) -> Restored:
    """Read each record of a copied log, and make the log one that a service can open."""
    gaps = fill_gaps(folder / "log")
    log = SegmentLog(folder / "log", keep_damaged=True)
    planned_parts(folder / "rounds", log.end)
    damaged: list[tuple[int, int]] = []
    latest = b""
    for position, line in log.lines(log.begin):
        if is_whole(line):
            latest = line
        elif not any(begin <= position < end for begin, end in gaps):
            begin = damaged.pop()[0] if damaged and damaged[-1][1] == position else position
            damaged.append((begin, position + len(line)))
    log.close()
    snapshot, learnt = folder / _SNAPSHOT, 0
    with suppress(InputError, LookupError, TypeError, ValueError):  # a service reports a damaged snapshot
        learnt = int(read_file(snapshot)["run"]["service"]["position"])
    if learnt > log.end and log.begin:
        raise InputError(
            f"the copied log has the positions {log.begin} to {log.end}, and the snapshot continues at "
            f"{learnt}: restore from another copy"
        )
    if learnt > log.end:
        snapshot.replace(snapshot.with_suffix(".damaged"))
    time_of_last = read_record(latest).time.isoformat(timespec="milliseconds") if latest else ""
    return Restored(log.begin, log.end, time_of_last, log.torn, gaps, damaged, learnt)


def _version(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino


def _copy(path: Path, target: Path, alone: Alone) -> None:
    with path.open("rb") as file:
        replace_file(target, iter(partial(file.read, _CHUNK), b""), alone=alone)


def _between(log: SegmentLog, begin: int, end: int) -> bytes:
    return b"".join(line for _, line in log.lines(begin, end))
