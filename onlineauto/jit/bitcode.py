"""The package's bitcode: optimised LLVM code of all kernels, from which a first run generates machine code.

There is one file for each level of processors that ``python -m tools.bitcode`` was run for. A program in it
is named like its machine code (`onlineauto.jit.code`), by a hash of its sources. So bitcode of other sources
is never used. Files are read from the package's own folder only.
"""

from __future__ import annotations

import json
import logging
import os
import platform
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from onlineauto.jit.cache import switches
from onlineauto.jit.levels import compiles_for, levels, runnable_levels
from onlineauto.jit.sha256 import sha256

if TYPE_CHECKING:
    from collections.abc import Iterable

_LOG = logging.getLogger("onlineauto")
_FOLDER = Path(__file__).resolve().parent.parent / "_bitcode"
Programs = dict[str, tuple[bytes, str]]
"""The bitcode of each program and the kind of its result, by the name of the machine code."""


class Bitcode(NamedTuple):
    """The programs that can be used."""

    programs: Programs
    reason: str  # there are none; "" if there are


def file_for(level: str) -> Path:
    """Return the path of the bitcode for a level of this kind of machine; it need not exist."""
    return _FOLDER / f"{platform.system()}-{platform.machine()}-{level}.xz".lower()


def find(symbol: str) -> tuple[bytes, str] | None:
    """Return the bitcode of a kernel and the kind of its result; None if the package does not contain it."""
    return bitcode().programs.get(symbol)


@cache
def bitcode() -> Bitcode:
    """Return the bitcode for this processor, or for the one that is chosen; a damaged file is one warning."""
    if os.environ.get("ONLINEAUTO_KERNELS"):
        return Bitcode({}, "ONLINEAUTO_KERNELS is set")
    path = next(filter(Path.exists, map(file_for, _levels())), None)
    if path is None:
        return Bitcode({}, "the package has no bitcode for this processor")
    try:
        llvm, programs = read(path)
    except (OSError, ValueError, ImportError) as error:  # some builds of Python have no lzma
        _warn(error)
        return Bitcode({}, "the package's bitcode cannot be used")
    try:
        from llvmlite import binding
    except ModuleNotFoundError:
        return Bitcode({}, "llvmlite is not installed")
    mine: int = binding.llvm_version_info[0]
    if mine < llvm:
        return Bitcode({}, f"LLVM {mine} cannot read the package's bitcode, which needs LLVM {llvm}")
    return Bitcode(programs, "")


def reject(error: Exception) -> None:
    """Log a warning and use no bitcode in this process, because LLVM cannot read it."""
    bitcode().programs.clear()
    _warn(error)


def _warn(error: Exception) -> None:
    reason = " ".join(str(error).split())
    _LOG.warning("kernels are compiled, since the bitcode in %s cannot be used: %s", _FOLDER, reason)


def _levels() -> Iterable[str]:
    """Return the levels whose bitcode is good for the target, the best ones first."""
    names = switches().keys() | compiles_for("").keys() & os.environ.keys()
    chosen = {name: os.environ[name] for name in names}
    return [level for level in levels() if chosen == compiles_for(level)] if chosen else runnable_levels()


def read(path: Path) -> tuple[int, Programs]:
    """Return the version of LLVM that a file needs, and its programs; ValueError if it is damaged."""
    import lzma

    digest, _, packed = path.read_bytes().partition(b"\n")
    if digest.decode("ascii", "replace") != sha256(packed).hexdigest():
        raise ValueError("the file is damaged, so install onlineauto again")
    head, _, code = lzma.decompress(packed).partition(b"\n")
    stored, programs, begin = json.loads(head), Programs(), 0
    for symbol, size, result in stored["programs"]:
        programs[symbol] = code[begin : begin + size], result
        begin += size
    return stored["llvm"], programs


def write(path: Path, programs: Programs, llvm: int) -> None:
    """Write a file of bitcode, the same bytes for the same programs."""
    import lzma

    entries: list[tuple[str, tuple[bytes, str]]] = sorted(programs.items())
    head: dict[str, Any] = {
        "llvm": llvm,
        "programs": [(symbol, len(code), result) for symbol, (code, result) in entries],
    }
    content = json.dumps(head).encode() + b"\n" + b"".join(code for _, (code, _) in entries)
    packed = lzma.compress(content, preset=9 | lzma.PRESET_EXTREME)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(sha256(packed).hexdigest().encode() + b"\n" + packed)
