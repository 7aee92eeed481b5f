"""``serve_studies``: a live page of the studies of a store, which only reads the store."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

import msgspec

from onlineauto.errors import OnlineautoError, OptionError, StoreError, UnreachableError
from onlineauto.service.http.endpoint import Endpoint, RequestBatch, RequestGuard, Router
from onlineauto.service.http.http_protocol import (
    OWN_HOSTS,
    Connections,
    address_of,
    bind_socket,
    is_own,
    run_until_signal,
)
from onlineauto.service.http.page import page_reply
from onlineauto.service.http.tokens import Tokens
from onlineauto.service.http.wire import JSON, Reply
from onlineauto.service.refused import RefusedError
from onlineauto.tune.store.store_reader import StoreReader
from onlineauto.tune.watching import StudyWatch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection

    from onlineauto.service.http.endpoint import Request
    from onlineauto.tune.store.store_reader import StoredStudy

_PAGE: Final = Path(__file__).with_name("studies.html")
_LISTING: Final = 0.5
"""Seconds that a list may read studies that have changed; the others follow with the next list."""
_PAUSE: Final = 9.0
"""A study is described again only after this multiple of the time that its last description took."""
_MOST_RECORDS: Final = 200_000
"""Records of all studies in memory; beyond them, the study that was used longest ago is forgotten."""


@dataclass(slots=True, kw_only=True)
class _KnownStudy:
    """The results of reading a study."""

    watch: StudyWatch | None = None  # The open study; None if it is not in memory.
    # Its row of the list, and the number of records that the row is of.
    summary: dict[str, Any] = field(default_factory=dict)
    summary_version: int = 0
    # Its description, the number of records that this is of, and the earliest time of the next one.
    text: bytes = b""
    text_version: int = 0
    next_text: float = 0.0

    def forget(self) -> None:
        """Close the study; its row of the list remains."""
        self.watch, self.text, self.text_version, self.next_text = None, b"", 0, 0.0


class StudyHandlers:
    """Answers requests about the studies of a store."""

    def __init__(self, url: str) -> None:
        self._url, self._lock = url, Lock()
        self._reader: StoreReader | None = StoreReader(url)
        self._known: dict[str, _KnownStudy] = {}  # the one that was opened last is at the end
        self._turn = 0  # index of the study with which the next list begins to read

    def stored(self) -> list[StoredStudy]:
        """Return the studies of the store."""
        if self._reader is None:
            self._reader = StoreReader(self._url)
        return self._reader.studies()

    def close(self) -> None:
        """Close the store; the next request opens it again."""
        if self._reader is not None:
            self._reader.close()
        self._reader = None
        self._known = {}

    async def page(self, request: Request) -> Reply:
        """Return the page."""
        del request
        return page_reply(_PAGE)

    async def studies(self, request: Request) -> Reply:
        """Return the name of each study, its trials by state, and its best trial."""
        return await asyncio.to_thread(self._answer, request, self._list)

    async def study(self, request: Request) -> Reply:
        """Return the state of a study, as far as a page displays it, and the leases of its jobs."""
        return await asyncio.to_thread(self._answer, request, partial(self._study, request.path["study"]))

    def _answer(self, request: Request, answer: Callable[[], tuple[str, bytes]]) -> Reply:
        """Return an answer, or 304 if the client has it; after an error, the store is opened again."""
        with self._lock:
            try:
                tag, body = answer()
            except RefusedError:
                raise
            except OnlineautoError as error:
                self.close()
                raise RefusedError(str(error), status=503) from None
        headers = (*JSON, (b"etag", tag.encode()), (b"cache-control", b"no-cache"))
        if request.headers.get("if-none-match") == tag:
            return Reply(304, headers=headers)
        return Reply(200, body, headers)

    def _list(self) -> tuple[str, bytes]:
        """Return all studies, each as far as it was read; changed ones are read within a limited time."""
        stored, until = self.stored(), time.monotonic() + _LISTING
        stored_names = {study.name for study in stored}
        self._known = {name: known for name, known in self._known.items() if name in stored_names}
        for at in range(len(stored)):
            name, version, _ = stored[(self._turn + at) % len(stored)]
            known = self._known.setdefault(name, _KnownStudy())
            if known.summary_version == version:
                continue
            if time.monotonic() >= until:
                self._turn = (self._turn + at) % len(stored)
                break
            try:
                watch = self._watch(name)
                known.summary_version, known.summary = watch.follow(), watch.summary()
            except OnlineautoError as error:
                known.forget()  # the study may have been removed and begun again
                known.summary_version = version if isinstance(error, OptionError) else 0  # retry the others
                known.summary = {"error": str(error)}
        rows = [
            {"name": name, "records": version, "jobs": jobs, **self._known.get(name, _KnownStudy()).summary}
            for name, version, jobs in stored
        ]
        body = msgspec.json.encode(rows)
        return f'"{crc32(body):x}"', body

    def _study(self, name: str) -> tuple[str, bytes]:
        if name not in (names := [study.name for study in self.stored()]):
            some = ", ".join(map(repr, names[:10])) or "none"
            raise RefusedError(f"the store has no study {name!r}; it has {some}", status=404)
        known = self._known.setdefault(name, _KnownStudy())
        try:
            watch = self._watch(name)
            version, leases = watch.follow(), watch.leases()
        except UnreachableError:
            raise
        except (OptionError, StoreError) as error:  # of this study; the others stay in memory
            known.forget()
            known.summary_version = 0  # the next list says so
            raise RefusedError(f"study {name!r}: {error}", status=422) from None
        began = time.monotonic()
        if known.text_version != version and began >= known.next_text:
            known.text, known.text_version = msgspec.json.encode(watch.describe()), version
            known.next_text = time.monotonic() + _PAUSE * (time.monotonic() - began)
        ends = crc32(repr([(*lease[:3], lease.until, lease.step) for lease in leases]).encode())
        body = {"study": msgspec.Raw(known.text), "leases": [lease._asdict() for lease in leases]}
        return f'"{known.text_version}-{ends:x}"', msgspec.json.encode(body)

    def _watch(self, name: str) -> StudyWatch:
        """Return a study; forget those that were used longest ago if there are too many records."""
        assert self._reader is not None
        known = self._known[name] = self._known.pop(name)
        watch = known.watch = known.watch or StudyWatch(self._reader.study(name))
        records = sum(each.watch.version for each in self._known.values() if each.watch is not None)
        for each in [*self._known.values()][:-1]:
            if records > _MOST_RECORDS and each.watch is not None:
                records -= each.watch.version
                each.forget()
        return watch


def study_app(handlers: StudyHandlers, tokens: Tokens, *, hosts: Collection[str] = OWN_HOSTS) -> Router:
    """Return the application of a store."""
    guard = RequestGuard(tokens, lambda *_: None, hosts=hosts)
    batch, connections = RequestBatch(nullcontext), Connections()
    endpoints = {
        path: {"GET": Endpoint(guard, handler, name=handler.__name__, scope=scope, body_bytes=0, batch=batch)}
        for path, handler, scope in (
            ("/", handlers.page, None),
            ("/v1/studies", handlers.studies, "read"),
            ("/v1/studies/{study}", handlers.study, "read"),
        )
    }

    @asynccontextmanager
    async def running() -> AsyncIterator[None]:
        try:
            yield
        finally:
            handlers.close()

    return Router(endpoints, connections, running)


def serve_studies(
    url: str, *, host: str, port: int, tokens: str | None, announce: Callable[[str], object]
) -> None:
    """Serve the page of a store until a signal arrives."""
    if tokens is not None and not Path(tokens).is_file():
        raise OptionError(f"--tokens {tokens}: there is no such file")
    known = Tokens(tokens)
    if tokens is not None and not known:
        raise OptionError(
            f"--tokens {tokens}: the file has no tokens; onlineauto loop FOLDER --new_token read makes one"
        )
    if not known and not is_own(host):
        raise OptionError(
            f"{host} is reachable from other machines, but there are no tokens: onlineauto loop FOLDER "
            "--new_token read makes one, and --tokens FOLDER/tokens uses it"
        )
    handlers = StudyHandlers(url)
    handlers.stored()
    app = study_app(handlers, known, hosts=(*OWN_HOSTS, host))
    with bind_socket(host, port) as opened:
        run_until_signal(app, opened, partial(announce, address_of(host, opened)))
