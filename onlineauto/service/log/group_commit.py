"""``GroupCommit``: a thread that writes what came in since it last looked, and flushes it once for all.

A group that cannot be written, since the disk is full, for example, is kept and written again until it is in
the log: its records are in the table of decisions already. Its callers get the error at once, and no more
records are accepted until then.
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
"""Seconds after which a group that could not be written is written again."""

Done: TypeAlias = Callable[[Exception | None], object]
"""Called once a line is in the log, or with the error that kept it out."""


def call_all(waiting: Sequence[Done], error: Exception | None) -> None:
    """Call everybody who waited for a group."""
    for done in waiting:
        done(error)


class GroupCommit:
    """Appends lines to a log in the order in which they are submitted, many at once.

    Parameters
    ----------
    log : SegmentLog
        The log; nobody else appends to it.
    deliver : callable
        Given those who waited for a group and the error, if any; it calls them, here or in another thread.

    Attributes
    ----------
    position : int
        Where the next line will be.
    failed : Exception or None
        Why the latest group could not be written so far.
    groups : int
        Number of groups that were written.
    """

    def __init__(
        self,
        log: SegmentLog,
        *,
        deliver: Callable[[Sequence[Done], Exception | None], object] = call_all,
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
        """Count the lines that wait to be written."""
        return len(self._lines)

    def submit(self, line: bytes, done: Done) -> int:
        """Let a line be written, and `done` be called then; return the position that it will have.

        Raises
        ------
        InputError
            An earlier group is not in the log yet, or the log is closed.
        """
        with self._changed:
            if self.failed is not None or self._closing:
                raise InputError(f"the log takes no more records: {self.failed or 'it is closed'}")
            position = self.position
            self.position += len(line)
            self._lines.append(line)
            self._waiting.append(done)
            if not self._together:
                self._changed.notify()
            return position

    @contextmanager
    def together(self) -> Iterator[None]:
        """Let what is submitted until the end of a ``with`` block be one group, or the end of one."""
        self._together += 1
        try:
            yield
        finally:
            with self._changed:
                self._together -= 1
                if self._lines and not self._together:
                    self._changed.notify()

    def close(self) -> None:
        """Write what is waiting, and end the thread; what cannot be written was acknowledged to no caller."""
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
                with self._changed:  # records that came meanwhile belong to the same attempt
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
        """Write a group, and return whether the disk has it."""
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
