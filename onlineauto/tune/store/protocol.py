"""``Store``: the log of one study, shared by all who work on it.

A study is its log. Every change is one record, a JSON object, and whoever reads the same records in the same
order has the same study. Records are numbered 1, 2, 3, … without gaps; the number of the last one is the
*version* of the study. A record never changes, so a reader who remembers a version sees that history again.

========= ================================================= ==================================================
kind      other keys                                        meaning
========= ================================================= ==================================================
study     settings                                          record 1: what the study is about
enqueued  config                                            a config that is tried first
named     trainable                                         what trials run, MODULE:NAME; the last one holds
asked     trial, attempt, owner, config, resource,          a job, claimed by an owner
          resume_from (null or [trial, resource])
reported  trial, attempt, step, value, and maybe details    a value on the way, and what it is about
told      trial, attempt, resource, value, maybe details    the job ended well
failed    trial, attempt, why, final, maybe traceback       the job ended badly; final: it is not tried again
expired   trial, attempt                                    a lease ended; the job waits for its next attempt
released  trial, attempt, maybe early                       its owner gave it back; early: it had not begun
extended  max_trials, max_resource                          the study may have more, from here on
idle      trials, refusals                                  the scheduler was asked, and changed without a job
========= ================================================= ==================================================

A reader skips a record that it cannot apply, and applies everything after it.

A job is known by its trial and its attempt. A trial that is resumed goes on counting attempts, so no two jobs
have the same pair. At most one job of a trial has an owner at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from onlineauto.errors import OnlineautoError

Record = Mapping[str, Any]
"""One record of the log: plain JSON, with NaN and Infinity as Python's `json` writes them."""

Decide = Callable[[Sequence[Record]], Record | None]
"""Takes all records after a version and returns the next, or None if nothing changed.

It is ``asked``, ``idle``, or ``failed`` of a job without an owner, which loses its process each time.
"""


class LeaseLost(OnlineautoError):  # noqa: N818 - the name says what happened
    """A job is no longer its owner's: its lease ended, or it was told already. Drop it and ask again."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to write about one job. Every write is fenced by all three.

    Attributes
    ----------
    trial, attempt : int
        The job.
    owner : str
        The name under which it was claimed.
    """

    trial: int
    attempt: int
    owner: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state after the first `version` records, so that nobody has to decide them again.

    Attributes
    ----------
    version : int
        How many records the state contains.
    state : mapping
        Plain JSON.
    """

    version: int
    state: Mapping[str, Any]


class Store(Protocol):
    """Keeps the log of one study, and who has which job until when.

    Time is the store's own; no caller says what time it is. All methods may be called from several threads
    and processes at once.
    """

    def begin(self, record: Record) -> Record:
        """Append ``study``, if the log is empty; return record 1, whoever wrote it. One atomic step."""
        ...

    def load(self, after: int = 0) -> Sequence[Record]:
        """Return all records behind the first `after`, in order, as one consistent reading."""
        ...

    def snapshot(self) -> Snapshot | None:
        """Return the newest state that was saved, or None."""
        ...

    def save(self, snapshot: Snapshot) -> None:
        """Keep a state; an older one may be forgotten, and an older one never replaces a newer one."""
        ...

    def append(self, record: Record) -> int:
        """Append a record that belongs to no job (``enqueued``, ``named``) and return its version."""
        ...

    def claim(self, owner: str, lease: float, *, after: int, decide: Decide) -> Sequence[Record]:
        """Let a function decide on the next job, and write it down, as one atomic step.

        In one transaction that excludes every other writer of this study: append ``expired`` for every job
        whose lease is over; read all records after `after`; call `decide` with them; append what it returns,
        and if that is ``asked``, lease the job to `owner` for `lease` seconds. If `decide` raises, nothing is
        written. It is called at most once, because what it decides changes the caller.

        Returns
        -------
        sequence of Record
            All records after `after`. The last one is what `decide` returned, if it returned one.
        """
        ...

    def commit(self, claim: Claim, record: Record) -> int:
        """Append ``reported`` or ``told``, if the claim still holds, and return its version.

        The version is that of this record. A store that does not append a step again which the same attempt
        has reported before returns 0, never the version of another record.

        ``told`` ends the claim, and ``reported`` renews its lease; the same transaction does both.

        Raises
        ------
        LeaseLost
            If the job is recorded as expired, has another attempt or owner by now, or has ended. Nothing is
            written then. A lease that is over, but not recorded as expired yet, still holds.
        """
        ...

    def fail(self, claim: Claim, record: Record) -> int:
        """Append ``failed`` or ``released``, end the claim, return the version; else as `commit`."""
        ...

    def heartbeat(self, claims: Sequence[Claim], lease: float) -> Sequence[Claim]:
        """Renew leases to `lease` seconds from now and return the claims that no longer hold.

        Renewals are not in the log.
        """
        ...
