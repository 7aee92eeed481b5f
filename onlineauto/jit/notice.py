"""Notice: one line for who waits while kernels are compiled, and sees nothing of it."""

from __future__ import annotations

import logging
from functools import cache

from onlineauto.jit.cache import cache_directory

__all__ = ["announce_compiling"]

_LOG = logging.getLogger("onlineauto")


@cache
def announce_compiling() -> None:
    """Log that kernels are being compiled, once a process."""
    _LOG.warning(
        "compiling kernels, once: it usually takes half a minute; they are kept in %s; "
        "`onlineauto warmup` compiles them all ahead of time",
        cache_directory().parent,
    )
