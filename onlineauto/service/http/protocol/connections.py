"""``Connections``: the open connections of a server, within limits that hold before a request is known.

A connection is *waiting* while it is idle, or while its client still sends a request.
If there are too many connections, the one that has waited longest is closed for the new one.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, OrderedDict
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

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


class Connection(Protocol):
    """A connection as `Connections` uses it."""

    since: float
    """The time at which it began to wait."""

    def waits_for(self, now: float, limits: ConnectionLimits) -> str:
        """Return which wait has exceeded its limit, or "" if none has."""

    @property
    def is_waiting(self) -> bool:
        """True if no answer is being made or sent."""

    def drop(self, status: int, message: str) -> None:
        """Close it, with an answer unless `status` is 0."""

    def shutdown(self) -> None:
        """Close it once all received requests are answered."""


class Connections:
    """The open connections, ordered by how long they have waited."""

    def __init__(self, limits: ConnectionLimits | None = None) -> None:
        self.limits = limits or ConnectionLimits()
        self.dropped: Counter[str] = Counter()
        self._open: OrderedDict[Connection, None] = OrderedDict()
        self._logged: dict[str, float] = {}

    def __len__(self) -> int:
        """Return the number of open connections."""
        return len(self._open)

    def add(self, connection: Connection) -> None:
        """Add a new connection; if there are too many, close the one that waits longest, or this one."""
        if len(self._open) >= self.limits.most:
            oldest = next((each for each in self._open if each.is_waiting), None)
            if oldest is None:
                message = f"there are {len(self._open)} connections; no more are accepted"
                self._drop(connection, "too many", 503, message)
                return
            self._drop(oldest, "room for another")
        self._open[connection] = None

    def discard(self, connection: Connection) -> None:
        """Remove a connection that is closed."""
        self._open.pop(connection, None)

    def waits(self, connection: Connection) -> None:
        """Record that a connection waits from now on."""
        if connection in self._open:
            self._open.move_to_end(connection)

    def sweep(self, now: float) -> None:
        """Close the connections that have waited for too long."""
        for connection, reason in list(self._late(now)):
            answer = (408, f"{reason} did not come in time") if reason in ("head", "body") else (0, "")
            self._drop(connection, reason, *answer)

    def shutdown(self) -> None:
        """Close each connection once its requests are answered."""
        for connection in list(self._open):
            connection.shutdown()

    def _late(self, now: float) -> Iterator[tuple[Connection, str]]:
        for connection in self._open:
            if reason := connection.waits_for(now, self.limits):
                yield connection, reason

    def _drop(self, connection: Connection, reason: str, status: int = 0, message: str = "") -> None:
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


def most_connections(wanted: int | None = None) -> int:
    """Return the maximum number of connections that leaves enough file descriptors for everything else.

    The limit of open files is raised as far as needed and as the system allows.
    """
    limit = _MOST if wanted is None else wanted
    try:
        import resource
    except ImportError:  # not on Windows
        return min(limit, 400)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = limit + _RESERVE + BACKLOG
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY:
        return limit
    return min(limit, max(soft - _RESERVE - BACKLOG, soft // 4))
