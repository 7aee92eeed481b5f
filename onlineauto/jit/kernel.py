"""``@kernel``: compile a function of arrays, without the GIL, and keep the machine code on disk.

Numba's own cache looks at one file's date; a kernel that calls another file's kernel keeps the old one
when that file changes. So our cache lies in a directory named after a hash of *all* kernel sources, the
versions and the switches that change code generation: a stale kernel cannot be loaded.
"""

from __future__ import annotations

import hashlib
import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numba
from numba.core import config

from onlineauto.jit.inner import Inner

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["cache_directory", "entry_kernel", "inline_kernel", "is_compiled", "kernel"]

F = TypeVar("F", bound="Callable[..., Any]")

_PACKAGE = Path(__file__).resolve().parent.parent
_SWITCHES = ("NUMBA_BOUNDSCHECK", "NUMBA_OPT", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")


def _stamp() -> str:
    digest = hashlib.sha256()
    for path in sorted([*_PACKAGE.rglob("*_kernels.py"), *_PACKAGE.glob("jit/*.py")]):
        digest.update(path.relative_to(_PACKAGE).as_posix().encode() + b"\0" + path.read_bytes())
    versions = (numba.__version__, platform.python_version(), platform.machine())
    digest.update(repr((versions, [os.environ.get(switch) for switch in _SWITCHES])).encode())
    return digest.hexdigest()[:16]


def cache_directory() -> Path:
    """Directory of this version's compiled kernels.

    ``ONLINEAUTO_CACHE_DIR`` names its parent; without it, ``XDG_CACHE_HOME`` or ``~/.cache``.
    """
    parent = os.environ.get("ONLINEAUTO_CACHE_DIR")
    if parent is None:
        home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        parent = str(Path(home) / "onlineauto")
    return Path(parent) / f"kernels-{_stamp()}"


_DIRECTORY = str(cache_directory())


def is_compiled() -> bool:
    """Whether kernels of this version lie on disk: otherwise the first run compiles them."""
    return any(Path(_DIRECTORY).rglob("*.nbc"))


_SETTINGS: dict[str, Any] = {
    "nopython": True,
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
}


def entry_kernel(function: F) -> F:
    """Compile `function` with Numba, to be called from Python: cached on disk.

    As `kernel` otherwise. Only what the package calls from Python is one: its arguments have to be unpacked,
    which takes longer to compile than many a kernel.
    """
    switches: Any = config
    before = switches.CACHE_DIR
    switches.CACHE_DIR = _DIRECTORY
    try:
        compiled: F = numba.jit(cache=True, **_SETTINGS)(function)
        return compiled
    finally:
        switches.CACHE_DIR = before


def kernel(function: F) -> F:
    """Compile `function` with Numba, to be called by kernels: no GIL, no fast-math, C division.

    Without fast-math every float32 operation rounds in source order, which bit-exact parity rests on. Its
    machine code is made with that of its callers; called from Python, as tests do, it is compiled for that.

    Parameters
    ----------
    function : callable
        Takes and returns scalars, arrays and tuples of them only; variants are chosen by an int code, since
        a function passed as an argument would defeat the cache.
    """
    return cast("F", Inner(function, _SETTINGS | {"forceinline": False}))


def inline_kernel(function: F) -> F:
    """Like `kernel`, but compiled into its callers.

    A call copies every field of every array that it passes on, which for a small function of a few tuples
    costs more than its work: inlining made learning three times as fast. Not for large functions with
    several callers, whose code would be there several times.
    """
    return cast("F", Inner(function, _SETTINGS | {"forceinline": True}))
