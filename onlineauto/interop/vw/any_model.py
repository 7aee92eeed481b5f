"""Load models of onlineauto or Vowpal Wabbit as workspaces; the first bytes of a file tell the format."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onlineauto.errors import InputError, OptionError, short_repr
from onlineauto.interop.vw.file import begins_as_vw
from onlineauto.interop.vw.model import load_vw_model, read_vw_model
from onlineauto.workspace.model_file import MAGIC
from onlineauto.workspace.save_load import load_model
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from onlineauto.options import Configuration

_HEAD = 16


def is_vw_model(source: object) -> bool:
    """Return whether a path, or bytes, is a model of Vowpal Wabbit."""
    if isinstance(source, bytes):
        return begins_as_vw(source[:_HEAD])
    if not isinstance(source, str | os.PathLike) or not Path(source).is_file():
        return False
    with Path(source).open("rb") as file:
        return begins_as_vw(file.read(_HEAD))


def load_any_model(
    path: str | os.PathLike[str], configuration: Configuration
) -> tuple[Workspace, dict[str, Any]]:
    """Return the workspace of a model file, and the stored state of the run that saved it."""
    if is_vw_model(path):
        return load_vw_model(path, configuration)
    return load_model(Workspace, path, configuration)


def read_model(source: str | os.PathLike[str] | bytes, *, testonly: bool = False) -> Workspace:
    """Return the workspace of a model file of either program; with `testonly`, only to predict."""
    if not isinstance(source, str | os.PathLike | bytes):
        raise OptionError(
            f"cannot read a model from {short_repr(source)}: give a path, or the bytes of a model"
        )
    data = source if isinstance(source, bytes) else _content(source)
    if not data.startswith(MAGIC):
        return read_vw_model(data)
    return Workspace.load(data, testonly=True) if testonly else Workspace.load(data)


def _content(path: str | os.PathLike[str]) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read the model {os.fspath(path)}: {error.strerror}") from None
