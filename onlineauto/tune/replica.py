"""``Replica``: the state of a study in this process, which follows the log in a store.

A record is checked before it is committed. If a record of the log cannot be applied later, it is *skipped*:
it is counted, reported once with its position, and everything after it is applied. If an error leaves a
record half applied, the state is read again from the last snapshot and the log. The record is then tried once
more before it is skipped.
"""

from __future__ import annotations

import json
import logging
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from onlineauto.errors import StoreError, UnreachableError
from onlineauto.tune.record_checks import UnfitRecord
from onlineauto.tune.store import Claim, StudySnapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from onlineauto.tune.progress import Progress
    from onlineauto.tune.settings import StudySettings
    from onlineauto.tune.store import Record, Store

_LOG: Final = logging.getLogger("onlineauto")
_SNAPSHOT_AFTER: Final = 1000
"""A snapshot is saved once the log has grown by this number of records and by a quarter since the last."""


class _HalfAppliedError(Exception):
    """A record raised an error while it was applied."""


class Replica:
    """The state of a study, as far as this process has read its log. Not thread-safe."""

    def __init__(self, store: Store, settings: StudySettings, name: str) -> None:
        self._store, self._settings, self._name = store, settings, name
        self._progress: Progress | None = None
        self._saved = 0
        self._errors: dict[int, str] = {}  # by version: the error of a record that was half applied
        self._unfit: dict[int, str] = {}  # by version: the reason to skip a record
        self._reported: set[int] = set()
        self._reasons: set[str] = set()

    @property
    def progress(self) -> Progress:
        """The state; at first and after an error, it is read from the newest snapshot and the log."""
        while self._progress is None:
            progress = self._snapshot_state()
            try:
                self._apply_all(progress, self._store.load(progress.version))
            except _HalfAppliedError:
                continue
            self._progress = progress
        return self._progress

    def _snapshot_state(self) -> Progress:
        """Return the state of the newest snapshot; that of no record if there is none, or it is damaged."""
        progress = self._settings.progress()
        try:
            snapshot = self._store.snapshot()
            if snapshot is not None:
                progress.load_state_dict(snapshot.state)
                if progress.version != snapshot.version:
                    raise StoreError(f"it has the state of version {progress.version}")
                self._saved = snapshot.version
                self._report(progress)
        except UnreachableError:
            raise
        except Exception as error:  # whatever is wrong with it, the log has all that it had
            message = "the snapshot of study %r is not used, and its log is read instead: %s: %s"
            _LOG.warning(message, self._name, type(error).__name__, error)
            return self._settings.progress()
        return progress

    def follow(self, record: Record, version: int) -> None:
        """Apply a record that was written as this version; version 0 means that the store had it before."""
        progress = self.progress
        if version == progress.version + 1:
            self._advance([record])
        elif version > progress.version or version == 0:
            self.refresh()

    def refresh(self) -> None:
        """Apply the records of other processes."""
        self._advance(self._store.load(self.progress.version))

    def leads_to_job(self, record: Record) -> bool:
        """Return whether a record would lead to a job; the record is applied to a copy of the state."""
        copy = self._settings.progress()
        copy.load_state_dict(json.loads(json.dumps(self.progress.state_dict())))
        copy.apply(record)
        decided = copy.decide("")
        return decided is not None and decided["kind"] == "asked"

    def claim(self, owner: str, lease: float) -> Record | None:
        """Claim the next job and return its record; None if there is no job now."""
        while True:
            record = self._append_decision(owner, lease, lambda progress: progress.decide(owner))
            if record is not None and record["kind"] == "failed":
                continue  # this trial lost each of its processes; there may be another job
            if (record is None or record["kind"] == "idle") and self._end_unfinished(lease):
                continue
            return record if record is not None and record["kind"] == "asked" else None

    def reclaim(self, decide: Callable[[Progress], Record | None], owner: str, lease: float) -> Record | None:
        """Record expired leases, then append the record that a function decides on, and return it."""
        return self._append_decision(owner, lease, decide)

    def _append_decision(
        self, owner: str, lease: float, decide: Callable[[Progress], Record | None]
    ) -> Record | None:
        """Append and apply the record that a function decides on, and return it."""
        while True:
            progress, decision = self.progress, None
            after = progress.version
            self._progress = None  # if this fails half-way, the state is read again

            def decided(new: Sequence[Record], progress: Progress = progress) -> Record | None:
                nonlocal decision
                self._apply_all(progress, new)
                decision = decide(progress)
                return decision

            try:
                records = self._store.claim(owner, lease, after=after, decide=decided)
                self._apply_all(progress, records[progress.version - after :])
            except _HalfAppliedError:
                if self.progress.version > after and decision is not None:
                    return decision  # it is committed, and was applied again
                continue
            self._progress = progress
            self._save()
            return decision

    def _end_unfinished(self, lease: float) -> bool:
        """End jobs whose last record was skipped; return whether there were any."""
        ended = False
        for trial, (attempt, owner) in self.progress.unfinished.items():
            claim = Claim(trial, attempt, owner)
            if claim in self._store.heartbeat([claim], lease):  # no process has this job
                record = self.progress.end_unfinished(trial)
                self.follow(record, self._store.append(record))
                ended = True
        return ended

    def _advance(self, records: Sequence[Record]) -> None:
        progress = self.progress
        self._progress = None
        try:
            self._apply_all(progress, records)
        except _HalfAppliedError:
            return  # the state is read again when it is needed
        self._progress = progress

    def _apply_all(self, progress: Progress, records: Sequence[Record]) -> None:
        """Apply records, or skip those that do not fit."""
        for record in records:
            version = progress.version + 1
            if version in self._unfit:
                progress.skip(record, self._unfit[version])
            else:
                try:
                    progress.apply(record)
                except UnfitRecord as error:
                    progress.skip(record, str(error))
                except Exception as error:
                    reason = f"{type(error).__name__}: {error}"
                    _LOG.debug("record %d raised an error", version, exc_info=True)
                    (self._unfit if version in self._errors else self._errors)[version] = reason
                    raise _HalfAppliedError from error
        self._report(progress)

    def _report(self, progress: Progress) -> None:
        """Log a warning for each record that was skipped, and for each reason."""
        new = list(takewhile(lambda record: record.version not in self._reported, reversed(progress.skipped)))
        for skipped in reversed(new):
            self._reported.add(skipped.version)
            message = "record %d of study %r (%s) cannot be applied, and is skipped: %s"
            level = logging.DEBUG if skipped.why in self._reasons else logging.WARNING
            self._reasons.add(skipped.why)
            _LOG.log(level, message, skipped.version, self._name, skipped.kind, skipped.why)

    def _save(self) -> None:
        """Save a snapshot if the log has grown enough since the last one."""
        progress = self._progress
        if progress is not None and progress.version - self._saved >= max(
            _SNAPSHOT_AFTER, progress.version // 4
        ):
            self._store.save(StudySnapshot(progress.version, progress.state_dict()))
            self._saved = progress.version
