"""``DirectProtocol``: uvicorn's protocol, extended to answer whole ranks and rewards directly.

A task, a scope and a chain of applications cost several times as much as a rank. So a request that has
arrived whole goes straight to its endpoint, if that endpoint can answer from a callback. All other requests,
and those written in an unusual way, are passed to uvicorn unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from onlineauto.service.http.direct.whole_request import head_of
from onlineauto.service.http.endpoint import problem

if TYPE_CHECKING:
    import asyncio

    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

    from onlineauto.service.http.app import Application
    from onlineauto.service.http.direct.connections import ConnectionLimits
    from onlineauto.service.http.direct.direct_endpoint import DirectEndpoint
    from onlineauto.service.http.direct.whole_request import RequestHead
    from onlineauto.service.http.endpoint import Reply

_PATIENCE: Final = 1.0
"""Seconds to wait for the rest of a body before uvicorn takes over."""


class _HeadError(Exception):
    """A head is rejected; the connection stores the reason."""


class DirectProtocol(HttpToolsProtocol):
    """A connection. uvicorn creates it, and its application is an `Application`."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        app: Application = self.config.app  # type: ignore[assignment]
        self._app = app
        self._reading = self._pending = self._last = False
        self._held = b""
        self._until = self._used = self.since = self._stalled = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._in_head = False
        self._head_bytes = 0
        self._refusal = (400, "the request is not HTTP")

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Register the connection, if the limits allow one more."""
        super().connection_made(transport)
        self.since = self.loop.time()
        self._app.connections.add(self)

    def on_message_begin(self) -> None:
        """Record that uvicorn reads a request."""
        self._reading = self._in_head = True
        self._head_bytes = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Accept a header, if there are not too many."""
        self._head_bytes += len(name) + len(value)
        self._check_head(len(self.headers) + 1, self._head_bytes)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Accept a head, if it names one host."""
        self._in_head = False
        if sum(name == b"host" for name, _ in self.headers) > 1:
            self._refusal = (400, "a request has one Host header")
            raise _HeadError
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Record that uvicorn has read a request."""
        self._reading = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Record that the connection waits for the next request."""
        self._wait()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Reject a request that cannot be read, and close the connection."""
        del msg
        self.drop(*self._refusal)

    def pause_writing(self) -> None:
        """Record when the transport's buffer filled up, because the client reads slowly."""
        self._stalled = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Record that the client reads again."""
        self._stalled = 0.0
        super().resume_writing()

    @property
    def is_waiting(self) -> bool:
        """True if no answer is being computed or sent: the connection is idle or receives a request."""
        cycle: RequestResponseCycle | None = self.cycle
        answering = cycle is not None and not cycle.response_complete and not self._reading
        return not self._pending and not answering

    def waits_for(self, now: float, limits: ConnectionLimits) -> str:
        """Return the name of the timeout that the connection has exceeded, or ""."""
        if self._stalled and now - self._stalled > limits.answer_seconds:
            return "answer"
        if not self.is_waiting:
            return ""
        in_body = bool(self._held) or (self._reading and not self._in_head)
        if now - self.since <= (limits.body_seconds if in_body else limits.header_seconds):
            return ""
        return "body" if in_body else "head" if self._reading else "idle"

    def drop(self, status: int, message: str) -> None:
        """Close the connection, with an answer unless `status` is 0."""
        self._take_buffer()
        if self.transport.is_closing():
            return
        if status:
            reply = problem(message, status, 1.0 if status == 503 else None)
            self.transport.write(self._bytes_of(reply, b"connection: close\r\n"))
            self.transport.close()
        else:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Process bytes: answer a whole request, wait for the rest of one, or pass them to uvicorn."""
        if self.transport.is_closing():
            return
        if self._pending:  # the next request waits until this one is answered
            self._held += data
            self.flow.pause_reading()
            return
        if not self._reading and not self._held and self._is_idle():
            self._wait()  # for the rest of this request, from its first byte on
        until = self.loop.time() + _PATIENCE
        if self._timer is not None:  # the timeout of a body does not restart with each piece
            until = self._until
        if self._held:
            data = self._take_buffer() + data
        head = head_of(data) if self._is_idle() else None
        endpoint, path = (None, {}) if head is None else self._app.direct(head.path)
        limits = self._app.connections.limits
        if (
            head is None
            or endpoint is None
            or head.end - head.begin > endpoint.body_bytes
            or head.begin > limits.header_bytes
            or len(head.headers) > limits.headers
        ):
            self._read(data)
        elif head.end == len(data):
            self._take(endpoint, head, path, data)
        elif head.end > len(data):
            self._unset_keepalive_if_required()
            self._held, self._until = data, until
            self._timer = self.loop.call_at(until, self._hand_over)
        else:
            self._read(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Drop what is unfinished, and remove the connection."""
        self._app.connections.discard(self)
        self._take_buffer()
        super().connection_lost(exc)

    def eof_received(self) -> bool:  # type: ignore[override] # asyncio asks for one
        """Keep a connection whose client sends no more open until its requests are answered."""
        self._last = self._last or self._pending
        return self._pending

    def shutdown(self) -> None:
        """Close the connection once all received requests are answered."""
        if self._pending:
            self._last = True
            return
        if self._held:
            self._hand_over()
        super().shutdown()

    def _is_idle(self) -> bool:
        """Return whether no request is being read, answered or written."""
        cycle: RequestResponseCycle | None = self.cycle
        done = cycle is None or cycle.response_complete
        return done and not self._reading and not self.flow.write_paused

    def _take_buffer(self) -> bytes:
        """Return the buffered bytes, and empty the buffer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        data, self._held = self._held, b""
        return data

    def _hand_over(self) -> None:
        """Pass the buffered part of a request to uvicorn."""
        self._read(self._take_buffer())

    def _read(self, data: bytes) -> None:
        """Pass bytes to uvicorn, within the limits of a head."""
        continued = self._in_head
        super().data_received(data)
        if continued and self._in_head and not self.transport.is_closing():
            self._head_bytes += len(data)  # the parser does not report a header that does not end
            try:
                self._check_head(0, self._head_bytes)
            except _HeadError:
                self.drop(*self._refusal)

    def _check_head(self, count: int, size: int) -> None:
        """Reject a head that is too large.

        Raises
        ------
        _HeadError
            The head is too large; `send_400_response` answers.
        """
        limits = self._app.connections.limits
        if count > limits.headers or size > limits.header_bytes:
            message = f"a request has at most {limits.headers} headers, of {limits.header_bytes} bytes in all"
            self._refusal = (431, message)
            raise _HeadError

    def _wait(self) -> None:
        """Record that the connection waits for its client from now on."""
        self.since = self.loop.time()
        self._app.connections.waits(self)

    def timeout_keep_alive_handler(self) -> None:
        """Close the connection if it has been idle for too long; a timer for each answer costs more."""
        left = self._used + self.timeout_keep_alive - self.loop.time()
        if self._pending or left > 0:
            again = left if left > 0 else self.timeout_keep_alive
            self.timeout_keep_alive_task = self.loop.call_later(again, self.timeout_keep_alive_handler)
            return
        super().timeout_keep_alive_handler()

    def _take(self, endpoint: DirectEndpoint, head: RequestHead, path: dict[str, str], data: bytes) -> None:
        self._pending = True
        endpoint.take(head.headers, data[head.begin :], path, self._answer)

    def _answer(self, reply: Reply) -> None:
        """Write a reply, and continue with bytes that arrived while it was computed."""
        self._pending = False
        if self.transport.is_closing():
            return
        self.transport.write(self._bytes_of(reply, b"connection: close\r\n" if self._last else b""))
        if self._last:
            self.transport.close()
            return
        self.server_state.total_requests += 1
        self.flow.resume_reading()
        self._used = self.loop.time()
        self._wait()
        if self.timeout_keep_alive_task is None:
            later, handler = self.timeout_keep_alive, self.timeout_keep_alive_handler
            self.timeout_keep_alive_task = self.loop.call_later(later, handler)
        if self._held:
            self.data_received(self._take_buffer())

    def _bytes_of(self, reply: Reply, more: bytes) -> bytes:
        """Return a reply as HTTP writes it, with `more` headers."""
        size = b"" if reply.status == 204 else b"content-length: %d\r\n" % len(reply.body)
        head = STATUS_LINE[reply.status] + self._app.lines_of(self.server_state.default_headers)
        head += b"".join([b"%b: %b\r\n" % each for each in reply.headers])
        return b"%b%b%b\r\n%b" % (head, more, size, reply.body)
