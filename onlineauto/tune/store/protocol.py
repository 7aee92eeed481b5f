"""``Store``: the log of one study, shared by all processes that work on it.

A study is its log. Every change is one record, a JSON object, and the same records in the same order give the
same study. Records are numbered 1, 2, 3, … without gaps; the number of the last one is the *version* of the
study. A record never changes, so a version always identifies the same history.

========= ================================================= ==================================================
kind      other keys                                        meaning
========= ================================================= ==================================================
study     settings                                          record 1: the settings of the study
enqueued  config                                            a config that is tried first
added     trials: for each config, resource, value          finished trials of another study
named     trainable                                         what trials run, MODULE:NAME; the last one counts
asked     trial, attempt, owner, config, resource,          a job, claimed by an owner
          resume_from (null or [trial, resource])
reported  trial, attempt, step, value, and maybe details    an intermediate value, and its description
told      trial, attempt, resource, value, and maybe        the job ended well; values has each of several
          values, constraints, details                      objectives by name, and value the first one
failed    trial, attempt, why, final, maybe traceback       the job ended badly; final: it is not tried again
expired   trial, attempt                                    a lease ended; the job waits for its next attempt
released  trial, attempt, maybe early                       its owner gave it back; early: it had not begun
extended  max_trials, max_resource                          the limits of the study, from this record on
idle      trials, refusals                                  the scheduler had no job, but changed its state
========= ================================================= ==================================================

A reader skips a record that it cannot apply, and applies everything after it. The log ends at a record that a
store cannot read: `Store.load` raises `DamagedLogError`, which has the records before it.

A job is identified by its trial and its attempt. A resumed trial continues to count attempts, so no two jobs
have the same pair. At most one job of a trial has an owner at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from onlineauto.errors import OnlineautoError, StoreError

Record = Mapping[str, Any]
"""One record of the log: plain JSON, with NaN and Infinity as Python's `json` writes them."""

Decide = Callable[[Sequence[Record]], Record | None]
"""Takes all records after a version and returns the next, or None if nothing changed.

The next record is ``asked``, ``idle``, or ``failed`` for a job that lost each of its processes.
"""


class LeaseLost(OnlineautoError):  # noqa: N818 - the name says what happened
    """A job is no longer its owner's: its lease expired, or it has ended. Drop the job and ask again."""


class DamagedLogError(StoreError):
    """A record of a log cannot be read; `records` are those before it that were requested."""

    def __init__(self, message: str, records: Sequence[Record]) -> None:
        super().__init__(message)
        self.records = records


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to write about one job. A store checks all three fields on every write."""

    trial: int  # The job.
    attempt: int
    owner: str  # The name under which it was claimed.


@dataclass(frozen=True, slots=True)
class StudySnapshot:
    """The state after the first `version` records, so that no process has to apply them again."""

    version: int  # Number of records that the state contains.
    state: Mapping[str, Any]  # Plain JSON.


class Store(Protocol):
    """The log of one study, and the owner and lease of each job.

    The store uses its own clock; callers pass durations only. All methods may be called from several threads
    and processes at once.
    """

    def begin(self, record: Record) -> Record:
        """Append ``study`` if the log is empty, and return record 1, in one atomic step."""
        ...

    def load(self, after: int = 0) -> Sequence[Record]:
        """Return all records after the first `after`, in order, from one consistent read.

        Raises
        ------
        DamagedLogError
            If one of them cannot be read.
        """
        ...

    def snapshot(self) -> StudySnapshot | None:
        """Return the newest state that was saved, or None."""
        ...

    def save(self, snapshot: StudySnapshot) -> None:
        """Save a state. It may replace an older state, but never a newer one."""
        ...

    def append(self, record: Record) -> int:
        """Append a record that belongs to no job (``enqueued``, ``named``) and return its version."""
        ...

    def claim(self, owner: str, lease: float, *, after: int, decide: Decide) -> Sequence[Record]:
        """Append the record that a function decides on, and lease its job, in one atomic step.

        One transaction, which excludes every other writer of this study:

        1. appends ``expired`` for every job whose lease has expired,
        2. reads all records after `after` and calls `decide` with them,
        3. appends the record that `decide` returns, and leases the job of an ``asked`` record to `owner` for
           `lease` seconds.

        If `decide` raises, nothing is written. `decide` changes the state of the caller, so it is called at
        most once.

        Returns
        -------
        sequence of Record
            All records after `after`; the last one is the record of `decide`, if it returned one.
        """
        ...

    def commit(self, claim: Claim, record: Record) -> int:
        """Append ``reported`` or ``told`` if the claim is valid, and return the version of this record.

        A store may skip a step that the same attempt has reported before. It then returns 0, never the
        version of another record.

        ``told`` ends the claim, and ``reported`` renews its lease, in the same transaction.

        Raises
        ------
        LeaseLost
            If the job is recorded as expired, has another attempt or owner by now, or has ended. Nothing is
            written then. A lease that has expired, but is not recorded as expired yet, is still valid.
        """
        ...

    def fail(self, claim: Claim, record: Record) -> int:
        """Append ``failed`` or ``released``, end the claim, and return the version; see `commit`."""
        ...

    def heartbeat(self, claims: Sequence[Claim], lease: float) -> Sequence[Claim]:
        """Renew leases to `lease` seconds from now and return the claims that are no longer valid.

        Renewals are not in the log.
        """
        ...
