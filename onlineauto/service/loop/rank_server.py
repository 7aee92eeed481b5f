"""``RankServer``: ranks with the models of a remote learner, and hands its log over to the learner.

A rank server also answers while the learner is away: its own log has all answers, and the learner takes the
records over exactly once when it is available again. The folder keeps the model, so that a rank server can
also start while the learner is away.
"""

from __future__ import annotations

import logging
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import httpx
import msgspec

from onlineauto.errors import InputError, OnlineautoError
from onlineauto.formats.decisions.dsjson import stamp
from onlineauto.service.client import ServiceAddress, message_in
from onlineauto.service.join.join import Join, JoinSettings, replay
from onlineauto.service.join.settings import read_settings
from onlineauto.service.learning.learner import Published
from onlineauto.service.log.segment_log import RecordsAnswer, SegmentLog, call_all, read_record, sealed
from onlineauto.service.loop.folder import FolderLock, claim_folder
from onlineauto.service.loop.front import Front, SteadyClock, ignore_completion
from onlineauto.service.loop.warm_up import warm_predictor
from onlineauto.service.options import PART_BYTES, Limits
from onlineauto.workspace.model_file import replace_file
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from onlineauto.service.log.segment_log import Done

_LOG = logging.getLogger("onlineauto.service")
_SETTINGS = 1.0
"""Seconds after which a learner without a new model is asked for its settings."""
_KEPT: Final = 30.0
"""Seconds between two models that are saved in the folder."""

Answer = TypeVar("Answer", bound=msgspec.Struct)


class _Status(msgspec.Struct):
    settings: dict[str, Any]


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
        wanted = self._read(answer, RecordsAnswer).position
        if wanted < 0 or (content and not position <= wanted <= position + len(content)):
            raise self._stranger(answer, f"it wants the records from {wanted}")
        return wanted

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


class LogPart(NamedTuple):
    """The name of a part, and the position in the log at which it begins."""

    name: str
    begin: int


class LogParts:
    """The names under which a learner knows a log, and where each part begins; one line each in a file.

    A log that was restored from a backup continues with records that differ from those that the learner has
    under its name. So a process that opens the log begins a part with a new name at its end, if the learner
    has more records under the old name than the log, or is away. No record is handed over twice.
    """

    def __init__(self, path: Path, log: SegmentLog) -> None:
        self._path, self._opened_at = path, log.end
        try:
            lines = path.read_text("ascii").splitlines() if path.exists() else []
            parts = [
                LogPart(name, int(begin or 0)) for name, _, begin in (line.partition(" ") for line in lines)
            ]
        except ValueError:
            raise InputError(
                f"{path} is damaged: restore it from a backup, or begin with an empty folder"
            ) from None
        self.parts = [part for part in parts if part.name and part.begin <= log.end]
        if not self.parts:
            self._begin(log.begin)

    def begin_here(self, shipped: int = 0) -> int:
        """Begin a part at the end of the log when it was opened, or behind `shipped`; return its position."""
        position = max(self._opened_at, shipped)
        self._begin(position)
        return position

    def known(self, upstream: HttpUpstream) -> int:
        """Return the position up to which a learner has the log; it may be behind the end of the log."""
        end: int | None = None
        for part in reversed(self.parts):
            taken = upstream.take(part.name, 0, b"")
            if taken:
                return part.begin + taken if end is None else min(part.begin + taken, end)
            end = part.begin
        return self.parts[0].begin

    def part_of(self, position: int) -> tuple[LogPart, int | None]:
        """Return the part that contains a position, and its end; None if it is the last part."""
        number = max(index for index, part in enumerate(self.parts) if part.begin <= position)
        following = self.parts[number + 1 : number + 2]
        return self.parts[number], following[0].begin if following else None

    def _begin(self, position: int) -> None:
        """Begin a part; an empty part at the same position is replaced, since its name may be in use."""
        parts = [part for part in self.parts if part.begin < position]
        parts.append(LogPart(secrets.token_hex(8), position))
        lines = [f"{part.name} {part.begin}" if part.begin else part.name for part in parts]
        try:
            replace_file(self._path, ["\n".join(lines).encode()])
        except OSError as error:
            raise InputError(f"cannot write {self._path}: {error.strerror}") from None
        self.parts = parts


