"""``Headcount``: how many workers a run has, which another thread may change while it goes on."""

from __future__ import annotations

import threading
from typing import Any, Final

from onlineauto.errors import OptionError

_MOST: Final = 100_000
"""The most workers of a run."""


class Headcount:
    """A number of workers that may change. A worker that is one too many leaves when its job has ended.

    >>> workers = Headcount(2)
    >>> workers.now = 0  # the run waits
    >>> workers.close()  # it ends at once, and gives back its jobs
    >>> workers.now, workers.is_closed
    (0, True)

    Parameters
    ----------
    now : int
        How many there are to be at first; 0 for a run that waits.

    Raises
    ------
    OptionError
        The number is negative, or larger than makes sense.
    """

    def __init__(self, now: int) -> None:
        self._now = 0
        self._busy = 0
        self._is_closed = False
        self._lock = threading.Lock()
        self.now = now

    @property
    def now(self) -> int:
        """The number of workers that the run is to have."""
        return self._now

    @now.setter
    def now(self, count: Any) -> None:
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= _MOST:
            raise OptionError(f"workers = {count!r}: a whole number from 0 to {_MOST:,}")
        with self._lock:
            self._now = count

    @property
    def busy(self) -> int:
        """Workers that have a job, which after `now` became smaller may be more than that for a while."""
        return self._busy

    def take(self) -> bool:
        """Count one more busy worker, if that is not too many; return whether it is not."""
        with self._lock:
            may = self._busy < self._now
            self._busy += may
            return may

    def give_back(self) -> None:
        """Count one busy worker less."""
        with self._lock:
            self._busy -= 1

    @property
    def is_closed(self) -> bool:
        """True if the run is to end now."""
        return self._is_closed

    def close(self) -> None:
        """End the run at once; what its workers do is lost since the last checkpoint."""
        self._is_closed = True
