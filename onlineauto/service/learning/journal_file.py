"""``SearchJournal``: the journals of a learner's searches; a full disk delays writes and loses none."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onlineauto.engine.search.journal import Journal

if TYPE_CHECKING:
    from onlineauto.options import Configuration


class JournalFile:
    """Appends to a file; bytes that the disk does not take are written first by the next write."""

    def __init__(self, path: str | os.PathLike[str], size: int) -> None:
        self.name = Path(path).stem
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.ftruncate(self._file, size)
        self._written, self._rest = size, b""

    def tell(self) -> int:
        """Return the size of the journal, including buffered bytes."""
        return self._written + len(self._rest)

    def write(self, data: bytes) -> int:
        """Append bytes."""
        self._rest += data
        return len(data)

    def flush(self) -> None:
        """Write as many buffered bytes as the disk takes."""
        with suppress(OSError):
            self._write()

    def sync(self) -> None:
        """Wait until the disk has everything."""
        self._write()
        os.fsync(self._file)

    def close(self) -> None:
        """Write as many buffered bytes as the disk takes, and close the file."""
        self.flush()
        os.close(self._file)

    def _write(self) -> None:
        while self._rest:
            done = os.pwrite(self._file, self._rest, self._written)
            self._written, self._rest = self._written + done, self._rest[done:]


class SearchJournal:
    """The journal of the current search, if the options ask for a search."""

    def __init__(self, folder: Path, configuration: Configuration) -> None:
        self._folder, self._configuration = folder, configuration
        self._file: JournalFile | None = None

    def open(self, name: str, size: int) -> None:
        """Open a journal, and cut it to `size` bytes."""
        self.close()
        if self._configuration.get("automl") is None:
            return
        self._folder.mkdir(exist_ok=True)
        self._file = JournalFile(self._folder / f"{name}.jsonl", size)
        self._writer = Journal(self._file, command=self._configuration.command(kept=True), began=size > 0)

    @property
    def place(self) -> tuple[str, int]:
        """The name and the size of the journal."""
        return ("", 0) if self._file is None else (self._file.name, self._file.tell())

    def append(self, entry: Any) -> None:
        """Write an entry of the search."""
        if self._file is not None:
            self._writer.append(entry)

    def sync(self) -> None:
        """Wait until the disk has everything."""
        if self._file is not None:
            self._file.sync()

    def close(self) -> None:
        """Close the journal, if one is open."""
        if self._file is not None:
            self._file.close()
            self._file = None
