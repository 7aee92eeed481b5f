"""Wait in tests until an event has happened, not for a fixed time."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 120.0
"""Seconds after which a test no longer waits: also on a slow machine, only what hangs takes so long."""


def until(holds: Callable[[], object], *, what: Callable[[], object] = lambda: "") -> None:
    """Wait until a condition holds; `what` says what there is instead, once the patience is at its end."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, what()
        time.sleep(0.01)
