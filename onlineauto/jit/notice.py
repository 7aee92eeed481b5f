"""Notice: one line for who waits while kernels are compiled, and sees nothing of it."""

from __future__ import annotations

import logging
from functools import cache

from onlineauto.jit.cache import cache_directory, is_warm

__all__ = ["announce_compiling"]

_LOG = logging.getLogger("onlineauto")


@cache
def announce_compiling() -> None:
    """Log that kernels are being compiled, once a process, unless `onlineauto warmup` was run before."""
    if not is_warm():
        _LOG.warning(
            "compiling kernels, which takes up to three minutes, once: they are kept in %s; "
            "`onlineauto warmup` compiles them ahead of time",
            cache_directory().parent,
        )
