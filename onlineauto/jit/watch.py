"""``watch_compiling``: report the kernels that are being compiled."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from onlineauto.jit.inner import Inner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["watch_compiling"]


@contextmanager
def watch_compiling(listener: Callable[[int, int], object]) -> Iterator[None]:
    """Call `listener` when a kernel begins to be compiled, with its number and the number of all kernels.

    The count need not reach the total, since a run need not compile every kernel. Entry kernels are optimised
    last; that takes about as long as all before.
    """
    count = 0

    def note() -> None:
        nonlocal count
        count += 1
        listener(count, Inner.made)

    Inner.listeners.append(note)
    try:
        yield
    finally:
        Inner.listeners.remove(note)
