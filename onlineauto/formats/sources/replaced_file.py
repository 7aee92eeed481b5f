"""Replaced files: written beside their place, and renamed to it when all of them is on the disk.

What is being written is called ``.NAME.HOST-RANDOM.part``, and its writer holds a lock on it until it has its
name. The lock of a process that was killed is gone, so the next who writes a file of that name removes the
parts that nobody holds. It leaves those of other hosts, whose locks it may not see, and all where there are
no locks: on Windows, and on some file systems of networks.
"""

from __future__ import annotations

import os
import platform
import re
import secrets
import zlib
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

try:
    import fcntl
except ImportError:  # Windows
    _HAS_LOCKS = False
else:
    _HAS_LOCKS = True

__all__ = ["replacing"]

_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_FOUND = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file that takes the place of `path` once all of it is on the disk, and never after an error.

    Who may read and write it is as of the file that was there, or as of any new file.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory, suppress(ZeroDivisionError):
    ...     with replacing(Path(directory) / "new") as file:
    ...         1 / 0
    >>> Path(directory, "new").exists()
    False

    Raises
    ------
    OSError
        It cannot be written; what was there is as it was.
    """
    target = Path(path).resolve()
    with ExitStack() as locks:
        part = None
        try:
            _remove_parts_of_the_dead(target)
            part, descriptor = _make_part(target, locks)
            with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor, not a path
                yield file
                file.flush()
                os.fsync(file.fileno())
            part.chmod(_mode_of(target))
            part.replace(target)
        except BaseException as error:
            if part is not None:
                part.unlink(missing_ok=True)
            if isinstance(error, OSError) and (part is None or error.filename in (None, os.fspath(part))):
                raise OSError(f"cannot write {os.fspath(path)}: {error.strerror or error}") from error
            raise
    _sync_directory(target.parent)


def _prefix(target: Path) -> str:
    """Return what the names of this host's parts of a file begin with."""
    return f".{target.name}.{zlib.crc32(platform.node().encode()):08x}-"


def _make_part(target: Path, locks: ExitStack) -> tuple[Path, int]:
    """Make a part of a file, which the `locks` hold a lock on where there are any; return it, opened."""
    while True:
        part = target.with_name(f"{_prefix(target)}{secrets.token_hex(4)}.part")
        descriptor = os.open(part, _NEW, 0o600)
        if not _HAS_LOCKS:
            return part, descriptor
        locks.callback(os.close, os.dup(descriptor))  # the lock is that of both, and outlives the writing
        if _lock(descriptor) is not False and os.fstat(descriptor).st_nlink:
            return part, descriptor
        os.close(descriptor)  # another writer took it for one of the dead before it was locked


def _lock(descriptor: int) -> bool | None:
    """Lock an open file; return whether that succeeded, None if there are no locks where it is."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _remove_parts_of_the_dead(target: Path) -> None:
    """Remove what writers of a file have left that were killed on this host."""
    if not _HAS_LOCKS:
        return
    name = re.compile(re.escape(_prefix(target)) + r"[0-9a-f]{8}\.part")
    with suppress(OSError), os.scandir(target.parent) as entries:
        for entry in entries:
            if name.fullmatch(entry.name):
                _remove_if_nobody_holds(entry.path)


def _remove_if_nobody_holds(part: str) -> None:
    with suppress(OSError):  # it has its name by now, or is not ours to remove
        descriptor = os.open(part, _FOUND)
        try:
            if _lock(descriptor):
                Path(part).unlink()
        finally:
            os.close(descriptor)


def _mode_of(path: Path) -> int:
    """Who may read and write a file; if it is not there yet, whoever may read and write new ones."""
    if path.exists():
        return path.stat().st_mode & 0o777
    os.umask(mask := os.umask(0o077))
    return 0o666 & ~mask


def _sync_directory(directory: Path) -> None:
    """Let the new name be on the disk too; where directories cannot be opened, it is for the system to do."""
    with suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
