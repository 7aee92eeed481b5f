"""Sink: the target of predictions and journals."""

from __future__ import annotations

from typing import Protocol


class Sink(Protocol):
    """A target of bytes, such as a binary file, a pipe or a socket."""

    def write(self, data: bytes, /) -> object:
        """Write bytes, perhaps into a buffer."""

    def flush(self) -> object:
        """Pass on all bytes written so far."""
