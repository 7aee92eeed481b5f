"""``memory_bytes``: the memory that may be used; ``return_memory``: make the C library free large blocks.

glibc keeps freed memory for later: once a large block was freed, blocks of up to its size come from a heap,
and each thread has a separate heap. In a process that writes a large snapshot every 30 seconds, this memory
grows for an hour and is never returned.
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
    """Make the allocator return freed blocks of 1 MB or more to the system; return False if it cannot."""
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
    limits = [1 << 33]
    with suppress(OSError, ValueError, AttributeError):
        limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # the file is missing, or says "max"
            limits.append(int(Path(path).read_text()))
    return min(limits)
