"""SHA-256 as Python has it built in: `hashlib` loads OpenSSL, which takes 3 MB of memory."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import sha256
else:
    _NAMES = "_sha2", "_sha256", "hashlib"  # Python 3.12 and later, 3.11, builds without either
    sha256 = import_module(next(name for name in _NAMES if find_spec(name))).sha256

__all__ = ["sha256"]
