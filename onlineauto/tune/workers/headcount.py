"""``Headcount``: the number of workers of a run, which another thread may change during the run."""

from __future__ import annotations

import threading
from typing import Any, Final

from onlineauto.errors import OptionError

_MOST: Final = 100_000
"""Maximum number of workers of a run."""


class Headcount:
    """A number of workers that may change. A surplus worker leaves when its job has ended.

    >>> workers = Headcount(2)
    >>> workers.now = 0  # the run waits
    >>> workers.close()  # the run ends at once, and gives back its jobs
    >>> workers.now, workers.is_closed
    (0, True)

    Parameters
    ----------
    now : int
        Initial number of workers; 0 for a run that waits.
    """

    def __init__(self, now: int) -> None:
        self._now = 0
        self._busy = 0
        self._is_closed = False
        self._lock = threading.Lock()
        self.now = now

    @property
    def now(self) -> int:
        """The target number of workers."""
        return self._now

    @now.setter
    def now(self, count: Any) -> None:
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= _MOST:
            raise OptionError(f"workers = {count!r}: give a whole number from 0 to {_MOST:,}")
        with self._lock:
            self._now = count

    @property
    def busy(self) -> int:
        """Number of workers that have a job; it may exceed `now` for a while after `now` was reduced."""
        return self._busy

    def take(self) -> bool:
        """Count one more busy worker if there are fewer than `now`; return whether it was counted."""
        with self._lock:
            may = self._busy < self._now
            self._busy += may
            return may

    def give_back(self) -> None:
        """Count one busy worker fewer."""
        with self._lock:
            self._busy -= 1

    @property
    def is_closed(self) -> bool:
        """True if the run is to end now."""
        return self._is_closed

    def close(self) -> None:
        """End the run at once; its workers lose all steps since their last checkpoints."""
        self._is_closed = True
