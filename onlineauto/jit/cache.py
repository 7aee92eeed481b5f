"""The cache: compiled kernels on the disk.

Its directory is named after a hash of the compiler's versions, its switches and the processor; a file in it after
the hash of all that a kernel is made of (`onlineauto.jit.fingerprint`). So nothing stale can be loaded.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
import sys
import tempfile
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "cache_directory",
    "is_warm",
    "keep",
    "kept",
    "locked",
    "note_warm",
    "switches",
]

_LOG = logging.getLogger("onlineauto")
_SWITCHES = (
    *("NUMBA_BOUNDSCHECK", "NUMBA_OPT", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"),
    *("NUMBA_LOOP_VECTORIZE", "NUMBA_SLP_VECTORIZE", "NUMBA_DEBUGINFO"),
)


def switches() -> dict[str, str]:
    """Return the environment's switches that change what Numba compiles."""
    return {name: os.environ[name] for name in _SWITCHES if os.environ.get(name)}


def _processor() -> str:
    """Return what tells this processor from another, so that machines may share a directory."""
    with suppress(OSError):
        wanted = ("model name", "flags", "CPU part", "Features")
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").split("\n\n")[0].splitlines()
        return "\n".join(line for line in lines if line.startswith(wanted))
    return platform.processor()


@cache
def cache_directory() -> Path:
    """Return the directory of the kernels that this compiler made for this processor.

    ``ONLINEAUTO_CACHE_DIR`` names its parent. Without it the parent is ``onlineauto`` in ``XDG_CACHE_HOME``
    or in ``~/.cache``.
    """
    parent = os.environ.get("ONLINEAUTO_CACHE_DIR")
    if parent is None:
        home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        parent = str(Path(home) / "onlineauto")
    versions = version("numba"), version("llvmlite"), platform.system(), platform.machine()
    processor = () if "NUMBA_CPU_NAME" in os.environ else (_processor(),)
    told = repr((versions, sorted(switches().items()), processor))
    return Path(parent) / f"kernels-{hashlib.sha256(told.encode()).hexdigest()[:16]}"


def kept(symbol: str) -> tuple[bytes, str] | None:
    """Return the object code of a kernel and the kind of its result, None if it is not there or is damaged."""
    try:
        data = _path(symbol).read_bytes()
    except OSError:
        return None
    head, _, code = data.partition(b"\n")
    with suppress(ValueError, KeyError, TypeError):
        stored = json.loads(head)
        if stored["digest"] == hashlib.sha256(code).hexdigest():
            return code, str(stored["result"])
    return None


def keep(symbol: str, code: bytes, result: str) -> None:
    """Write a kernel into the cache, whole or not at all; if that is impossible, say so once."""
    head = json.dumps({"digest": hashlib.sha256(code).hexdigest(), "result": result})
    path = _path(symbol)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(head.encode() + b"\n" + code)
            Path(name).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        _say_once(f"kernels are compiled for this run only: {path.parent} cannot be written ({error.strerror})")


@cache
def _say_once(text: str) -> None:
    _LOG.warning(text)


def _path(symbol: str) -> Path:
    return cache_directory() / f"{symbol}.o"


@contextmanager
def locked(symbol: str) -> Iterator[None]:
    """Hold the lock of a kernel, so that of several processes that need it one compiles it.

    The system releases it when the process ends, however it ends. Where there are no locks, each compiles.
    """
    if sys.platform == "win32":
        yield
        return
    import fcntl

    path = cache_directory() / f".{symbol}.lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:
        yield
        return
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def is_warm(part: str = "all") -> bool:
    """Return whether `note_warm` has recorded that a part of the kernels of this version is on disk."""
    return any((cache_directory() / f"warm-{each}").exists() for each in ("all", part))


def note_warm(part: str = "all") -> None:
    """Record that a part of the kernels is on disk, if the directory can be written."""
    with suppress(OSError):
        (cache_directory() / f"warm-{part}").touch()
