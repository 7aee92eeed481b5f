"""``Jobs``: what workers need of a study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self

from onlineauto.errors import OptionError
from onlineauto.tune.store.protocol import Claim

if TYPE_CHECKING:
    from collections.abc import Mapping

_LONGEST = 4000
"""The most characters of a traceback that a study keeps: the last ones."""


class Reason(str):
    """Why a job failed, and the traceback of the error."""

    __slots__ = ("traceback",)
    traceback: str

    def __new__(cls, why: str, traceback: str) -> Self:  # noqa: D102
        reason = super().__new__(cls, why)
        reason.traceback = traceback[-_LONGEST:]
        return reason


class Job(Protocol):
    """A piece of a trial: take it to a resource."""

    @property
    def trial(self) -> int:
        """The number of the trial."""

    @property
    def attempt(self) -> int:
        """The number of the attempt, which is another one after each loss."""

    @property
    def owner(self) -> str:
        """The name under which it was claimed."""

    @property
    def config(self) -> Mapping[str, Any]:
        """The hyperparameters."""

    @property
    def resource(self) -> int:
        """Steps that the trial is to have done in the end."""

    @property
    def step(self) -> int:
        """The last step that need not be done again: its value was reported."""

    @property
    def resume_from(self) -> tuple[int, int] | None:
        """Trial and steps of the checkpoint to begin with; None to begin anew."""


class Jobs(Protocol):
    """Hands out jobs and receives their values."""

    @property
    def is_done(self) -> bool:
        """True if there will never be another job."""

    def ask(self) -> Job | None:
        """Claim the next job; None if nothing can be handed out now, or ever."""

    def report(self, job: Any, step: int, value: float, details: Mapping[str, Any] | None = ...) -> str:
        """Receive a value on the way, and what it is about; return ``CONTINUE`` or ``STOP``."""

    def tell(self, job: Any, value: float, details: Mapping[str, Any] | None = ...) -> None:
        """Receive the value with which a job ended, and what it is about."""

    def needed(self, trial: int) -> set[int]:
        """Return the resources at which a trial's checkpoints are needed, beside its newest ones."""

    def disposable(self) -> list[int]:
        """Return trials, each once, whose checkpoints nobody needs any more."""

    def fail(self, job: Any, why: str) -> None:
        """Receive that a job ended badly."""


def claim_of(job: Job) -> Claim:
    """Return the right to write about a job.

    Raises
    ------
    OptionError
        It is no job.
    """
    try:
        return Claim(job.trial, job.attempt, job.owner)
    except AttributeError:
        raise OptionError(f"job = {job!r}: give what Study.ask returned, unless that is None") from None


def name_of(job: Job) -> str:
    """Return the name of a job that all its attempts have.

    A trial may be sent to the same resource twice, from other beginnings.
    """
    if job.resume_from is None:
        return f"0 to {job.resource}"
    trial, resource = job.resume_from
    return f"{resource} of trial {trial} to {job.resource}"
