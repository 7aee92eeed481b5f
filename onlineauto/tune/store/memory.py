"""``MemoryStore``: the log of a study in memory, which is lost when the process ends."""

from __future__ import annotations

from math import inf
from threading import RLock
from time import monotonic
from typing import TYPE_CHECKING

from onlineauto.tune.store.checkpoints import MemoryCheckpoints
from onlineauto.tune.store.protocol import Claim, Decide, LeaseLost, Record, Store, StudySnapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class MemoryStore(Store):
    """The log of a study in a list."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._lock = RLock()
        self._records: list[Record] = []
        self._leases: dict[int, tuple[Claim, float, float]] = {}  # by trial: the claim, its length, its end
        self._snapshot: StudySnapshot | None = None
        self._earliest = inf
        self.checkpoints = MemoryCheckpoints()

    def begin(self, record: Record) -> Record:  # noqa: D102
        with self._lock:
            if not self._records:
                self._records.append(record)
            return self._records[0]

    def load(self, after: int = 0) -> Sequence[Record]:  # noqa: D102
        with self._lock:
            return self._records[after:]

    def snapshot(self) -> StudySnapshot | None:  # noqa: D102
        return self._snapshot

    def save(self, snapshot: StudySnapshot) -> None:  # noqa: D102
        with self._lock:
            if self._snapshot is None or self._snapshot.version < snapshot.version:
                self._snapshot = snapshot

    def append(self, record: Record) -> int:  # noqa: D102
        with self._lock:
            self._records.append(record)
            return len(self._records)

    def claim(self, owner: str, lease: float, *, after: int, decide: Decide) -> Sequence[Record]:  # noqa: D102
        with self._lock:
            now = self._clock()
            if now > self._earliest:
                self._expire(now)
            record = decide(self._records[after:])
            if record is not None:
                self._records.append(record)
                if record["kind"] == "asked":
                    claim = Claim(record["trial"], record["attempt"], owner)
                    self._lease(claim, lease, now)
            return self._records[after:]

    def _lease(self, claim: Claim, lease: float, now: float) -> None:
        self._leases[claim.trial] = claim, lease, now + lease
        self._earliest = min(self._earliest, now + lease)

    def _expire(self, now: float) -> None:
        """Record and remove expired leases."""
        over = [claim for claim, _, ends in self._leases.values() if ends < now]
        for claim in over:
            del self._leases[claim.trial]
            self._records.append({"kind": "expired", "trial": claim.trial, "attempt": claim.attempt})
        self._earliest = min((ends for _, _, ends in self._leases.values()), default=inf)

    def commit(self, claim: Claim, record: Record) -> int:  # noqa: D102
        with self._lock:
            lease = self._lease_of(claim)
            if record["kind"] == "reported":
                self._lease(claim, lease, self._clock())
            else:
                del self._leases[claim.trial]
            return self.append(record)

    def fail(self, claim: Claim, record: Record) -> int:  # noqa: D102
        return self.commit(claim, record)

    def _lease_of(self, claim: Claim) -> float:
        """Return the seconds of the lease of a claim; raise `LeaseLost` if the claim is not valid."""
        valid, lease, _ = self._leases.get(claim.trial, (None, 0.0, 0.0))
        if valid != claim:
            raise LeaseLost(
                f"trial {claim.trial}, attempt {claim.attempt} is not {claim.owner}'s any more: "
                f"{'it has ended or waits for another worker' if valid is None else f'{valid.owner} has it'}"
            )
        return lease

    def heartbeat(self, claims: Sequence[Claim], lease: float) -> Sequence[Claim]:  # noqa: D102
        with self._lock:
            lost = [claim for claim in claims if self._leases.get(claim.trial, (None,))[0] != claim]
            for claim in claims:
                if claim not in lost:
                    self._lease(claim, lease, self._clock())
            return lost
