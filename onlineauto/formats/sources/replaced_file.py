"""Replace a file atomically: write a new file in the same folder, sync it to the disk, and rename it.

The new file is called ``.NAME.HOST-RANDOM.part`` while it is written, and its writer holds a lock on it. The
system releases the lock of a killed process, so the next writer of the same file removes parts without a
lock. Parts of other hosts are not removed, since their locks may be invisible. No parts are removed where
locks do not exist: on Windows, and on some network file systems.
"""

from __future__ import annotations

import os
import platform
import re
import zlib
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeAlias

from onlineauto.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Iterator

try:
    import fcntl
except ImportError:  # Windows
    _HAS_LOCKS = False
else:
    _HAS_LOCKS = True

Alone: TypeAlias = Callable[[], AbstractContextManager[object]]
"""Returns a context in which no other process may write; its begin raises an error if this one must not."""

_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_FOUND = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


@contextmanager
def replacing(
    path: str | os.PathLike[str], *, alone: Alone = nullcontext, private: bool = False
) -> Iterator[BinaryIO]:
    """Yield an open file that replaces `path` when the context ends without an error.

    The file gets the permissions of the replaced file, or those of a new file; if it is `private`, only its
    owner can read it. It is renamed within `alone`.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory, suppress(ZeroDivisionError):
    ...     with replacing(Path(directory) / "new") as file:
    ...         1 / 0
    >>> Path(directory, "new").exists()
    False
    """
    target = Path(path).resolve()
    with ExitStack() as locks:
        part = None
        try:
            _remove_stale_parts(target)
            part, descriptor = _make_part(target, locks)
            with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor, not a path
                yield file
                file.flush()
                os.fsync(file.fileno())
            if not private:
                part.chmod(_mode_of(target))
            with alone():
                part.replace(target)
        except BaseException as error:
            if part is not None:
                part.unlink(missing_ok=True)
            if isinstance(error, OSError) and (part is None or error.filename in (None, os.fspath(part))):
                raise _write_error(path, target.parent, error) from error
            raise
    _sync_directory(target.parent)


def _write_error(path: str | os.PathLike[str], folder: Path, error: OSError) -> OutputError:
    """Return the error for a file that cannot be written, with a hint if the folder is missing."""
    if folder.is_dir():
        reason = error.strerror or str(error)
    else:
        reason = f"{error.strerror or error}: the folder {folder} does not exist, make it first"
    unwritable = OutputError(f"cannot write {os.fspath(path)}: {reason}")
    unwritable.errno = error.errno
    return unwritable


def _prefix(target: Path) -> str:
    """Return the prefix of the names of this host's parts of a file."""
    return f".{target.name}.{zlib.crc32(platform.node().encode()):08x}-"


def _make_part(target: Path, locks: ExitStack) -> tuple[Path, int]:
    """Create and lock a part of a file; return its path and descriptor. Closing `locks` releases the lock."""
    while True:
        part = target.with_name(f"{_prefix(target)}{os.urandom(4).hex()}.part")
        descriptor = os.open(part, _NEW, 0o600)
        if not _HAS_LOCKS:
            return part, descriptor
        locks.callback(os.close, os.dup(descriptor))  # the duplicate holds the lock until `locks` is closed
        if _lock(descriptor) is not False and os.fstat(descriptor).st_nlink:
            return part, descriptor
        os.close(descriptor)  # another writer removed the part before it was locked


def _lock(descriptor: int) -> bool | None:
    """Lock an open file and return whether that succeeded; None if its file system has no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _remove_stale_parts(target: Path) -> None:
    """Remove the parts of a file whose writers on this host were killed."""
    if not _HAS_LOCKS:
        return
    name = re.compile(re.escape(_prefix(target)) + r"[0-9a-f]{8}\.part")
    with suppress(OSError), os.scandir(target.parent) as entries:
        for entry in entries:
            if name.fullmatch(entry.name):
                _remove_if_unlocked(entry.path)


def _remove_if_unlocked(part: str) -> None:
    """Remove a part of a file, unless a running writer holds its lock."""
    with suppress(OSError):  # the part was renamed by its writer, or this user may not remove it
        descriptor = os.open(part, _FOUND)
        try:
            if _lock(descriptor):
                Path(part).unlink()
        finally:
            os.close(descriptor)


def _mode_of(path: Path) -> int:
    """Return the permissions of a file, or those of new files if it does not exist."""
    if path.exists():
        return path.stat().st_mode & 0o777
    os.umask(mask := os.umask(0o077))
    return 0o666 & ~mask


def _sync_directory(directory: Path) -> None:
    """Sync a directory, and so the new name of the file, if the system allows directories to be opened."""
    with suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
