"""Records as a study writes them, without a study: trials are counted, and what expired is tried again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onlineauto.tune.store.protocol import Claim, Store
from onlineauto.tune.store.sql_store import SqlStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.tune.store.protocol import Record

STUDY = {"kind": "study", "settings": {"seed": 0}}


def new_store(url: str, name: str = "rates") -> SqlStore:
    """Return the store of a study that is made if it is not there."""
    store = SqlStore(url, name)
    assert store.begin(STUDY) == STUDY
    return store


def jobs(store: Store) -> list[Record]:
    """Return all records but the first, which says what the study is."""
    return list(store.load(1))


class Counting:
    """Hands out trials 0, 1, 2, … up to a number, and what expired first.

    Parameters
    ----------
    store : Store
        Where.
    owner : str
        Who.
    most : int
        How many trials there are.
    lease : float
        Seconds.
    """

    def __init__(self, store: Store, owner: str, most: int = 1000, lease: float = 60) -> None:
        self.store = store
        self.owner = owner
        self.most = most
        self.lease = lease
        self.records: list[Record] = []
        self.trials = 0
        self.waiting: dict[int, int] = {}

    def claim(self) -> Claim | None:
        """Claim a job; None if there is none."""
        before = len(self.records)
        news = self.store.claim(self.owner, self.lease, after=before, decide=self._decide)
        self.records += news
        asked = news[-1] if news else None
        if (
            asked is None
            or asked["kind"] != "asked"
            or asked["owner"] != self.owner
            or self._decided != asked
        ):
            return None
        self._learn([asked])
        return Claim(asked["trial"], asked["attempt"], self.owner)

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

    _decided: dict[str, Any] | None = None


def reported(claim: Claim, step: int = 1, value: float = 0.5) -> Record:
    return {"kind": "reported", "trial": claim.trial, "attempt": claim.attempt, "step": step, "value": value}


def told(claim: Claim, value: float = 0.5) -> Record:
    return {"kind": "told", "trial": claim.trial, "attempt": claim.attempt, "resource": 1, "value": value}
