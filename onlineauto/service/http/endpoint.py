"""``Endpoint``: a handler with the checks that all handlers need: scope, limits, error replies, metrics."""

from __future__ import annotations

import asyncio
import errno
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias
from urllib.parse import urlsplit

import msgspec
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response

from onlineauto.errors import OnlineautoError, OptionError
from onlineauto.service.http.personalizer import what_instead
from onlineauto.service.http.wire import Problem
from onlineauto.service.refused import RefusedError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from onlineauto.service.http.metrics import ServiceMetrics
    from onlineauto.service.http.tokens import Tokens

_LOG = logging.getLogger("onlineauto.service")
_CODES = {400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "ResourceNotFound", 409: "Conflict"}
_CODES |= {
    405: "ResourceNotFound",
    408: "Timeout",
    413: "TooLarge",
    422: "Conflict",
    429: "TooManyRequests",
    431: "TooLarge",
    500: "InternalServerError",
    501: "NotImplemented",
    503: "Unavailable",
    507: "InsufficientStorage",
}
_JSON: Final = "application/json"
_JSON_HEADERS: Final = ((b"content-type", _JSON.encode()),)
_UNCOUNTED: Final = ("alive", "ready")
"""Endpoints that are exempt from the limit on simultaneous requests."""
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
_PATIENCE = 10.0
"""Seconds to wait for the body of a request."""


class AdmittedRequest(NamedTuple):
    """An admitted request: its headers, its body, and the variable parts of its path."""

    headers: Mapping[str, str]
    body: bytes
    path: dict[str, str]


class Reply(NamedTuple):
    """The answer to a request: its status, body and headers."""

    status: int
    body: bytes = b""
    headers: Sequence[tuple[bytes, bytes]] = ()

    @classmethod
    def json(cls, value: object, status: int = 200) -> Reply:
        """Return an answer whose body is a value as JSON."""
        return cls(status, msgspec.json.encode(value), _JSON_HEADERS)

    def response(self) -> Response:
        """Return the answer as a Starlette response."""
        return Response(self.body, self.status, {name.decode(): text.decode() for name, text in self.headers})


Handler: TypeAlias = Callable[[AdmittedRequest], Awaitable[Response]]
"""Answers an admitted request."""


class RequestGuard:
    """Guards all endpoints: checks tokens, limits simultaneous requests, records metrics.

    Parameters
    ----------
    tokens : Tokens
        The scopes of each token.
    metrics : Metrics
        Counts requests.
    most : int
        Maximum number of requests that are served at the same time.
    hosts : collection of str
        Accepted host names; with none, every name is accepted. Without tokens, a foreign name that resolves
        to this machine would let pages of that site in.
    """

    def __init__(
        self, tokens: Tokens, metrics: ServiceMetrics, *, most: int = 1000, hosts: Collection[str] = ()
    ) -> None:
        self.tokens, self.metrics, self.most, self.served = tokens, metrics, most, 0
        self.hosts = frozenset(hosts)

    def check(self, headers: Mapping[str, str], scope: str | None) -> None:
        """Reject a request that must not be served.

        Raises
        ------
        RefusedError
            It comes from a page of another site, or its token lacks the scope.
        """
        if self.hosts and not self.tokens and _parts(f"//{headers.get('host', '')}")[1] not in self.hosts:
            raise RefusedError(
                "without tokens, a request must name the machine of the service as its host", status=403
            )
        origin = headers.get("origin")
        if origin is not None and _parts(origin)[0] != headers.get("host"):
            raise RefusedError("this is a request of a page of another site", status=403)
        if scope is not None:
            self.tokens.check(headers, scope)

    def admit(self) -> None:
        """Count a request as being served, until the caller reduces `served` again.

        Raises
        ------
        RefusedError
            Too many requests are being served.
        """
        if self.served >= self.most:
            raise RefusedError(f"{self.served} requests are served already", status=429, retry_after=1.0)
        self.served += 1


