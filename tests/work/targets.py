"""Functions of worker processes in tests."""

from __future__ import annotations

from typing import Any

from onlineauto.work.process import Parent


def echo(parent: Parent, *arguments: Any) -> None:
    """Send the arguments, and then each message."""
    parent.send(arguments)
    for message in parent:
        parent.send(message)


def busy(parent: Parent) -> None:
    """Compute without end."""
    parent.send("begun")
    while True:
        pass


def failing(parent: Parent) -> None:
    """Fail at once."""
    del parent
    raise SystemExit(3)
