"""Records like those of a study, without one: trials are numbered, and expired jobs are claimed again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onlineauto.tune.store.protocol import Claim, Record, Store
from onlineauto.tune.store.sql_store import SqlStore

STUDY = {"kind": "study", "settings": {"seed": 0}}


def new_store(url: str, name: str = "rates") -> SqlStore:
    """Return the store of a study, which is created if it does not exist."""
    store = SqlStore(url, name)
    assert store.begin(STUDY) == STUDY
    return store


def jobs(store: Store) -> list[Record]:
    """Return all records except the first, which has the settings."""
    return list(store.load(1))


class Counting:
    """Claims expired jobs first, and then trials 0, 1, 2, … up to a maximum."""

    _decided: dict[str, Any] | None = None

    def __init__(self, store: Store, owner: str, most: int = 1000, lease: float = 60) -> None:
        self.store, self.owner, self.most, self.lease = store, owner, most, lease
        self.records: list[Record] = []
        self.trials = 0
        self.waiting: dict[int, int] = {}

    def claim(self) -> Claim | None:
        """Claim a job; None if there is none."""
        self.records += self.store.claim(self.owner, self.lease, after=len(self.records), decide=self._decide)
        if self._decided is None:
            return None
        self._learn([self._decided])
        return Claim(self._decided["trial"], self._decided["attempt"], self.owner)

    def take(self) -> Claim:
        """Claim a job; there is one."""
        claim = self.claim()
        assert claim is not None
        return claim

    def _learn(self, records: Sequence[Record]) -> None:
        for record in records:
            if record["kind"] == "asked":
                self.trials = max(self.trials, record["trial"] + 1)
                self.waiting.pop(record["trial"], None)
            elif record["kind"] == "expired":
                self.waiting[record["trial"]] = record["attempt"] + 1

    def _decide(self, records: Sequence[Record]) -> Record | None:
        self._learn(records)
        self._decided = None
        if self.waiting:
            trial, attempt = min(self.waiting.items())
        elif self.trials < self.most:
            trial, attempt = self.trials, 0
        else:
            return None
        job = {"kind": "asked", "trial": trial, "attempt": attempt, "owner": self.owner}
        self._decided = {**job, "config": {"rate": 0.5}, "resource": 1, "resume_from": None}
        return self._decided


def reported(claim: Claim, step: int = 1, value: float = 0.5) -> Record:
    return {"kind": "reported", "trial": claim.trial, "attempt": claim.attempt, "step": step, "value": value}


def told(claim: Claim, value: float = 0.5) -> Record:
    return {"kind": "told", "trial": claim.trial, "attempt": claim.attempt, "resource": 1, "value": value}
