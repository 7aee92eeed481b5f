"""``serve_until``: accept connections over a socket until an event is set, and answer what was received."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from onlineauto.service.http.protocol.connections import BACKLOG
from onlineauto.service.http.protocol.http_protocol import HttpProtocol

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from onlineauto.service.http.app import Application

_GRACE: Final = 10.0
"""Seconds for which connections are answered after the end."""
_LOOK: Final = 0.05


def event_loop() -> asyncio.AbstractEventLoop:
    """Return a new event loop: that of uvloop, if it is installed."""
    with suppress(ImportError):  # not on Windows
        import uvloop

        return uvloop.new_event_loop()
    return asyncio.new_event_loop()


async def serve_until(
    ended: asyncio.Event, app: Application, opened: socket.socket, started: Callable[[], object]
) -> None:
    """Serve an application.

    Parameters
    ----------
    ended : asyncio.Event
        Ends the service.
    app : Application
        The application.
    opened : socket
        A bound socket; it is closed.
    started : callable
        Called once connections are accepted.
    """
    loop = asyncio.get_running_loop()
    async with app.running():
        server = await loop.create_server(partial(HttpProtocol, app), sock=opened, backlog=BACKLOG)
        started()
        await ended.wait()
        server.close()
        app.connections.shutdown()
        until = loop.time() + _GRACE
        while len(app.connections) and loop.time() < until:
            await asyncio.sleep(_LOOK)
