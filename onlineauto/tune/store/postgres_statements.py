"""Single PostgreSQL statements in place of transactions of several statements, which saves round trips.

Each statement locks the study's row first, like every writer, which prevents deadlocks. If the job is not its
owner's any more, a statement writes nothing and returns no version.
"""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from onlineauto.tune.store.schema import JOBS, MINE, OF_STUDY, RECORDS, STUDIES, Now

_BODY: Final = sa.bindparam("body", type_=sa.Text)
_CRC: Final = sa.bindparam("crc", type_=sa.BigInteger)
_ONE: Final = sa.literal_column("1", sa.BigInteger)


def _append_sql(study: Any, *others: Any) -> str:
    """Return a statement that increments a study's version and appends a record, as text for psycopg."""
    counted = (
        sa.update(STUDIES)
        .where(STUDIES.c.id == study)
        .values(version=STUDIES.c.version + _ONE)
        .returning(STUDIES.c.id, STUDIES.c.version)
        .cte("counted")
    )
    row = sa.select(counted.c.id, counted.c.version, _BODY, _CRC + counted.c.version)
    insert = sa.insert(RECORDS).from_select(["study", "version", "body", "crc"], row)
    statement = insert.add_cte(*others).returning(RECORDS.c.version)
    return str(statement.compile(dialect=PGDialect_psycopg()))  # type: ignore[no-untyped-call]


def _job_update_sql(change: Any) -> str:
    """Return a statement that changes a job of its owner, increments the version and appends a record."""
    locked = sa.select(STUDIES.c.id).where(STUDIES.c.id == OF_STUDY).with_for_update().cte("locked")
    changed = change.where(MINE, JOBS.c.study == locked.c.id).returning(JOBS.c.study).cte("changed")
    return _append_sql(changed.c.study)


_REPORTED: Final = sa.bindparam("reported", type_=sa.Double)
REPORT: Final = _job_update_sql(
    sa.update(JOBS)
    .where(sa.or_(JOBS.c.step.is_(None), JOBS.c.step < _REPORTED))
    .values(step=_REPORTED, lease_until=Now() + JOBS.c.lease)
)
"""Append ``reported`` and renew the lease; nothing if this attempt has reported the step before."""
END: Final = _job_update_sql(sa.delete(JOBS))
"""Append ``told`` or ``failed``, and end the claim."""

_leased = (
    sa.insert(JOBS)
    .values(
        study=OF_STUDY,
        trial=sa.bindparam("of_trial"),
        attempt=sa.bindparam("of_attempt"),
        owner=sa.bindparam("of_owner"),
        lease=sa.bindparam("seconds", type_=sa.Double),
        lease_until=Now() + sa.bindparam("seconds", type_=sa.Double),
    )
    .cte("leased")
)
ADD_ASKED: Final = _append_sql(OF_STUDY, _leased)
"""Append ``asked`` and lease the job, in a transaction that has locked the study."""
