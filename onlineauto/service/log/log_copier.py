"""``LogCopier``: a thread that copies a log to another place, and counts failures instead of raising them."""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from typing import Self

    from onlineauto.service.log.segment_log import SegmentLog

_LOG = logging.getLogger("onlineauto.service")
_IDLE: Final = 0.1
_AGAIN: Final = 1.0


class CopyStatus(msgspec.Struct, frozen=True):
    """The state of a copy of the log.

    Attributes
    ----------
    target : str
        The folder or the topic.
    position : int
        The position in the log up to which the copy has it.
    behind_bytes : int
        Bytes of the log that the copy does not have.
    lag_seconds : float
        Maximum age of the oldest of them; 0 if there is none. This is what a lost disk loses.
    failures : int
        Number of attempts that have failed, since the start.
    error : str
        The reason of the latest failure, or "" if the latest attempt succeeded.
    """

    target: str
    position: int
    behind_bytes: int
    lag_seconds: float
    failures: int
    error: str


class LogCopier(ABC):
    """Copies a log within a context; what is not copied at its end is copied at the next start.

    The copy has the log up to `position`; `target` is its place, for messages.
    """

    def __init__(self, log: SegmentLog, target: str) -> None:
        self.log, self.target, self.position = log, target, log.begin
        self.failures, self.error = 0, ""
        self._whole_at = time.monotonic()  # when the copy had all records last
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="onlineauto-copy", daemon=True)

    def __enter__(self) -> Self:
        """Start the thread."""
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Copy the rest of the log, if this is possible."""
        self._stop.set()
        self._thread.join()

    @abstractmethod
    def step(self) -> int:
        """Copy some of the log, and return a number above 0 if it was not the rest.

        Any exception is a failure, after which the step is repeated.
        """

    def status(self) -> CopyStatus:
        """Return the state of the copy; any thread may call this."""
        behind = max(self.log.durable - self.position, 0)
        lag = max(time.monotonic() - self._whole_at, 0.0) if behind else 0.0
        return CopyStatus(self.target, self.position, behind, lag, self.failures, self.error)

    def failed(self, error: Exception) -> None:
        """Count a failure, and log it unless it repeats the last one."""
        self.failures += 1
        if self.error != str(error):
            self.error = str(error) or type(error).__name__
            _LOG.error(
                "the log cannot be copied to %s: %s",
                self.target,
                error,
                extra={"event": "copy_failed", "position": self.position},
            )

    def _run(self) -> None:
        while True:
            stopping, begin, end = self._stop.is_set(), time.monotonic(), self.log.durable
            try:
                more = self.step()
            except Exception as error:
                self.failed(error)
                more = 0
            else:
                if self.error:
                    self.error = ""
                    _LOG.warning("%s has the log again", self.target, extra={"event": "copy_goes_on"})
            if self.position >= end:
                self._whole_at = begin
            if not more:
                if stopping:
                    return
                self._stop.wait(_AGAIN if self.error else _IDLE)
