"""``application``: a loop as an ASGI application, with the threads for learning and for ticks."""

from __future__ import annotations

import asyncio
import logging
import threading
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, TypedDict
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.routing import Route

from onlineauto.jit import is_compiling
from onlineauto.service.http.direct.direct_endpoint import DirectEndpoint, RequestBatch
from onlineauto.service.http.endpoint import Endpoint, RequestGuard, no_such_endpoint
from onlineauto.service.http.front_handlers import FollowerHandlers, FrontHandlers
from onlineauto.service.http.handlers import Handlers
from onlineauto.service.http.metrics import ServiceMetrics
from onlineauto.service.http.personalizer import canonical_path
from onlineauto.service.http.routes import ROUTES
from onlineauto.service.http.status import follower_status, status_of
from onlineauto.service.http.tokens import Tokens
from onlineauto.service.learning.learner import MOST_RECORDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence

    from starlette.types import ASGIApp, Receive, Scope, Send

    from onlineauto.service.http.direct.connections import Connections
    from onlineauto.service.http.waiting import Waiting
    from onlineauto.service.loop.follower import Follower
    from onlineauto.service.loop.front import Front
    from onlineauto.service.loop.loop import Loop

_LOG = logging.getLogger("onlineauto.service")
_IDLE: Final = 0.1
_TICK: Final = 0.25
_BINARY_BYTES: Final = 1 << 28
_FOLLOW: Final = 0.2
_AGAIN: Final = 1.0
_COMPILING: Final = 1.0


def application(
    loop: Loop,
    waiting: Waiting,
    *,
    tokens: Tokens | None = None,
    most: int = 1000,
    hosts: Collection[str] = (),
) -> Application:
    """Return the application of a loop; it learns while it runs, and closes the loop when it ends.

    Parameters
    ----------
    loop : Loop
        The loop, constructed with `deliver=waiting.deliver`.
    waiting : Waiting
        Lets requests wait for the log.
    tokens : Tokens, optional
        The scopes of each token; by default every request may do everything.
    most : int
        Maximum number of requests that are served at the same time.
    hosts : collection of str
        Accepted host names; with none, every name is accepted.
    """
    metrics = ServiceMetrics(partial(status_of, loop))
    guard = RequestGuard(Tokens() if tokens is None else tokens, metrics, most=most, hosts=hosts)
    return _application(loop, Handlers(loop, metrics), guard, waiting, partial(_learn, loop))


def follower_application(
    follower: Follower,
    waiting: Waiting,
    *,
    tokens: Tokens | None = None,
    most: int = 1000,
    hosts: Collection[str] = (),
) -> Application:
    """Return the application of a rank server; the parameters are those of `application`."""
    metrics = ServiceMetrics(partial(follower_status, follower))
    guard = RequestGuard(Tokens() if tokens is None else tokens, metrics, most=most, hosts=hosts)
    handlers = FollowerHandlers(follower, metrics)
    return _application(follower, handlers, guard, waiting, partial(_follow, follower))


def _application(
    front: Loop | Follower,
    handlers: FrontHandlers,
    guard: RequestGuard,
    waiting: Waiting,
    work: Callable[[threading.Event], None],
) -> Application:
    """Return the application with all endpoints that `handlers` has; `work` runs in a thread."""
    routes, direct, batch = [], {}, RequestBatch(front.together)
    connections = handlers.metrics.connections
    for route in ROUTES:
        if not hasattr(handlers, route.name):
            continue
        size = _BINARY_BYTES if route.body is bytes else front.limits.body_bytes
        about: _About = {"name": route.name, "scope": route.scope, "body_bytes": size}
        endpoint = Endpoint(guard, getattr(handlers, route.name), **about)
        if (begin := getattr(handlers, f"begin_{route.name}", None)) is not None:
            direct[route.path] = DirectEndpoint(guard, begin, batch=batch, **about)
        path = route.path.replace("{event_id}", "{event_id:path}")  # an id may have slashes
        routes.append(Route(path, endpoint, methods=[route.method]))

    @asynccontextmanager
    async def running(app: Starlette) -> AsyncIterator[None]:
        del app
        stop = threading.Event()
        working = threading.Thread(target=work, args=(stop,), name="onlineauto-work", daemon=True)
        waiting.start()
        working.start()
        ticking = asyncio.create_task(_tick(front, connections))
        try:
            yield
        finally:
            handlers.stopping = True
            ticking.cancel()
            stop.set()
            await asyncio.to_thread(_end, working)
            waiting.stop()
            handlers.abandoned = working.is_alive()  # in the compiler, which nothing interrupts
            await asyncio.to_thread(front.leave if handlers.abandoned else front.close)

    missing = {404: no_such_endpoint, 405: no_such_endpoint}
    return Application(
        Starlette(routes=routes, lifespan=running, exception_handlers=missing),
        routes,
        handlers,
        direct,
        connections,
    )


