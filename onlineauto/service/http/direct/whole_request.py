"""``head_of``: parses the head of a plain request from the received bytes; httptools parses all others.

Only a strict part of HTTP is read here: there is one way to write each head, and no header changes how a body
is framed. So both readers always agree on where a request ends.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

_PLAIN: Final = re.compile(rb"POST (/[A-Za-z0-9/._~-]+) HTTP/1\.1\r\n((?:[A-Za-z0-9-]+:[\t -~]*\r\n)+)\r\n")
_FRAMING: Final = frozenset(("transfer-encoding", "expect", "content-encoding"))
_STAYS: Final = frozenset(("keep-alive", "upgrade", "http2-settings"))
"""Values of ``Connection`` that are accepted. Java's client offers HTTP/2 with each request, which may be
ignored; httptools would read such a request without its body."""
_LONGEST: Final = 9
"""Maximum number of digits of a Content-Length that is read here."""
_SHORT: Final = 1024
"""Maximum size in bytes of a head in the cache."""


class RequestHead(NamedTuple):
    """The head of a request: its path, its headers by lower-case name, and the range of its body."""

    path: str
    headers: dict[str, str]
    begin: int
    end: int


def head_of(data: bytes) -> RequestHead | None:
    r"""Return the head at the beginning of `data`, or None if it is incomplete or not plain.

    >>> head = head_of(b"POST /v1/rank HTTP/1.1\r\nHost: here\r\nContent-Length: 2\r\n\r\n{}")
    >>> head.path, head.headers, (head.begin, head.end)
    ('/v1/rank', {'host': 'here', 'content-length': '2'}, (57, 59))
    >>> head_of(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n") is None
    True
    """
    begin = data.find(b"\r\n\r\n") + 4
    if begin < 4:
        return None
    parsed = (_again if begin <= _SHORT else _lines_of)(data[:begin])
    return None if parsed is None else RequestHead(parsed[0], parsed[1], begin, begin + parsed[2])


def _lines_of(head: bytes) -> tuple[str, dict[str, str], int] | None:
    """Return the path, the headers and the length of the body of a plain head."""
    match = _PLAIN.fullmatch(head)
    if match is None:
        return None
    headers: dict[str, str] = {}
    lines = match[2].decode("ascii").split("\r\n")[:-1]
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip(" \t")
    length = headers.get("content-length", "0")
    if (
        len(headers) < len(lines)
        or not length.isdecimal()
        or len(length) > _LONGEST
        or not _FRAMING.isdisjoint(headers)
        or headers.get("upgrade", "h2c").lower() != "h2c"
        or not _STAYS.issuperset(re.split(r"[ \t]*,[ \t]*", headers.get("connection", "keep-alive").lower()))
    ):
        return None
    return match[1].decode("ascii"), headers, int(length)


_again = lru_cache(maxsize=512)(_lines_of)
"""Caches parsed heads, because a client writes the same head for each request."""
