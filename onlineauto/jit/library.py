"""The library: kernels that were compiled ahead of time, which a platform wheel carries as shared objects.

There is one for each level of a processor family; the best one that this processor can run is loaded. A
kernel that is not in it, such as a user's own, is compiled as ever.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
from functools import cache
from pathlib import Path
from typing import Any

from onlineauto.jit.cache import switches

__all__ = ["INDEX", "LEVELS", "found", "level"]

INDEX = "kernels.json"
"""Name of the file that says what the shared objects beside it hold."""
LEVELS = {"x86_64": ("x86-64-v3", "x86-64-v2"), "aarch64": ("generic",), "arm64": ("generic",)}
"""Processors that kernels are compiled for, by machine, the most capable first."""
_FLAGS = {
    "x86-64-v3": {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave", "abm"},
    "x86-64-v2": {"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"},
}
"""What Linux calls the features of a level; a level has those of the lower ones, too."""
_FOLDER = Path(__file__).resolve().parent.parent / "_kernels"


@cache
def level() -> str | None:
    """Return the best level that this processor can run, None if it is none of them, or unknown."""
    levels = LEVELS.get(platform.machine(), ())
    flags = _processor_flags()
    for each in levels:
        wanted = set().union(*(_FLAGS.get(lower, set()) for lower in levels[levels.index(each) :]))
        if wanted <= flags:
            return each
    return None


def _processor_flags() -> set[str]:
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:
        return set()
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "flags":
            return set(value.split())
    return set()


def found(symbol: str) -> tuple[int, str] | None:
    """Return the address of a kernel and the kind of its result, None if the library does not have it."""
    shared, results = _opened()
    result = results.get(symbol)
    if shared is None or result is None:
        return None
    return ctypes.cast(getattr(shared, symbol), ctypes.c_void_p).value or 0, result


@cache
def _opened() -> tuple[Any, dict[str, str]]:
    """Return the shared object for this processor, and the kinds of the results of its kernels.

    It is not used where a switch changes what is compiled.
    """
    folder = Path(os.environ.get("ONLINEAUTO_KERNELS") or _FOLDER)
    path = folder / INDEX
    if switches() or level() is None or not path.exists():
        return None, {}
    index = json.loads(path.read_text())
    name = index["files"].get(level())
    if name is None:
        return None, {}
    return ctypes.CDLL(str(folder / name)), index["results"]
