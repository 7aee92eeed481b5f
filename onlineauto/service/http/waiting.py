"""``Waiting``: lets tasks wait for groups of the log; one call into the event loop wakes a whole group."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from onlineauto.service.log.group_commit import call_all
from onlineauto.service.refused import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from onlineauto.service.log.group_commit import Done


class Waiting:
    """Passes results from the thread of the log to the tasks of an event loop.

    `deliver` is an argument of `GroupCommit`. Before `start` and after `stop`, it runs the callbacks in the
    calling thread.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Deliver to the running event loop."""
        self._loop = asyncio.get_running_loop()

    def stop(self) -> None:
        """Deliver to the calling thread from now on."""
        self._loop = None

    def deliver(self, waiting: Sequence[Done], error: Exception | None) -> None:
        """Call the callbacks of a group."""
        loop = self._loop  # `stop` in another thread may set this to None
        if loop is None:
            call_all(waiting, error)
        else:
            loop.call_soon_threadsafe(call_all, waiting, error)

    @staticmethod
    def future() -> tuple[asyncio.Future[None], Callable[[Exception | None], None]]:
        """Return a future, and the callback that completes it."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def done(error: Exception | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(RefusedError(f"the log cannot be written: {error}", status=503))

        return future, done
