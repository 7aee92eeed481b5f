"""The command line: parse, call, print. It contains no learning code."""

from __future__ import annotations

import gc
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


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
