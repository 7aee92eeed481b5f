"""Sink: what predictions and journals are written to."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Sink"]


class Sink(Protocol):
    """A place that takes bytes, such as a binary file, a pipe or a socket."""

    def write(self, data: bytes, /) -> object:
        """Take bytes."""

    def flush(self) -> object:
        """Pass on all bytes taken so far."""
