"""``Callback``: hears what happens to the jobs of one process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onlineauto.tune.workers.jobs import Job


class Callback:
    """Override what you want to hear; an error that you raise ends the run, and loses no trial."""

    def on_begin(self, study: Any) -> None:
        """Hear which `Study` is run, before all else."""

    def on_start(self, job: Job) -> None:
        """Hear that a job begins, or begins again after an interruption."""

    def on_report(self, job: Job, step: int, value: float) -> None:
        """Hear a value on the way; the last one is not among them."""

    def on_checkpoint(self, job: Job, step: int) -> None:
        """Hear that a state was kept."""

    def on_result(self, job: Job, value: float) -> None:
        """Hear the value with which a job ended."""

    def on_error(self, job: Job, why: str) -> None:
        """Hear that a job ended badly."""

    def on_lost(self, job: Job, why: str) -> None:
        """Hear that this process has a job no more: its lease is lost, or its process was killed."""
