"""``application``: a loop as an ASGI application, with the threads that learn and let time pass."""

from __future__ import annotations

import asyncio
import logging
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from starlette.applications import Starlette
from starlette.routing import Route

from onlineauto.service.http.endpoint import Endpoint, Keeper
from onlineauto.service.http.handlers import Handlers
from onlineauto.service.http.metrics import Metrics
from onlineauto.service.http.routes import ROUTES
from onlineauto.service.http.tokens import Tokens

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from starlette.types import ASGIApp, Receive, Scope, Send

    from onlineauto.service.http.waiting import Waiting
    from onlineauto.service.loop.loop import Loop

__all__ = ["Application", "application"]

_LOG = logging.getLogger("onlineauto.service")
_IDLE: Final = 0.02
_TICK: Final = 0.25
_MODEL_BYTES: Final = 1 << 30


def application(
    loop: Loop, waiting: Waiting, *, tokens: Tokens | None = None, most: int = 1000
) -> Application:
    """Return the application of a loop; it learns while it runs, and closes the loop when it ends.

    Parameters
    ----------
    loop : Loop
        The loop, which was made with `waiting.deliver`.
    waiting : Waiting
        Lets requests wait for the log.
    tokens : Tokens, optional
        Who may do what; by default everybody may do everything.
    most : int
        Number of requests that are served at once.
    """
    metrics = Metrics(loop)
    handlers, keeper = Handlers(loop, metrics), Keeper(tokens or Tokens(), metrics, most=most)
    routes = []
    for route in ROUTES:
        size = _MODEL_BYTES if route.body is bytes else loop.limits.body_bytes
        endpoint = Endpoint(
            keeper, getattr(handlers, route.name), name=route.name, scope=route.scope, body_bytes=size
        )
        routes.append(Route(route.path, endpoint, methods=[route.method]))

    @asynccontextmanager
    async def running(app: Starlette) -> AsyncIterator[None]:
        del app
        stop = threading.Event()
        learning = threading.Thread(target=_learn, args=(loop, stop), name="onlineauto-learner", daemon=True)
        waiting.start()
        learning.start()
        ticking = asyncio.create_task(_tick(loop))
        try:
            yield
        finally:
            handlers.stopping = True
            ticking.cancel()
            stop.set()
            await asyncio.to_thread(learning.join)
            waiting.stop()
            await asyncio.to_thread(loop.close)

    return Application(Starlette(routes=routes, lifespan=running), routes)


class Application:
    """Starlette's application, which plain paths do not go through: it costs more than what they do.

    Parameters
    ----------
    app : Starlette
        Has all routes, and what happens before the first request and behind the last.
    routes : sequence of Route
        Its routes.
    """

    def __init__(self, app: Starlette, routes: Sequence[Route]) -> None:
        self._app = app
        self._plain: dict[tuple[str, str], ASGIApp] = {
            (method, route.path): route.endpoint
            for route in routes
            if "{" not in route.path
            for method in route.methods or ()
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or begin and end."""
        plain = None
        if scope["type"] == "http":
            plain = self._plain.get((scope["method"], scope["path"]))
        await (plain or self._app)(scope, receive, send)


def _learn(loop: Loop, stop: threading.Event) -> None:
    """Learn until it is stopped or cannot go on, which the loop keeps and its log says."""
    while not stop.is_set() and loop.failed is None:
        try:
            taken = loop.learn()
        except Exception:
            return
        if not taken:
            stop.wait(_IDLE)


async def _tick(loop: Loop) -> None:
    """Let time pass in the log."""
    while True:
        await asyncio.sleep(_TICK)
        loop.tick()
