"""``SqlStore``: a study in SQLite or PostgreSQL, shared by processes on one machine or on many.

Every write is one short transaction that excludes other writers of the study: on SQLite it begins with
``BEGIN IMMEDIATE``, on PostgreSQL it locks the study's row first. Claims are in a separate table, at most one
per trial, and expire by the database's clock.
"""

from __future__ import annotations

import json
import os
import weakref
import zlib
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from onlineauto.errors import OptionError, StoreError
from onlineauto.tune.store import postgres_statements
from onlineauto.tune.store.connection import (
    connect,
    each_alone,
    hide_password,
    missing_file,
    reading,
    writing,
)
from onlineauto.tune.store.protocol import Claim, DamagedLogError, LeaseLost, StudySnapshot
from onlineauto.tune.store.schema import (
    JOBS,
    MINE,
    OF_STUDY,
    RECORDS,
    SNAPSHOTS,
    STUDIES,
    Now,
    alone,
    prepare,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from onlineauto.tune.store.protocol import Decide, Record

_COPIED: Final = (
    ". If the file of SQLite was copied: FILE-wal belongs to it, or copy it by sqlite3 FILE '.backup COPY'"
)
_BACKUP: Final = "; restore a backup, or begin a study under another name"
_WRONG_CHECKSUM: Final = "is damaged: its checksum is not the one it was written with"
_NOW: Final = Now()
_SET_VERSION: Final = sa.update(STUDIES).where(STUDIES.c.id == OF_STUDY).values(version=sa.bindparam("last"))
_ADD_RECORD: Final = sa.insert(RECORDS)
_NEW_RECORDS: Final = (
    sa.select(RECORDS.c.version, RECORDS.c.body, RECORDS.c.crc)
    .where(RECORDS.c.study == OF_STUDY, RECORDS.c.version > sa.bindparam("after"))
    .order_by(RECORDS.c.version)
)
_NAMES: Final = sa.select(STUDIES.c.name).order_by(STUDIES.c.name)
_VERSION: Final = sa.select(STUDIES.c.version).where(STUDIES.c.id == OF_STUDY)
_LOCKED: Final = _VERSION.with_for_update()
_ANY_EXPIRED: Final = sa.exists().where(JOBS.c.study == OF_STUDY, JOBS.c.lease_until < _NOW)
_LOCKED_FOR_CLAIM: Final = (
    sa.select(STUDIES.c.version, _ANY_EXPIRED.label("expired"))
    .where(STUDIES.c.id == OF_STUDY)
    .with_for_update()
)
_NEXT_VERSION: Final = (
    sa.update(STUDIES)
    .where(STUDIES.c.id == OF_STUDY)
    .values(version=STUDIES.c.version + 1)
    .returning(STUDIES.c.version)
)
"""Increments the version, which also locks the study."""
_EXPIRED: Final = (
    sa.delete(JOBS)
    .where(JOBS.c.study == OF_STUDY, JOBS.c.lease_until < _NOW)
    .returning(JOBS.c.trial, JOBS.c.attempt)
)
_RENEW: Final = (
    sa.update(JOBS)
    .where(MINE)
    .values(lease=sa.bindparam("seconds"), lease_until=_NOW + sa.bindparam("seconds"))
)
_REPORT: Final = (
    sa.update(JOBS)
    .where(MINE)
    .where(sa.or_(JOBS.c.step.is_(None), JOBS.c.step < sa.bindparam("reported")))
    .values(step=sa.bindparam("reported"), lease_until=_NOW + JOBS.c.lease)
)
_HOLDS: Final = sa.select(JOBS.c.trial).where(MINE)
_END: Final = sa.delete(JOBS).where(MINE)
_LEASE: Final = sa.insert(JOBS).values(lease_until=_NOW + sa.bindparam("seconds"))


class SqlStore:
    """The log of one study in a database."""

    def __init__(self, url: str, name: str) -> None:
        self.url = url
        self.name = name
        self._engine, self._process = self._connect()
        self._where = hide_password(url)
        self._study: int | None = None
        with writing(self._engine) as connection:
            prepare(connection, self._where)
            self._find(connection)

    def __reduce__(self) -> tuple[type[SqlStore], tuple[str, str]]:
        return SqlStore, (self.url, self.name)  # another process opens its own connections

    def begin(self, record: Record) -> Record:
        """Append ``study`` if the log is empty, and return record 1."""
        with writing(self.engine) as connection:
            alone(connection)
            if self._find(connection) is None:
                study = sa.insert(STUDIES).values(name=self.name, version=0, created=_NOW)
                number = connection.execute(study.returning(STUDIES.c.id)).scalar_one()
                self._append(connection, number, 0, [record])
        return self.load()[0]

    def load(self, after: int = 0) -> Sequence[Record]:
        """Return all records after the first `after`, in order, from one consistent read."""
        with reading(self.engine) as connection:
            if self._find(connection) is None:
                return []
            version = self._existing(connection.execute(_VERSION, self._study_key).scalar())
            return self._read(connection, after, version)

    def snapshot(self) -> StudySnapshot | None:
        """Return the newest state that was saved, or None."""
        query = sa.select(SNAPSHOTS.c.version, SNAPSHOTS.c.body, SNAPSHOTS.c.crc)
        with reading(self.engine) as connection:
            number = self._find(connection)
            row = connection.execute(query.where(SNAPSHOTS.c.study == number)).first()
        if row is None:
            return None
        state = _unseal(row.body, row.crc, row.version)
        if state is None:
            raise StoreError(f"snapshot {row.version} in {self._described} {_WRONG_CHECKSUM}")
        return StudySnapshot(row.version, state)

    def save(self, snapshot: StudySnapshot) -> None:
        """Save a state, unless a newer one is saved already."""
        body, crc = _seal(snapshot.state, snapshot.version)
        with writing(self.engine) as connection:
            self._lock(connection)
            saved = sa.select(SNAPSHOTS.c.version).where(SNAPSHOTS.c.study == self.study)
            if (connection.execute(saved).scalar() or 0) < snapshot.version:
                connection.execute(sa.delete(SNAPSHOTS).where(SNAPSHOTS.c.study == self.study))
                row = {"study": self.study, "version": snapshot.version, "body": body, "crc": crc}
                connection.execute(sa.insert(SNAPSHOTS).values(row))

    def append(self, record: Record) -> int:
        """Append a record that belongs to no job (``enqueued``, ``named``) and return its version."""
        with writing(self.engine) as connection:
            return self._append(connection, self.study, self._lock(connection), [record])

    def claim(self, owner: str, lease: float, *, after: int, decide: Decide) -> Sequence[Record]:
        """Append the record of `decide` and lease its job to `owner`; return all records after `after`."""
        with writing(self.engine) as connection:
            locked = connection.execute(_LOCKED_FOR_CLAIM, self._study_key).first()
            version = self._existing(None if locked is None else locked.version)
            if locked is not None and locked.expired:
                over = connection.execute(_EXPIRED, self._study_key).all()
                expired = [
                    {"kind": "expired", "trial": trial, "attempt": attempt} for trial, attempt in sorted(over)
                ]
                version = self._append(connection, self.study, version, expired)
            records = self._read(connection, after, version) if version != after else []
            record = decide(records)
            if record is None:
                return records
            if record["kind"] != "asked":
                self._append(connection, self.study, version, [record])
                return [*records, record]
            job = Claim(record["trial"], record["attempt"], owner)
            if self._at_once:
                body, crc = _seal(record)
                words = {**self._fence(job), "seconds": lease, "body": body, "crc": crc}
                connection.exec_driver_sql(postgres_statements.ADD_ASKED, words)
            else:
                self._append(connection, self.study, version, [record])
                lease_row = {"study": self.study, "trial": job.trial, "attempt": job.attempt, "owner": owner}
                connection.execute(_LEASE, {**lease_row, "lease": lease, "seconds": lease})
            return [*records, record]

    def commit(self, claim: Claim, record: Record) -> int:
        """Append ``reported`` or ``told`` if the claim is valid, and return the record's version.

        If this attempt has reported the step before, nothing is appended and 0 is returned, because a worker
        that lost its connection may repeat a report.
        """
        if record["kind"] == "told":
            return self._finish(claim, record)
        if self._at_once:
            version = self._write_at_once(postgres_statements.REPORT, claim, record, reported=record["step"])
            if version is None:
                self._still_holds(claim)
            return version or 0
        with writing(self.engine) as connection:
            version = self._existing(connection.execute(_NEXT_VERSION, self._study_key).scalar())
            fence = self._fence(claim)
            if connection.execute(_REPORT, {**fence, "reported": record["step"]}).rowcount:
                self._insert(connection, self.study, version - 1, [record])
                return version
            if connection.execute(_HOLDS, fence).first() is None:
                raise self._lease_lost_error(claim)
            connection.execute(_SET_VERSION, {**self._study_key, "last": version - 1})
            return 0

    def fail(self, claim: Claim, record: Record) -> int:
        """Append ``failed``, end the claim and return the record's version."""
        return self._finish(claim, record)

    def heartbeat(self, claims: Sequence[Claim], lease: float) -> Sequence[Claim]:
        """Renew leases to `lease` seconds from now and return the claims that are no longer valid."""
        with writing(self.engine) as connection:
            return [
                claim
                for claim in sorted(claims, key=lambda claim: claim.trial)  # a fixed order prevents deadlocks
                if not connection.execute(_RENEW, {**self._fence(claim), "seconds": lease}).rowcount
            ]

    def check(self, connection: sa.Connection, claim: Claim) -> None:
        """Exclude other writers, and raise `LeaseLost` if a claim is no longer valid."""
        self._lock(connection)
        if connection.execute(_HOLDS, self._fence(claim)).first() is None:
            raise self._lease_lost_error(claim)

    @property
    def engine(self) -> sa.Engine:
        """The engine of this process; a forked process does not share connections."""
        if self._process != os.getpid():
            self._engine, self._process = self._connect()
        return self._engine

    @property
    def _at_once(self) -> bool:
        """True if one statement may change several tables."""
        return self.engine.dialect.name == "postgresql"

    @property
    def study(self) -> int:
        """The number of the study in the database."""
        if self._study is None:
            with reading(self.engine) as connection:
                if self._find(connection) is None:
                    others = connection.execute(_NAMES).scalars()
                    names = ", ".join(map(repr, others)) or "none"
                    raise OptionError(f"{self._where} has no study {self.name!r}; it has {names}{_COPIED}")
        assert self._study is not None
        return self._study

    @property
    def _study_key(self) -> dict[str, Any]:
        return {"of_study": self.study}

    @property
    def _described(self) -> str:
        return f"study {self.name!r} of {self._where}"

    def _connect(self) -> tuple[sa.Engine, int]:
        """Return an engine that is closed together with this object, and the number of this process."""
        engine, process = connect(self.url), os.getpid()
        weakref.finalize(self, _close, engine, process)
        return engine, process

    def _find(self, connection: sa.Connection) -> int | None:
        """Look up and return the number of the study, or None if it does not exist."""
        if self._study is None:
            number = sa.select(STUDIES.c.id).where(STUDIES.c.name == self.name)
            self._study = connection.execute(number).scalar()
        return self._study

    def _lock(self, connection: sa.Connection) -> int:
        """Exclude all other writers of the study and return its version."""
        return self._existing(connection.execute(_LOCKED, self._study_key).scalar())

    def _existing(self, version: Any) -> int:
        if version is None:
            raise StoreError(f"{self._described} was removed")
        if not isinstance(version, int) or version < 0:  # SQLite stores any value in any column
            raise StoreError(f"{self._described} is damaged: {version!r} is not a number of records{_BACKUP}")
        return int(version)

    def _append(self, connection: sa.Connection, study: int, version: int, records: Sequence[Record]) -> int:
        """Write records after version `version`; return the version of the last one."""
        if not records:
            return version  # an expired lease may have been renewed while this process waited for the lock
        last = self._insert(connection, study, version, records)
        connection.execute(_SET_VERSION, {"of_study": study, "last": last})
        return last

    def _insert(self, connection: sa.Connection, study: int, version: int, records: Sequence[Record]) -> int:
        """Write records after version `version` without updating the study's version; return the last one."""
        rows = []
        for number, record in enumerate(records, version + 1):
            body, crc = _seal(record, number)
            rows.append({"study": study, "version": number, "body": body, "crc": crc})
        connection.execute(_ADD_RECORD, rows)
        return version + len(rows)

    def _read(self, connection: sa.Connection, after: int, version: int) -> list[Record]:
        """Return the records after the first `after`, up to this version."""
        if version < after:
            counts = f"has {version} records, and {after} were read before"
            raise StoreError(f"{self._described} {counts}: an older copy has replaced it")
        rows = iter(connection.execute(_NEW_RECORDS, {**self._study_key, "after": after}).all())
        records: list[Record] = []
        for number in range(after + 1, version + 1):
            row = next(rows, None)
            if row is None or row.version != number:
                raise self._damage_error(number, "is missing", records)
            record = _unseal(row.body, row.crc, number)
            if record is None:
                raise self._damage_error(number, _WRONG_CHECKSUM, records)
            records.append(record)
        if (row := next(rows, None)) is not None:
            raise StoreError(f"record {row.version} of {self._described} is one too many")
        return records

    def _damage_error(self, number: int, problem: str, records: Sequence[Record]) -> DamagedLogError:
        copy = f", or copy the {number - 1} records before it with onlineauto.tune.copy_study"
        remedy = f"; restore a backup{copy}" if number > 1 else f"; it has the settings{_BACKUP}"
        return DamagedLogError(f"record {number} of {self._described} {problem}{remedy}", records)

    def _write_at_once(self, statement: str, claim: Claim, record: Record, **words: Any) -> int | None:
        """Run a statement as a separate transaction; return the version of its record, if any."""
        body, crc = _seal(record)
        words |= {**self._fence(claim), "body": body, "crc": crc}
        with each_alone(self.engine) as connection:
            version: int | None = connection.exec_driver_sql(statement, words).scalar()
            return version

    def _still_holds(self, claim: Claim) -> None:
        with writing(self.engine) as connection:
            self.check(connection, claim)

    def _finish(self, claim: Claim, record: Record) -> int:
        if self._at_once:
            ended = self._write_at_once(postgres_statements.END, claim, record)
            if ended is None:
                self._still_holds(claim)  # raises the specific error
                raise self._lease_lost_error(claim)
            return ended
        with writing(self.engine) as connection:
            version = self._existing(connection.execute(_NEXT_VERSION, self._study_key).scalar())
            if not connection.execute(_END, self._fence(claim)).rowcount:
                raise self._lease_lost_error(claim)
            self._insert(connection, self.study, version - 1, [record])
            return version

    def _fence(self, claim: Claim) -> dict[str, Any]:
        return {
            "of_study": self.study,
            "of_trial": claim.trial,
            "of_attempt": claim.attempt,
            "of_owner": claim.owner,
        }

    def _lease_lost_error(self, claim: Claim) -> LeaseLost:
        job = f"trial {claim.trial}, attempt {claim.attempt}"
        return LeaseLost(f"{job} is not {claim.owner}'s any more in {self._described}")


def _seal(value: Mapping[str, Any], version: int = 0) -> tuple[str, int]:
    """Return a JSON object as text, and its checksum plus its version, which detects swapped records.

    >>> _seal({"kind": "told"}, 3)
    ('{"kind":"told"}', 2043669275)
    """
    text = json.dumps(value, separators=(",", ":"))
    return text, zlib.crc32(text.encode()) + version


def _unseal(text: object, crc: object, version: int) -> dict[str, Any] | None:
    """Return the JSON object that was sealed, or None if it is damaged."""
    if isinstance(text, str) and zlib.crc32(text.encode(errors="replace")) + version == crc:
        value = json.loads(text)
        if isinstance(value, dict):
            return value
    return None


def _close(engine: sa.Engine, process: int) -> None:
    """Close the connections of an engine; after a fork, leave those of the parent open."""
    engine.dispose(close=os.getpid() == process)


def names_of_studies(url: str) -> list[str]:
    """Return the names of all studies of a store, in order."""
    if (file := missing_file(url)) is not None:
        raise OptionError(f"there is no file {file}, so no study; onlineauto tune creates it")
    engine = connect(url)
    try:
        with writing(engine) as connection:
            prepare(connection, hide_password(url))
            return list(connection.execute(_NAMES).scalars())
    finally:
        engine.dispose()
