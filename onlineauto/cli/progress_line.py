"""``progress_line``: one line of standard error that shows the progress of a command on a terminal."""

from __future__ import annotations

import shutil
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_CLEAR: Final = "\r\x1b[K"
"""Moves the cursor to the beginning of a terminal's line and clears the line."""
_PAUSE: Final = 0.2
"""Minimum number of seconds between two updates."""


@contextmanager
def progress_line(*, quiet: bool = False) -> Iterator[Callable[[Callable[[], str]], None] | None]:
    """Yield a function that displays the text of a callable; None if there is no terminal, or if `quiet`.

    The callable is called at most five times per second. The line is cleared at the end.
    """
    stream = sys.stderr
    if quiet or not stream.isatty():
        yield None
        return
    drawn = -_PAUSE

    def draw(text: Callable[[], str]) -> None:
        nonlocal drawn
        now = time.monotonic()
        if now - drawn >= _PAUSE:
            drawn = now
            stream.write(f"{_CLEAR}{text()[: shutil.get_terminal_size().columns - 1]}")
            stream.flush()

    try:
        yield draw
    finally:
        stream.write(_CLEAR)
        stream.flush()
