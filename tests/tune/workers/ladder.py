"""A small study for tests of workers: every trial climbs the same resources, each from its checkpoint."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from onlineauto.tune.store.protocol import Claim
from onlineauto.tune.trial import Job

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from onlineauto.tune.store.protocol import Record, Store


class Ladder:
    """Hands out trials 0, 1, 2, …, each to one resource after the other.

    Parameters
    ----------
    store : Store
        Where the log is.
    owner : str
        Who asks.
    configs : sequence of dict
        One for each trial.
    resources : sequence of int
        Where a trial is paused, and at last ends.
    lease : float
        Seconds.
    stop_above : float, optional
        A reported value above it stops the job.
    """

    def __init__(
        self,
        store: Store,
        owner: str,
        *,
        configs: Sequence[Mapping[str, Any]],
        resources: Sequence[int] = (3,),
        lease: float = 60,
        stop_above: float | None = None,
    ) -> None:
        self.store = store
        self.owner = owner
        self.lease = lease
        self._configs = configs
        self._resources = resources
        self._stop_above = stop_above
        self._lock = threading.Lock()
        self.records: list[Record] = []

    @property
    def is_done(self) -> bool:
        ends = [record for record in self.store.load() if record["kind"] == "told"]
        last = [record for record in ends if record["resource"] == self._resources[-1]]
        failed = [record for record in self.store.load() if record["kind"] == "failed"]
        return len(last) + len(failed) == len(self._configs)

    def ask(self) -> Job | None:
        decided: list[Record] = []

        def decide(records: Sequence[Record]) -> Record | None:
            asked = self._next([*self.records, *records])
            decided[:] = [asked] if asked else []
            return asked

        self.records += self.store.claim(self.owner, self.lease, after=len(self.records), decide=decide)
        if not decided:
            return None
        asked = decided[0]
        return Job.of(asked, len(self.records), self._reported(asked["trial"]))

    def _reported(self, trial: int) -> int:
        mine = [each for each in self.records if each.get("trial") == trial]
        steps = [each["step"] for each in mine if each["kind"] == "reported"]
        return max([*steps, *(each["resource"] for each in mine if each["kind"] == "told")], default=0)

    def needed(self, trial: int) -> set[int]:
        return set()

    def disposable(self) -> list[int]:
        return []

    def report(self, job: Job, step: int, value: float, details: object = None) -> str:
        record = {
            "kind": "reported",
            "trial": job.trial,
            "attempt": job.attempt,
            "step": step,
            "value": value,
        }
        self.store.commit(self._claim(job), record)
        return "STOP" if self._stop_above is not None and value > self._stop_above else "CONTINUE"

    def tell(self, job: Job, value: float, details: object = None) -> None:
        self.store.commit(self._claim(job), {**self._key(job), "kind": "told", "value": value})

    def fail(self, job: Job, why: str) -> None:
        self.store.fail(self._claim(job), {**self._key(job), "kind": "failed", "why": why})

    def _next(self, records: Sequence[Record]) -> Record | None:
        records = [record for record in records if record["kind"] != "study"]
        states: dict[int, Record] = {record["trial"]: record for record in records}
        for trial, config in enumerate(self._configs):
            last = states.get(trial)
            attempts = [each["attempt"] for each in records if each["trial"] == trial]
            job = {
                "kind": "asked",
                "trial": trial,
                "attempt": max(attempts, default=-1) + 1,
                "owner": self.owner,
                "config": config,
                "resource": self._resources[0],
                "resume_from": None,
            }
            if last is None:
                return job
            if last["kind"] == "expired":
                asked = [each for each in records if each["kind"] == "asked" and each["trial"] == trial][-1]
                return {**asked, "attempt": job["attempt"], "owner": self.owner}
            if last["kind"] == "told" and last["resource"] != self._resources[-1]:
                resource = self._resources[self._resources.index(last["resource"]) + 1]
                return {**job, "resource": resource, "resume_from": [trial, last["resource"]]}
        return None

    def _claim(self, job: Job) -> Claim:
        return Claim(job.trial, job.attempt, self.owner)

    def _key(self, job: Job) -> dict[str, Any]:
        return {"trial": job.trial, "attempt": job.attempt, "resource": job.resource}
