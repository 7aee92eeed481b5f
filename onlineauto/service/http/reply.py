"""``Reply``: the answer to a request; `reply_to_error`: the answer to one that has raised an error."""

from __future__ import annotations

import errno
import logging
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from onlineauto.errors import OnlineautoError, OptionError
from onlineauto.service.http.wire import Problem
from onlineauto.service.refused import RefusedError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

_LOG = logging.getLogger("onlineauto.service")
_CODES: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "ResourceNotFound",
    405: "ResourceNotFound",
    408: "Timeout",
    409: "Conflict",
    413: "TooLarge",
    415: "UnsupportedMediaType",
    422: "Conflict",
    429: "TooManyRequests",
    431: "TooLarge",
    500: "InternalServerError",
    501: "NotImplemented",
    503: "Unavailable",
    507: "InsufficientStorage",
}
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
_TEXT: Final = "text/plain; charset=utf-8"
_ENCODER: Final = msgspec.json.Encoder()


class Reply(NamedTuple):
    """The answer to a request: its status, body and headers; `stream` yields a body without an end."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[bytes, bytes], ...] = ()
    stream: AsyncGenerator[bytes, None] | None = None

    @classmethod
    def json(cls, value: object, status: int = 200) -> Reply:
        """Return an answer whose body is a value as JSON."""
        return cls(status, _ENCODER.encode(value), JSON)

    @classmethod
    def text(cls, text: str, status: int = 200) -> Reply:
        """Return an answer whose body is plain text."""
        return cls(status, text.encode(), content_type(_TEXT))


def content_type(kind: str) -> tuple[tuple[bytes, bytes], ...]:
    """Return the header with a media type."""
    return ((b"content-type", kind.encode()),)


JSON: Final = content_type("application/json")


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


def problem(message: str, status: int, retry_after: float | None = None) -> Reply:
    """Return the answer that reports why a request is rejected."""
    headers = JSON
    if retry_after is not None:
        headers += ((b"retry-after", b"%d" % max(round(retry_after), 1)),)
    if status == 401:
        headers += ((b"www-authenticate", b"Bearer"),)
    text = " ".join(message.split())[:1000]
    return Reply.json(Problem({"code": _CODES.get(status, "Error"), "message": text}), status)._replace(
        headers=headers
    )
