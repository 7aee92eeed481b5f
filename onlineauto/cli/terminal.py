"""Warnings, a line of progress, and tables on a terminal."""

from __future__ import annotations

import gc
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from onlineauto.options import Configuration

Draw = Callable[["str | Callable[[], str]"], None]
"""Displays a text at once, or the text of a callable at most five times per second."""

_CLEAR: Final = "\r\x1b[K"
"""Moves the cursor to the beginning of a terminal's line and clears the line."""
_PAUSE: Final = 0.2
"""Minimum number of seconds between two texts of callables."""


def warn(text: object) -> None:
    """Print a warning to standard error."""
    print(f"onlineauto: warning: {text}", file=sys.stderr)


def warn_of_effects(supplied: Configuration, configuration: Configuration) -> None:
    """Warn about supplied options without effect; options of a model in `configuration` may give them one."""
    for warning in supplied.warnings:
        if warning in configuration.warnings:
            warn(warning)


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Disable garbage collection until the imports are done; later collections skip what they created."""
    enabled, before = gc.isenabled(), len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        if len(sys.modules) > before:
            gc.freeze()
        if enabled:
            gc.enable()


@contextmanager
def progress_line(*, quiet: bool = False) -> Iterator[Draw | None]:
    """Yield a function that displays a line on standard error; None if it is no terminal, or if `quiet`.

    The line is cleared at the end.
    """
    stream = sys.stderr
    if quiet or not stream.isatty():
        yield None
        return
    last, drawn = "", -_PAUSE

    def draw(text: str | Callable[[], str]) -> None:
        nonlocal last, drawn
        now = time.monotonic()
        if isinstance(text, str) or now - drawn >= _PAUSE:
            drawn = now
            last = (text if isinstance(text, str) else text())[: shutil.get_terminal_size().columns - 1]
            stream.write(f"{_CLEAR}{last}")
            stream.flush()

    try:
        yield draw
    finally:
        if last:
            draw("")


@contextmanager
def show_compiling(*, quiet: bool = False) -> Iterator[None]:
    """Display the kernels being compiled in a line of progress."""
    from onlineauto.jit import compiling_processes, watch_compiling

    begin = time.perf_counter()
    with progress_line(quiet=quiet) as draw:
        if draw is None:
            yield
            return

        def show(program: str, done: int, total: int) -> None:
            seconds = time.perf_counter() - begin
            text = (
                f"onlineauto: compiling {program}, first run only: {done} of {total}, {seconds:.0f} s so far"
            )
            if (n := compiling_processes()) > 1:
                text += f", {n} processes"
            draw(text)
            if done == total:
                draw("")

        with watch_compiling(show):
            yield


def table_lines(rows: Sequence[Sequence[str]], *, right: bool = True) -> Iterator[str]:
    """Yield rows with columns as wide as their longest cell, all but the first aligned to the right if so."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *others in rows:
        cells = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width in zip(others, widths[1:], strict=True)
        ]
        yield "  ".join([first.ljust(widths[0]), *cells]).rstrip()
