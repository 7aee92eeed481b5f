"""``read_settings``: the text of a file of settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os


def read_settings(path: str | os.PathLike[str]) -> str:
    """Return the text of a file of settings, without the byte order mark that some editors write."""
    return Path(path).read_text("utf-8-sig")
