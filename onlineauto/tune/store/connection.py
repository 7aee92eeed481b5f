"""Connect to the database of a store: parse its URL, set up connections, translate errors.

SQLite uses a write-ahead log, so that readers and the single writer do not wait for each other. A killed
process loses no commit. A power failure may lose the last commits, unless the URL ends with
``?synchronous=full``: each commit is then on the disk when it returns.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, NoSuchModuleError, OperationalError

from onlineauto.errors import OptionError, StoreError, UnreachableError, install_hint
from onlineauto.tune.store.open_store import without_password

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_WAL_PAGES: Final = 1000
_WAL_PAGES_IF_SHORT: Final = 100
"""Pages of 4 kB of the write-ahead log after which SQLite checkpoints it; fewer if disk space is short."""
_SHORT: Final = 64_000_000
"""Free bytes below which disk space is short. Frequent checkpoints take a quarter of the time of a trial."""
_NO_ROOM: Final = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE)
_BUSY: Final = 60
"""Seconds that SQLite waits for the lock of the writer."""
_CONNECT: Final = 10
"""Seconds that a PostgreSQL server may take to answer."""
_SYNCHRONOUS: Final = ("normal", "full")
_FORMS: Final = "sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE"


def connect(url: str, *, open_file: Callable[[Path], Any] | None = None) -> sa.Engine:
    """Return an engine for the database at `url`, which opens connections on demand."""
    try:
        parsed = sa.make_url(url)
    except ArgumentError:
        raise OptionError(f"{without_password(url)!r} is not the URL of a store; valid is {_FORMS}") from None
    name = parsed.get_backend_name()
    if name == "sqlite":
        return _sqlite(parsed, open_file)
    if name in ("postgresql", "postgres"):
        return _postgres(parsed)
    raise OptionError(f"a store cannot be in {name}; valid is {_FORMS}")


def missing_file(url: str) -> Path | None:
    """Return the file of SQLite at `url` if it does not exist."""
    engine = connect(url)
    engine.dispose()
    file = Path(engine.url.database or "")
    return file if engine.dialect.name == "sqlite" and not file.exists() else None


def hide_password(url: str) -> str:
    """Return a URL without its password.

    >>> hide_password("postgresql://me:secret@host/trials")
    'postgresql://me:***@host/trials'
    """
    return without_password(sa.make_url(url).render_as_string(hide_password=True))


def _sqlite(url: sa.URL, open_file: Callable[[Path], Any] | None) -> sa.Engine:
    if not url.database or url.database == ":memory:":
        raise OptionError(
            "a store in SQLite needs a file: sqlite:///study.db; without storage it is in memory"
        )
    file = Path(url.database).resolve()  # the working directory may change
    folder = file.parent
    if file.is_dir():
        raise OptionError(f"{file} is a folder; a store in SQLite is a file: sqlite:///study.db")
    if not folder.is_dir():
        raise OptionError(f"the folder {folder} of {url.render_as_string()} does not exist")
    synchronous = str(url.query.get("synchronous", "normal")).lower()
    if synchronous not in _SYNCHRONOUS or set(url.query) - {"synchronous"}:
        raise OptionError(f"{url.render_as_string()}: what may follow is ?synchronous=full, and nothing else")
    opened = url.set(query={}, database=str(file))
    how: dict[str, Any] = {"connect_args": {"timeout": _BUSY, "check_same_thread": False}}
    if open_file is not None:
        how = {"creator": lambda: open_file(file)}
    engine = sa.create_engine(opened, **how)
    first: list[os.stat_result] = []

    @sa.event.listens_for(engine, "connect")
    def _begin_life(connection: Any, _: object) -> None:
        connection.isolation_level = None  # the listener below begins transactions
        # A text that is not UTF-8 is in a damaged record, which its checksum reveals.
        connection.text_factory = lambda content: content.decode(errors="replace")
        if open_file is None:
            cursor = connection.cursor()
            cursor.execute("PRAGMA journal_mode = WAL")
            cursor.execute(f"PRAGMA synchronous = {synchronous}")
            pages = _WAL_PAGES if shutil.disk_usage(folder).free > _SHORT else _WAL_PAGES_IF_SHORT
            cursor.execute(f"PRAGMA wal_autocheckpoint = {pages}")
            cursor.execute(f"PRAGMA journal_size_limit = {pages * 4096}")
            cursor.close()
        if not first:
            first.append(file.stat())

    @sa.event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        _check_is_there(file, first[0])
        immediate = connection.get_execution_options().get("writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

    return engine


def _check_is_there(file: Path, first: os.stat_result) -> None:
    """Raise `StoreError` if the open file is no longer at its path, because commits would be lost."""
    try:
        if os.path.samestat(file.stat(), first):
            return
        problem = "another file is in its place"
    except FileNotFoundError:
        problem = "it does not exist any more"
    raise StoreError(
        f"the file {file} was removed while its studies were open: {problem}. What was written since is "
        "lost; copy a backup there, and begin again"
    )


def _postgres(url: sa.URL) -> sa.Engine:
    query = {"connect_timeout": str(_CONNECT), **url.query}
    try:
        return sa.create_engine(url.set(drivername="postgresql+psycopg", query=query))
    except (ImportError, NoSuchModuleError):
        raise OptionError(f"PostgreSQL needs psycopg: {install_hint('postgres')}") from None


@contextmanager
def writing(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Yield a connection in a write transaction; on SQLite it excludes all other writers."""
    with translate_errors(engine), engine.connect() as connection:
        connection = connection.execution_options(writes=True)
        with connection.begin():
            yield connection


