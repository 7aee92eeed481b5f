"""What the verbs ``tune`` and ``worker`` share: trainables of this folder, and a good end."""

from __future__ import annotations

import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

__all__ = ["ending_well"]

_TERMINATED: Final = 143


@contextmanager
def ending_well() -> Iterator[None]:
    """Let modules of this folder be found, and jobs be given back if this process is terminated."""
    if "" not in sys.path:
        sys.path.insert(0, "")
    before = signal.signal(signal.SIGTERM, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _leave(number: int, frame: FrameType | None) -> None:
    """End as if interrupted."""
    del number, frame
    raise SystemExit(_TERMINATED)
