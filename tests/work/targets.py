"""Functions of worker processes in tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from onlineauto.work.process import Parent


def echo(parent: Parent, *arguments: Any) -> None:
    """Send the arguments, and then each message."""
    parent.send(arguments)
    for message in parent:
        parent.send(message)


def busy(parent: Parent, path: str) -> None:
    """Compute without end; write a file when the parent dies."""
    parent.on_death = lambda: Path(path).write_text("orphan")
    parent.send("begun")
    while True:
        pass


def failing(parent: Parent) -> None:
    """Fail at once."""
    del parent
    raise SystemExit(3)
