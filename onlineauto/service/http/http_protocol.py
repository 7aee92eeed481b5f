"""``HttpProtocol``: one connection of HTTP/1.1, parsed by httptools; requests go straight to their endpoints.

Requests of a connection are answered in order, one at a time. A request is checked once its head is complete;
one that is rejected is answered at once, and its body is read and discarded. `Connections` are the open
connections of a server, within limits that hold before a request is known; `run_until_signal` serves them.

A connection is *waiting* while it is idle, or while its client still sends a request. If there are too many
connections, the one that has waited longest is closed for the new one.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import signal
import socket
import time
from collections import Counter, OrderedDict, deque
from contextlib import aclosing, suppress
from email.utils import formatdate
from enum import StrEnum
from functools import lru_cache, partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, cast

import msgspec
from httptools import HttpParserCallbackError, HttpParserError, HttpParserUpgrade, HttpRequestParser

from onlineauto.errors import OptionError
from onlineauto.service.http.endpoint import LENGTH_DIGITS, Request
from onlineauto.service.http.wire import Reply, problem, reply_to_error
from onlineauto.service.refused import RefusedError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping
    from types import FrameType

    from onlineauto.service.http.endpoint import Router

_STATUS: Final = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}
_BODILESS: Final = (204, 304)
_CLOSE: Final = b"connection: close\r\n"
_KEEP: Final = b"connection: keep-alive\r\n"
"""For HTTP/1.0, in which a connection closes by default."""
_UNREADABLE: Final = problem("the request is not HTTP", 400)
_PIECE: Final = 2048
"""Bytes that are parsed at once; an unfinished head is known to so many bytes."""
_READ: Final = 65536
"""Bytes of an answer that a slow client reads within `ConnectionLimits.answer_seconds`."""

_LOG = logging.getLogger("onlineauto.service")
BACKLOG: Final = 256
"""Connections that the system accepts beyond the limit, until they are closed."""
_RESERVE: Final = 128
"""File descriptors reserved for the log, the models and the libraries."""
_MOST: Final = 4096


class ConnectionLimits(msgspec.Struct, frozen=True):
    """Bounds on connections; they hold for requests without a valid token as well."""

    most: int = 1024  # Maximum number of connections.
    # Maximum size of the target and all headers of a request, and their maximum number.
    header_bytes: int = 16_384
    headers: int = 100
    # Seconds for which a connection may be idle, or may take to send a complete head.
    header_seconds: float = 10.0
    body_seconds: float = 10.0  # Seconds from the first byte of a request to its last.
    # Seconds within which a client that reads slowly has to read the next 64 KB of its answers.
    answer_seconds: float = 30.0


class Connections:
    """The open connections, ordered by how long they have waited."""

    def __init__(self, limits: ConnectionLimits | None = None) -> None:
        self.limits = limits or ConnectionLimits()
        self.dropped: Counter[str] = Counter()
        self._open: OrderedDict[HttpProtocol, None] = OrderedDict()
        self._logged: dict[str, float] = {}

    def __len__(self) -> int:
        """Return the number of open connections."""
        return len(self._open)

    def add(self, connection: HttpProtocol) -> None:
        """Add a new connection; if there are too many, close the one that waits longest, or this one."""
        if len(self._open) >= self.limits.most:
            oldest = next((each for each in self._open if each.is_waiting), None)
            if oldest is None:
                message = f"there are {len(self._open)} connections; no more are accepted"
                self._drop(connection, "too many", 503, message)
                return
            self._drop(oldest, "room for another")
        self._open[connection] = None

    def discard(self, connection: HttpProtocol) -> None:
        """Remove a connection that is closed."""
        self._open.pop(connection, None)

    def waits(self, connection: HttpProtocol) -> None:
        """Record that a connection waits from now on."""
        if connection in self._open:
            self._open.move_to_end(connection)

    def sweep(self, now: float) -> None:
        """Close the connections that have waited for too long."""
        for connection in list(self._open):
            if reason := connection.waits_for(now, self.limits):
                answer = (408, f"{reason} did not come in time") if reason in ("head", "body") else (0, "")
                self._drop(connection, reason, *answer)

    def shutdown(self) -> None:
        """Close each connection once its requests are answered."""
        for connection in list(self._open):
            connection.shutdown()

    def abort(self) -> None:
        """Close each connection now."""
        for connection in list(self._open):
            connection.drop(0, "")

    def _drop(self, connection: HttpProtocol, reason: str, status: int = 0, message: str = "") -> None:
        self._open.pop(connection, None)
        self.dropped[reason] += 1
        connection.drop(status, message)
        now = time.monotonic()
        if reason != "idle" and now - self._logged.get(reason, -60.0) >= 60.0:  # at most one line a minute
            self._logged[reason] = now
            _LOG.warning(
                "connections are closed: %s",
                reason,
                extra={"event": "connection_closed", "reason": reason, "count": self.dropped[reason]},
            )


def most_connections(wanted: int | None = None, reserved: int = 0) -> int:
    """Return the maximum number of connections that leaves enough file descriptors for everything else.

    Everything else needs `reserved` ones besides those of the log, the models and the libraries.
    The limit of open files is raised as far as needed and as the system allows.
    """
    limit = _MOST if wanted is None else wanted
    try:
        import resource
    except ImportError:  # not on Windows
        return min(limit, 400)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = limit + _RESERVE + reserved + BACKLOG
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY:
        return limit
    return min(limit, max(soft - _RESERVE - reserved - BACKLOG, soft // 4))


class RequestPart(StrEnum):
    """The part of a request that a connection receives; the values name the timeouts."""

    NONE = "idle"
    HEAD = "head"
    BODY = "body"


class HttpProtocol(asyncio.Protocol):
    """A connection."""

    transport: asyncio.Transport

    def __init__(self, app: Router) -> None:
        self._app, self._loop = app, asyncio.get_running_loop()
        self._parser = HttpRequestParser(self)
        self.since = self._stalled = 0.0
        self._target = b""
        self._lines: list[tuple[bytes, bytes]] = []
        self._body = bytearray()
        self._part = RequestPart.NONE
        self._is_last = self._is_paused = self._is_advancing = False
        self._run_bytes = self._unread = self._unsent = 0
        self._reading: Request | None = None  # its head is complete, its body is not
        self._queue: deque[Request] = deque()  # whole requests
        self._current: Request | None = None  # is being answered
        self._stream: asyncio.Task[None] | None = None

    # -- the connection --------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the connection, if the limits allow one more."""
        self.transport = cast("asyncio.Transport", transport)
        self.since = self._loop.time()
        self._app.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Drop what is unfinished, and remove the connection."""
        del exc
        self._app.connections.discard(self)
        self._queue.clear()
        self._body, self._reading = bytearray(), None
        self._parser = HttpRequestParser(None)  # a parser of this connection would keep the connection alive
        if self._stream is not None:
            self._stream.cancel()

    def eof_received(self) -> bool:
        """Keep a connection whose client sends no more open until its requests are answered."""
        self._is_last = True
        return not self.is_waiting

    def pause_writing(self) -> None:
        """Record when the transport's buffer filled up, because the client reads slowly."""
        self._stalled, self._unsent = self._loop.time(), self.transport.get_write_buffer_size()

    def resume_writing(self) -> None:
        """Record that the client reads again, and answer its next request."""
        self._stalled = 0.0
        self._wait()
        self._advance()

    @property
    def is_waiting(self) -> bool:
        """True if no answer is being computed or sent: the connection is idle or receives a request."""
        return self._current is None and not self._queue

    def waits_for(self, now: float, limits: ConnectionLimits) -> str:
        """Return the name of the timeout that the connection has exceeded, or ""."""
        if self._stalled:
            unsent = self.transport.get_write_buffer_size()
            if unsent <= self._unsent - _READ:
                self._stalled, self._unsent = now, unsent
            return "answer" if now - self._stalled > limits.answer_seconds else ""
        if not self.is_waiting:
            return ""
        most = limits.body_seconds if self._part is RequestPart.BODY else limits.header_seconds
        return self._part if now - self.since > most else ""

    def drop(self, status: int, message: str) -> None:
        """Close the connection, with an answer unless `status` is 0 or its request is answered already."""
        if self.transport.is_closing():
            return
        if status and not (self._reading is not None and self._reading.is_ended):
            reply = problem(message, status, 1.0 if status == 503 else None)
            self.transport.write(_head_of(reply, _CLOSE) + reply.body)
            self.transport.close()
        else:
            self.transport.abort()

    def shutdown(self) -> None:
        """Close the connection once all received requests are answered."""
        self._is_last = True
        if self.is_waiting and self._reading is None:
            self.transport.close()

    # -- reading ---------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Parse bytes, and answer the requests that they complete."""
        if self.transport.is_closing():
            return
        if self._part is RequestPart.NONE and self.is_waiting:
            self._take(data)
        else:
            self._feed(data)
        self._advance()
        if self._queue and not self._is_paused and not self.transport.is_closing():
            self._is_paused = True
            self.transport.pause_reading()

    def _take(self, data: bytes) -> None:
        """Queue the request that bytes are; parse them if no request had the same head, byte for byte.

        A client writes the same head for each request, and the parser takes longer than all other steps here.
        """
        end = data.find(b"\r\n\r\n") + 4
        head = data[:end]
        known = self._app.heads.get(head)
        if known is not None and len(data) == end + known.body_bytes:
            endpoint = known.endpoint
            if endpoint.accepts(known.version):
                self._queue.append(Request(known.headers, {}, self._send, data[end:], endpoint=endpoint))
                return
        self._feed(data)
        if len(self._queue) == 1 and len(data) == end + len((request := self._queue[0]).body):
            self._app.remember(head, request)

    def _feed(self, data: bytes) -> None:
        """Parse bytes."""
        try:
            unparsed = memoryview(data)
            while unparsed:
                size = max(self._unread, _PIECE)  # a body of known length has no headers
                rest, unparsed = unparsed[:size], unparsed[size:]
                self._run_bytes += len(rest)  # the callbacks set it to 0
                while True:
                    try:
                        self._parser.feed_data(rest)
                        break
                    except HttpParserUpgrade as offer:
                        rest = rest[offer.args[0] :]
                    self._begin_without_upgrade()  # outside of `except`, which sets contexts
                self._check_head(self._run_bytes)  # the parser does not report a header that does not end
        except HttpParserCallbackError as error:
            cause = error.__context__  # a callback has raised it
            self._reject(reply_to_error(cause if isinstance(cause, Exception) else error, "head"))
        except HttpParserError:
            self._reject(_UNREADABLE)
        except RefusedError as error:
            self._reject(reply_to_error(error, "head"))

    def _reject(self, refusal: Reply) -> None:
        """Answer the request that cannot be read, after the requests before it; then close the connection."""
        request, self._reading = self._reading, None
        if request is None:
            request = Request({}, {}, self._send)
        elif request.is_ended:  # its answer was sent before its body
            self.transport.close()
            return
        request.refusal, request.closes = refusal, True
        self._queue.append(request)

    def on_message_begin(self) -> None:
        """Begin a request, whose time limit starts with its first byte."""
        self._wait()
        self._part = RequestPart.HEAD
        self._target, self._lines, self._body = b"", [], bytearray()
        self._run_bytes = self._unread = 0

    def on_url(self, url: bytes) -> None:
        """Take a part of the request's target."""
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header, or a trailer of a chunked body, which is only counted."""
        self._lines.append((name, value))
        if self._part is RequestPart.BODY:
            self._check_head(self._run_bytes)

    def on_headers_complete(self) -> None:
        """Check a request by its head."""
        parser = self._parser
        if parser.should_upgrade():  # the parser would pass its body on as bytes of another protocol
            return
        self._part, self._run_bytes = RequestPart.BODY, 0
        headers, size, is_clear = _headers_of(tuple(self._lines))
        self._check_head(size + len(self._target))
        self._lines = []  # trailers follow
        if not is_clear:
            raise RefusedError("a request has one Host header")
        coding = headers.get("transfer-encoding", "chunked").strip()
        if coding.lower() != "chunked":
            raise RefusedError(f"Transfer-Encoding {coding!r}: send the body as it is")
        length = headers.get("content-length", "0")
        self._unread = int(length) if len(length) <= LENGTH_DIGITS else 0
        version, keeps = parser.get_http_version(), parser.should_keep_alive()
        if version == "0.9":
            raise RefusedError("the request is not HTTP/1.0 or HTTP/1.1")
        method = parser.get_method()
        found, path = self._app.find(method, self._target)
        request = self._reading = Request(headers, path, self._send)
        request.has_body, request.closes = method != b"HEAD", not keeps
        request.is_http_1_0 = version == "1.0"
        if isinstance(found, Reply):
            request.refusal = found
        else:
            request.endpoint = found
            try:
                found.check(request)
            except RefusedError as error:
                request.refusal = reply_to_error(error, found.name)
        if "expect" in headers:
            if request.refusal is not None:
                request.closes = True  # the body may not follow
            elif self.is_waiting and version != "1.0":
                self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        """Take a part of a body, unless its request is rejected."""
        self._run_bytes = 0
        self._unread = max(self._unread - len(body), 0)
        request = self._reading
        if request is None or request.endpoint is None or request.refusal is not None:
            return
        self._body += body
        if len(self._body) > (most := request.endpoint.body_bytes):
            self._body.clear()
            request.refusal = problem(f"the body has more than {most} bytes", 413)

    def on_message_complete(self) -> None:
        """Queue a whole request."""
        request, self._reading = self._reading, None
        if request is None:  # with an offer of another protocol
            return
        self._part = RequestPart.NONE
        request.body, self._body = bytes(self._body), bytearray()
        if not request.is_ended:
            self._queue.append(request)

    def _check_head(self, size: int) -> None:
        """Reject a head of `size` bytes, or trailers, if they are too large."""
        limits = self._app.connections.limits
        if len(self._lines) > limits.headers or size > limits.header_bytes:
            message = f"a request has at most {limits.headers} headers, of {limits.header_bytes} bytes in all"
            raise RefusedError(message, status=431)

    def _begin_without_upgrade(self) -> None:
        """Read the present head again without its offer of another protocol, which may be ignored.

        Java's client offers HTTP/2 with each request. The parser would skip the body of such a request.
        """
        method, version = self._parser.get_method(), self._parser.get_http_version().encode()
        if method == b"CONNECT":
            raise HttpParserError("CONNECT")
        lines = [b"%b: %b\r\n" % line for line in self._lines if line[0].lower() != b"upgrade"]
        self._parser = HttpRequestParser(self)
        self._parser.feed_data(b"%b %b HTTP/%b\r\n%b\r\n" % (method, self._target, version, b"".join(lines)))

    # -- answering -------------------------------------------------------------------------------------

    def _advance(self) -> None:
        """Answer the requests that were read, one at a time and in order."""
        if self._is_advancing:
            return
        self._is_advancing = True
        while self._current is None and not self._stalled and not self.transport.is_closing():
            request = self._queue.popleft() if self._queue else self._reading
            if request is None or request.is_ended or (request is self._reading and request.refusal is None):
                break
            self._current = request
            if request.refusal is not None:
                request.end(request.refusal)
            elif request.endpoint is not None:
                request.endpoint.take(request)
        self._is_advancing = False
        if self._is_paused and not self._queue and self._current is None and not self.transport.is_closing():
            self._is_paused = False
            self.transport.resume_reading()

    def _send(self, reply: Reply) -> None:
        """Write the answer to the present request, and continue with the next one."""
        request = self._current
        if request is None or self.transport.is_closing():
            return
        closes = request.closes or reply.stream is not None
        closes = closes or (self._is_last and not self._queue and self._reading in (None, request))
        head = _head_of(reply, _CLOSE if closes else _KEEP if request.is_http_1_0 else b"")
        self.transport.write(head + reply.body if request.has_body else head)
        if reply.stream is not None and request.has_body:
            self._stream = self._loop.create_task(self._copy(reply.stream, is_whole=reply.is_whole))
            return
        self._current = None
        if closes:
            self.transport.close()
            return
        self._wait()
        if self._queue or self._reading is not None or self._is_paused:
            self._advance()

    async def _copy(self, stream: AsyncGenerator[bytes, None], *, is_whole: bool) -> None:
        """Write the pieces of a stream until it ends; while the client reads slowly, wait or skip them."""
        try:
            async with aclosing(stream) as pieces:
                async for piece in pieces:
                    while is_whole and self._stalled:
                        await asyncio.sleep(_LOOK)
                    if not self._stalled:
                        self.transport.write(piece)
        finally:
            self.transport.close()

    def _wait(self) -> None:
        """Record that the connection waits for its client from now on."""
        self.since = self._loop.time()
        self._app.connections.waits(self)


def _head_of(reply: Reply, more: bytes) -> bytes:
    """Return the head of a reply, with `more` headers."""
    lines = _lines_of(reply.status, reply.headers)
    if reply.status in _BODILESS or reply.stream is not None:
        return b"%bdate: %b\r\n%b\r\n" % (lines, _date_of(int(time.time())), more)
    date, size = _date_of(int(time.time())), len(reply.body)
    return b"%bdate: %b\r\n%bcontent-length: %d\r\n\r\n" % (lines, date, more, size)


@lru_cache(maxsize=64)
def _lines_of(status: int, headers: tuple[tuple[bytes, bytes], ...]) -> bytes:
    """Return a status line, and headers."""
    return _STATUS[status] + b"".join(b"%b: %b\r\n" % header for header in headers)


@lru_cache(maxsize=2)
def _date_of(second: int) -> bytes:
    return formatdate(second, usegmt=True).encode()


@lru_cache(maxsize=512)
def _headers_of(lines: tuple[tuple[bytes, bytes], ...]) -> tuple[Mapping[str, str], int, bool]:
    """Return headers by lower-case name, their size, and whether at most one of them is a host.

    There is a cache, because a client writes the same head for each request.
    """
    both = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in lines]
    headers = dict(reversed(both))  # of several headers with a name, the first one
    size = sum(len(name) + len(value) for name, value in lines)
    return headers, size, sum(name == "host" for name, _ in both) <= 1


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
    ended: asyncio.Event,
    app: Router,
    opened: socket.socket,
    started: Callable[[], object],
    *,
    grace: float = _GRACE,
) -> None:
    """Serve an application; connections have `grace` seconds after the end."""
    loop = asyncio.get_running_loop()
    async with app.running():
        server = await loop.create_server(partial(HttpProtocol, app), sock=opened, backlog=BACKLOG)
        sweeping = asyncio.create_task(_sweep(app.connections))
        started()
        await ended.wait()
        server.close()
        app.connections.shutdown()
        until = loop.time() + grace
        while len(app.connections) and loop.time() < until:
            await asyncio.sleep(_LOOK)
        app.connections.abort()
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
