"""``Upstream``: the learner of a rank server: the source of its models and settings."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import httpx
import msgspec

from onlineauto.errors import InputError
from onlineauto.service.client.messages import ServiceAddress, message_in
from onlineauto.service.log.record import RecordsAnswer


class Upstream(Protocol):
    """A learner as seen by a rank server. Each method raises `InputError` if the learner is away."""

    def model(self, known: str) -> tuple[str, bytes] | None:
        """Return the name and the bytes of the model, or None if it is still the known one."""

    def settings(self) -> dict[str, Any]:
        """Return the settings of the join."""

    def take(self, source: str, position: int, content: bytes) -> int:
        """Hand over records, and return the position from which more are wanted."""


class _Status(msgspec.Struct):
    settings: dict[str, Any]


Answer = TypeVar("Answer", bound=msgspec.Struct)


class HttpUpstream:
    """A learner at an address; methods raise `InputError` if it is away or rejects the request."""

    def __init__(
        self, url: str, *, token: str | None = None, transport: httpx.BaseTransport | None = None
    ) -> None:
        self._learner = ServiceAddress(url, token)
        headers = self._learner.headers
        self._http = httpx.Client(base_url=url, headers=headers, timeout=10.0, transport=transport)

    def model(self, known: str) -> tuple[str, bytes] | None:
        """Return the name and the bytes of the model, or None if it is still the known one."""
        answer = self._request("GET", "/v1/model", headers={"If-None-Match": f'"{known}"'})
        name = answer.headers.get("etag", "").strip('"')
        if answer.status_code == 304 and known:
            return None
        kind = answer.headers.get("content-type", "")
        if answer.status_code != 200 or not name or kind != "application/octet-stream":
            raise self._stranger(
                answer, f"status {answer.status_code}, {kind or 'no content'}, ETag {name!r}"
            )
        return name, answer.content

    def settings(self) -> dict[str, Any]:
        """Return the settings of the join."""
        return self._read(self._request("GET", "/v1/status"), _Status).settings

    def take(self, source: str, position: int, content: bytes) -> int:
        """Hand over records, and return the position from which more are wanted."""
        answer = self._request("POST", f"/v1/records/{source}/{position}", content=content)
        found = self._read(answer, RecordsAnswer).position
        if found < 0 or (content and not position <= found <= position + len(content)):
            raise self._stranger(answer, f"it wants the records from {found}")
        return found

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _request(self, method: str, path: str, **given: Any) -> httpx.Response:
        try:
            answer = self._http.request(method, path, **given)
        except httpx.HTTPError as error:
            raise InputError(f"the learner is away{self._learner.proxy()}: {error}") from None
        if answer.status_code >= 400:
            message = message_in(answer) or answer.text[:300] + self._learner.proxy()
            raise InputError(f"the learner rejects {method} {path} ({answer.status_code}): {message}")
        if answer.status_code not in (200, 304):
            raise self._stranger(answer, f"status {answer.status_code}: {answer.text[:300]}")
        return answer

    def _read(self, answer: httpx.Response, kind: type[Answer]) -> Answer:
        """Return the content of an answer; raise `InputError` if it is that of a proxy."""
        try:
            return msgspec.json.decode(answer.content, type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise self._stranger(answer, str(error)) from None

    def _stranger(self, answer: httpx.Response, reason: str) -> InputError:
        url = answer.url.copy_with(userinfo=b"")
        return InputError(f"what answers at {url}{self._learner.proxy()} is no learner: {reason}")
