"""``Router``: finds the endpoint of a request by its method and path."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import unquote

from httptools import HttpParserInvalidURLError, parse_url

from onlineauto.service.http.reply import Reply, problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    from onlineauto.service.http.endpoint import Endpoint
    from onlineauto.service.http.protocol.connections import Connections


class Router:
    """The endpoints by path and method; a path may have parts in braces.

    Connections are served within the context that `running` returns.
    """

    hint: ClassVar[str] = ""  # The end of the message that there is no such endpoint.

    def __init__(
        self,
        endpoints: Mapping[str, Mapping[str, Endpoint]],
        connections: Connections,
        running: Callable[[], AbstractAsyncContextManager[None]],
    ) -> None:
        self.connections, self.running = connections, running
        self._plain = {path: methods for path, methods in endpoints.items() if "{" not in path}
        self._patterns = [(_pattern_of(path), methods) for path, methods in endpoints.items() if "{" in path]
        self._direct = {
            (method.encode(), path.encode()): endpoint
            for path, methods in self._plain.items()
            for method, endpoint in methods.items()
        }

    def stop(self) -> None:
        """Prepare the end of the server; requests are still answered."""

    def canonical_path(self, path: str) -> str:
        """Return the path under which an endpoint is declared."""
        return path

    def missing(self, method: str, path: str, methods: Mapping[str, Endpoint]) -> Reply:
        """Return the answer to a request for which there is no endpoint; `methods` are those of its path."""
        message = f"there is no {method} {path}{self.hint}"
        if not methods:
            return problem(message, 404)
        allowed = sorted({*methods, *(("HEAD",) if "GET" in methods else ())})
        reply = problem(message, 405)
        return reply._replace(headers=(*reply.headers, (b"allow", ", ".join(allowed).encode())))

    def find(self, method: bytes, target: bytes) -> tuple[Endpoint | Reply, Mapping[str, str]]:
        """Return the endpoint of a request, or the reply if there is none, and the parts of its path."""
        direct = self._direct.get((method, target))
        if direct is not None:
            return direct, {}
        given = _path_of(target)
        path, verb = self.canonical_path(given), method.decode()
        methods, parts = self._plain.get(path), dict[str, str]()
        if methods is None:
            found = ((pattern.fullmatch(path), methods) for pattern, methods in self._patterns)
            match, methods = next((each for each in found if each[0] is not None), (None, {}))
            parts = {} if match is None else match.groupdict()
        endpoint = methods.get("GET" if verb == "HEAD" else verb)
        return endpoint or self.missing(verb, given, methods), parts


def _pattern_of(path: str) -> re.Pattern[str]:
    """Return the expression that a path with parts in braces matches.

    The id of an event and the name of a study may have slashes.
    """
    path = re.sub(r"\{(event_id|study)\}", r"(?s:(?P<\1>.+))", path)
    return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path))


def _path_of(target: bytes) -> str:
    """Return the decoded path of a request's target."""
    with suppress(HttpParserInvalidURLError):
        return unquote((parse_url(target).path or b"").decode("latin-1"))
    return ""