class _About(TypedDict):
    name: str
    scope: str | None
    body_bytes: int


class Application:
    """Starlette's application. Plain paths bypass it, because it costs more than their handlers.

    Parameters
    ----------
    app : Starlette
        All routes, and the code that runs at start and at shutdown.
    routes : sequence of Route
        Its routes.
    handlers : FrontHandlers
        The handlers of the routes.
    direct : mapping of str to DirectEndpoint
        The endpoints that `DirectProtocol` calls without Starlette, by path.
    connections : Connections
        The open connections, registered by `DirectProtocol`.
    """

    def __init__(
        self,
        app: Starlette,
        routes: Sequence[Route],
        handlers: FrontHandlers,
        direct: Mapping[str, DirectEndpoint],
        connections: Connections,
    ) -> None:
        self._app, self._handlers, self.connections = app, handlers, connections
        self._lines: tuple[Sequence[tuple[bytes, bytes]], bytes] = [], b""
        self._direct = {path: endpoint for path, endpoint in direct.items() if "{" not in path}
        self._of_events = [
            (before, after, endpoint)
            for path, endpoint in direct.items()
            for before, separator, after in (path.partition("{event_id}"),)
            if separator
        ]
        self._plain: dict[tuple[str, str], ASGIApp] = {
            (method, route.path): route.endpoint
            for route in routes
            if "{" not in route.path
            for method in route.methods or ()
        }

    def stop(self) -> None:
        """End the streams, and report the service as not ready; requests are still answered."""
        self._handlers.stopping = True

    @property
    def is_abandoned(self) -> bool:
        """True if a thread still waits for the compiler, so that the process has to end without it."""
        return self._handlers.abandoned

    def direct(self, path: str) -> tuple[DirectEndpoint | None, dict[str, str]]:
        """Return the endpoint that answers a ``POST`` without a task, or None, and the parts of its path."""
        found = self._direct.get(path)
        if found is not None:
            return found, {}
        for before, after, endpoint in self._of_events:
            if path.startswith(before) and path.endswith(after) and len(path) > len(before) + len(after):
                return endpoint, {"event_id": path[len(before) : len(path) - len(after)]}
        known = canonical_path(path)
        return (None, {}) if known == path else self.direct(known)

    def lines_of(self, headers: Sequence[tuple[bytes, bytes]]) -> bytes:
        """Return the headers common to all answers as bytes; uvicorn builds a new list each second."""
        if self._lines[0] is not headers:
            self._lines = headers, b"".join(b"%b: %b\r\n" % each for each in headers)
        return self._lines[1]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or run the application's start and shutdown."""
        plain = None
        if scope["type"] == "http":
            known = canonical_path(scope["path"])
            if known != scope["path"]:
                scope = {**scope, "path": known, "raw_path": quote(known).encode()}
            plain = self._plain.get((scope["method"], scope["path"]))
        await (plain or self._app)(scope, receive, send)


def _end(working: threading.Thread) -> None:
    """Wait until a thread has ended, but not for the compiler."""
    working.join(_COMPILING)
    while working.is_alive() and not is_compiling():
        working.join(0.1)


def _learn(loop: Loop, stop: threading.Event) -> None:
    """Learn until `stop` is set; the loop logs a failure and tries again."""
    while not stop.is_set():
        try:
            taken = loop.learn()
        except Exception:
            taken = 0
        if taken < MOST_RECORDS:  # a step costs as much as a hundred decisions: it takes more of them at once
            stop.wait(_IDLE)


def _follow(follower: Follower, stop: threading.Event) -> None:
    """Follow the learner until `stop` is set; ask again while the learner is away."""
    away = False
    while not stop.is_set():
        exchanged = follower.follow()
        if away != (follower.failed is not None):
            away = not away
            message = f"the learner is away: {follower.failed}" if away else "the learner is available again"
            _LOG.warning(message, extra={"event": "learner", "away": away})
        if not exchanged:
            stop.wait(_AGAIN if away else _FOLLOW)


async def _tick(front: Front, connections: Connections) -> None:
    """Write ticks into the log, and close connections that have waited for too long."""
    while True:
        await asyncio.sleep(_TICK)
        try:
            front.tick()
            connections.sweep(asyncio.get_running_loop().time())
        except Exception:
            _LOG.exception("a tick has failed", extra={"event": "failed", "endpoint": "tick"})