class Endpoint:
    """An ASGI application of one handler.

    Parameters
    ----------
    guard : RequestGuard
        Checks tokens and limits, and counts requests.
    handler : callable
        Answers.
    name : str
        Its name in metrics and logs.
    scope : str or None
        The scope that a token needs; None needs no token.
    body_bytes : int
        Maximum size of a body.
    """

    def __init__(
        self, guard: RequestGuard, handler: Handler, *, name: str, scope: str | None, body_bytes: int = 0
    ) -> None:
        self.guard, self.handler, self.name, self.scope = guard, handler, name, scope
        self.body_bytes = body_bytes
        self._is_counted = name not in _UNCOUNTED

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        began, guard = time.perf_counter(), self.guard
        headers = Headers(scope=scope)
        try:
            guard.check(headers, self.scope)
            async with asyncio.timeout(_PATIENCE):
                body = await _read(headers, receive, self.body_bytes)
            if self._is_counted:  # a slow body does not use up the limit on requests
                guard.admit()
            try:
                answer = await self.handler(AdmittedRequest(headers, body, scope.get("path_params", {})))
            finally:
                guard.served -= self._is_counted
        except TimeoutError:
            answer = problem(f"the body did not come within {_PATIENCE:g} seconds", 408).response()
        except Exception as error:
            answer = reply_to_error(error, self.name).response()
        account(guard, self.name, answer.status_code, time.perf_counter() - began)
        await answer(scope, receive, send)


def reply_to_error(error: Exception, endpoint: str) -> Reply:
    """Return the answer to a request that has raised an error; an unexpected error is logged."""
    if isinstance(error, RefusedError):
        return problem(str(error), error.status, error.retry_after)
    if isinstance(error, OSError):  # an OutputError too
        cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
        full = cause.errno in _FULL
        _LOG.error(
            "the disk cannot be written: %s", error, extra={"event": "not_written", "endpoint": endpoint}
        )
        why = "the disk is full" if full else f"a file cannot be read or written: {cause.strerror}"
        return problem(f"{why}; try again later", 507 if full else 503, 10.0)
    if isinstance(error, OnlineautoError | msgspec.MsgspecError | UnicodeError | RecursionError):
        status = 422 if isinstance(error, OptionError) else 400
        return problem(str(error) or "the body is nested too deeply", status)
    _LOG.error("an endpoint failed", exc_info=error, extra={"event": "failed", "endpoint": endpoint})
    return problem("the service has failed; its log has the reason", 500)


def account(guard: RequestGuard, endpoint: str, status: int, seconds: float) -> None:
    """Count a request, and log it if it failed or if all requests are logged."""
    guard.metrics.request(endpoint, status, seconds)
    if status >= 500 or _LOG.isEnabledFor(logging.DEBUG):
        fields = {"event": "request", "endpoint": endpoint, "status": status, "seconds": round(seconds, 6)}
        _LOG.log(logging.ERROR if status >= 500 else logging.DEBUG, "request", extra=fields)


@lru_cache(maxsize=256)
def _parts(url: str) -> tuple[str, str | None]:
    """Return the address of a URL, and the name of its host; empty if the URL is malformed."""
    try:
        parts = urlsplit(url)
        return parts.netloc, parts.hostname
    except ValueError:
        return "", None


async def no_such_endpoint(request: Request, error: Exception) -> Response:
    """Answer a request for which there is no endpoint."""
    status = error.status_code if isinstance(error, HTTPException) else 404
    instead = what_instead(request.method, request.url.path)
    if instead:
        return problem(f"{request.method} {request.url.path} is not here: {instead}", 501).response()
    answer = problem(
        f"there is no {request.method} {request.url.path}; /openapi.json lists the endpoints", status
    ).response()
    if isinstance(error, HTTPException):
        answer.headers.update(error.headers or {})  # a 405 lists the allowed methods
    return answer


def json_answer(value: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return an answer whose body is a value as JSON."""
    return Response(msgspec.json.encode(value), status, headers, _JSON)


def problem(message: str, status: int, retry_after: float | None = None) -> Reply:
    """Return the answer that reports why a request is rejected."""
    headers = list(_JSON_HEADERS)
    if retry_after is not None:
        headers.append((b"retry-after", b"%d" % max(round(retry_after), 1)))
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    text = " ".join(message.split())[:1000]
    problem = Problem({"code": _CODES.get(status, "Error"), "message": text})
    return Reply(status, msgspec.json.encode(problem), headers)


async def _read(headers: Headers, receive: Receive, most: int) -> bytes:
    """Return the body of a request.

    Raises
    ------
    RefusedError
        The body is larger than `most`, or the client has disconnected.
    """
    length = headers.get("content-length", "0")
    if length.isdigit() and int(length) > most:
        raise RefusedError(f"the body has {length} bytes; at most {most} are accepted", status=413)
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RefusedError("the client has disconnected")
        part = message.get("body", b"")
        size += len(part)
        if size > most:
            raise RefusedError(f"the body has more than {most} bytes", status=413)
        parts.append(part)
        if not message.get("more_body", False):
            return parts[0] if len(parts) == 1 else b"".join(parts)
