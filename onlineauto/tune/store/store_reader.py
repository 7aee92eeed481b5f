"""``StoreReader``: the studies of a database, which are read and never written."""

from __future__ import annotations

import os
import sqlite3
import weakref
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import sqlalchemy as sa

from onlineauto.errors import OptionError
from onlineauto.tune.store.connection import connect, hide_password, reading
from onlineauto.tune.store.schema import JOBS, STUDIES, Now, is_prepared
from onlineauto.tune.store.sql_store import SqlStore

_BUSY: Final = 2
"""Seconds that SQLite waits; a reader waits only if a process has locked the whole file."""
_JOBS_OF: Final = (
    sa.select(
        JOBS.c.trial,
        JOBS.c.attempt,
        JOBS.c.owner,
        JOBS.c.lease,
        (JOBS.c.lease_until - Now()).label("seconds"),
        JOBS.c.lease_until,
        JOBS.c.step,
    )
    .where(JOBS.c.study == sa.bindparam("of_study"))
    .order_by(JOBS.c.trial)
)
_STUDIES: Final = (
    sa.select(STUDIES.c.name, STUDIES.c.version, sa.func.count(JOBS.c.trial).label("jobs"))
    .join_from(STUDIES, JOBS, JOBS.c.study == STUDIES.c.id, isouter=True)
    .group_by(STUDIES.c.id, STUDIES.c.name, STUDIES.c.version)
    .order_by(STUDIES.c.name)
)


class StoredStudy(NamedTuple):
    """A study of a store: its name, its number of records, and its number of claimed jobs."""

    name: str
    version: int
    jobs: int


class Lease(NamedTuple):
    """A claimed job."""

    trial: int  # The job.
    attempt: int
    owner: str  # The name under which it was claimed.
    lease: float  # The duration of the lease in seconds.
    seconds: float  # The seconds until the lease ends, by the database's clock; negative if it has ended.
    until: float  # The end of the lease by this clock.
    step: float | None  # The last step that was reported.


class StoreReader:
    """The studies of a database."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._engine = connect(url, open_file=_open_file)
        self.close = weakref.finalize(self, self._engine.dispose)
        """Closes all connections."""
        self._check_file()

    def studies(self) -> list[StoredStudy]:
        """Return all studies, by name; an empty list if no study was begun in the database."""
        self._check_file()
        with reading(self._engine) as connection:
            if not is_prepared(connection, hide_password(self._url)):
                return []
            return [StoredStudy(*row) for row in connection.execute(_STUDIES)]

    def study(self, name: str) -> StudyReader:
        """Return the log of a study, for reading."""
        return StudyReader(self._url, name, self._engine)

    def _check_file(self) -> None:
        file = self._engine.url.database
        if self._engine.dialect.name == "sqlite" and file is not None and not Path(file).exists():
            raise OptionError(f"there is no file {file}, so no study; onlineauto tune creates it")


class StudyReader(SqlStore):
    """The log of one study in a database, for reading."""

    def __init__(self, url: str, name: str, engine: sa.Engine) -> None:
        self.url, self.name = url, name
        self._engine, self._process = engine, os.getpid()
        self._where, self._study = hide_password(url), None

    def leases(self) -> list[Lease]:
        """Return the jobs that have an owner, by trial."""
        with reading(self.engine) as connection:
            return [Lease(*row) for row in connection.execute(_JOBS_OF, {"of_study": self.study})]


def _open_file(file: Path) -> Any:
    """Return a connection to an existing file of SQLite that rejects every write."""
    connection = sqlite3.connect(
        f"file:{quote(str(file))}?mode=rw", uri=True, timeout=_BUSY, check_same_thread=False
    )
    connection.execute("PRAGMA query_only = ON")
    return connection
