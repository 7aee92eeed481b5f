"""``Background``: work in a thread of this process, which may be stopped and begun again."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from onlineauto.errors import OnlineautoError

if TYPE_CHECKING:
    from collections.abc import Callable

_PATIENCE: Final = 60
"""Seconds that a thread has to end."""


class Background:
    """Calls a function in a daemon thread, and keeps its error for the caller."""

    def __init__(self, work: Callable[[], object], name: str) -> None:
        self._work, self._name = work, name
        self._thread: threading.Thread | None = None
        self.error: BaseException | None = None

    @property
    def is_alive(self) -> bool:
        """True while the function runs."""
        return self._thread is not None and self._thread.is_alive()

    def check(self) -> None:
        """Raise the error that has ended the function, if there is one."""
        if self.error is not None:
            raise self.error

    def start(self) -> None:
        """Start the thread, unless it was started before."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()

    def join(self) -> None:
        """Wait up to a minute until the function, which was told to stop, has returned."""
        if self._thread is not None:
            self._thread.join(_PATIENCE)

    def renew(self) -> None:
        """Allow another `start` after the function was told to stop."""
        if self.is_alive:
            raise OnlineautoError("the job was stopped, but its last step has not ended yet: try again later")
        self._thread = None

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self.error = error
