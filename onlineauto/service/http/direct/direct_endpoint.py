"""``DirectEndpoint``: answers a request that has arrived whole, from a callback instead of a task."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, TypeAlias

from onlineauto.service.http.endpoint import AdmittedRequest, Reply, account, reply_to_error
from onlineauto.service.refused import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from onlineauto.service.http.endpoint import RequestGuard
    from onlineauto.service.log.group_commit import Done

Begin: TypeAlias = "Callable[[Sequence[tuple[AdmittedRequest, Done]]], list[Reply | Exception]]"
"""Submits requests to the log; returns for each the reply to send once its `done` is called, or the error
that rejects it."""


class DirectEndpoint:
    """The endpoint of one handler; it treats a whole request the same way `Endpoint` treats any request.

    Parameters
    ----------
    guard : RequestGuard
        Checks tokens and limits, and counts requests.
    begin : callable
        Begins an answer.
    name : str
        Its name in metrics and logs.
    scope : str or None
        The scope that a token needs; None needs no token.
    body_bytes : int
        Maximum size of a body.
    batch : RequestBatch
        Collects requests until the event loop has read all connections.
    """

    def __init__(
        self,
        guard: RequestGuard,
        begin: Begin,
        *,
        name: str,
        scope: str | None,
        body_bytes: int,
        batch: RequestBatch,
    ) -> None:
        self.guard, self.begin, self.name, self.scope = guard, begin, name, scope
        self.body_bytes, self.batch = body_bytes, batch

    def take(
        self, headers: Mapping[str, str], body: bytes, path: dict[str, str], answer: Callable[[Reply], object]
    ) -> None:
        """Accept a request, and call `answer` with the reply, now or later."""
        waiting = _Waiting(self, answer)
        try:
            self.guard.check(headers, self.scope)
            self.guard.admit()
        except RefusedError as error:
            waiting.end(reply_to_error(error, self.name))
            return
        waiting.counted = True
        self.batch.add(self, AdmittedRequest(headers, body, path), waiting)

    def answer(self, asked: Sequence[tuple[AdmittedRequest, _Waiting]]) -> None:
        """Answer requests, once the log has their records."""
        try:
            replies = self.begin([(each, waiting.done) for each, waiting in asked])
        except Exception as error:
            replies = [error] * len(asked)
        for (_, waiting), reply in zip(asked, replies, strict=True):
            waiting.set_reply(reply)


class RequestBatch:
    """The requests of one turn of the event loop.

    Requests that arrived over all connections are answered endpoint by endpoint, once everything is read: a
    hundred ranks in a row cost half as much as ranks between other work.

    Parameters
    ----------
    together : callable
        Returns the context manager in which requests are answered, so that the log writes one group.
    """

    def __init__(self, together: Callable[[], AbstractContextManager[None]]) -> None:
        self._together = together
        self._asked: dict[DirectEndpoint, list[tuple[AdmittedRequest, _Waiting]]] = {}

    def add(self, endpoint: DirectEndpoint, asked: AdmittedRequest, waiting: _Waiting) -> None:
        """Add a request, to be answered at the end of the turn."""
        if not self._asked:
            asyncio.get_running_loop().call_soon(self._answer)
        self._asked.setdefault(endpoint, []).append((asked, waiting))

    def _answer(self) -> None:
        requests, self._asked = self._asked, {}
        with self._together():
            for endpoint, batch in requests.items():
                endpoint.answer(batch)


class _Waiting:
    """A reply that waits for the log."""

    __slots__ = ("_answer", "_began", "_endpoint", "counted", "ended", "reply", "written")

    def __init__(self, endpoint: DirectEndpoint, answer: Callable[[Reply], object]) -> None:
        self._endpoint, self._answer, self._began = endpoint, answer, time.perf_counter()
        self.reply: Reply | None = None
        self.written = self.ended = self.counted = False

    def set_reply(self, reply: Reply | Exception) -> None:
        """Store the reply: send it now if the log has the record or there is an error, else later."""
        if isinstance(reply, Exception):
            self.end(reply_to_error(reply, self._endpoint.name))
            return
        self.reply = reply
        if self.written:
            self.end(reply)

    def done(self, error: Exception | None) -> None:
        """Send the reply once the log has the record, or an error if it cannot be written."""
        self.written = True
        if error is not None:
            failed = RefusedError(f"the log cannot be written: {error}", status=503)
            self.reply = reply_to_error(failed, self._endpoint.name)
        if self.reply is not None:
            self.end(self.reply)

    def end(self, reply: Reply) -> None:
        """Answer once, and count the request."""
        if self.ended:
            return
        self.ended = True
        self._endpoint.guard.served -= self.counted
        account(self._endpoint.guard, self._endpoint.name, reply.status, time.perf_counter() - self._began)
        self._answer(reply)
