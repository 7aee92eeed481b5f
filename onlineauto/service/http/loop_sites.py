"""``LoopSite``: a named loop as a service has it, open or closed; ``LoopService`` has all of them.

A closed loop is opened when a request needs it, while the request waits. It is closed when it was not asked
for a while, or when too many loops are open. Waits of decisions that end while their loop is closed are ended
by opening it for a moment. All of this happens in the thread of the event loop, except reading and writing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import cached_property, partial
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Final

import msgspec

from onlineauto.errors import OptionError
from onlineauto.service.http.app import Handlers, body_bytes_of, working
from onlineauto.service.http.endpoint import Endpoint, RequestBatch, RequestGuard, SharedRoom, Waiting
from onlineauto.service.http.routes import ROUTES
from onlineauto.service.http.status import ServiceMetrics, status_of
from onlineauto.service.http.wire import LoopSummary, Reply
from onlineauto.service.loop.loops import AGAIN, RETRY, NamedLoop, check_name
from onlineauto.service.loop.telemetry import LOOP
from onlineauto.service.options import DEFAULT_LOOP
from onlineauto.service.refused import RefusedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Sequence
    from contextlib import AbstractContextManager

    from onlineauto.service.http.endpoint import Begin, Handler, Request
    from onlineauto.service.http.status import Status
    from onlineauto.service.http.tokens import Tokens
    from onlineauto.service.loop.loop import Loop
    from onlineauto.service.loop.loops import Loops, State

_LOG = logging.getLogger("onlineauto.service")
PREFIX: Final = "/v1/loops/"
_ROUTE: Final = {route.name: route for route in ROUTES}
_OPENERS: Final = 4
"""Maximum number of loops that are opened at the same time."""
_NO_PLACE: Final = 10.0
"""Seconds after which a request is rejected if no open loop can be closed for its loop."""
_LOOK: Final = 0.01
_SWEEP: Final = 1.0
"""Seconds between two searches for loops that are idle, or have decisions whose wait is over."""
_SPARE: Final = 2
"""Number of loops that may be open beyond the limit, so that a request does not wait until one is closed."""
_GARBAGE: Final = 4
"""Number of closed loops whose memory is returned to the system before another one is opened."""


class LoopSite:
    """A named loop: its endpoints, and its handlers while it is open."""

    def __init__(self, named: NamedLoop, service: LoopService) -> None:
        self.named, self.service = named, service
        self.handlers: Handlers | None = None
        self.status: Status | None = None  # as of its closing
        self.is_removed = self._is_closing = False
        self.asked = 0.0
        self._lock = asyncio.Lock()  # while it is opened, closed, changed or removed
        self._waiting: list[tuple[LoopEndpoint, Request]] = []
        self._opening: asyncio.Task[None] | None = None
        self._work = AsyncExitStack()
        self._endpoints: dict[Endpoint, LoopEndpoint] = {}
        self._failed: tuple[float, Exception] | None = None

    @cached_property
    def metrics(self) -> ServiceMetrics:
        """The metrics of the loop."""
        return ServiceMetrics(self.status_now)

    @cached_property
    def guard(self) -> RequestGuard:
        """The limits of the loop."""
        options, service = self.named.serve_options, self.service
        return RequestGuard(
            service.tokens,
            self.metrics.request,
            most=options.max_requests,
            hosts=service.hosts,
            loop=self.named.name,
            room=service.room,
            rate=options.max_rate,
        )

    @cached_property
    def batch(self) -> RequestBatch:
        """The requests of the loop in one turn of the event loop."""
        return RequestBatch(self._together, self.service.room)

    def _together(self) -> AbstractContextManager[None]:
        return self.opened.front.together()

    @property
    def opened(self) -> Handlers:
        """The handlers of the open loop."""
        assert self.handlers is not None
        return self.handlers

    @property
    def can_close(self) -> bool:
        """True if no request is being answered, and nothing waits for the disk or the learner."""
        if self.handlers is None or self._lock.locked() or self.guard.served > len(self._waiting):
            return False
        loop = self.handlers.loop
        return loop.writable and not loop.unwritten and loop.learner.position >= loop.log.durable

    def is_idle(self, seconds: float) -> bool:
        """Return whether the loop can be closed and nobody has asked it for a number of seconds."""
        watched = self.handlers is not None and self.handlers.watchers
        return not watched and time.monotonic() - self.asked >= seconds and self.can_close

    def is_due(self, time: float) -> bool:
        """Return whether waits of decisions are over in the closed loop."""
        due = self.named.closed.due
        return self.handlers is None and due is not None and due <= time

    def status_now(self) -> Status | None:
        """Return the status of the loop, as of its closing if it is closed; None before its first opening."""
        handlers = self.handlers  # once, since another thread asks for metrics
        return self.status if handlers is None else status_of(handlers.loop)

    def summary(self) -> LoopSummary:
        """Return the line of the loop in the list of loops."""
        named, closed = self.named, self.named.closed
        if self.handlers is not None:
            counts = counts_of(self.handlers.loop)
        else:
            counts = (closed.ranked, closed.rewarded, closed.learnt, closed.pending)
        state, is_open = named.file.state, self.handlers is not None or self._lock.locked()
        return LoopSummary(named.name, state, is_open, self.error, named.file.options, *counts)

    @property
    def error(self) -> str:
        """The reason why the loop cannot be opened, learn or save, or ""."""
        handlers = self.handlers  # another thread may close the loop
        return self.named.error if handlers is None else handlers.loop.trouble

    def endpoint(self, like: Endpoint) -> LoopEndpoint:
        """Return the endpoint of the loop that does what an endpoint of the default loop does."""
        if like not in self._endpoints:
            self._endpoints[like] = LoopEndpoint(self, like)
        return self._endpoints[like]

    def check(self, scope: str | None) -> None:
        """Reject a request if the loop is removed, archived or paused."""
        name, state = self.named.name, self.named.file.state
        if self.is_removed:
            raise no_such_loop(name)
        if state == "archived":
            how = f'PATCH {PREFIX}{name} with {{"state": "active"}} brings it back'
            raise RefusedError(f"the loop {name!r} is archived; {how}", status=410)
        if state == "paused" and scope == "rank":
            how = f'PATCH {PREFIX}{name} with {{"state": "active"}} continues it'
            raise RefusedError(f"the loop {name!r} is paused, and accepts rewards only; {how}", status=409)

    def start(self, endpoint: LoopEndpoint, request: Request) -> None:
        """Answer a request, once the loop is open."""
        self.asked = time.monotonic()
        if self.handlers is not None and not self._is_closing:
            endpoint.start_now(request)
            return
        self._waiting.append((endpoint, request))
        if self._opening is None:
            self._opening = asyncio.create_task(self._open_and_answer())

    async def _open_and_answer(self) -> None:
        failure: Exception | None = None
        try:
            await self.open()
        except Exception as error:
            failure = error
        self._opening = None
        waiting, self._waiting = self._waiting, []
        for endpoint, request in waiting:
            if failure is None:
                endpoint.start_now(request)
            else:
                request.fail(failure)

    async def open(self) -> None:
        """Open the loop, unless it is open."""
        async with self._lock:
            if self.handlers is not None:
                return
            self.check(None)
            if self._failed is not None and time.monotonic() < self._failed[0]:
                raise self._failed[1]
            try:
                await self._run(self.service.loops.open)
            except RefusedError as error:
                if self.named.error:
                    self._failed = time.monotonic() + RETRY, error
                raise
            self._failed = None

    async def create(self, options: str) -> None:
        """Create the loop, and open it."""
        async with self._lock:
            try:
                await self._run(partial(self.service.loops.create, options=options))
            except BaseException:
                self.is_removed = True
                raise

    async def settled(self) -> None:
        """Wait until the loop is not being created, closed, changed or removed."""
        async with self._lock:
            pass

    async def _run(self, opens: Callable[..., Loop]) -> None:
        """Open the loop by a function that is called in a thread, and let it learn."""
        LOOP.set(self.named.name)
        waiting = Waiting()
        async with self.service.place():
            loop = await asyncio.to_thread(opens, self.named, deliver=waiting.deliver)
            handlers = Handlers(loop, self.metrics)
            handlers.evaluating = self.service.evaluating
            await self._work.enter_async_context(working(loop, handlers, waiting))
            self.handlers, self.asked = handlers, time.monotonic()
            self.service.open_sites.add(self)

    async def close(self) -> None:
        """Close the loop, unless it is closed; requests that arrive meanwhile open it again."""
        async with self._lock:
            await self._close()

    async def _close(self) -> None:
        if self.handlers is None:
            return
        self._is_closing = True  # requests wait from now on
        while self.guard.served > len(self._waiting):
            await asyncio.sleep(_LOOK)
        loop = self.handlers.loop
        self.status, self.handlers.waits_for_compiler = status_of(loop), True
        self.handlers, self._is_closing = None, False
        self.service.open_sites.discard(self)
        await self._work.aclose()
        await asyncio.to_thread(self.service.loops.settle, self.named, loop)
        self.service.garbage += 1

    async def catch_up(self) -> None:
        """End the waits of decisions that are over, unless the loop is open."""
        async with self._lock:
            if not self.is_due(self.service.loops.clock()) or self.is_removed:
                return
            try:
                await asyncio.to_thread(self.service.loops.catch_up, self.named)
            except Exception:  # it is logged, and the list of loops has it
                self.named.put_off(self.service.loops.clock() + AGAIN)
            self.service.garbage += 1

    async def change(self, state: State | None, options: str | None) -> None:
        """Change the state and the options; None keeps them."""
        if options == "":
            raise OptionError(f"the options of the loop {self.named.name!r} cannot be empty")
        async with self._lock:
            if self.is_removed:
                raise no_such_loop(self.named.name)
            file = self.named.file
            state, options = state or file.state, options or file.options
            if not options:
                raise RefusedError(f"{self.named.error}; send its options as well", status=409)
            if (state, options) == (file.state, file.options):
                return
            if state == "archived" or options != file.options:
                await self._drain(state)
            try:
                await asyncio.to_thread(self.service.loops.change, self.named, state, options)
            except BaseException:
                self.named.file = file
                raise
            self._failed, limits = None, self.named.serve_options
            self.guard.most, self.guard.rate = limits.max_requests, limits.max_rate
            for endpoint in self._endpoints.values():
                endpoint.body_bytes = body_bytes_of(_ROUTE[endpoint.name], limits.max_body)

    async def remove(self) -> str:
        """Answer the requests that have begun, close the loop, and return the new path of its folder."""
        self.is_removed = True
        async with self._lock:
            try:
                await self._close()
                path = await asyncio.to_thread(self.service.loops.remove, self.named)
            except BaseException:
                self.is_removed = False
                raise
        return str(path)

    async def _drain(self, state: State) -> None:
        """Close the loop for a change; if it is archived then, requests are rejected from now on."""
        if state == "archived":
            self.named.file = msgspec.structs.replace(self.named.file, state=state)
        await self._close()


class LoopEndpoint(Endpoint):
    """An endpoint of a named loop, which is opened if it is closed."""

    def __init__(self, site: LoopSite, like: Endpoint) -> None:
        super().__init__(
            site.guard,
            _handler(site, like.name),
            name=like.name,
            scope=like.scope,
            body_bytes=body_bytes_of(_ROUTE[like.name], site.named.serve_options.max_body),
            batch=site.batch,
        )
        self._is_counted, self._site = True, site  # the loop is not closed while it serves a request

    def check(self, request: Request) -> None:
        """Reject a request that must not be served, by its head and by the state of the loop."""
        super().check(request)
        self._site.check(self.scope)

    def accepts(self, version: int) -> bool:
        """Return whether a head that `check` has accepted with a version of the tokens is accepted now."""
        site = self._site
        return super().accepts(version) and not site.is_removed and site.named.file.state == "active"

    def start(self, request: Request) -> None:
        """Answer a request that was admitted, once the loop is open."""
        self._site.start(self, request)

    def start_now(self, request: Request) -> None:
        """Answer a request of an open loop, whose state may have changed since its head was read."""
        try:
            self._site.check(self.scope)
        except RefusedError as error:
            request.fail(error)
        else:
            super().start(request)


def _handler(site: LoopSite, name: str) -> Handler | Begin:
    """Return a function that answers by the handlers of a loop that is open at that time."""
    if iscoroutinefunction(getattr(Handlers, name)):

        async def answer(request: Request) -> Reply:
            LOOP.set(site.named.name)
            reply: Reply = await getattr(site.opened, name)(request)
            return reply

        return answer

    def begin(requests: Sequence[Request]) -> list[Reply | Exception]:
        replies: list[Reply | Exception] = getattr(site.opened, name)(requests)
        return replies

    return begin


class LoopService:
    """The named loops of a service, of which a limited number is open."""

    def __init__(
        self,
        loops: Loops,
        *,
        tokens: Tokens,
        hosts: Collection[str],
        room: SharedRoom,
        most: int,
        idle: float,
        trim: Callable[[], object],
        alone: str,
    ) -> None:
        self.loops, self.tokens, self.hosts, self.room = loops, tokens, hosts, room
        self._most, self._idle, self._trim, self._alone = most, idle, trim, alone
        self.sites = {name: LoopSite(named, self) for name, named in loops.by_name.items()}
        self.open_sites: set[LoopSite] = set()
        self.evaluating = asyncio.Lock()
        self.awake, self.stopping = asyncio.Event(), False  # `awake`: the sweep has something to do now
        self.garbage = 0  # the number of loops that were closed since the last collection
        self.paths: dict[tuple[bytes, bytes], Endpoint] = {}
        self._openers, self._clearing = asyncio.Semaphore(_OPENERS), asyncio.Lock()
        self._opening = 0  # the number of loops that have a place, and are not open yet
        self.room.is_shared = bool(self.sites)

    def site(self, name: str) -> LoopSite:
        """Return a named loop."""
        if name == DEFAULT_LOOP:
            message = "the loop 'default' has the folder of the service, and is changed by serve's options"
            raise RefusedError(message, status=409)
        if name not in self.sites:
            raise no_such_loop(name)
        return self.sites[name]

    def failed(self) -> list[str]:
        """Return the loops that cannot be opened, learn or save, with the reasons."""
        errors = {name: site.error for name, site in sorted(self.sites.items())}
        return [f"the loop {name} has failed: {error}" for name, error in errors.items() if error]

    async def create(self, name: str, options: str) -> bool:
        """Create a loop; return False if it exists with these options."""
        check_name(name)
        if self._alone:
            raise RefusedError(f"{self._alone} is for the loop 'default', and for a service without others")
        while (known := self.sites.get(name)) is not None:
            await known.settled()
            if self.sites.get(name) is not known:  # it was removed, or could not be created
                continue
            if options in ("", known.named.file.options):
                return False
            message = f"there is a loop {name!r} with other options: PATCH {PREFIX}{name} changes them"
            raise RefusedError(message, status=409)
        site = self.sites[name] = LoopSite(NamedLoop(self.loops.folder / name), self)
        self.room.is_shared = True
        try:
            await site.create(options)
        except BaseException:
            self._forget(site)
            raise
        return True

    async def remove(self, name: str) -> str:
        """Remove a loop, and return the new path of its folder."""
        site = self.site(name)
        if site.is_removed:
            raise no_such_loop(name)
        path = await site.remove()
        self._forget(site)
        return path

    def _forget(self, site: LoopSite) -> None:
        del self.sites[site.named.name]
        self.paths.clear()

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Wait until one more loop may be open; close the loop that was asked least recently if needed."""
        until = time.monotonic() + _NO_PLACE
        async with self._openers:
            async with self._clearing:  # in the order of the requests
                if self.stopping:
                    raise RefusedError("the service stops", status=503, retry_after=1.0)
                while len(self.open_sites) + self._opening >= self._most + _SPARE:
                    if not await self._close_one():
                        if time.monotonic() > until:
                            message = (
                                f"{self._most} loops are busy, and no more can be open (--max_open_loops)"
                            )
                            raise RefusedError(message, status=503, retry_after=1.0)
                        await asyncio.sleep(_LOOK)
                if self.garbage >= _GARBAGE:
                    await self._collect()
                self._opening += 1
            try:
                yield
            finally:
                self._opening -= 1
                if len(self.open_sites) > self._most:
                    self.awake.set()

    async def _close_one(self) -> bool:
        """Close the loop that was asked least recently; return False if no loop can be closed now."""
        closable = [site for site in self.open_sites if site.can_close]
        if closable:
            await min(closable, key=lambda site: site.asked).close()
        return bool(closable)

    async def sweep(self) -> None:
        """Close idle loops, and end waits in closed loops, until the service stops; then close all loops."""
        while not self.stopping:
            try:
                await self._sweep()
            except Exception:
                _LOG.exception("a sweep has failed", extra={"event": "failed", "endpoint": "sweep"})
            with suppress(TimeoutError):
                await asyncio.wait_for(self.awake.wait(), _SWEEP)
        for site in list(self.sites.values()):  # those that are being opened, too
            await site.close()

    async def _sweep(self) -> None:
        self.awake.clear()
        while len(self.open_sites) > self._most and await self._close_one():
            pass
        for site in list(self.open_sites):
            if site.is_idle(self._idle):
                await site.close()
        for site in list(self.sites.values()):
            if site.is_due(self.loops.clock()) and not self.stopping:
                await site.catch_up()
        if self.garbage:
            await self._collect()

    async def _collect(self) -> None:
        """Return the memory of closed loops to the system."""
        self.garbage = 0
        await asyncio.to_thread(self._trim)


def no_such_loop(name: str) -> RefusedError:
    """Return the error about a loop that does not exist."""
    return RefusedError(f"there is no loop {name[:64]!r}; GET /v1/loops lists the loops", status=404)


def counts_of(loop: Loop) -> tuple[int, int, int, int]:
    """Return the numbers of decisions, rewards, learnt decisions and waiting decisions of an open loop."""
    counts = loop.join.counts
    return counts.ranked, counts.rewarded, loop.learner.learnt, loop.join.waiting
