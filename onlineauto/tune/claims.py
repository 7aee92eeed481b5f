"""``Claims``: the jobs of one process in a study: claim them, report and tell their values, release them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from onlineauto.errors import OptionError, kind_of
from onlineauto.tune.plain import as_json, count, number
from onlineauto.tune.store import LeaseLost
from onlineauto.tune.trial import Job
from onlineauto.tune.workers.heartbeat import Heartbeat
from onlineauto.tune.workers.jobs import claim_of
from onlineauto.tune.workers.owners import new_owner

if TYPE_CHECKING:
    from collections.abc import Callable

    from onlineauto.tune.replica import Replica
    from onlineauto.tune.schedulers import Decision
    from onlineauto.tune.searchers.outcome import Outcome
    from onlineauto.tune.store import Claim, Record, Store

_NOTHING: Final[Mapping[str, Any]] = {}
_PAUSES: Final = 0.02, 1.0
"""Seconds between two reads of the store while `wait` waits: at first, and at most."""


class Claims:
    """The jobs of one process. Not thread-safe, except for the heartbeat."""

    def __init__(self, store: Store, replica: Replica, lease: float) -> None:
        self._store, self._replica, self.lease = store, replica, lease
        self.owner = new_owner()
        self.heartbeat = Heartbeat(store, lease)
        self._empty_at = -1  # the version at which there was no job

    def ask(self) -> Job | None:
        """Claim the next job and return it; None if there is no job now."""
        job = self._job(self._replica.claim(self.owner, self.lease))
        if job is None:
            self._empty_at = self._replica.progress.version
        return job

    @property
    def found_no_job(self) -> bool:
        """True if the last request found no job and the study has not changed since."""
        return self._empty_at == self._replica.progress.version

    def _job(self, asked: Record | None) -> Job | None:
        """Return the job of a record, and renew its lease from now on."""
        if asked is None:
            return None
        progress = self._replica.progress
        job = Job.of(asked, progress.version, progress.goes_on_behind(asked["trial"]))
        self.heartbeat.add(claim_of(job))
        return job

    def changes(self) -> bool:
        """Record expired leases; return whether the study has changed since there was no job."""
        self._replica.reclaim(lambda progress: None, self.owner, self.lease)  # noqa: ARG005
        progress = self._replica.progress
        return progress.version > self._empty_at or progress.is_done

    def report(
        self,
        job: Job,
        step: Any,
        value: Any,
        details: Mapping[str, Any] | None,
        suggested: Mapping[str, Any] = _NOTHING,
    ) -> Decision:
        """Commit an intermediate value and return whether the job continues.

        `suggested` has the config that the objective has suggested, if it is not the proposed one, and the
        parameters that it has declared.
        """
        at = count("step", step, 0)
        record = {"kind": "reported", **_key(job), "step": at, "value": number(value), **_details(details)}
        record |= suggested
        try:
            version = self._store.commit(claim_of(job), record)
        except LeaseLost:
            self.heartbeat.drop(claim_of(job))
            raise
        self._replica.follow(record, version)
        return self._replica.progress.decision(job.trial)

    def tell(
        self,
        job: Job,
        outcome: Outcome,
        details: Mapping[str, Any] | None,
        suggested: Mapping[str, Any] = _NOTHING,
        *,
        resource: int | None = None,
    ) -> None:
        """Commit the outcome of a job; by default at the resource that its last report has reached."""
        if claim_of(job).owner != self.owner:  # another process may have reported where the job stopped
            self._replica.refresh()
        resource = self._replica.progress.resource_at_end(job) if resource is None else resource
        record = {"kind": "told", **_key(job), "resource": resource, **outcome.record(), **_details(details)}
        self._end(job, {**record, **suggested}, self._store.commit)

    def fail(self, job: Job, why: str, suggested: Mapping[str, Any] = _NOTHING, *, final: bool) -> None:
        """Commit that a job failed."""
        traceback = getattr(why, "traceback", "")
        record = {"kind": "failed", **_key(job), "why": str(why), "final": final, **suggested}
        self._end(job, record | ({"traceback": traceback} if traceback else {}), self._store.fail)

    def release(self, job: Job, *, early: bool) -> None:
        """Commit that a job waits for its next claim; `early` if it has not begun."""
        record = {"kind": "released", **_key(job)} | ({"early": True} if early else {})
        self._commit(job, record, self._store.fail)

    def _end(self, job: Job, record: Record, commit: Callable[[Claim, Record], int]) -> None:
        """Commit the end of a job; if its lease has expired and the job has no new owner, claim it first."""
        try:
            self._commit(job, record, commit)
        except LeaseLost:
            next_job = self._job(
                self._replica.reclaim(
                    lambda progress: progress.reclaimed(job, self.owner), self.owner, self.lease
                )
            )
            if next_job is None:
                raise
            self._commit(next_job, {**record, **_key(next_job)}, commit)

    def _commit(self, job: Job, record: Record, commit: Callable[[Claim, Record], int]) -> None:
        claim = claim_of(job)
        try:
            version = commit(claim, record)
        finally:
            self.heartbeat.drop(claim)
        self._replica.follow(record, version)


def pauses(timeout: float | None) -> Any:
    """Yield at once and then after growing pauses, until the timeout."""
    yield
    end = None if timeout is None else time.monotonic() + timeout
    pause = _PAUSES[0]
    while end is None or time.monotonic() < end:
        time.sleep(pause if end is None else max(min(pause, end - time.monotonic()), 0))
        pause = min(2 * pause, _PAUSES[1])
        yield


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
