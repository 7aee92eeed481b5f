"""``DirectProtocol``: uvicorn's protocol, which answers whole ranks and rewards by itself.

A task, a scope and a chain of applications cost several times what a rank does. So a request that lies in the
received bytes as a whole, for an endpoint that can be answered from a callback, is given to that. All others,
and whatever is written in another way, go to uvicorn as they came.
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
    from onlineauto.service.http.direct.whole_request import Head
    from onlineauto.service.http.endpoint import Reply

_PATIENCE: Final = 1.0
"""Seconds for which the rest of a body is waited for here, before uvicorn does."""


class _HeadError(Exception):
    """A head is refused; the connection knows why."""


class DirectProtocol(HttpToolsProtocol):
    """A connection. uvicorn makes it, and its application is an `Application`."""

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
        """Begin, if there is room for one more connection."""
        super().connection_made(transport)
        self.since = self.loop.time()
        self._app.connections.add(self)

    def on_message_begin(self) -> None:
        """Note that uvicorn reads a request."""
        self._reading = self._in_head = True
        self._head_bytes = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header, if there are not too many."""
        self._head_bytes += len(name) + len(value)
        self._check_head(len(self.headers) + 1, self._head_bytes)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Take a head, if it names one host."""
        self._in_head = False
        if sum(name == b"host" for name, _ in self.headers) > 1:
            self._refusal = (400, "a request has one Host header")
            raise _HeadError
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Note that uvicorn has read a request."""
        self._reading = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Note that the connection waits for the next request."""
        self._wait()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that cannot be read, and close the connection."""
        del msg
        self.drop(*self._refusal)

    def pause_writing(self) -> None:
        """Note that the client does not read its answer."""
        self._stalled = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Note that the client reads."""
        self._stalled = 0.0
        super().resume_writing()

    @property
    def is_waiting(self) -> bool:
        """True if no answer is being made or sent: the connection is idle, or its client sends a request."""
        cycle: RequestResponseCycle | None = self.cycle
        answering = cycle is not None and not cycle.response_complete and not self._reading
        return not self._pending and not answering

    def waits_for(self, now: float, limits: ConnectionLimits) -> str:
        """Return what the connection has waited for too long, or ""."""
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
        self._released()
        if self.transport.is_closing():
            return
        if status:
            reply = problem(message, status, 1.0 if status == 503 else None)
            self.transport.write(self._bytes_of(reply, b"connection: close\r\n"))
            self.transport.close()
        else:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take bytes: answer a whole request, wait for the rest of one, or let uvicorn read them."""
        if self.transport.is_closing():
            return
        if self._pending:  # the next request has to wait for its turn
            self._held += data
            self.flow.pause_reading()
            return
        if not self._reading and not self._held and self._is_idle():
            self._wait()  # for the rest of this request, from its first byte on
        until = self.loop.time() + _PATIENCE
        if self._timer is not None:  # a body that comes in many pieces is not waited for anew with each
            until = self._until
        if self._held:
            data = self._released() + data
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
        """Forget what did not come to its end."""
        self._app.connections.discard(self)
        self._released()
        super().connection_lost(exc)

    def eof_received(self) -> bool:  # type: ignore[override] # asyncio asks for one
        """Keep a connection whose client says that it will send no more, until what it asked is answered."""
        self._last = self._last or self._pending
        return self._pending

    def shutdown(self) -> None:
        """Close the connection, once what came is answered."""
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

    def _released(self) -> bytes:
        """Return the bytes that were held, and hold them no longer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        held, self._held = self._held, b""
        return held

    def _hand_over(self) -> None:
        """Let uvicorn read what is there of a request."""
        self._read(self._released())

    def _read(self, data: bytes) -> None:
        """Let uvicorn read bytes, within the limits of a head."""
        continued = self._in_head
        super().data_received(data)
        if continued and self._in_head and not self.transport.is_closing():
            self._head_bytes += len(data)  # of a header that does not end, the parser says nothing
            try:
                self._check_head(0, self._head_bytes)
            except _HeadError:
                self.drop(*self._refusal)

    def _check_head(self, count: int, size: int) -> None:
        """Refuse a head that is too large.

        Raises
        ------
        _HeadError
            It is; `send_400_response` answers.
        """
        limits = self._app.connections.limits
        if count > limits.headers or size > limits.header_bytes:
            message = f"a request has at most {limits.headers} headers, of {limits.header_bytes} bytes in all"
            self._refusal = (431, message)
            raise _HeadError

    def _wait(self) -> None:
        """Note that the connection waits for its client from now on."""
        self.since = self.loop.time()
        self._app.connections.waits(self)

    def timeout_keep_alive_handler(self) -> None:
        """Close the connection if nothing has come for long enough; a timer for each answer costs more."""
        left = self._used + self.timeout_keep_alive - self.loop.time()
        if self._pending or left > 0:
            again = left if left > 0 else self.timeout_keep_alive
            self.timeout_keep_alive_task = self.loop.call_later(again, self.timeout_keep_alive_handler)
            return
        super().timeout_keep_alive_handler()

    def _take(self, endpoint: DirectEndpoint, head: Head, path: dict[str, str], data: bytes) -> None:
        self._pending = True
        endpoint.take(head.headers, data[head.begin :], path, self._answer)

    def _answer(self, reply: Reply) -> None:
        """Write a reply, and go on with what came meanwhile."""
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
            self.data_received(self._released())

    def _bytes_of(self, reply: Reply, more: bytes) -> bytes:
        """Return a reply as HTTP writes it, with `more` headers."""
        size = b"" if reply.status == 204 else b"content-length: %d\r\n" % len(reply.body)
        head = STATUS_LINE[reply.status] + self._app.lines_of(self.server_state.default_headers)
        head += b"".join([b"%b: %b\r\n" % each for each in reply.headers])
        return b"%b%b%b\r\n%b" % (head, more, size, reply.body)
