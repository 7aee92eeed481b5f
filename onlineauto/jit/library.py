"""The library: kernels compiled ahead of time, which a platform wheel contains as shared objects.

There is one shared object for each level of a processor family; the best one that this processor can run is
loaded. A kernel that is not in it, such as a user's own, is compiled as usual.
"""

from __future__ import annotations

import ctypes
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

from onlineauto.jit.cache import switches
from onlineauto.jit.levels import runnable_levels

INDEX = "kernels.json"
"""Name of the index file, which lists the contents of the shared objects in the same folder."""
_FOLDER = Path(__file__).resolve().parent.parent / "_kernels"


def find(symbol: str) -> tuple[int, str] | None:
    """Return the address of a kernel and the kind of its result; None if the library does not contain it."""
    shared, results, _ = _open_library()
    if shared is None or symbol not in results:
        return None
    return ctypes.cast(getattr(shared, symbol), ctypes.c_void_p).value or 0, results[symbol]


def library_file() -> str | None:
    """Return the path of the loaded shared object; None if all kernels are compiled."""
    return _open_library()[2]


@cache
def _open_library() -> tuple[Any, dict[str, str], str | None]:
    """Return the shared object for this processor, the kinds of the results of its kernels, and its path.

    ``ONLINEAUTO_KERNELS`` names another folder; a variable that changes what Numba compiles excludes any.
    """
    path = Path(os.environ.get("ONLINEAUTO_KERNELS") or _FOLDER) / INDEX
    if switches() or not path.exists():
        return None, {}, None
    index = json.loads(path.read_text())
    for level in runnable_levels():
        if level in index["files"]:
            file = str(path.parent / index["files"][level])
            return ctypes.CDLL(file), index["results"], file
    return None, {}, None
