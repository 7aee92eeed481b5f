"""``show_compiling``: the progress of the compiler on a terminal."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from onlineauto.jit import compiling_processes, watch_compiling

if TYPE_CHECKING:
    from collections.abc import Iterator

_LINE = "\r\x1b[K"
"""Moves the cursor to the beginning of a terminal's line and clears the line."""


@contextmanager
def show_compiling(*, quiet: bool = False) -> Iterator[None]:
    """Display the kernels being compiled on standard error, if it is a terminal, unless `quiet`."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    begin = time.perf_counter()

    def show(program: str, done: int, total: int) -> None:
        seconds = time.perf_counter() - begin
        text = f"onlineauto: compiling {program}, first run only: {done} of {total}, {seconds:.0f} s so far"
        if (n := compiling_processes()) > 1:
            text += f", {n} processes"
        end = _LINE if done == total else ""
        print(f"{_LINE}{text}{end}", end="", file=sys.stderr, flush=True)

    with watch_compiling(show):
        yield
