"""``patiently``: call something that needs a store again while the store cannot be reached."""

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
"""Seconds between two attempts to reach a store."""

_T = TypeVar("_T")


def patiently(call: Callable[[], _T], seconds: float) -> _T:
    """Return what a call returns; try again for some seconds while its store cannot be reached.

    Raises
    ------
    UnreachableError
        The store could not be reached in that time.
    """
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
