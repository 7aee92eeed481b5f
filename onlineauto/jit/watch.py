"""``watch_compiling``: report the kernels that are being compiled."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from onlineauto.jit.kernel import Kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["watch_compiling"]


@contextmanager
def watch_compiling(listener: Callable[[str], object]) -> Iterator[None]:
    """Call `listener` with the name of each kernel that begins to be compiled."""
    Kernel.listeners.append(listener)
    try:
        yield
    finally:
        Kernel.listeners.remove(listener)