@contextmanager
def each_alone(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Yield a connection in which each statement is a separate transaction."""
    with translate_errors(engine), engine.connect() as connection:
        yield connection.execution_options(isolation_level="AUTOCOMMIT")


@contextmanager
def reading(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Yield a connection that reads one state of the database while other processes commit."""
    with translate_errors(engine), engine.connect() as connection:
        if engine.dialect.name != "sqlite":  # a transaction of SQLite always reads one state
            connection = connection.execution_options(
                isolation_level="REPEATABLE READ", postgresql_readonly=True
            )
        with connection.begin():
            yield connection


@contextmanager
def translate_errors(engine: sa.Engine) -> Iterator[None]:
    """Translate an error of the driver into one of this package that names the database."""
    plain_url = engine.url.set(query={}, drivername=engine.url.get_backend_name())
    url = plain_url.render_as_string(hide_password=True)
    try:
        yield
    except (OperationalError, InterfaceError) as error:
        code = getattr(error.orig, "sqlite_errorcode", None)
        if code == sqlite3.SQLITE_ERROR:  # a table or a column is missing
            raise StoreError(f"{url} is damaged, or not a store: {_first_line(error)}") from error
        if code in _NO_ROOM:
            _truncate_log(engine)
        raise UnreachableError(f"{url} cannot be used: {_first_line(error)}{_advice(error)}") from error
    except DBAPIError as error:
        if error.connection_invalidated:
            raise UnreachableError(f"{url} has gone away: {_first_line(error)}") from error
        raise StoreError(f"{url} is damaged, or not a store: {_first_line(error)}") from error
    except UnicodeDecodeError as error:  # in a message of SQLite about its schema
        raise StoreError(f"{url} is damaged: its schema is not UTF-8") from error


def _truncate_log(engine: sa.Engine) -> None:
    """Checkpoint and truncate SQLite's write-ahead log to free disk space."""
    with suppress(DBAPIError), engine.connect() as connection:
        raw = connection.connection.driver_connection
        if isinstance(raw, sqlite3.Connection):
            with suppress(sqlite3.Error):
                raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _advice(error: DBAPIError) -> str:
    """Return advice about an error as the end of a message."""
    if not isinstance(error.orig, sqlite3.Error):
        return "; is this the URL of a server that runs?"
    code = getattr(error.orig, "sqlite_errorcode", 0)
    if code in _NO_ROOM:
        return "; free space on this disk: the study continues when 1 MB is free"
    advice = {
        sqlite3.SQLITE_READONLY: "a study is written to when it is opened: copy the file, and FILE-wal if "
        "there is one, to a folder that you may write to",
        sqlite3.SQLITE_BUSY: "a process holds the lock of the file, or the file system, as "
        "some network file systems, has no locks: then keep the file on a local disk, or the study in "
        "PostgreSQL",
        sqlite3.SQLITE_PROTOCOL: "the file system does not lock files: keep the file on a local disk, or the "
        "study in PostgreSQL",
        sqlite3.SQLITE_IOERR: "the disk fails, or the file system does not lock files, as some network file "
        "systems: keep the file on a local disk, or the study in PostgreSQL",
        sqlite3.SQLITE_CANTOPEN: "SQLite needs to write FILE-wal and FILE-shm beside the file",
    }.get(code & 0xFF, "")
    return f"; {advice}" if advice else ""


def _first_line(error: DBAPIError) -> str:
    return str(error.orig).strip().partition("\n")[0]
