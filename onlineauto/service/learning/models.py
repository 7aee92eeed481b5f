"""``Models``: the history of models, each a whole checkpoint from which learning can continue."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from onlineauto.errors import InputError
from onlineauto.workspace.model_file import replace_file

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

PUT: Final = "put-"
"""Prefix of the names of models that were learnt elsewhere."""

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


class ModelVersion(msgspec.Struct, frozen=True):
    """A model of the history: its name, and the time at which it was written, in seconds."""

    name: str
    time: float
    bytes: int


class Models:
    """Model files in a folder: the latest `keep`, and the one named `in_use`."""

    def __init__(self, folder: str | os.PathLike[str], *, keep: int = 10) -> None:
        self.folder, self.keep, self.in_use = Path(folder), keep, ""
        self.folder.mkdir(parents=True, exist_ok=True)

    def all(self) -> list[ModelVersion]:
        """Return the models, the oldest first."""
        models = []
        for path in self.folder.glob("*.oam"):
            status = path.stat()
            models.append(ModelVersion(path.stem, status.st_mtime, status.st_size))
        return sorted(models, key=lambda each: (each.time, each.name))

    def path(self, name: str) -> Path:
        """Return the file of a model."""
        path = self.folder / f"{name}.oam"
        if not _NAME.fullmatch(name) or not path.is_file():
            names = ", ".join(each.name for each in self.all()) or "none"
            raise InputError(f"there is no model {name!r} in the history; it has {names}")
        return path

    def add(self, name: str, write: Callable[[Path], object]) -> None:
        """Let `write` write a model under a name, unless the name exists, and remove the oldest models."""
        path = self.folder / f"{name}.oam"
        if not path.exists():
            write(path)
        for old in self.all()[: -self.keep]:
            if old.name not in (name, self.in_use):
                (self.folder / f"{old.name}.oam").unlink(missing_ok=True)

    def put(self, name: str, content: bytes) -> None:
        """Write the bytes of a model under a name."""
        if not _NAME.fullmatch(name):
            raise InputError(
                f"a model cannot be called {name!r}: use at most 64 characters of a to z, 0 to 9 and '-'"
            )
        self.add(name, lambda path: replace_file(path, [content]))
