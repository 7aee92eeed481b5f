"""``DirectProtocol``: uvicorn's protocol, which answers whole ranks and rewards by itself.

A task, a scope and a chain of applications cost several times what a rank does. So a request that lies in the
received bytes as a whole, for an endpoint that can be answered from a callback, is given to that. All others,
and whatever is written in another way, go to uvicorn as they came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from onlineauto.service.http.direct.whole_request import head_of

if TYPE_CHECKING:
    import asyncio

    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

    from onlineauto.service.http.app import Application
    from onlineauto.service.http.direct.direct_endpoint import DirectEndpoint
    from onlineauto.service.http.direct.whole_request import Head
    from onlineauto.service.http.endpoint import Reply

__all__ = ["DirectProtocol"]

_PATIENCE: Final = 1.0
"""Seconds for which the rest of a body is waited for here, before uvicorn does."""


class DirectProtocol(HttpToolsProtocol):
    """A connection. uvicorn makes it, and its application is an `Application`."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        app: Application = self.config.app  # type: ignore[assignment]
        self._app = app
        self._reading = self._pending = self._last = False
        self._held = b""
        self._until = self._used = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def on_message_begin(self) -> None:
        """Note that uvicorn reads a request."""
        self._reading = True
        super().on_message_begin()

    def on_message_complete(self) -> None:
        """Note that uvicorn has read a request."""
        self._reading = False
        super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        """Take bytes: answer a whole request, wait for the rest of one, or let uvicorn read them."""
        if self._pending:  # the next request has to wait for its turn
            self._held += data
            self.flow.pause_reading()
            return
        until = self.loop.time() + _PATIENCE
        if self._timer is not None:  # a body that comes in many pieces is not waited for anew with each
            until = self._until
        if self._held:
            data = self._released() + data
        head = head_of(data) if self._is_idle() else None
        endpoint, path = (None, {}) if head is None else self._app.direct(head.path)
        if head is None or endpoint is None or head.end - head.begin > endpoint.body_bytes:
            super().data_received(data)
        elif head.end == len(data):
            self._take(endpoint, head, path, data)
        elif head.end > len(data):
            self._unset_keepalive_if_required()
            self._held, self._until = data, until
            self._timer = self.loop.call_at(until, self._hand_over)
        else:
            super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget what did not come to its end."""
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
        super().data_received(self._released())

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
        last = b"connection: close\r\n" if self._last else b""
        size = b"" if reply.status == 204 else b"content-length: %d\r\n" % len(reply.body)
        head = STATUS_LINE[reply.status] + self._app.lines_of(self.server_state.default_headers)
        head += b"".join([b"%b: %b\r\n" % each for each in reply.headers])
        self.transport.write(b"%b%b%b\r\n%b" % (head, last, size, reply.body))
        if self._last:
            self.transport.close()
            return
        self.server_state.total_requests += 1
        self.flow.resume_reading()
        self._used = self.loop.time()
        if self.timeout_keep_alive_task is None:
            later, handler = self.timeout_keep_alive, self.timeout_keep_alive_handler
            self.timeout_keep_alive_task = self.loop.call_later(later, handler)
        if self._held:
            self.data_received(self._released())
