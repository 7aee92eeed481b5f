"""``read_model``: a model of this program, or of Vowpal Wabbit, as a workspace."""

from __future__ import annotations

import os
from pathlib import Path

from onlineauto.errors import InputError
from onlineauto.interop.vw.model import read_vw_model
from onlineauto.workspace.model_file import MAGIC
from onlineauto.workspace.workspace import Workspace

__all__ = ["read_model"]


def read_model(source: str | os.PathLike[str] | bytes) -> Workspace:
    """Return the workspace of a model file, whose first bytes say whose it is.

    Raises
    ------
    InputError
        The file cannot be read, or is not a model.
    """
    data = source if isinstance(source, bytes) else _content(source)
    return Workspace.load(data) if data.startswith(MAGIC) else read_vw_model(data)


def _content(path: str | os.PathLike[str]) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read the model {os.fspath(path)}: {error.strerror}") from None
