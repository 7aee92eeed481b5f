"""The cache: compiled kernels on the disk.

The directory is named after a hash of the compiler's versions, its switches and the processor. A file in it
is named after the hash of everything that the kernel depends on (`onlineauto.jit.fingerprint`). So no stale
code is loaded.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import sys
import tempfile
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from onlineauto.jit.levels import processor_lines, runnable_levels
from onlineauto.jit.sha256 import sha256

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOG = logging.getLogger("onlineauto")
_SIZE = 1 << 20
"""Number of bytes of a large program."""
_SWITCHES = (
    *("NUMBA_BOUNDSCHECK", "NUMBA_OPT", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"),
    *("NUMBA_LOOP_VECTORIZE", "NUMBA_SLP_VECTORIZE", "NUMBA_DEBUGINFO"),
)


def switches() -> dict[str, str]:
    """Return the environment variables that change what Numba compiles."""
    return {name: os.environ[name] for name in _SWITCHES if os.environ.get(name)}


def _processor() -> str:
    """Return a text that identifies this kind of processor, so that machines may share a directory."""
    fields = ("model name", "flags", "CPU part", "Features")
    lines = processor_lines()
    return "\n".join(line for line in lines if line.startswith(fields)) if lines else platform.processor()


@cache
def cache_directory() -> Path:
    """Return the directory into which kernels are compiled; ``ONLINEAUTO_CACHE_DIR`` names its parent."""
    named = os.environ.get("NUMBA_CPU_NAME")
    if named and "NUMBA_CPU_FEATURES" not in os.environ:  # Numba then adds the features of this processor
        named += f"\n{_processor()}"
    return _directory_for(named or _processor())


@cache
def _directories() -> list[Path]:
    """Return the directories that may hold kernels for this processor, the best ones first."""
    levels = [] if os.environ.get("NUMBA_CPU_NAME") else runnable_levels()
    return [cache_directory(), *map(_directory_for, levels)]


def _directory_for(processor: str) -> Path:
    parent = os.environ.get("ONLINEAUTO_CACHE_DIR")
    if parent is None:
        home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        parent = str(Path(home) / "onlineauto")
    chosen = {name: value for name, value in switches().items() if name != "NUMBA_CPU_NAME"}
    key = _compiler(), platform.system(), platform.machine(), sorted(chosen.items()), processor
    return Path(parent) / f"kernels-{sha256(repr(key).encode()).hexdigest()[:16]}"


def _compiler() -> list[str]:
    """Return the versions of Numba and LLVM; empty if the compiler is not installed."""
    names = "numba", "llvmlite"
    if all(folders := [_metadata_folder(name) for name in names]):
        return folders
    from importlib.metadata import PackageNotFoundError, version  # takes 3 MB of memory

    with suppress(PackageNotFoundError):
        return [version(name) for name in names]
    return []


def _metadata_folder(package: str) -> str:
    """Return the name of the folder with a package's metadata, which contains its version; empty if none."""
    pattern = f"{package}-*.dist-info"
    return next((found.name for folder in sys.path for found in Path(folder).glob(pattern)), "")


def load_object(symbol: str) -> tuple[bytes, str] | None:
    """Return the object code of a kernel and the kind of its result, None if it is missing or damaged."""
    for directory in _directories():
        with suppress(OSError, ValueError, KeyError, TypeError):
            head, _, code = (directory / f"{symbol}.o").read_bytes().partition(b"\n")
            stored = json.loads(head)
            if stored["digest"] == sha256(code).hexdigest():
                return code, str(stored["result"])
    return None


@cache
def can_keep() -> bool:
    """Return whether kernels can be written into the cache; if they cannot, log a warning once."""
    directory = cache_directory()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory) as file:
            file.write(bytes(_SIZE))
        return True
    except OSError as error:
        _warn_unwritable(error.strerror)
        return False


def keep(symbol: str, code: bytes, result: str) -> None:
    """Write a kernel into the cache atomically; if that is impossible, log a warning once."""
    if not can_keep():
        return
    head = json.dumps({"digest": sha256(code).hexdigest(), "result": result})
    path = cache_directory() / f"{symbol}.o"
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(head.encode() + b"\n" + code)
            Path(name).chmod(
                0o644
            )  # a temporary file is readable by its owner only; let all users of the directory read it
            Path(name).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        _warn_unwritable(error.strerror)


@cache
def _warn_unwritable(reason: str) -> None:
    _LOG.warning(
        "kernels are compiled for this run only: %s cannot be written (%s)", cache_directory(), reason
    )


@contextmanager
def kernel_lock(symbol: str, *, wait: bool = True) -> Iterator[bool]:
    """Hold the lock of a kernel, so that one process compiles it; yield False if it is not to be had."""
    if sys.platform == "win32":
        yield False
        return
    import fcntl

    path = cache_directory() / f".{symbol}.lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:
        yield False
        return
    _handles.add(handle)
    try:
        held = False
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = True
        yield held
    finally:
        _handles.remove(handle)
        os.close(handle)


_handles: set[int] = set()
"""The files of the locks that this process holds or waits for."""


def _release_in_child() -> None:
    """Close the files of locks, which a child of a fork shares with its parent."""
    while _handles:
        os.close(_handles.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_release_in_child)
