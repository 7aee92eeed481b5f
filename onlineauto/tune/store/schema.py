"""The tables of a store, which are the same on SQLite and PostgreSQL, and the version of this schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles

from onlineauto.errors import StoreError

if TYPE_CHECKING:
    from sqlalchemy.sql.compiler import SQLCompiler

SCHEMA: Final = 1
"""Version of the schema; it increases by 1 with each change."""
_LOCK: Final = 7_236_524
"""A random number that identifies the locks of this package."""
_TABLES: Final = sa.MetaData()
_VERSIONS: Final = sa.Table(
    "onlineauto_schema", _TABLES, sa.Column("version", sa.Integer, primary_key=True, autoincrement=False)
)
STUDIES: Final = sa.Table(
    "onlineauto_study",
    _TABLES,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("version", sa.BigInteger, nullable=False),
    sa.Column("created", sa.Double, nullable=False),
)
"""Studies: name, and the number of the last record."""


def _study() -> sa.Column[int]:
    return sa.Column("study", sa.ForeignKey(STUDIES.c.id), primary_key=True)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, primary_key=True, autoincrement=False)


RECORDS: Final = sa.Table(
    "onlineauto_record",
    _TABLES,
    _study(),
    _number("version"),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("crc", sa.BigInteger, nullable=False),
)
"""The logs of all studies."""
JOBS: Final = sa.Table(
    "onlineauto_job",
    _TABLES,
    _study(),
    _number("trial"),
    sa.Column("attempt", sa.BigInteger, nullable=False),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("lease", sa.Double, nullable=False),
    sa.Column("lease_until", sa.Double, nullable=False),
    sa.Column("step", sa.Double, nullable=True),
)
"""Claimed jobs: owner, duration of the lease in seconds, end of the lease, and last reported step."""
OF_STUDY: Final[sa.BindParameter[int]] = sa.bindparam("of_study")
MINE: Final = sa.and_(
    JOBS.c.study == OF_STUDY,
    JOBS.c.trial == sa.bindparam("of_trial"),
    JOBS.c.attempt == sa.bindparam("of_attempt"),
    JOBS.c.owner == sa.bindparam("of_owner"),
)
"""Condition on every write about a job: the claim is still its owner's."""
SNAPSHOTS: Final = sa.Table(
    "onlineauto_snapshot",
    _TABLES,
    _study(),
    sa.Column("version", sa.BigInteger, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("crc", sa.BigInteger, nullable=False),
)
"""The newest state of each study."""
CHECKPOINTS: Final = sa.Table(
    "onlineauto_checkpoint",
    _TABLES,
    _study(),
    _number("trial"),
    _number("attempt"),
    _number("step"),
    sa.Column("job", sa.Text, nullable=False),
    sa.Column("file", sa.Text, nullable=True),
    sa.Column("content", sa.LargeBinary, nullable=True),
    sa.Column("sha256", sa.Text, nullable=False),
)
"""Checkpoints that are completely written, to a file or into this table."""


class Now(sa.sql.expression.ColumnElement[float]):
    """The time of the database's clock, in seconds."""

    type = sa.Double()
    inherit_cache = True


@compiles(Now, "sqlite")
def _now_in_sqlite(element: Now, compiler: SQLCompiler, **words: Any) -> str:
    del element, compiler, words
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(Now, "postgresql")
def _now_in_postgres(element: Now, compiler: SQLCompiler, **words: Any) -> str:
    del element, compiler, words
    return "extract(epoch from clock_timestamp())::double precision"


def alone(connection: sa.Connection) -> None:
    """Lock the creation of tables and studies until this transaction ends; SQLite needs no extra lock."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")


def prepare(connection: sa.Connection, url: str) -> None:
    """Create missing tables, in a transaction that excludes other writers."""
    alone(connection)
    if not sa.inspect(connection).has_table(_VERSIONS.name):
        _TABLES.create_all(connection)
        connection.execute(_VERSIONS.insert().values(version=SCHEMA))
    _check_version(connection, url)


def is_prepared(connection: sa.Connection, url: str) -> bool:
    """Return whether there are tables, without creating them."""
    if not sa.inspect(connection).has_table(_VERSIONS.name):
        return False
    _check_version(connection, url)
    return True


def _check_version(connection: sa.Connection, url: str) -> None:
    version = connection.execute(sa.select(sa.func.max(_VERSIONS.c.version))).scalar()
    if version is None:
        raise StoreError(f"{url} is damaged: its schema has no version")
    if version != SCHEMA:
        raise StoreError(
            f"{url} has schema {version}, which a later version of onlineauto wrote; this one reads {SCHEMA}"
        )
