"""``Tokens``: the scopes of each token. Only hashes are stored; a comparison takes the same time for all."""

from __future__ import annotations

import hmac
import logging
import os
import re
import secrets
import time
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from onlineauto.errors import InputError, OptionError
from onlineauto.options.registry import read_settings
from onlineauto.service.options import LOOP_NAME
from onlineauto.service.refused import RefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SCOPES: Final = ("rank", "reward", "read", "admin")
"""To rank; to reward and activate; to read the status, metrics and models; to do everything."""
_LOG = logging.getLogger("onlineauto.service")
_LOOK: Final = 1.0
"""Seconds between two checks whether the file has changed."""
_HASH: Final = re.compile(r"[0-9a-fA-F]{64}")


class Tokens:
    r"""The tokens of a service, from a file of lines such as ``SHA-256 rank,reward``.

    A third word has the names of the loops that a token is for; without it, a token is for all loops.
    Without tokens, every request may do everything, and the service listens on its own machine only. The file
    is read again within a second after a change. While it cannot be read, all tokens are rejected; `problem`
    says why.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     token = add_token(Path(folder) / "tokens", ["rank"])
    ...     tokens = Tokens(Path(folder) / "tokens")
    >>> tokens.scopes({"authorization": f"Bearer {token}"}), tokens.scopes({})
    (frozenset({'rank'}), frozenset())
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self._path = None if path is None else Path(path)
        self._stamp: tuple[int, int, int] | None = None
        self._next_look = 0.0
        self._known: list[_Token] = []
        self._required, self.problem = False, ""
        self.version = 0
        if self._path is not None and self._path.exists():
            self._stamp, self._known = _stamp_of(self._path), _tokens_of(self._path)
            self._required = bool(self._known)

    def __bool__(self) -> bool:
        """Return whether requests need a token: the file has tokens, or had some."""
        self.refresh()
        return self._required

    def refresh(self) -> None:
        """Read the file again if it has changed; a damaged file leaves the earlier tokens, if any.

        `version` changes with the tokens, so the result of a check holds for the same version.
        """
        now = time.monotonic()
        if self._path is None or now < self._next_look:
            return
        self._next_look = now + _LOOK
        try:
            stamp = _stamp_of(self._path)
            if stamp == self._stamp and not self.problem:
                return
            self.version += 1
            self._stamp = stamp
            self._known = [] if stamp is None and not self._required else _tokens_of(self._path)
        except FileNotFoundError:  # the tokens hold without their file
            self.problem = ""
            return
        except (OSError, InputError) as error:
            self.version += 1
            if isinstance(error, OSError):
                self._known = []
            self._required = True
            what = "the earlier ones hold" if self._known else "all are rejected"
            problem = f"the tokens cannot be read, {what}: {error}"
            if problem != self.problem:
                self.problem = problem
                _LOG.error(problem, extra={"event": "tokens"})
            return
        self.problem = ""
        if self._known or self._required:  # emptying the file must not open the service
            self._required = True
            _LOG.info("the tokens have changed", extra={"event": "tokens", "count": len(self._known)})

    def scopes(self, headers: Mapping[str, str], loop: str | None = None) -> frozenset[str]:
        """Return the scopes of a request for a loop, or for any loop if `loop` is None."""
        token = self._token_of(headers)
        return token.scopes if token.loops is None or loop is None or loop in token.loops else frozenset()

    def _token_of(self, headers: Mapping[str, str]) -> _Token:
        """Return the bearer token of a request, or the key that Personalizer's clients send."""
        if not self:
            return _Token(b"", frozenset(SCOPES))
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer":
            token = headers.get("ocp-apim-subscription-key", "")
        digest, granted = sha256(token.strip().encode("utf-8", "replace")).digest(), _Token(b"", frozenset())
        for known in self._known:
            if hmac.compare_digest(known.digest, digest):
                granted = known
        return granted

    def check(self, headers: Mapping[str, str], scope: str, loop: str | None = None) -> None:
        """Reject a request without the scope `scope` for a loop, or for any loop if `loop` is None."""
        _, scopes, loops = self._token_of(headers)
        if self.problem and not self._known:
            raise RefusedError("the service cannot read its tokens: its log has the reason", status=401)
        if not scopes and {"authorization", "ocp-apim-subscription-key"} & headers.keys():
            raise RefusedError("this token is not known, or was revoked", status=401)
        if not scopes:
            raise RefusedError("a bearer token is needed: Authorization: Bearer TOKEN", status=401)
        if loop is not None and loops is not None and loop not in loops:
            raise RefusedError(f"this token is only for {', '.join(sorted(loops))}", status=403)
        if scope not in scopes and "admin" not in scopes:
            raise RefusedError(f"this token is not for {scope}", status=403)


def _stamp_of(path: Path) -> tuple[int, int, int] | None:
    """Return a value that changes whenever a file does; None if the file does not exist."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


class _Token(NamedTuple):
    """The hash of a token, its scopes, and the names of its loops; None: all loops."""

    digest: bytes
    scopes: frozenset[str]
    loops: frozenset[str] | None = None


def _tokens_of(path: Path) -> list[_Token]:
    """Return the tokens in a file."""
    tokens = []
    try:
        text = read_settings(path)
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is no file of tokens: {error}") from None
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        scopes = frozenset(words[1].split(",")) if len(words) in (2, 3) else frozenset()
        if not _HASH.fullmatch(words[0]) or not scopes or not scopes <= set(SCOPES):
            raise InputError(
                f"{path}:{number}: a line is a SHA-256, scopes of {','.join(SCOPES)}, and names of loops if "
                "the token is not for all"
            )
        loops = frozenset(words[2].split(",")) if len(words) == 3 else None
        tokens.append(_Token(bytes.fromhex(words[0]), scopes, loops))
    return tokens


def add_token(path: str | os.PathLike[str], scopes: list[str], loops: Sequence[str] = ()) -> str:
    """Create a token, append its hash to a file, and return the token, which cannot be recovered later.

    Without `loops`, the token is for all loops. A new file belongs to the owner of its folder.
    """
    if not scopes or not set(scopes) <= set(SCOPES):
        raise OptionError(f"scopes are of {','.join(SCOPES)}, not {','.join(scopes)}")
    for loop in loops:
        if not LOOP_NAME.fullmatch(loop):
            raise OptionError(f"no loop is called {loop[:80]!r}: names are of a to z, 0 to 9, '_' and '-'")
    token = secrets.token_urlsafe(32)
    file = Path(path)
    if not file.exists():
        file.touch(0o600)
        owner = file.parent.stat()
        if owner.st_uid != file.stat().st_uid:  # the service must be able to read it
            try:
                os.chown(file, owner.st_uid, owner.st_gid)
            except PermissionError:
                file.unlink()
                raise InputError(
                    f"{file.parent} belongs to another user: make its tokens as that one"
                ) from None
    with file.open("a", encoding="utf-8") as lines:
        words = [sha256(token.encode()).hexdigest(), ",".join(scopes), ",".join(loops)]
        lines.write(" ".join(words).rstrip() + "\n")
    return token
