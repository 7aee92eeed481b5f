"""``FolderLock``: allows one service per folder."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from onlineauto.errors import InputError


class FolderLock:
    """Locks a folder for this process, until `release` or the end of the process."""

    def __init__(self, folder: str | os.PathLike[str], *, use: str = "runs in") -> None:
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
            self._path = Path(folder) / "lock"
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
