"""``memory_bytes``: how much there is; ``return_memory``: let the C library give large blocks back at once.

glibc keeps what is free for later: once a large block was freed, blocks of up to its size come from a heap,
and each thread has one of its own. In a process that writes a large snapshot every half a minute, that is
memory which grows for an hour and then stays.
"""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8
_LARGE: Final = 1 << 20
_ARENAS: Final = 2


def return_memory() -> bool:
    """Give blocks of a MB or more back once they are free; return whether the C library can be told so."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is None:
        return False
    wanted = ((_MMAP_THRESHOLD, _LARGE), (_ARENA_MAX, _ARENAS))
    taken = [mallopt(name, value) == 1 for name, value in wanted]
    return all(taken)


def memory_bytes() -> int:
    """Return the memory that the process may use: that of its container, or of the machine.

    >>> memory_bytes() > 1 << 26
    True
    """
    found = [1 << 33]
    with suppress(OSError, ValueError, AttributeError):
        found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # there is none, or it says "max"
            found.append(int(Path(path).read_text()))
    return min(found)
