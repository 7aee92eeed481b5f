"""``SteadyClock``: the time of a process, which no change of the machine's clock can set."""

from __future__ import annotations

import time
from typing import Final

_SLEW: Final = 1.0
_ALWAYS: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""The clock that also counts while the machine sleeps, where there is such a clock."""


class SteadyClock:
    """Returns the seconds since 1970, based on the machine's clock at the start of the process.

    It follows the machine's clock while that clock is adjusted by less than a second at a time. If the clock
    is set, this clock continues unchanged until the process ends.

    >>> clock = SteadyClock()
    >>> clock() <= clock(), abs(clock.lead) < 60
    (True, True)
    """

    def __init__(self) -> None:
        self._offset = time.time() - time.clock_gettime(_ALWAYS)
        self._latest = 0.0

    def __call__(self) -> float:
        """Return the time, which never runs back."""
        steady = time.clock_gettime(_ALWAYS)
        offset = time.time() - steady
        if abs(offset - self._offset) < _SLEW:
            self._offset = offset
        self._latest = max(self._latest, steady + self._offset)
        return self._latest

    @property
    def lead(self) -> float:
        """The seconds by which the machine's clock was set ahead since the process began."""
        return time.time() - time.clock_gettime(_ALWAYS) - self._offset
