"""``Lease``: of the processes that share a folder, one at a time writes; ``Standby`` waits to be the next.

The folder ``leases`` has a file for each epoch. A process claims an epoch by creating its file, which only
one process can do. The holder rewrites its file four times within the duration of the lease. A standby claims
the next epoch after it has seen no change for 1.25 durations by its own clock, so that the clocks of machines
need not agree. The holder itself stops at the end of the duration.

The log asks `Lease.check` before it writes, and again after the disk has the records and before they are
acknowledged. A process that takes over first claims its epoch, and then replaces the last segment of the log
by a copy. So what an earlier holder still writes is either in the copy, or goes to a removed file and is not
acknowledged. All other files are replaced, cut and removed within `Lease.alone`, which checks the lease under
a lock that a takeover needs as well. So a process that was suspended changes nothing.
"""

from __future__ import annotations

import fcntl
import logging
import os
import socket
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from onlineauto.errors import InputError, OptionError
from onlineauto.service.log.segment_log import replace_last_segment, sync_path
from onlineauto.service.loop.folder import FolderIdentity, FolderLock, check_whole, promote_copy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LOG = logging.getLogger("onlineauto.service")
_FOLDER: Final = "leases"
_FILES: Final = f"{'[0-9]' * 8}.json"
_BYTES: Final = 512
"""Length of a file, so that a renewal overwrites the whole of the previous content."""
_RENEWALS: Final = 4.0
_MARGIN: Final = 1.25
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""A clock that also counts while the machine sleeps, where there is one."""


def _now() -> float:
    return time.clock_gettime(_CLOCK)


class LeaseContent(msgspec.Struct, frozen=True):
    """The content of the file of an epoch."""

    holder: str  # The machine and the process.
    seconds: float
    renewals: int = 0
    released: bool = False


class LeaseError(OSError):
    """The process does not have the lease, so it may not write; `str` says why."""


def _path(folder: Path, epoch: int) -> Path:
    return folder / _FOLDER / f"{epoch:08d}.json"


def latest_epoch(folder: Path) -> int:
    """Return the latest epoch that a process has claimed in a folder, or 0."""
    return max((int(path.stem) for path in (folder / _FOLDER).glob(_FILES)), default=0)


def read_lease(folder: Path, epoch: int) -> LeaseContent:
    """Return the content of the file of an epoch; a file that is being written has no holder yet."""
    try:
        return msgspec.json.decode(_path(folder, epoch).read_bytes().rstrip(), type=LeaseContent)
    except (OSError, msgspec.MsgspecError):
        return LeaseContent("another process", 0.0)


def holder_of(folder: Path) -> str:
    """Return who has the latest epoch of a folder, or an empty string if nobody has claimed one."""
    epoch = latest_epoch(folder)
    return f"{read_lease(folder, epoch).holder} with epoch {epoch}" if epoch else ""


class Lease:
    """The lease of a folder for one epoch after another, as long as no other process claims one.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as name:
    ...     first = Standby(Path(name), seconds=4.0).poll()
    ...     second = Standby(Path(name), seconds=4.0).poll()
    ...     first.check()
    ...     first.release()
    ...     first.epoch, second, Standby(Path(name), seconds=4.0).poll().epoch
    (1, None, 2)
    """

    def __init__(
        self, folder: Path, epoch: int, *, seconds: float, clock: Callable[[], float] = _now
    ) -> None:
        self.folder, self.epoch, self.seconds = folder, epoch, seconds
        self.lost = ""  # who has taken over, if another process has
        self._clock, self._until = clock, 0.0
        self._content = LeaseContent(f"{socket.gethostname()}:{os.getpid()}", seconds)
        self._next = _path(folder, epoch + 1)
        self._stop = threading.Event()
        self._claim(epoch)

    @property
    def problem(self) -> str:
        """The reason why the process may not write, or ""."""
        if not self.lost and os.path.lexists(self._next):
            self.lost = holder_of(self.folder) or "another process"
        if self.lost:
            return f"{self.lost} has taken over {self.folder}; the epoch of this process is {self.epoch}"
        if self._clock() >= self._until:
            return f"the lease of {self.folder} was not renewed for {self.seconds:g} seconds"
        return ""

    def check(self) -> None:
        """Raise `LeaseError` unless this process may write."""
        problem = self.problem
        if problem:
            raise LeaseError(problem)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Let no other process take over in the block; raise `LeaseError` unless this process may."""
        file = os.open(self.folder / _FOLDER / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            self.check()
            yield
        finally:
            os.close(file)

    def renew(self) -> None:
        """Extend the lease. An expired one needs a new epoch, which proves that no other process had one."""
        begin = self._clock()
        if self.problem and not self.lost:
            with suppress(FileExistsError):
                self._claim(self.epoch + 1)
                _LOG.warning("the lease is held again", extra={"event": "lease_again", "epoch": self.epoch})
        elif not self.lost:
            self._content = msgspec.structs.replace(self._content, renewals=self._content.renewals + 1)
            self._write(self.epoch, os.O_WRONLY)
            if not self.problem:
                self._until = begin + self.seconds

    def keep(self, on_loss: Callable[[], object]) -> None:
        """Renew in a thread until `release`; call `on_loss` once another process has taken over."""
        threading.Thread(target=self._keep, args=(on_loss,), name="onlineauto-lease", daemon=True).start()

    def release(self) -> None:
        """Let a standby take over at once; this process no longer writes."""
        self._stop.set()
        if not self.problem:
            self._content = msgspec.structs.replace(self._content, released=True)
            self._write(self.epoch, os.O_WRONLY)
        self._until = 0.0

    def _keep(self, on_loss: Callable[[], object]) -> None:
        failed = ""
        while not self._stop.wait(self.seconds / _RENEWALS):
            try:
                self.renew()
                failed = ""
            except OSError as error:
                if str(error) != failed:
                    failed = str(error)
                    extra = {"event": "lease_not_renewed", "epoch": self.epoch}
                    _LOG.error("the lease cannot be renewed: %s", error, extra=extra)
            if self.lost:
                _LOG.error(self.problem, extra={"event": "lease_lost", "epoch": self.epoch})
                on_loss()
                return

    def _claim(self, epoch: int) -> None:
        """Create the file of an epoch; raise `FileExistsError` if another process has claimed it."""
        begin = self._clock()
        self._write(epoch, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        sync_path(_path(self.folder, epoch).parent)
        self.epoch, self._until = epoch, begin + self.seconds
        self._next = _path(self.folder, epoch + 1)

    def _write(self, epoch: int, flags: int) -> None:
        """Write the content without a moment at which the file is missing, which a rename has on NFS."""
        file = os.open(_path(self.folder, epoch), flags, 0o600)
        try:
            os.pwrite(file, msgspec.json.encode(self._content).ljust(_BYTES), 0)
        except OSError:
            if flags & os.O_CREAT:  # else this process would wait for itself
                _path(self.folder, epoch).unlink()
            raise
        finally:
            os.close(file)


def lock_folder(folder: Path, lease: Lease | None) -> FolderLock:
    """Lock the folder of a service; with the lease of it, exclude the process that had the lease before."""
    shared = lease is not None and is_same_folder(folder, lease.folder)
    if not shared and (holder := holder_of(folder)):
        raise InputError(
            f"{folder} is shared: {holder} had its lease. Give --standby {folder}; or, if no other process "
            f"shall use it any more, remove {folder / _FOLDER}"
        )
    if lease is None or not shared:
        return FolderLock(folder)
    with ExitStack() as failing:
        try:
            with lease.alone():
                lock = FolderLock(folder, replace=lease.epoch > 1)
                failing.callback(lock.release)
            lease.check()
            promote_copy(folder, lease.alone)
            replace_last_segment(folder / "log", suffix=f".{lease.epoch}.new", alone=lease.alone)
        except OSError as error:
            raise InputError(f"cannot take over {folder}: {error}") from None
        failing.pop_all()
    return lock


def check_shared(folder: Path, shared: Path) -> None:
    """Raise an `InputError` if a process with a folder may never take the lease, an `OSError` if not now."""
    if is_same_folder(folder, shared):
        if not latest_epoch(shared):
            FolderLock(folder).release()  # no service without a lease runs there
        try:
            check_whole(folder)
        except InputError as error:
            raise OSError(str(error)) from None
        return
    identity = FolderIdentity.read(shared)
    if identity is not None and identity.kind == "service":
        raise InputError(
            f"{folder} is not served: {holder_of(shared) or 'another process'} has taken over in {shared}, "
            f"and {folder} has an earlier epoch: remove it. For a standby: onlineauto serve {shared} "
            f"--standby {shared}"
        )


def is_same_folder(one: Path, other: Path) -> bool:
    """Return whether two paths name one folder."""
    return Path(os.path.realpath(one)) == Path(os.path.realpath(other))


class Standby:
    """Waits for the lease of a folder; `poll` claims it once its holder has gone."""

    def __init__(self, folder: Path, *, seconds: float, clock: Callable[[], float] = _now) -> None:
        if not folder.is_dir():
            raise OptionError(
                f"the folder {folder} of --standby does not exist: make it where both can write"
            )
        (folder / _FOLDER).mkdir(mode=0o700, exist_ok=True)
        self.folder, self.seconds, self.failures, self.holder = folder, seconds, 0, ""
        self._clock, self._seen, self._since = clock, (0, LeaseContent("", 0.0)), clock()

    @property
    def age(self) -> float:
        """The seconds since the last renewal that this process has seen."""
        return max(self._clock() - self._since, 0.0)

    def poll(self) -> Lease | None:
        """Return the lease if its holder has released it or does not renew it, else None."""
        epoch = latest_epoch(self.folder)
        content = read_lease(self.folder, epoch)
        if (epoch, content) != self._seen:
            self._seen, self._since = (epoch, content), self._clock()
        self.holder = f"{content.holder} with epoch {epoch}" if epoch else ""
        if epoch and not content.released and self.age <= _MARGIN * max(content.seconds, self.seconds):
            return None
        try:
            return Lease(self.folder, epoch + 1, seconds=self.seconds, clock=self._clock)
        except FileExistsError:  # another standby was faster
            return None
