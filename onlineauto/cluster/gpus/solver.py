"""SciPy, which the linear programs of this package need; it is installed by the extra ``tune``."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from onlineauto.errors import PackageError, install_hint


def scipy_module(name: str) -> Any:
    """Return a module of SciPy."""
    try:
        return import_module(f"scipy.{name}")
    except ImportError as error:
        raise PackageError(f"clusters of GPUs need SciPy: {install_hint('tune')}") from error
