"""``DirectEndpoint``: answers a request that is there as a whole, from a callback, and not in a task."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeAlias

from onlineauto.service.http.endpoint import Asked, Reply, account, reply_to_error
from onlineauto.service.refused import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from onlineauto.service.http.endpoint import Keeper
    from onlineauto.service.log.group_commit import Done

__all__ = ["Begin", "DirectEndpoint"]

Begin: TypeAlias = "Callable[[Asked, Done], Reply]"
"""Submits what a request says to the log, and returns what may be answered once `done` is called."""


class DirectEndpoint:
    """The endpoint of one handler; it does for a whole request what `Endpoint` does for any.

    Parameters
    ----------
    keeper : Keeper
        What stands before it.
    begin : callable
        Begins an answer.
    name : str
        Its name in metrics and logs.
    scope : str or None
        What a token has to be for; None lets everybody in.
    body_bytes : int
        Size of the largest body.
    """

    def __init__(
        self, keeper: Keeper, begin: Begin, *, name: str, scope: str | None, body_bytes: int
    ) -> None:
        self.keeper, self.begin, self.name, self.scope = keeper, begin, name, scope
        self.body_bytes = body_bytes

    def take(
        self, headers: Mapping[str, str], body: bytes, path: dict[str, str], answer: Callable[[Reply], object]
    ) -> None:
        """Take a request, and call `answer` with the reply, now or later."""
        waiting = _Waiting(self, answer)
        try:
            self.keeper.check(headers, self.scope)
        except RefusedError as error:
            waiting.end(reply_to_error(error, self.name))
            return
        self.keeper.served += 1
        waiting.counted = True
        try:
            reply = self.begin(Asked(headers, body, path), waiting.done)
        except Exception as error:
            waiting.end(reply_to_error(error, self.name))
            return
        waiting.reply = reply
        if waiting.written:
            waiting.end(reply)


class _Waiting:
    """A reply that waits for the log."""

    __slots__ = ("_answer", "_began", "_endpoint", "counted", "ended", "reply", "written")

    def __init__(self, endpoint: DirectEndpoint, answer: Callable[[Reply], object]) -> None:
        self._endpoint, self._answer, self._began = endpoint, answer, time.perf_counter()
        self.reply: Reply | None = None
        self.written = self.ended = self.counted = False

    def done(self, error: Exception | None) -> None:
        """Answer, now that the log has the record, or with why it does not."""
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
        self._endpoint.keeper.served -= self.counted
        account(self._endpoint.keeper, self._endpoint.name, reply.status, time.perf_counter() - self._began)
        self._answer(reply)
