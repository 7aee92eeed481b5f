"""Hooks of a run: callbacks, which receive its events, and stoppers, which end trials or the whole run."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from onlineauto.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable

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


class Stopper:
    """A rule. Override `ends_trial` or `ends_run`, which return False by default."""

    def on_begin(self, study: Any) -> None:
        """Receive the `Study` before the run begins."""

    def ends_trial(self, trial: int, step: int, value: float) -> bool:  # noqa: ARG002
        """Return whether a trial ends here, given its newest value."""
        return False

    def ends_run(self) -> bool:
        """Return whether no more jobs may begin; running jobs continue to their end."""
        return False


class Plateau(Stopper):
    """Ends a trial whose last values differ by no more than a tolerance.

    >>> rule = Plateau(values=3, tolerance=0.1)
    >>> [rule.ends_trial(0, step, value) for step, value in enumerate([1, 0.5, 0.45, 0.48])]
    [False, False, False, True]

    Parameters
    ----------
    values : int
        Number of values that are compared, at least 2.
    tolerance : float
        Maximum difference between the largest and the smallest of these values.
    """

    def __init__(self, *, values: int = 5, tolerance: float = 0.001) -> None:
        if values < 2:
            raise OptionError(f"values = {values}: a plateau needs 2 or more")
        self._values = values
        self._tolerance = tolerance
        self._last: dict[int, list[float]] = {}

    def ends_trial(self, trial: int, step: int, value: float) -> bool:
        """Return whether the last values of the trial differ by no more than the tolerance."""
        del step
        last = self._last.setdefault(trial, [])
        last[:] = [*last[1 - self._values :], value]
        return len(last) == self._values and max(last) - min(last) <= self._tolerance


class RoundLimit(Stopper):
    """Ends the run when the scheduler has completed a number of rounds."""

    def __init__(self, rounds: int, so_far: Callable[[], int | None]) -> None:
        if rounds < 1:
            raise OptionError(f"rounds = {rounds}: give 1 or more")
        self._rounds, self._so_far = rounds, so_far

    def ends_run(self) -> bool:
        """Return whether the rounds are completed."""
        return (self._so_far() or 0) >= self._rounds


class Target(Stopper):
    """Ends the run when a value reaches a target.

    Parameters
    ----------
    value : float
        The target.
    mode : {"min", "max"}
        ``min`` if lower values are better, ``max`` if higher values are.
    """

    def __init__(self, value: float, *, mode: str = "min") -> None:
        if mode not in ("min", "max"):
            raise OptionError(f"mode must be 'min' or 'max', not {mode!r}")
        self._value = value
        self._sign = 1 if mode == "min" else -1
        self._reached = False

    def ends_trial(self, trial: int, step: int, value: float) -> bool:
        """Return whether the value has reached the target; the run then ends, too."""
        del trial, step
        self._reached |= self._sign * value <= self._sign * self._value
        return self._reached

    def ends_run(self) -> bool:
        """Return whether any value has reached the target."""
        return self._reached


class Timeout(Stopper):
    """Ends the run after some seconds.

    Parameters
    ----------
    seconds : float
        Seconds from now.
    clock : callable, optional
        Returns the time in seconds.
    """

    def __init__(self, seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end = clock() + seconds

    def ends_run(self) -> bool:
        """Return whether the time is over."""
        return self._clock() >= self._end
