"""``JournalFile``: the file of a search's journal, which a full disk does not stop."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

__all__ = ["JournalFile"]


class JournalFile:
    """Appends to a file; what the disk does not take is kept, and written before what comes later.

    Parameters
    ----------
    path : path
        The file; it is made if it does not exist.
    size : int
        The number of bytes that are kept of it.

    Raises
    ------
    OSError
        The file cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str], size: int) -> None:
        self.name = Path(path).stem
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.ftruncate(self._file, size)
        self._written, self._rest = size, b""

    def tell(self) -> int:
        """Return the size of the journal, with what the disk does not have yet."""
        return self._written + len(self._rest)

    def write(self, data: bytes) -> int:
        """Append bytes."""
        self._rest += data
        return len(data)

    def flush(self) -> None:
        """Write what the disk takes."""
        with suppress(OSError):
            self._write()

    def sync(self) -> None:
        """Wait until the disk has everything.

        Raises
        ------
        OSError
            It does not take all of it.
        """
        self._write()
        os.fsync(self._file)

    def close(self) -> None:
        """Write what the disk takes, and close the file."""
        self.flush()
        os.close(self._file)

    def _write(self) -> None:
        while self._rest:
            done = os.pwrite(self._file, self._rest, self._written)
            self._written, self._rest = self._written + done, self._rest[done:]
