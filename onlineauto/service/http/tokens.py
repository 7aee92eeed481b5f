"""``Tokens``: who may do what. Only hashes of tokens are kept, and comparisons take the same time for all."""

from __future__ import annotations

import hmac
import secrets
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from onlineauto.errors import InputError, OptionError
from onlineauto.service.refused import RefusedError

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

__all__ = ["SCOPES", "Tokens", "add_token"]

SCOPES: Final = ("rank", "reward", "read", "admin")
"""To rank; to reward and activate; to read the status, metrics and models; to do everything."""


class Tokens:
    r"""The tokens of a service, from a file of lines such as ``SHA-256 rank,reward``.

    Without any, everybody may do everything: then the service listens to its own machine alone.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     token = add_token(Path(folder) / "tokens", ["rank"])
    ...     tokens = Tokens(Path(folder) / "tokens")
    >>> tokens.scopes({"authorization": f"Bearer {token}"}), tokens.scopes({})
    (frozenset({'rank'}), frozenset())

    Raises
    ------
    InputError
        A line of the file is not of this kind.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self._known: list[tuple[bytes, frozenset[str]]] = []
        lines = Path(path).read_text("utf-8").splitlines() if path is not None and Path(path).exists() else []
        for number, line in enumerate(lines, 1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            scopes = frozenset(words[1].split(",")) if len(words) == 2 else frozenset()
            if len(words[0]) != 64 or not scopes or not scopes <= set(SCOPES):
                raise InputError(f"{path}:{number}: a line is a SHA-256 and scopes of {','.join(SCOPES)}")
            self._known.append((bytes.fromhex(words[0]), scopes))

    def __bool__(self) -> bool:
        """Return whether there are tokens."""
        return bool(self._known)

    def scopes(self, headers: Mapping[str, str]) -> frozenset[str]:
        """Return what a request may do, by its bearer token or the key that clients of Personalizer send."""
        if not self._known:
            return frozenset(SCOPES)
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer":
            token = headers.get("ocp-apim-subscription-key", "")
        given, found = sha256(token.strip().encode("utf-8", "replace")).digest(), frozenset[str]()
        for known, scopes in self._known:
            if hmac.compare_digest(known, given):
                found = scopes
        return found

    def check(self, headers: Mapping[str, str], scope: str) -> None:
        """Refuse a request that may not do what `scope` is needed for.

        Raises
        ------
        RefusedError
            It has no valid token (401), or one for other things (403).
        """
        found = self.scopes(headers)
        if not found:
            raise RefusedError("a bearer token is needed: Authorization: Bearer TOKEN", status=401)
        if scope not in found and "admin" not in found:
            raise RefusedError(f"this token is not for {scope}", status=403)


def add_token(path: str | os.PathLike[str], scopes: list[str]) -> str:
    """Make a token, add its hash to a file, and return it; nobody can show it again.

    Raises
    ------
    OptionError
        There is no such scope.
    """
    if not scopes or not set(scopes) <= set(SCOPES):
        raise OptionError(f"scopes are of {','.join(SCOPES)}, not {','.join(scopes)}")
    token = secrets.token_urlsafe(32)
    file = Path(path)
    file.touch(0o600)
    with file.open("a", encoding="utf-8") as lines:
        lines.write(f"{sha256(token.encode()).hexdigest()} {','.join(scopes)}\n")
    return token
