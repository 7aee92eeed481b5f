"""The directory on disk that holds compiled kernels.

Numba's own cache checks the date of one file. A kernel that calls a kernel of another file stays stale when
that file changes. So our directory is named after a hash of everything that changes machine code: the sources
of all kernels, the versions, and Numba's switches. Nothing stale can be loaded. A test checks that the hashed
files import nothing of the package but one another.
"""

from __future__ import annotations

import hashlib
import os
import platform
from contextlib import suppress
from functools import cache
from itertools import chain
from pathlib import Path

import llvmlite
import numba

__all__ = ["cache_directory", "is_warm", "kernel_sources", "note_warm"]

_PACKAGE = Path(__file__).resolve().parent.parent
_SWITCHES = (
    *("NUMBA_BOUNDSCHECK", "NUMBA_OPT", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"),
    *("NUMBA_LOOP_VECTORIZE", "NUMBA_SLP_VECTORIZE", "NUMBA_DEBUGINFO"),
)
_PATTERNS = ("jit/*.py", "**/*_kernels.py", "**/quirks.py", "engine/event/state.py", "features/records.py")


def kernel_sources() -> list[Path]:
    """Return the files that compiled code depends on, in ascending order."""
    return sorted(set(chain.from_iterable(map(_PACKAGE.glob, _PATTERNS))))


def _stamp() -> str:
    digest = hashlib.sha256()
    for path in kernel_sources():
        digest.update(path.relative_to(_PACKAGE).as_posix().encode() + b"\0" + path.read_bytes())
    versions = (numba.__version__, llvmlite.__version__, platform.python_version(), platform.machine())
    digest.update(repr((versions, [os.environ.get(switch) for switch in _SWITCHES])).encode())
    return digest.hexdigest()[:16]


@cache
def cache_directory() -> Path:
    """Return the directory of this version's compiled kernels.

    ``ONLINEAUTO_CACHE_DIR`` names its parent. Without it the parent is ``onlineauto`` in ``XDG_CACHE_HOME``
    or in ``~/.cache``.
    """
    parent = os.environ.get("ONLINEAUTO_CACHE_DIR")
    if parent is None:
        home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        parent = str(Path(home) / "onlineauto")
    return Path(parent) / f"kernels-{_stamp()}"


def is_warm(part: str = "all") -> bool:
    """Return whether `note_warm` has recorded that a part of the kernels of this version is on disk."""
    return any((cache_directory() / f"warm-{each}").exists() for each in ("all", part))


def note_warm(part: str = "all") -> None:
    """Record that a part of the kernels is on disk, if the directory can be written."""
    with suppress(OSError):
        (cache_directory() / f"warm-{part}").touch()
