"""``run_until_signal``: accept connections over a socket until a signal, and answer what was received."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import signal
import socket
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from onlineauto.errors import OptionError
from onlineauto.service.http.protocol.connections import BACKLOG
from onlineauto.service.http.protocol.http_protocol import HttpProtocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from onlineauto.service.http.protocol.connections import Connections
    from onlineauto.service.http.router import Router

_LOG = logging.getLogger("onlineauto.service")
_GRACE: Final = 10.0
"""Seconds for which connections are answered after the end."""
_LOOK: Final = 0.05
_SWEEP: Final = 0.25
"""Seconds between two searches for connections that have waited for too long."""
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
OWN_HOSTS: Final = ("localhost", "127.0.0.1", "::1")
"""Names of this machine, which a server without tokens accepts as host names."""


def event_loop() -> asyncio.AbstractEventLoop:
    """Return a new event loop: that of uvloop, if it is installed."""
    with suppress(ImportError):  # not on Windows
        import uvloop

        return uvloop.new_event_loop()
    return asyncio.new_event_loop()


async def serve_until(
    ended: asyncio.Event, app: Router, opened: socket.socket, started: Callable[[], object]
) -> None:
    """Serve an application."""
    loop = asyncio.get_running_loop()
    async with app.running():
        server = await loop.create_server(partial(HttpProtocol, app), sock=opened, backlog=BACKLOG)
        sweeping = asyncio.create_task(_sweep(app.connections))
        started()
        await ended.wait()
        server.close()
        app.connections.shutdown()
        until = loop.time() + _GRACE
        while len(app.connections) and loop.time() < until:
            await asyncio.sleep(_LOOK)
        sweeping.cancel()


async def _sweep(connections: Connections) -> None:
    """Close connections that have waited for too long."""
    while True:
        await asyncio.sleep(_SWEEP)
        try:
            connections.sweep(asyncio.get_running_loop().time())
        except Exception:
            _LOG.exception("a sweep has failed", extra={"event": "failed", "endpoint": "sweep"})


def bind_socket(host: str, port: int) -> socket.socket:
    """Return a socket bound to an address; it does not accept connections yet."""
    opened = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        opened = socket.socket(family, kind, protocol)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
    except OSError as error:
        if opened is not None:
            opened.close()
        raise OptionError(f"cannot listen to {host}:{port}: {error.strerror}") from None
    return opened


def address_of(host: str, opened: socket.socket) -> str:
    """Return the URL of a server that listens to `host` with a bound socket."""
    return f"http://{f'[{host}]' if ':' in host else host}:{opened.getsockname()[1]}/"


def run_until_signal(app: Router, opened: socket.socket, announce: Callable[[], object]) -> None:
    """Run an application until a signal arrives; `announce` is called once connections are accepted."""

    def exit_early(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    async def main() -> None:
        loop, ended = asyncio.get_running_loop(), asyncio.Event()

        def end(_number: int, _frame: FrameType | None) -> None:
            app.stop()
            loop.call_soon_threadsafe(ended.set)

        def started() -> None:
            for number in _SIGNALS:
                signal.signal(number, end)
            announce()

        await serve_until(ended, app, opened, started)

    for number in _SIGNALS:
        signal.signal(number, exit_early)  # until connections are accepted
    with asyncio.Runner(loop_factory=event_loop) as runner:
        runner.run(main())


def is_own(host: str) -> bool:
    """Return whether an address is reachable from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