class RankServer(Front):
    """A rank server with its own folder. One thread calls `follow`."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        upstream: HttpUpstream,
        *,
        limits: Limits | None = None,
        app: str = "default",
        clock: Callable[[], float] | None = None,
        deliver: Callable[[Sequence[Done], Exception | None], object] = call_all,
    ) -> None:
        self._upstream, clock = upstream, clock or SteadyClock()
        self._model_path, self._kept_at = Path(folder) / "model", 0.0
        self._content: tuple[str, bytes] | None = None  # the latest model, until the folder has it
        self.failed: Exception | None = None
        self._held = FolderLock(folder)
        try:
            claim_folder(Path(folder))
            log = SegmentLog(Path(folder) / "log", keep_damaged=True)
            self._parts, self.shipped = LogParts(Path(folder) / "source", log), log.begin
            join, settings = Join(JoinSettings()), None
            try:
                settings = read_settings(upstream.settings())
                join = Join(settings)
                self.shipped = self._known(log)
                published = self._fetched("", clock())
            except InputError as error:
                self._parts.begin_here()
                published = self._stored(error, clock())
            assert published is not None
        except OnlineautoError:
            self._held.release()
            raise
        for each in replay(join, log, log.begin):
            if each.skipped is not None:
                _LOG.error(str(each.skipped), extra={"event": "record_skipped"})
        super().__init__(
            folder,
            log,
            join,
            published,
            limits=limits or Limits(),
            app=app,
            namespaces=self._learnt,
            clock=clock,
            deliver=deliver,
        )
        if settings is not None:
            self._agree(settings)
        self._agreed = clock()

    @property
    def source(self) -> str:
        """The name under which the learner knows the current part of the log."""
        return self._parts.parts[-1].name

    @property
    def behind(self) -> int:
        """The number of bytes of the log that the learner does not have yet."""
        return max(self._commit.position - self.shipped, 0)

    def follow(self) -> bool:
        """Hand over records, and fetch a newer model and settings; return whether anything was exchanged."""
        try:
            if self.failed is not None:
                self.shipped = self._known(self.log)
            sent = self._ship()
            now = self.clock()
            published = self._fetched(self.published.name, now)
            if published is not None:
                self.published = published
                if self.limits.only is None:
                    self._namespaces.update(self._learnt)
            if published is not None or abs(now - self._agreed) >= _SETTINGS:  # they may have changed
                self._agree(read_settings(self._upstream.settings()))
                self._agreed = now
            self._keep(now)
            self.failed = None
        except Exception as error:  # a wrong server may answer anything; the request is repeated
            self.failed = error
            return False
        return sent or published is not None

    def close(self) -> None:
        """Write queued records, and hand them over if the learner is available."""
        self._commit.close()
        while self.follow() and self.behind:
            pass
        self._keep(self.clock(), every=0.0)
        try:
            self.log.close()
        except OSError as error:
            _LOG.error("the log cannot be written: %s", error, extra={"event": "unsaved"})
        self._held.release()

    def _known(self, log: SegmentLog) -> int:
        """Return the position up to which the learner has the log."""
        known = self._parts.known(self._upstream)
        if known > log.end:
            _LOG.error(
                "the learner has the log up to %d, and it ends at %d: it is an older copy, whose records are "
                "known; those that follow are handed over by another name",
                known,
                log.end,
                extra={"event": "log_restored"},
            )
            known = self._parts.begin_here(self.shipped)
        return known

    def _ship(self) -> bool:
        """Hand over some records that the learner does not have yet."""
        lines, size, short = [], 0, b""
        part, end = self._parts.part_of(self.shipped)
        for _, line in self.log.lines(self.shipped, end):
            record = _readable(short + line, self.clock())
            short = b"" if record else short + line
            lines.append(record)
            size += len(record)
            if size >= PART_BYTES:
                break
        if size:
            taken = self._upstream.take(part.name, self.shipped - part.begin, b"".join(lines))
            self.shipped = part.begin + taken
        elif end is not None:
            self.shipped = end  # only damaged records are left in this part
        return size > 0 or end is not None

    def _fetched(self, known: str, now: float) -> Published | None:
        """Return the model of the learner, unless it is the known one."""
        answer = self._upstream.model(known)
        if answer is None:
            return None
        self._content = answer
        return self._published(*answer, now)

    def _published(self, name: str, content: bytes, now: float) -> Published:
        """Return a model ready to rank, and record which namespaces it knows."""
        model = Workspace.load(content, testonly=True, dsjson=True)
        names = list(model.layout.keys())
        self._learnt = [each.decode("utf-8", "replace") for each in names]
        predictor = model.predictor()
        warm_predictor(predictor, self._learnt)  # the previous model ranks until this one is compiled
        return Published(predictor, name, now)

    def _stored(self, error: Exception, now: float) -> Published:
        """Return the model in the folder, because the learner is away."""
        try:
            name, _, content = self._model_path.read_bytes().partition(b"\n")
            published = self._published(name.decode(), content, now)
        except (OSError, ValueError, OnlineautoError):
            raise InputError(
                f"{error}; {self._model_path} has no model either, so a rank server cannot start yet"
            ) from None
        self.failed = error
        return published

    def _keep(self, now: float, *, every: float = _KEPT) -> None:
        """Save the latest model in the folder if that is due; a full disk stops nothing else."""
        if self._content is None or 0.0 <= now - self._kept_at < every:
            return
        name, content = self._content
        try:
            replace_file(self._model_path, [name.encode() + b"\n", content])
            self._content = None
        except OSError as error:
            _LOG.error("the model cannot be saved: %s", error, extra={"event": "not_saved"})
        self._kept_at = now

    def _agree(self, settings: JoinSettings) -> None:
        """Adopt the settings of the learner."""
        if settings != self.join.settings or not self.log.end:
            with self._lock:
                self._append("settings", ignore_completion, Settings=msgspec.to_builtins(settings))


def _readable(line: bytes, now: float) -> bytes:
    """Return a line of the log, or a tick of the same length in place of an unreadable line.

    The learner rejects a damaged record, and so would never receive the records behind it. A line shorter
    than a tick is replaced by nothing, and is handed over together with the next line.
    """
    try:
        read_record(line)
    except InputError as error:
        tick = b'{"Type":"tick","Timestamp":"%b"' % stamp(now).encode()
        room = len(line) - len(sealed(tick + b"}"))
        if room < 0:
            return b""
        _LOG.error("a record is not handed over: %s", error, extra={"event": "record_skipped"})
        return sealed(tick + b" " * room + b"}")
    return line
