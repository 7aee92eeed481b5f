"""``Upstream``: the learner of a rank server: the source of its models and settings."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import httpx
import msgspec

from onlineauto.errors import InputError
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
    """A learner at an address.

    Parameters
    ----------
    url : str
        The address.
    token : str, optional
        A token with the scope ``admin``.
    transport : httpx.BaseTransport, optional
        How requests are sent, for tests.
    """

    def __init__(
        self, url: str, *, token: str | None = None, transport: httpx.BaseTransport | None = None
    ) -> None:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=10.0, transport=transport)

    def model(self, known: str) -> tuple[str, bytes] | None:
        """Return the name and the bytes of the model, or None if it is still the known one.

        Raises
        ------
        InputError
            The learner is away, or rejects the request.
        """
        answer = self._request("GET", "/v1/model", headers={"If-None-Match": f'"{known}"'})
        if answer.status_code == 304:
            return None
        return answer.headers.get("etag", "").strip('"'), answer.content

    def settings(self) -> dict[str, Any]:
        """Return the settings of the join.

        Raises
        ------
        InputError
            The learner is away, or rejects the request.
        """
        return _read(self._request("GET", "/v1/status"), _Status).settings

    def take(self, source: str, position: int, content: bytes) -> int:
        """Hand over records, and return the position from which more are wanted.

        Raises
        ------
        InputError
            The learner is away, or rejects the request.
        """
        answer = self._request("POST", f"/v1/records/{source}/{position}", content=content)
        return _read(answer, RecordsAnswer).position

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _request(self, method: str, path: str, **given: Any) -> httpx.Response:
        try:
            answer = self._http.request(method, path, **given)
        except httpx.HTTPError as error:
            raise InputError(f"the learner is away: {error}") from None
        if answer.status_code != 304 and not answer.is_success:
            raise InputError(
                f"the learner rejects {method} {path} ({answer.status_code}): {answer.text[:300]}"
            )
        return answer


def _read(answer: httpx.Response, kind: type[Answer]) -> Answer:
    """Return what an answer says.

    Raises
    ------
    InputError
        It is not that of a learner, but of a proxy, as it may be.
    """
    try:
        return msgspec.json.decode(answer.content, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"what answers at {answer.url} is no learner: {error}") from None
