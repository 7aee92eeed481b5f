"""``GroupCommit``: a thread that writes all records submitted since its last write, with one flush.

A group that cannot be written, for example because the disk is full, is kept and written again until it is in
the log, because the table of decisions already has its records. Its callers get the error at once, and new
records are rejected until the group is written.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, TypeAlias

from onlineauto.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onlineauto.service.log.segment_log import SegmentLog

_LOG = logging.getLogger("onlineauto.service")
_RETRY: Final = 0.5
"""Seconds after which a failed write is repeated."""

Done: TypeAlias = Callable[[Exception | None], object]
"""Called once a line is in the log, or with the error that prevented the write."""


def call_all(waiting: Sequence[Done], error: Exception | None) -> None:
    """Call the callbacks of a group."""
    for done in waiting:
        done(error)


class GroupCommit:
    """Appends lines to a log in the order in which they are submitted, many at once."""

    def __init__(
        self, log: SegmentLog, *, deliver: Callable[[Sequence[Done], Exception | None], object] = call_all
    ) -> None:
        self.log, self.deliver, self.position = log, deliver, log.end
        self.failed: Exception | None = None
        self.groups = 0
        self._lines: list[bytes] = []
        self._waiting: list[Done] = []
        self._changed = threading.Condition()
        self._closing = False
        self._together = 0
        self._thread = threading.Thread(target=self._run, name="onlineauto-log", daemon=True)
        self._thread.start()

    def __len__(self) -> int:
        """Return the number of lines that wait to be written."""
        return len(self._lines)

    def submit(self, line: bytes, done: Done) -> int:
        """Queue a line and its callback; return the position that the line will have."""
        with self._changed:
            if self.failed is not None or self._closing:
                raise InputError(f"the log accepts no more records: {self.failed or 'it is closed'}")
            position = self.position
            self.position += len(line)
            self._lines.append(line)
            self._waiting.append(done)
            if not self._together:
                self._changed.notify()
            return position

    @contextmanager
    def together(self) -> Iterator[None]:
        """Write all lines submitted within a ``with`` block in the same group."""
        self._together += 1
        try:
            yield
        finally:
            with self._changed:
                self._together -= 1
                if self._lines and not self._together:
                    self._changed.notify()

    def close(self) -> None:
        """Write all queued lines, and end the thread; the caller of a lost line has its error."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._lines and not self._closing:
                    self._changed.wait()
                if not self._lines:
                    return
                lines, self._lines = self._lines, []
                waiting, self._waiting = self._waiting, []
            while not self._write(lines):
                with self._changed:  # records that arrived during the wait join the next attempt
                    lines += self._lines
                    waiting += self._waiting
                    self._lines, self._waiting = [], []
                self.deliver(waiting, self.failed)
                waiting = []
                with self._changed:
                    if self._closing or self._changed.wait_for(lambda: self._closing, _RETRY):
                        self._write(lines)
                        return
            self.deliver(waiting, None)

    def _write(self, lines: list[bytes]) -> bool:
        """Write a group, and return whether the disk has confirmed it."""
        try:
            self.log.append(lines)
            self.log.sync()
        except OSError as error:
            if self.failed is None:
                self.failed = error
                _LOG.error("the log cannot be written: %s", error, extra={"event": "log_not_writable"})
            with suppress(OSError):
                self.log.cut_back()
            return False
        self.groups += 1
        if self.failed is not None:
            self.failed = None
            _LOG.warning("the log can be written again", extra={"event": "log_writable"})
        return True
