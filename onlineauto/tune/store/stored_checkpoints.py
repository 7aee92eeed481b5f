"""``StoredCheckpoints``: checkpoints that outlive a process, for a study in a database.

A checkpoint is written to a temporary file, synced, renamed and hashed. Only then the database records it, in
the transaction that checks the claim of the trial, so every checkpoint in the database is complete. If a
checkpoint is damaged later, its hash does not match: a warning names it, and the previous one is used.
"""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from onlineauto.errors import StoreError
from onlineauto.formats.sources.replaced_file import replacing
from onlineauto.tune.store.checkpoints import Checkpoint
from onlineauto.tune.store.connection import reading, writing
from onlineauto.tune.store.protocol import LeaseLost
from onlineauto.tune.store.schema import CHECKPOINTS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from onlineauto.tune.store.protocol import Claim
    from onlineauto.tune.store.sql_store import SqlStore

_LOG: Final = logging.getLogger("onlineauto")
_AT_ONCE: Final = 500
"""Maximum number of trials whose checkpoints one statement removes."""
_RETAINED: Final = 2
"""Number of checkpoints retained per attempt: the last one, and its predecessor in case of damage."""


class StoredCheckpoints:
    """Checkpoints of a study in a database: in files that the database lists, or in the database itself."""

    def __init__(self, store: SqlStore, folder: str | Path | None = None) -> None:
        self._store = store
        self._folder = _default_folder(store) if folder is None else Path(folder)

    def keep(self, claim: Claim, job: str, step: int, saved: bytes, needed: Collection[int] = ()) -> None:
        """Write a state, sync it, and record it in the database.

        The last two checkpoints of an attempt are retained, and those at steps in `needed`.
        """
        path = self._write(claim, step, saved)
        try:
            forgotten = self._name(claim, job, step, saved, path, needed)
        except LeaseLost:
            if path is not None:
                path.unlink(missing_ok=True)
            raise
        self._unlink(forgotten)

    def remove(self, trials: Collection[int]) -> None:
        """Remove all checkpoints of some trials."""
        table, ordered = CHECKPOINTS, sorted(trials)
        files: list[str | None] = []
        for begin in range(0, len(ordered), _AT_ONCE):
            some = ordered[begin : begin + _AT_ONCE]
            condition = sa.and_(table.c.study == self._store.study, table.c.trial.in_(some))
            with writing(self._store.engine) as connection:
                files += connection.execute(
                    sa.delete(table).where(condition).returning(table.c.file)
                ).scalars()
        self._unlink(files)

    def _unlink(self, files: Iterable[str | None]) -> None:
        for file in files:
            if self._folder is not None and file is not None:
                (self._folder / file).unlink(missing_ok=True)

    def newest(self, trial: int, *, most: int, job: str | None = None) -> Checkpoint | None:
        """Return the undamaged checkpoint with the most steps; log a warning for each damaged one."""
        table = CHECKPOINTS
        query = sa.select(table).where(
            table.c.study == self._store.study, table.c.trial == trial, table.c.step <= most
        )
        if job is not None:
            query = query.where(table.c.job == job)
        with reading(self._store.engine) as connection:
            rows = connection.execute(query.order_by(table.c.step.desc(), table.c.attempt.desc())).all()
        for row in rows:
            try:
                return Checkpoint(row.step, row.attempt, self._read(row))
            except StoreError as error:
                _LOG.warning("%s; the one before it is used", error)
        return None

    def _write(self, claim: Claim, step: int, saved: bytes) -> Path | None:
        """Write the checkpoint to a file and return its path; None if the database stores checkpoints."""
        if self._folder is None:
            return None
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{self._store.study}-{claim.trial}-{claim.attempt}-{step}.checkpoint"
        with replacing(path) as file:
            file.write(saved)
        return path

    def _name(
        self, claim: Claim, job: str, step: int, saved: bytes, path: Path | None, needed: Collection[int]
    ) -> list[str | None]:
        """Commit a checkpoint if the claim is valid; return the files that are no longer needed."""
        table = CHECKPOINTS
        key = {"study": self._store.study, "trial": claim.trial, "attempt": claim.attempt}
        attempt = sa.and_(*(table.c[name] == value for name, value in key.items()))
        row = {
            **key,
            "step": step,
            "job": job,
            "file": None if path is None else path.name,
            "content": saved if path is None else None,
            "sha256": hashlib.sha256(saved).hexdigest(),
        }
        with writing(self._store.engine) as connection:
            self._store.check(connection, claim)
            connection.execute(sa.delete(table).where(attempt, table.c.step == step))
            earlier = connection.execute(
                sa.select(table.c.step, table.c.file).where(attempt).order_by(table.c.step.desc())
            ).all()
            old = [row for row in earlier[_RETAINED - 1 :] if row.step not in needed]
            connection.execute(sa.delete(table).where(attempt, table.c.step.in_([row.step for row in old])))
            connection.execute(sa.insert(table).values(row))
        return [row.file for row in old]

    def _read(self, row: Any) -> bytes:
        """Return the content of a row, from its file or from the database."""
        content, name = row.content, f"{row.step} steps of trial {row.trial}, attempt {row.attempt}"
        if content is None:
            if self._folder is None:
                raise StoreError(f"the checkpoint of {name} is a file, and its folder was not named")
            name = str(self._folder / row.file)
            try:
                content = Path(name).read_bytes()
            except OSError as error:
                raise StoreError(f"the checkpoint {name} cannot be read: {error.strerror}") from error
        if hashlib.sha256(content).hexdigest() != row.sha256:
            raise StoreError(f"the checkpoint {name} is damaged: it has not the hash it was written with")
        return bytes(content)


def _default_folder(store: SqlStore) -> Path | None:
    database = store.engine.url.database
    if store.engine.dialect.name != "sqlite" or database is None:
        return None
    return Path(f"{Path(database).resolve()}.checkpoints")
