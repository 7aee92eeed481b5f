"""``Jobs``: the part of a study that workers need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self

from onlineauto.errors import OptionError
from onlineauto.tune.store.protocol import Claim

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onlineauto.tune.trial import Job

_LONGEST = 4000
"""Maximum number of characters of a traceback that a study stores; earlier characters are dropped."""


class Reason(str):
    """Why a job failed, and the traceback of the error."""

    __slots__ = ("traceback",)
    traceback: str

    def __new__(cls, why: str, traceback: str) -> Self:  # noqa: D102
        reason = super().__new__(cls, why)
        reason.traceback = traceback[-_LONGEST:]
        return reason


class Jobs(Protocol):
    """Hands out jobs and receives their values."""

    @property
    def is_done(self) -> bool:
        """True if there will never be another job."""

    def ask(self) -> Job | None:
        """Claim the next job; None if there is no job now, or will never be one."""

    def report(self, job: Any, step: int, value: float, details: Mapping[str, Any] | None = ...) -> str:
        """Receive an intermediate value and its details; return ``CONTINUE`` or ``STOP``."""

    def tell(self, job: Any, value: Any, details: Mapping[str, Any] | None = ...) -> None:
        """Receive the final value of a job and its details."""

    def needed(self, trial: int) -> set[int]:
        """Return the resources at which a trial's checkpoints are needed, in addition to the newest ones."""

    def disposable(self) -> list[int]:
        """Return the trials, each once, whose checkpoints are no longer needed by any job."""

    def fail(self, job: Any, why: str) -> None:
        """Receive the reason why a job failed."""


def claim_of(job: Job) -> Claim:
    """Return the right to write about a job."""
    try:
        return Claim(job.trial, job.attempt, job.owner)
    except AttributeError:
        raise OptionError(f"job = {job!r}: give a job that Study.ask returned; None is not a job") from None


def name_of(job: Job) -> str:
    """Return the name of a job, which all its attempts share.

    The name contains the beginning: a trial may have two jobs to one resource from different checkpoints.
    """
    if job.resume_from is None:
        return f"0 to {job.resource}"
    trial, resource = job.resume_from
    return f"{resource} of trial {trial} to {job.resource}"
