"""Single PostgreSQL statements in place of transactions of several statements, which saves round trips.

Each statement locks the study's row first, like every writer, which prevents deadlocks. If the job is not its
owner's any more, a statement writes nothing and returns no version.
"""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from onlineauto.tune.store.schema import JOBS, RECORDS, STUDIES, Now

_STUDY: Final[sa.BindParameter[int]] = sa.bindparam("of_study", type_=sa.Integer)
_BODY: Final = sa.bindparam("body", type_=sa.Text)
_CRC: Final = sa.bindparam("crc", type_=sa.BigInteger)
_ONE: Final = sa.literal_column("1", sa.BigInteger)
_COLUMNS: Final = ["study", "version", "body", "crc"]
_MINE: Final = sa.and_(
    JOBS.c.study == _STUDY,
    JOBS.c.trial == sa.bindparam("of_trial", type_=sa.BigInteger),
    JOBS.c.attempt == sa.bindparam("of_attempt", type_=sa.BigInteger),
    JOBS.c.owner == sa.bindparam("of_owner", type_=sa.Text),
)


def _text(statement: Any) -> str:
    """Return a statement as text for psycopg, compiled once for all runs."""
    return str(statement.compile(dialect=PGDialect_psycopg()))  # type: ignore[no-untyped-call]


def _job_update_sql(change: Any) -> str:
    """Return a statement that changes a job of its owner, increments the version and appends a record."""
    locked = sa.select(STUDIES.c.id).where(STUDIES.c.id == _STUDY).with_for_update().cte("locked")
    changed = change.where(_MINE, JOBS.c.study == locked.c.id).returning(JOBS.c.study).cte("changed")
    counted = (
        sa.update(STUDIES)
        .where(STUDIES.c.id == changed.c.study)
        .values(version=STUDIES.c.version + _ONE)
        .returning(STUDIES.c.id, STUDIES.c.version)
        .cte("counted")
    )
    row = sa.select(counted.c.id, counted.c.version, _BODY, _CRC + counted.c.version)
    return _text(sa.insert(RECORDS).from_select(_COLUMNS, row).returning(RECORDS.c.version))


_REPORTED: Final = sa.bindparam("reported", type_=sa.Double)
REPORT: Final = _job_update_sql(
    sa.update(JOBS)
    .where(sa.or_(JOBS.c.step.is_(None), JOBS.c.step < _REPORTED))
    .values(step=_REPORTED, lease_until=Now() + JOBS.c.lease)
)
"""Append ``reported`` and renew the lease; nothing if this attempt has reported the step before."""
END: Final = _job_update_sql(sa.delete(JOBS))
"""Append ``told`` or ``failed``, and end the claim."""

_counted = (
    sa.update(STUDIES)
    .where(STUDIES.c.id == _STUDY)
    .values(version=STUDIES.c.version + _ONE)
    .returning(STUDIES.c.id, STUDIES.c.version)
    .cte("counted")
)
_leased = (
    sa.insert(JOBS)
    .values(
        study=_STUDY,
        trial=sa.bindparam("of_trial", type_=sa.BigInteger),
        attempt=sa.bindparam("of_attempt", type_=sa.BigInteger),
        owner=sa.bindparam("of_owner", type_=sa.Text),
        lease=sa.bindparam("seconds", type_=sa.Double),
        lease_until=Now() + sa.bindparam("seconds", type_=sa.Double),
    )
    .cte("leased")
)
ADD_ASKED: Final = _text(
    sa.insert(RECORDS)
    .from_select(_COLUMNS, sa.select(_counted.c.id, _counted.c.version, _BODY, _CRC + _counted.c.version))
    .add_cte(_leased)
    .returning(RECORDS.c.version)
)
"""Append ``asked`` and lease the job, in a transaction that has locked the study."""
