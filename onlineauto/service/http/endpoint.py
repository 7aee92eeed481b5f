"""``Endpoint``: a handler with the checks that all handlers need: scope, limits, error replies, metrics.

There are two kinds of handlers. A coroutine answers one request in a task. A function receives all requests
of one turn of the event loop, and submits them to the log; their replies are sent once the log has them.
`Router` finds the endpoint of a request by its method and path.
"""

from __future__ import annotations

import asyncio
import logging
import re
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, TypeAlias
from urllib.parse import unquote, urlsplit

from httptools import HttpParserInvalidURLError, parse_url

from onlineauto.service.http.wire import Reply, problem, reply_to_error
from onlineauto.service.log.segment_log import call_all
from onlineauto.service.options import DEFAULT_LOOP
from onlineauto.service.refused import RefusedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager, AbstractContextManager

    from onlineauto.service.http.http_protocol import Connections
    from onlineauto.service.http.tokens import Tokens
    from onlineauto.service.log.segment_log import Done

_LOG = logging.getLogger("onlineauto.service")
LENGTH_DIGITS: Final = 20
"""Maximum number of digits of ``Content-Length``."""
_UNCOUNTED: Final = ("alive", "ready")
"""Endpoints that are exempt from the limit on simultaneous requests."""
_SHARE: Final = 3
"""A loop may have this multiple of the free room for requests."""
_RATED_BYTES: Final = 4096
"""A request counts as one more for each of this number of bytes of its body."""
_TURN: Final = 128
"""Maximum number of requests of a loop in one turn of the event loop, while several loops share a service."""
_APART: Final = 60.0
"""Seconds between two lines about answers 503."""
_MOST_HEADS: Final = 1024
"""Maximum number of heads that are remembered, each of which has at most 16 KB."""


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


@dataclass(slots=True, eq=False)
class Request:
    """A request, from its head to its reply."""

    headers: Mapping[str, str]
    path: Mapping[str, str]  # the parts of the path by name
    _send: Callable[[Reply], object] | None
    body: bytes = b""
    began: float = field(default_factory=time.perf_counter)
    endpoint: Endpoint | None = None
    is_written: bool = False
    is_counted: bool = False
    closes: bool = False
    is_http_1_0: bool = False
    has_body: bool = True
    refusal: Reply | None = None
    reply: Reply | None = None
    reason: str = ""  # of an error

    @property
    def is_ended(self) -> bool:
        """True once the request is answered."""
        return self._send is None

    def set_reply(self, reply: Reply | Exception) -> None:
        """Store the reply: send it now if the log has the record or there is an error, else later."""
        if isinstance(reply, Exception):
            self.fail(reply)
        elif self.is_written:
            self.end(reply)
        else:
            self.reply = reply

    def done(self, error: Exception | None) -> None:
        """Send the reply once the log has the record, or an error if it cannot be written."""
        self.is_written = True
        if error is not None:
            self.fail(RefusedError(f"the log cannot be written: {error}", status=503))
        elif self.reply is not None:
            self.end(self.reply)

    def fail(self, error: Exception) -> None:
        """Answer with an error."""
        self.reason = str(error)
        self.end(reply_to_error(error, "" if self.endpoint is None else self.endpoint.name))
        error.__traceback__ = None  # its frames have the body, and may have the error

    def end(self, reply: Reply) -> None:
        """Answer once, and count the request if it has an endpoint; the body ends here."""
        send, self._send, self.body = self._send, None, b""
        if send is None:
            return
        if self.endpoint is not None:
            guard = self.endpoint.guard
            if self.is_counted:
                guard.release()
            guard.account(self.endpoint.name, reply.status, time.perf_counter() - self.began, self.reason)
        send(reply)


Handler: TypeAlias = "Callable[[Request], Awaitable[Reply]]"
"""Answers a request."""

Begin: TypeAlias = "Callable[[Sequence[Request]], list[Reply | Exception]]"
"""Submits requests to the log; returns for each the reply to send once its `done` is called, or the error
that rejects it."""


