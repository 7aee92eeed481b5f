"""``Callback``: is notified of the events of the jobs of one process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onlineauto.tune.trial import Job


class Callback:
    """Override the events of interest. An error of a callback ends the run and loses no trial."""

    def on_begin(self, study: Any) -> None:
        """Receive the `Study` before the run begins."""

    def on_start(self, job: Job) -> None:
        """Receive a job when it starts, and again when it restarts after an interruption."""

    def on_report(self, job: Job, step: int, value: float) -> None:
        """Receive an intermediate value; the final value is passed to `on_result`."""

    def on_checkpoint(self, job: Job, step: int) -> None:
        """Receive the step of a checkpoint that was saved."""

    def on_result(self, job: Job, value: float) -> None:
        """Receive the final value of a job."""

    def on_error(self, job: Job, why: str) -> None:
        """Receive the reason why a job failed."""

    def on_lost(self, job: Job, why: str) -> None:
        """Receive a job that this process has lost, because its lease expired or its process was killed."""
