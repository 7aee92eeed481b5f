"""``retry_call``: repeat a call that needs a store while the store is unreachable."""

from __future__ import annotations

import logging
import random
import time
from typing import TYPE_CHECKING, Final, TypeVar

from onlineauto.errors import UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable

_LOG: Final = logging.getLogger("onlineauto")
_FIRST_WAIT: Final = 0.05
_LONGEST_WAIT: Final = 5.0
"""Seconds between two attempts to reach a store, at first and at most."""

_T = TypeVar("_T")


def retry_call(call: Callable[[], _T], seconds: float) -> _T:
    """Return the result of a call; repeat it for up to `seconds` while its store is unreachable."""
    end = time.monotonic() + seconds
    wait = _FIRST_WAIT
    while True:
        try:
            return call()
        except UnreachableError as error:
            if time.monotonic() + wait > end:
                raise
            _LOG.warning("%s; trying again", error)
        time.sleep(wait * random.uniform(0.5, 1))
        wait = min(2 * wait, _LONGEST_WAIT)
