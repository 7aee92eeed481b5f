"""``python -m onlineauto`` runs the command ``onlineauto``."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING

from onlineauto.cli.terminal import without_garbage_collection

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["main"]


class _Messages(io.FileIO):
    """Standard error, which drops what cannot be written, so that messages never cost a result."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write bytes, and return their number even if the disk is full or the reader has gone."""
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def _prepare_streams() -> None:
    """Open closed standard streams, and make both outputs write every character and every message.

    A file that a run opens must not get the number of a closed stream. What is printed to a closed standard
    output is an error; messages to a closed standard error are dropped.
    """
    for number, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # takes the lowest free number, which is this one
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    encoding = getattr(sys.stderr, "encoding", "utf-8")
    messages = io.BufferedWriter(_Messages(2, "w", closefd=False))
    sys.stderr = io.TextIOWrapper(messages, encoding, "backslashreplace", line_buffering=True)


def main() -> int:
    """Import the command line, and run it."""
    try:
        _prepare_streams()
        with without_garbage_collection():
            from onlineauto.cli.main import main as run
    except KeyboardInterrupt:
        return 130
    return run()


if __name__ == "__main__":
    sys.exit(main())
