"""Watch kernels being compiled."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from onlineauto.jit.inner import Inner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["watch_compiling"]


@contextmanager
def watch_compiling(listener: Callable[[int, int], object]) -> Iterator[None]:
    """Call `listener` whenever a kernel begins to be compiled, with its number and that of all kernels.

    Not all need be compiled; and what is called from Python is optimised last, for about as long.
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
