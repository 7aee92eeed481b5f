"""``application``: the endpoints of a loop, with the threads for learning and for ticks."""

from __future__ import annotations

import asyncio
import logging
import threading
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from onlineauto.jit import is_compiling
from onlineauto.service.http.endpoint import Endpoint, RequestBatch, RequestGuard
from onlineauto.service.http.front_handlers import FrontHandlers, RankServerHandlers
from onlineauto.service.http.handlers import Handlers
from onlineauto.service.http.metrics import ServiceMetrics
from onlineauto.service.http.personalizer import canonical_path, what_instead
from onlineauto.service.http.reply import problem
from onlineauto.service.http.router import Router
from onlineauto.service.http.routes import ROUTES
from onlineauto.service.http.status import rank_server_status, status_of
from onlineauto.service.http.tokens import Tokens
from onlineauto.service.learning.learner import MOST_RECORDS
from onlineauto.service.loop.loop import Loop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Mapping
    from contextlib import AbstractAsyncContextManager

    from onlineauto.service.http.endpoint import Waiting
    from onlineauto.service.http.reply import Reply
    from onlineauto.service.loop.front import Front
    from onlineauto.service.loop.rank_server import RankServer

_LOG = logging.getLogger("onlineauto.service")
_IDLE: Final = 0.1
_TICK: Final = 0.25
_BINARY_BYTES: Final = 1 << 28
_FOLLOW: Final = 0.2
_AGAIN: Final = 1.0
_COMPILING: Final = 1.0


def application(
    front: Loop | RankServer,
    waiting: Waiting,
    *,
    tokens: Tokens | None = None,
    most: int = 1000,
    hosts: Collection[str] = (),
) -> Application:
    """Return the application of a loop, which learns, or of a rank server, which follows its learner.

    It has all endpoints of its handlers, works in a thread while it runs, and closes `front` when it ends.
    """
    handlers: FrontHandlers
    if isinstance(front, Loop):
        handlers = Handlers(front, ServiceMetrics(partial(status_of, front)))
        work = partial(_learn, front)
    else:
        handlers = RankServerHandlers(front, ServiceMetrics(partial(rank_server_status, front)))
        work = partial(_follow, front)
    guard = RequestGuard(
        Tokens() if tokens is None else tokens, handlers.metrics.request, most=most, hosts=hosts
    )
    batch = RequestBatch(front.together)
    endpoints: dict[str, dict[str, Endpoint]] = {}
    for route in ROUTES:
        if hasattr(handlers, route.name):
            endpoints.setdefault(route.path, {})[route.method] = Endpoint(
                guard,
                getattr(handlers, route.name),
                name=route.name,
                scope=route.scope,
                body_bytes=_BINARY_BYTES if route.body is bytes else route.bodies * front.limits.body_bytes,
                batch=batch,
            )

    @asynccontextmanager
    async def running() -> AsyncIterator[None]:
        stop = threading.Event()
        working = threading.Thread(target=work, args=(stop,), name="onlineauto-work", daemon=True)
        waiting.start()
        working.start()
        ticking = asyncio.create_task(_tick(front))
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

    return Application(endpoints, handlers, running)


class Application(Router):
    """All endpoints of the service, and the threads that run while connections are served."""

    hint = "; /openapi.json lists the endpoints"

    def __init__(
        self,
        endpoints: Mapping[str, Mapping[str, Endpoint]],
        handlers: FrontHandlers,
        running: Callable[[], AbstractAsyncContextManager[None]],
    ) -> None:
        super().__init__(endpoints, handlers.metrics.connections, running)
        self._handlers = handlers

    def stop(self) -> None:
        """End the streams, and report the service as not ready; requests are still answered."""
        self._handlers.stopping = True

    @property
    def is_abandoned(self) -> bool:
        """True if a thread still waits for the compiler, so that the process has to end without it."""
        return self._handlers.abandoned

    def canonical_path(self, path: str) -> str:
        """Return the path under which an endpoint is declared: Personalizer's versions are alike."""
        return canonical_path(path)

    def missing(self, method: str, path: str, methods: Mapping[str, Endpoint]) -> Reply:
        """Return the answer to a request for which there is no endpoint, also of a call of Personalizer."""
        instead = what_instead(method, canonical_path(path))
        if instead:
            return problem(f"{method} {path} is not here: {instead}", 501)
        return super().missing(method, path, methods)


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


def _follow(rank_server: RankServer, stop: threading.Event) -> None:
    """Follow the learner until `stop` is set; ask again while the learner is away."""
    away = False
    while not stop.is_set():
        exchanged = rank_server.follow()
        if away != (rank_server.failed is not None):
            away = not away
            message = (
                f"the learner is away: {rank_server.failed}" if away else "the learner is available again"
            )
            _LOG.warning(message, extra={"event": "learner", "away": away})
        if not exchanged:
            stop.wait(_AGAIN if away else _FOLLOW)


async def _tick(front: Front) -> None:
    """Write ticks into the log."""
    while True:
        await asyncio.sleep(_TICK)
        try:
            front.tick()
        except Exception:
            _LOG.exception("a tick has failed", extra={"event": "failed", "endpoint": "tick"})
