"""``Replica``: the state of a study in this process, which follows the log of a store, and its claimed jobs.

A record is checked before it is committed. If a record of the log cannot be applied later, it is *skipped*:
it is counted, reported once with its position, and everything after it is applied. If an error leaves a
record half applied, the state is read again from the last snapshot and the log. The record is then tried once
more before it is skipped.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from itertools import chain, repeat, takewhile
from math import inf
from threading import RLock
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from onlineauto.errors import OptionError, StoreError, UnreachableError, kind_of, short_repr
from onlineauto.tune.leases import Heartbeat, new_owner
from onlineauto.tune.plain import as_json, count
from onlineauto.tune.record_checks import UnfitRecord
from onlineauto.tune.schedulers import ResumeFrom
from onlineauto.tune.schedulers.scheduler import UNKNOWN, Available
from onlineauto.tune.searchers.outcome import Outcome, first_number
from onlineauto.tune.store import Claim, LeaseLost, StudySnapshot
from onlineauto.tune.trial import Job, claim_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from onlineauto.tune.progress import Draft, Progress
    from onlineauto.tune.schedulers import Decision
    from onlineauto.tune.settings import StudySettings
    from onlineauto.tune.store import Record, Store

_LOG: Final = logging.getLogger("onlineauto")
_SNAPSHOT_AFTER: Final = 1000
"""A snapshot is saved once the log has grown by this number of records and by a quarter since the last."""
_SLOW: Final = 0.02
"""Seconds of a proposal from which on the next one is made while the log is not locked."""
_MOST_DRAFTS: Final = 3
"""Number of proposals that other trials may take before one is made while the log is locked."""
_NOTHING: Final[Mapping[str, Any]] = {}


class _HalfAppliedError(Exception):
    """A record raised an error while it was applied."""


class Replica:
    """The state of a study as far as this process has read its log, and the jobs that it has claimed.

    The calls about jobs, and `progress`, may come from several threads. All others need the `lock`.
    """

    def __init__(self, store: Store, settings: StudySettings, name: str, lease: float = inf) -> None:
        self.store, self.settings, self.name, self.lease = store, settings, name, lease
        self.lock = RLock()
        self.heartbeat = Heartbeat(store, lease)
        self._owner = new_owner()
        self._empty_at = -1  # the version at which there was no job
        self._progress: Progress | None = None
        self._saved = 0
        self._errors: dict[int, str] = {}  # by version: the error of a record that was half applied
        self._unfit: dict[int, str] = {}  # by version: the reason to skip a record
        self._reported: set[int] = set()
        self._reasons: set[str] = set()
        self._is_shared = False  # whether another process has claimed a job since this one claimed its first
        self._has_claimed = False
        self._drafting = 0  # number of threads that make a proposal
        self._n_drafts = 0

    @property
    def progress(self) -> Progress:
        """The state; at first and after an error, it is read from the newest snapshot and the log."""
        with self.lock:
            while self._progress is None:
                progress = self._snapshot_state()
                try:
                    self._apply_all(progress, self.store.load(progress.version))
                except _HalfAppliedError:
                    continue
                self._progress = progress
            return self._progress

    def _snapshot_state(self) -> Progress:
        """Return the state of the newest snapshot; that of no record if there is none, or it is damaged."""
        progress = self.settings.progress()
        try:
            snapshot = self.store.snapshot()
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
            _LOG.warning(message, self.name, type(error).__name__, error)
            return self.settings.progress()
        return progress

    def append(self, record: Record) -> None:
        """Append a record that belongs to no job."""
        self._follow(record, self.store.append(record))

    def note(self, noted: Mapping[str, Any], trial: int | None = None) -> None:
        """Append attributes, or the names of objectives, of the study or of a trial."""
        attributes = as_json(noted.get("user_attrs", {}), "user_attrs")
        with self.lock:
            self.append({"kind": "noted", **noted, "trial": trial, "user_attrs": attributes})

    def _follow(self, record: Record, version: int) -> None:
        """Apply a record that was written as this version; version 0 means that the store had it before."""
        progress = self.progress
        if version == progress.version + 1:
            self._advance([record])
        elif version > progress.version or version == 0:
            self.refresh()

    def refresh(self) -> None:
        """Apply the records of other processes."""
        self._advance(self.store.load(self.progress.version))

    def leads_to_job(self, record: Record) -> bool:
        """Return whether a record would lead to a job; the record is applied to a copy of the state."""
        copy = self.settings.progress()
        copy.load_state_dict(json.loads(json.dumps(self.progress.state_dict())))
        copy.apply(record)
        decided = copy.decide("")
        return decided is not None and decided["kind"] == "asked"

    @property
    def is_slow(self) -> bool:
        """True if proposals are made before the log is locked."""
        with self.lock:
            return self.progress.searcher.seconds >= _SLOW

    def draft(self) -> Draft | None:
        """Make the next proposal without a lock if proposals are slow and there may be one.

        If other processes or threads may propose at the same time, the proposal uses random numbers of its
        own. Otherwise, it is the same as under the lock.
        """
        with self.lock:
            if not self.is_slow:
                return None
            self.refresh()
            if self.found_no_job or self.progress.has_waiting:
                return None
            is_alone = not self._is_shared and not self._drafting
            branch = 0 if is_alone else (crc32(self._owner.encode()) << 32) + self._n_drafts
            propose = self.progress.draft(self.settings.progress(), branch)
            self._n_drafts += 1
            self._drafting += 1
        draft = None
        try:
            draft = propose()
        finally:
            with self.lock:
                self._drafting -= 1
                if draft is not None:
                    self.progress.searcher.seconds = draft.seconds
        return draft

    @property
    def is_done(self) -> bool:
        """True if no job is running, and there will never be another job."""
        with self.lock:
            return self.progress.is_done

    def ask(self, available: Available = UNKNOWN, drafts: Sequence[Draft | None] = ()) -> Job | None:
        """Claim the next job and return it; None if there is no job now. `drafts` were made for it before."""
        attempts = chain(drafts, (self.draft() for _ in range(_MOST_DRAFTS)), repeat(None))
        is_idle = False
        while True:
            draft = next(attempts)

            def decide(progress: Progress, draft: Draft | None = draft) -> Record | None:
                is_taken = draft is not None and draft.is_taken(progress)
                return None if is_taken else progress.decide(self._owner, draft, available)

            with self.lock:
                record = self._append_decision(decide)
                if record is not None and record["kind"] == "asked":
                    return self._job(record)
                if record is not None and record["kind"] == "failed":
                    continue  # this trial lost each of its processes; there may be another job
                if record is not None and self.progress.has_waiting and not is_idle:
                    is_idle = True
                    continue  # the scheduler left the waiting trials for a new one, which there is not
                if record is None and draft is not None and draft.is_taken(self.progress):
                    continue
                if not self._end_unfinished():
                    self._empty_at = self.progress.version
                    return None

    @property
    def found_no_job(self) -> bool:
        """True if the last request found no job and the study has not changed since."""
        return self._empty_at == self.progress.version

    def changes(self) -> bool:
        """Record expired leases; return whether the study has changed since there was no job."""
        with self.lock:
            self._append_decision(lambda _: None)
            return self.progress.version > self._empty_at or self.progress.is_done

    def report(
        self,
        job: Job,
        step: Any,
        value: Any,
        details: Mapping[str, Any] | None = None,
        suggested: Mapping[str, Any] = _NOTHING,
    ) -> Decision:
        """Commit an intermediate value and return whether the job continues.

        `suggested` has the config that the objective has suggested, if it is not the proposed one, and the
        parameters that it has declared.
        """
        with self.lock:
            reported = {"step": count("step", step, 0), "value": first_number(value)}
            record = {"kind": "reported", **_key(job), **reported, **_details(details), **suggested}
            try:
                version = self.store.commit(claim_of(job), record)
            except LeaseLost:
                self.heartbeat.drop(claim_of(job))
                raise
            self._follow(record, version)
            return self.progress.decision(job.trial)

    def tell(self, job: Job, value: Any, details: Mapping[str, Any] | None = None) -> None:
        """Commit the result of a job; NaN, or a value that is not a number, fails the trial finally."""
        with self.lock:
            outcome = Outcome.of(value, [*self.progress.objectives])
            if outcome.has_nan:
                self.fail(job, f"the value is {short_repr(value)}, which is not a number", final=True)
            else:
                self.tell_outcome(job, outcome, details)

    def tell_outcome(
        self,
        job: Job,
        outcome: Outcome,
        details: Mapping[str, Any] | None = None,
        suggested: Mapping[str, Any] = _NOTHING,
        *,
        resource: int | None = None,
    ) -> None:
        """Commit the outcome of a job; by default at the resource that its last report has reached."""
        with self.lock:
            if claim_of(job).owner != self._owner:  # another process may have reported where the job stopped
                self.refresh()
            resource = self.progress.resource_at_end(job) if resource is None else resource
            record = {"kind": "told", **_key(job), "resource": resource, **outcome.record()}
            self._end(job, {**record, **_details(details), **suggested}, self.store.commit)

    def fail(
        self, job: Job, why: str, suggested: Mapping[str, Any] = _NOTHING, *, final: bool = False
    ) -> None:
        """Commit that a job failed."""
        with self.lock:
            traceback = getattr(why, "traceback", "")
            record = {"kind": "failed", **_key(job), "why": str(why), "final": final, **suggested}
            self._end(job, record | ({"traceback": traceback} if traceback else {}), self.store.fail)

    def release(self, job: Job, *, early: bool = False) -> None:
        """Commit that a job waits for its next claim; `early` if it has not begun."""
        with self.lock:
            record = {"kind": "released", **_key(job)} | ({"early": True} if early else {})
            self._commit(job, record, self.store.fail)

    def known_value(self, job: Job) -> dict[str, Any] | None:
        """Return the result of the trial that a job resumes; None if it resumes none."""
        with self.lock:
            trial = self.progress.trials[job.trial]
            if job.resume_from is None or job.resume_from.trial != job.trial or trial.value is None:
                return None
            return {"value": trial.value, "constraints": trial.constraints}

    def records(self, after: int = 0, until: int | None = None) -> list[Record]:
        """Return the records of the log between two versions, without those that cannot be applied."""
        with self.lock:
            skipped = {record.version for record in self.progress.skipped}
            records = self.store.load(after)[: None if until is None else until - after]
            return [record for version, record in enumerate(records, after + 1) if version not in skipped]

    def history(self, job: Job) -> list[dict[str, Any]]:
        """Return a row for each value that was reported before the claim of a job."""
        return rows(self.records(until=job.version))

    def needed(self, trial: int) -> set[int]:
        """Return the resources at which a trial's checkpoints are needed, in addition to the newest ones."""
        with self.lock:
            return self.progress.needed(trial)

    def disposable(self) -> list[int]:
        """Return the trials, each once, that ended early and whose checkpoints no job needs."""
        with self.lock:
            return self.progress.disposable()

    def _job(self, asked: Record) -> Job:
        """Return the job of a record, and renew its lease from now on."""
        progress, trial, origin = self.progress, asked["trial"], asked["resume_from"]
        job = Job(
            trial,
            dict(asked["config"]),
            asked["resource"],
            None if origin is None else ResumeFrom(*origin),
            asked["attempt"],
            asked["owner"],
            progress.version - 1,
            progress.completed_step(trial),
        )
        self.heartbeat.add(claim_of(job))
        self._has_claimed = True
        return job

    def _end(self, job: Job, record: Record, commit: Callable[[Claim, Record], int]) -> None:
        """Commit the end of a job; if its lease has expired and the job has no new owner, claim it first."""
        try:
            self._commit(job, record, commit)
        except LeaseLost:
            asked = self._append_decision(lambda progress: progress.reclaimed(job, self._owner))
            if asked is None:
                raise
            next_job = self._job(asked)
            self._commit(next_job, {**record, **_key(next_job)}, commit)

    def _commit(self, job: Job, record: Record, commit: Callable[[Claim, Record], int]) -> None:
        claim = claim_of(job)
        try:
            version = commit(claim, record)
        finally:
            self.heartbeat.drop(claim)
        self._follow(record, version)

    def _append_decision(self, decide: Callable[[Progress], Record | None]) -> Record | None:
        """Record expired leases, then append, apply and return the record that a function decides on."""
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
                records = self.store.claim(self._owner, self.lease, after=after, decide=decided)
                self._apply_all(progress, records[progress.version - after :])
            except _HalfAppliedError:
                if self.progress.version > after and decision is not None:
                    return decision  # it is committed, and was applied again
                continue
            self._progress = progress
            self._save(progress)
            return decision

    def _end_unfinished(self) -> bool:
        """End jobs whose last record was skipped; return whether there were any."""
        ended = False
        for trial, (attempt, owner) in self.progress.unfinished.items():
            claim = Claim(trial, attempt, owner)
            if claim in self.store.heartbeat([claim], self.lease):  # no process has this job
                self.append(self.progress.end_unfinished(trial))
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
            if self._has_claimed and record.get("kind") == "asked" and record.get("owner") != self._owner:
                self._is_shared = True
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
            _LOG.log(level, message, skipped.version, self.name, skipped.kind, skipped.why)

    def _save(self, progress: Progress) -> None:
        """Save a snapshot if the log has grown enough since the last one."""
        if progress.version - self._saved >= max(_SNAPSHOT_AFTER, progress.version // 4):
            self.store.save(StudySnapshot(progress.version, progress.state_dict()))
            self._saved = progress.version


def rows(
    records: Sequence[Record],
    *,
    configs: dict[int, Mapping[str, Any]] | None = None,
    lists: bool = False,
) -> list[dict[str, Any]]:
    """Return a row for each value that was reported, intermediate or final, in order."""
    configs = {} if configs is None else configs
    configs |= {record["trial"]: record["config"] for record in records if record["kind"] == "asked"}
    configs |= {
        record["trial"]: record["suggested"]["config"] for record in records if record.get("suggested")
    }
    return [
        {
            "trial": record["trial"],
            "attempt": record["attempt"],
            "resource": record["resource"] if record["kind"] == "told" else record["step"],
            "value": record["value"],
            "told": record["kind"] == "told",
            **{f"value_{name}": value for name, value in record.get("values", {}).items()},
            **{f"constraint_{name}": value for name, value in record.get("constraints", {}).items()},
            **{f"config_{name}": value for name, value in configs[record["trial"]].items()},
            **{
                name: detail
                for name, detail in record.get("details", {}).items()
                if lists or not isinstance(detail, list)
            },
        }
        for record in records
        if record["kind"] in ("told", "reported") and record["trial"] in configs
    ]


def _key(job: Job) -> dict[str, int]:
    claim = claim_of(job)
    return {"trial": claim.trial, "attempt": claim.attempt}


def _details(details: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the part of a record that contains the details of a value."""
    if details is None:
        return {}
    if not isinstance(details, Mapping):
        raise OptionError(f"details are {kind_of(details)}: give a mapping, as in {{'epoch': 3}}")
    return {"details": as_json(details, "a value's details")} if details else {}
