"""``loops_application``: many loops in one service, each below ``/v1/loops/NAME``."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from onlineauto.service.http.app import Application, Handlers, endpoints_of, working
from onlineauto.service.http.endpoint import Endpoint, RequestGuard, SharedRoom, path_of
from onlineauto.service.http.loop_sites import PREFIX, LoopService, counts_of, no_such_loop
from onlineauto.service.http.page import LOOPS_PAGE, page_reply
from onlineauto.service.http.status import LoopsMetrics, ServiceMetrics, status_of
from onlineauto.service.http.wire import (
    LoopChanges,
    LoopOptions,
    LoopSummary,
    RemovedLoop,
    Reply,
    content_type,
)
from onlineauto.service.options import DEFAULT_LOOP, Limits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Mapping
    from contextlib import AbstractAsyncContextManager

    from onlineauto.service.http.endpoint import Request, Waiting
    from onlineauto.service.http.tokens import Tokens
    from onlineauto.service.loop.loop import Loop
    from onlineauto.service.loop.loops import Loops

_MOST_FOUND: Final = 4096
"""Maximum number of paths whose endpoints are remembered."""


class ServiceHandlers(Handlers):
    """Answers requests with the default loop, and those about all loops."""

    service: LoopService

    async def loops(self, request: Request) -> Reply:
        """List the loops that the token may read."""
        tokens, sites = self.service.tokens, self.service.sites
        summaries = [self._default_summary(), *(sites[name].summary() for name in sorted(sites))]
        readable = [
            each for each in summaries if {"read", "admin"} & tokens.scopes(request.headers, each.name)
        ]
        return Reply.json(readable)

    async def loop_summary(self, request: Request) -> Reply:
        """Return the state of a loop."""
        name = request.path["loop"]
        self.service.tokens.check(request.headers, "read", name)
        return Reply.json(
            self._default_summary() if name == DEFAULT_LOOP else self.service.site(name).summary()
        )

    async def create_loop(self, request: Request) -> Reply:
        """Create a loop."""
        name, body = request.path["loop"], msgspec.json.decode(request.body or b"{}", type=LoopOptions)
        is_new = await self.service.create(name, body.options)
        return Reply.json(self.service.site(name).summary(), 201 if is_new else 200)

    async def change_loop(self, request: Request) -> Reply:
        """Pause, archive or continue a loop, or change its options."""
        site, body = (
            self.service.site(request.path["loop"]),
            msgspec.json.decode(request.body, type=LoopChanges),
        )
        await site.change(body.state, body.options)
        return Reply.json(site.summary())

    async def remove_loop(self, request: Request) -> Reply:
        """Remove a loop; its folder is moved, and not deleted."""
        return Reply.json(RemovedLoop(await self.service.remove(request.path["loop"])))

    async def loops_page(self, _request: Request) -> Reply:
        """Return the page that lists the loops."""
        return page_reply(LOOPS_PAGE)

    async def prometheus(self, request: Request) -> Reply:
        """Return the metrics of all loops."""
        if not self.service.sites:
            return await super().prometheus(request)
        named = [(name, site.metrics) for name, site in self.service.sites.items()]
        metrics = LoopsMetrics(
            [(DEFAULT_LOOP, self.metrics), *named], len(self.service.open_sites), len(self.service.failed())
        )
        text = await asyncio.to_thread(metrics.text)
        return Reply(200, text, content_type("text/plain; version=0.0.4; charset=utf-8"))

    def _default_summary(self) -> LoopSummary:
        loop = self.loop
        options = loop.join.settings.options
        return LoopSummary(DEFAULT_LOOP, "active", True, loop.trouble, options, *counts_of(loop))


class LoopsApplication(Application):
    """The application of a service with many loops."""

    def __init__(
        self,
        endpoints: Mapping[str, Mapping[str, Endpoint]],
        handlers: ServiceHandlers,
        running: Callable[[], AbstractAsyncContextManager[None]],
    ) -> None:
        super().__init__(endpoints, handlers, running)
        self._service = handlers.service

    def find(self, method: bytes, target: bytes) -> tuple[Endpoint | Reply, Mapping[str, str]]:
        """Return the endpoint of a request, or the reply if there is none, and the parts of its path."""
        paths = self._service.paths
        if (known := paths.get((method, target))) is not None:
            return known, {}
        path, verb = path_of(target), method.decode()
        name, slash, rest = path.removeprefix(PREFIX).partition("/")
        if not path.startswith(PREFIX) or not slash:
            return super().find(method, target)
        methods, parts = self.match(f"/v1/{rest}")
        if not methods:
            methods, parts = self.match(f"/{rest}")
        methods = {verb: like for verb, like in methods.items() if hasattr(Handlers, like.name)}
        found = methods.get("GET" if verb == "HEAD" else verb)
        if name == DEFAULT_LOOP:
            return found or self.missing(verb, path, methods), parts
        site = self._service.sites.get(name)
        if site is None:
            return self._unknown_loop(name, found), {"loop": name}  # a head with parts is not remembered
        if found is None:
            return self.missing(verb, path, methods), parts
        endpoint = site.endpoint(found)
        if not parts:
            if len(paths) >= _MOST_FOUND:
                paths.clear()
            paths[method, target] = endpoint
        return endpoint, parts

    def _unknown_loop(self, name: str, like: Endpoint | None) -> Endpoint:
        """Return an endpoint that rejects a request below a loop that does not exist, after its token."""
        service, scope = self._service, "read" if like is None else like.scope
        guard = RequestGuard(service.tokens, self._handlers.metrics.request, hosts=service.hosts, loop=name)

        async def reject(_request: Request) -> Reply:
            raise no_such_loop(name)

        size = Limits().body_bytes if like is None else like.body_bytes
        return Endpoint(guard, reject, name="unknown_loop", scope=scope, body_bytes=size, batch=None)


def loops_application(
    loop: Loop,
    waiting: Waiting,
    loops: Loops,
    *,
    tokens: Tokens,
    most: int,
    hosts: Collection[str],
    max_open: int,
    close_idle: float,
    trim: Callable[[], object],
    alone: str = "",
) -> LoopsApplication:
    """Return the application of a service whose default loop is `loop`.

    `trim` returns freed memory to the system. `alone` names an option that other loops do not have.
    """
    metrics, room = ServiceMetrics(partial(status_of, loop)), SharedRoom(most)
    handlers = ServiceHandlers(loop, metrics)
    handlers.service = service = LoopService(
        loops, tokens=tokens, hosts=hosts, room=room, most=max_open, idle=close_idle, trim=trim, alone=alone
    )
    handlers.evaluating = service.evaluating
    loop.checks.append(lambda: "; ".join(service.failed()))

    def guard(name: str | None) -> RequestGuard:
        return RequestGuard(tokens, metrics.request, most=most, hosts=hosts, loop=name, room=room)

    endpoints = endpoints_of(handlers, guard(DEFAULT_LOOP), loop.limits)
    any_loop, all_loops = guard(None), guard("*")  # no loop has this name, so a token must be for all
    for methods in endpoints.values():
        for endpoint in methods.values():
            if endpoint.name in ("loops", "loop_summary"):
                endpoint.guard = any_loop
            elif not hasattr(Handlers, endpoint.name) or endpoint.name == "prometheus":
                endpoint.guard = all_loops

    @asynccontextmanager
    async def running() -> AsyncIterator[None]:
        async with working(loop, handlers, waiting):
            sweeping = asyncio.create_task(service.sweep())
            try:
                yield
            finally:
                service.stopping = True
                service.awake.set()
                await sweeping

    return LoopsApplication(endpoints, handlers, running)