class SharedRoom:
    """The requests that all loops of a service have at the same time, up to `most`.

    A loop may have up to `_SHARE` times the free room. So one loop alone uses three quarters of the room, two
    loops use three sevenths each, and some room is always left for another loop.
    """

    def __init__(self, most: int) -> None:
        self.most, self.served, self.is_shared = most, 0, False

    def has_share(self, served: int) -> bool:
        """Return whether a loop that has `served` requests may have one more."""
        return not self.is_shared or served < _SHARE * (self.most - self.served)


class RequestGuard:
    """Guards endpoints: checks tokens, limits simultaneous requests and their rate, records metrics.

    `loop` is the loop that a token must be for; None: a token for any loop will do.
    """

    def __init__(
        self,
        tokens: Tokens,
        count: Callable[[str, int, float], object],
        *,
        most: int = 1000,
        hosts: Collection[str] = (),
        loop: str | None = None,
        room: SharedRoom | None = None,
        rate: float | None = None,
    ) -> None:
        self.tokens, self.count, self.most, self.served = tokens, count, most, 0
        self.hosts, self.loop, self.room = frozenset(hosts), loop, room or SharedRoom(most)
        self.rate, self._credit, self._credited = rate, rate or 0.0, time.monotonic()
        self._unavailable, self._unavailable_at = 0, -_APART

    def check(self, headers: Mapping[str, str], scope: str | None) -> None:
        """Reject a request that must not be served."""
        # Without tokens, a foreign name that resolves to this machine would let pages of that site in.
        if self.hosts and not self.tokens and _parts(f"//{headers.get('host', '')}")[1] not in self.hosts:
            raise RefusedError(
                "without tokens, a request must name the machine of the service as its host", status=403
            )
        origin = headers.get("origin")
        if origin is not None and _parts(origin)[0] != headers.get("host"):
            raise RefusedError("this is a request of a page of another site", status=403)
        if scope is not None:
            self.tokens.check(headers, scope, self.loop)

    def admit(self, size: int = 0) -> None:
        """Count a request with a body of `size` bytes as being served, until `release`."""
        if self.served >= self.most:
            raise RefusedError(f"{self.served} requests are served already", status=429, retry_after=1.0)
        if not self.room.has_share(self.served):
            message = f"{self.served} requests of this loop are served already; the others need the rest"
            raise RefusedError(message, status=429, retry_after=1.0)
        if self.rate is not None:
            self._charge(self.rate, 1 + size // _RATED_BYTES)
        self.served += 1
        self.room.served += 1

    def release(self) -> None:
        """Count a request as answered."""
        self.served -= 1
        self.room.served -= 1

    def _charge(self, rate: float, cost: int) -> None:
        """Reduce the credit, which grows by `rate` a second, by `cost`; reject a request without credit."""
        now = time.monotonic()
        self._credit = min(self._credit + rate * (now - self._credited), max(rate, 1.0))
        self._credited = now
        if self._credit < 1.0:
            message = f"more than {rate:g} requests a second (--max_rate)"
            raise RefusedError(message, status=429, retry_after=(1.0 - self._credit) / rate)
        self._credit -= cost

    def account(self, endpoint: str, status: int, seconds: float, reason: str = "") -> None:
        """Count a request, and log it if it failed or if all requests are logged.

        The answers 503 are logged once a minute, with the reason of the latest and their number since then.
        """
        self.count(endpoint, status, seconds)
        if status >= 500 or _LOG.isEnabledFor(logging.DEBUG):
            fields: dict[str, Any] = {"endpoint": endpoint, "status": status, "seconds": round(seconds, 6)}
            if status == 503:
                self._unavailable += 1
                if time.monotonic() < self._unavailable_at + _APART:
                    return
                fields |= {"count": self._unavailable, "reason": reason}
                self._unavailable, self._unavailable_at = 0, time.monotonic()
            if self.loop not in (None, DEFAULT_LOOP):
                fields["loop"] = self.loop
            level = logging.ERROR if status >= 500 else logging.DEBUG
            _LOG.log(level, "request", extra={"event": "request", **fields})


class Endpoint:
    """One handler."""

    def __init__(
        self,
        guard: RequestGuard,
        handler: Handler | Begin,
        *,
        name: str,
        scope: str | None,
        body_bytes: int,
        batch: RequestBatch | None,
    ) -> None:
        self.guard, self.name, self.scope, self.body_bytes = guard, name, scope, body_bytes
        self._handler: Any = handler
        self._batch = None if iscoroutinefunction(handler) else batch
        self._is_counted = name not in _UNCOUNTED
        self._tasks: set[asyncio.Task[None]] = set()

    def check(self, request: Request) -> None:
        """Reject a request that must not be served, by its head."""
        self.guard.check(request.headers, self.scope)
        coding = request.headers.get("content-encoding", "identity").strip().lower()
        if coding != "identity":
            raise RefusedError(f"Content-Encoding {coding!r}: send the body as it is", status=415)
        length = request.headers.get("content-length", "0")
        if len(length) > LENGTH_DIGITS:
            raise RefusedError(f"Content-Length has {len(length)} digits")
        if int(length) > self.body_bytes:  # the parser accepts digits only
            raise RefusedError(
                f"the body has {length} bytes; at most {self.body_bytes} are accepted", status=413
            )

    def accepts(self, version: int) -> bool:
        """Return whether a head that `check` has accepted with a version of the tokens is accepted now."""
        tokens = self.guard.tokens
        tokens.refresh()
        return tokens.version == version

    def take(self, request: Request) -> None:
        """Answer a whole request that was checked, now or later."""
        if self._is_counted:
            try:
                self.guard.admit(len(request.body))
            except RefusedError as error:
                request.fail(error)
                return
            request.is_counted = True
        self.start(request)

    def start(self, request: Request) -> None:
        """Answer a request that was admitted, now or later."""
        if self._batch is not None:
            self._batch.add(self, request)
            return
        task = asyncio.get_running_loop().create_task(self._answer(request))
        self._tasks.add(task)  # the event loop itself has only a weak reference
        task.add_done_callback(self._tasks.discard)

    def begin(self, requests: Sequence[Request]) -> None:
        """Submit requests to the log; they are answered once it has them."""
        try:
            replies = self._handler(requests)
        except Exception as error:
            replies = [error] * len(requests)
        for request, reply in zip(requests, replies, strict=True):
            request.set_reply(reply)

    async def _answer(self, request: Request) -> None:
        try:
            request.end(await self._handler(request))
        except Exception as error:
            request.fail(error)


class RequestBatch:
    """The requests of one turn of the event loop.

    Requests that arrived over all connections are answered endpoint by endpoint, once everything is read: a
    hundred ranks in a row cost half as much as ranks between other work. While several loops share a service,
    a turn has at most `_TURN` requests of a loop; the others follow in the next turn.
    """

    def __init__(
        self, together: Callable[[], AbstractContextManager[None]], room: SharedRoom | None = None
    ) -> None:
        self._together, self._room = together, room
        self._requests: dict[Endpoint, list[Request]] = {}

    def add(self, endpoint: Endpoint, request: Request) -> None:
        """Add a request, to be answered at the end of the turn."""
        if not self._requests:
            asyncio.get_running_loop().call_soon(self._begin)
        self._requests.setdefault(endpoint, []).append(request)

    def _begin(self) -> None:
        requests, self._requests = self._requests, {}
        left = _TURN if self._room is not None and self._room.is_shared else sys.maxsize
        for endpoint, batch in requests.items():
            if later := batch[left:]:
                del batch[left:]
                self._requests[endpoint] = later
            left -= len(batch)
        if self._requests:
            asyncio.get_running_loop().call_soon(self._begin)
        with self._together():
            for endpoint, batch in requests.items():
                if batch:
                    endpoint.begin(batch)


@lru_cache(maxsize=256)
def _parts(url: str) -> tuple[str, str | None]:
    """Return the address of a URL, and the name of its host; empty if the URL is malformed."""
    try:
        parts = urlsplit(url)
        return parts.netloc, parts.hostname
    except ValueError:
        return "", None


class KnownHead(NamedTuple):
    """The head of an ordinary request that was accepted with a version of the tokens."""

    headers: Mapping[str, str]
    endpoint: Endpoint
    body_bytes: int
    version: int


class Router:
    """The endpoints by path and method; a path may have parts in braces.

    Connections are served within the context that `running` returns.
    """

    hint: ClassVar[str] = ""  # The end of the message that there is no such endpoint.

    def __init__(
        self,
        endpoints: Mapping[str, Mapping[str, Endpoint]],
        connections: Connections,
        running: Callable[[], AbstractAsyncContextManager[None]],
    ) -> None:
        self.connections, self.running = connections, running
        self.heads: dict[bytes, KnownHead] = {}
        self._plain = {path: methods for path, methods in endpoints.items() if "{" not in path}
        self._patterns = [(_pattern_of(path), methods) for path, methods in endpoints.items() if "{" in path]
        self._direct = {
            (method.encode(), path.encode()): endpoint
            for path, methods in self._plain.items()
            for method, endpoint in methods.items()
        }

    def stop(self) -> None:
        """Prepare the end of the server; requests are still answered."""

    def remember(self, head: bytes, request: Request) -> None:
        """Remember the head of a request, unless something about the request is out of the ordinary."""
        special = request.refusal or request.closes or request.is_http_1_0 or not request.has_body
        endpoint = request.endpoint
        if endpoint is None or request.path or special or "expect" in request.headers:
            return
        if len(self.heads) >= _MOST_HEADS:
            self.heads.clear()
        version = endpoint.guard.tokens.version
        self.heads[head] = KnownHead(request.headers, endpoint, len(request.body), version)

    def canonical_path(self, path: str) -> str:
        """Return the path under which an endpoint is declared."""
        return path

    def missing(self, method: str, path: str, methods: Mapping[str, Endpoint]) -> Reply:
        """Return the answer to a request for which there is no endpoint; `methods` are those of its path."""
        message = f"there is no {method} {path}{self.hint}"
        if not methods:
            return problem(message, 404)
        allowed = sorted({*methods, *(("HEAD",) if "GET" in methods else ())})
        reply = problem(message, 405)
        return reply._replace(headers=(*reply.headers, (b"allow", ", ".join(allowed).encode())))

    def find(self, method: bytes, target: bytes) -> tuple[Endpoint | Reply, Mapping[str, str]]:
        """Return the endpoint of a request, or the reply if there is none, and the parts of its path."""
        direct = self._direct.get((method, target))
        if direct is not None:
            return direct, {}
        path, verb = path_of(target), method.decode()
        methods, parts = self.match(path)
        return methods.get("GET" if verb == "HEAD" else verb) or self.missing(verb, path, methods), parts

    def match(self, path: str) -> tuple[Mapping[str, Endpoint], Mapping[str, str]]:
        """Return the endpoints of a path by method, which may be none, and the parts of the path."""
        path = self.canonical_path(path)
        if path in self._plain:
            return self._plain[path], {}
        for pattern, methods in self._patterns:
            if match := pattern.fullmatch(path):
                return methods, match.groupdict()
        return {}, {}


def _pattern_of(path: str) -> re.Pattern[str]:
    """Return the expression that a path with parts in braces matches.

    The id of an event and the name of a study may have slashes.
    """
    path = re.sub(r"\{(event_id|study)\}", r"(?s:(?P<\1>.+))", path)
    return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path))


def path_of(target: bytes) -> str:
    """Return the decoded path of a request's target."""
    with suppress(HttpParserInvalidURLError):
        return unquote((parse_url(target).path or b"").decode("latin-1"))
    return ""
