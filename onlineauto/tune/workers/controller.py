"""``Controller``: passes jobs of a study to workers, and values and checkpoints of workers to the study.

The controller reacts to events of workers; it starts no process and waits for none. A job whose lease expired
or whose process was killed is dropped here. The next process that asks claims the job again and continues
from its last checkpoint.
"""

from __future__ import annotations

import logging
import math
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from onlineauto.errors import OptionError, UnreachableError, short_repr
from onlineauto.tune.progress import TRIES
from onlineauto.tune.schedulers.scheduler import UNKNOWN, Available
from onlineauto.tune.searchers.outcome import first_number
from onlineauto.tune.store.open_store import retry_call
from onlineauto.tune.store.protocol import LeaseLost
from onlineauto.tune.trial import Reason, claim_of
from onlineauto.tune.workers.process import TaskFailed, TrialTask

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future

    from onlineauto.tune.progress import Draft
    from onlineauto.tune.replica import Replica
    from onlineauto.tune.store.checkpoints import Checkpoints
    from onlineauto.tune.store.protocol import Claim
    from onlineauto.tune.trial import Job
    from onlineauto.tune.workers.hooks import Callback, Stopper
    from onlineauto.tune.workers.process import TaskEnded, TaskStep
    from onlineauto.tune.workers.trainable import Details

_LOG: Final = logging.getLogger("onlineauto")
_AT_ONCE: Final = 20
"""Number of trials whose checkpoints are removed together."""
_PATIENCE: Final = 300
"""Seconds for which a call is repeated while the store is unreachable."""

_T = TypeVar("_T")


class Controller:
    """The jobs of this process, whose leases a `Heartbeat` renews. As a context manager, it releases them."""

    def __init__(
        self,
        replica: Replica,
        checkpoints: Checkpoints,
        *,
        repeats: bool,
        jobs: int | None,
        waits: bool,
        every: int,
        stoppers: Sequence[Stopper],
        callbacks: Sequence[Callback],
    ) -> None:
        self._replica = replica
        self._checkpoints = checkpoints
        self._repeats = repeats  # False if a job that resumes a trial has the value of the trial
        self._left = math.inf if jobs is None else jobs
        self.waits = waits
        self._every = every
        self._stoppers = stoppers
        self._callbacks = callbacks
        self._reached: dict[int, int] = {}  # by trial: the last step that was received
        self._killed: dict[int, tuple[int, int]] = {}  # by trial: number of losses, and the last step
        self._jobs: dict[Claim, Job] = {}
        self._disposable: list[int] = []
        self._values: dict[Claim, Any] = {}
        self._proposers = ThreadPoolExecutor(thread_name_prefix="onlineauto proposal")
        self.drafts: list[Future[Draft | None]] = []  # proposals that are not part of a claim yet

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Release all jobs, so that other processes can claim them at once."""
        self._proposers.shutdown(wait=False, cancel_futures=True)
        for job in [*self._jobs.values()]:
            self._release(job)
        if error == (None, None, None):
            self._dispose(0)

    @property
    def lease(self) -> float:
        """Seconds without a heartbeat after which another process may claim a job."""
        return self._replica.lease

    @property
    def is_over(self) -> bool:
        """True if no further job will begin."""
        return self._ends or self._retry_store(lambda: self._replica.is_done)

    @property
    def _ends(self) -> bool:
        return self._left <= 0 or any(stopper.ends_run() for stopper in self._stoppers)

    def next(self, available: Available = UNKNOWN, drafts: Sequence[Draft | None] = ()) -> Job | None:
        """Claim a job and return it; None if there is no job now."""
        while not self._ends:
            job = self._retry_store(partial(self._replica.ask, available, drafts))
            if job is None:
                return None
            value = None if self._repeats else self._replica.known_value(job)
            if value is not None:  # the job need not run
                self._write(job, partial(self._tell, job, value))
                continue
            self._left -= 1
            self._jobs[claim_of(job)] = job
            for callback in self._callbacks:
                callback.on_start(job)
            return job
        return None

    def _write(self, job: Job, call: Callable[[], _T]) -> _T | None:
        """Return the result of a call that writes about a job; None if the job is lost."""
        try:
            return self._retry_store(call)
        except LeaseLost as error:
            self._lose(job, str(error))
            return None

    def postpone(self, job: Job) -> None:
        """Return a job that lacks resources to the queue; its trial becomes PENDING again."""
        self._left += 1
        self._retry_store(lambda: self._release(job, early=True))
        for callback in self._callbacks:
            callback.on_lost(job, "it waits for resources")

    def task(self, job: Job) -> TrialTask:
        """Return the task of a job, which begins at the last valid checkpoint."""
        return self._retry_store(lambda: self._task(job))

    def drafted(self, n_idle: int) -> list[Draft | None] | None:
        """Return a proposal, or nothing if they are fast; None while threads make one per idle worker."""
        if not self._retry_store(lambda: self._replica.is_slow):
            return []
        for _ in range(len(self.drafts), int(min(n_idle, self._left))):
            self.drafts.append(self._proposers.submit(self._replica.draft))
        ready = next((draft for draft in self.drafts if draft.done()), None)
        if ready is None:
            return None
        self.drafts.remove(ready)
        return [None if isinstance(ready.exception(), UnreachableError) else ready.result()]

    def history(self, job: Job) -> list[dict[str, Any]]:
        """Return the rows of values that were reported before the claim of a job."""
        return self._retry_store(partial(self._replica.history, job))

    def step(self, job: Job, step: TaskStep) -> bool:
        """Receive a step; return whether the worker continues."""
        return bool(self._write(job, partial(self._step, job, step)))

    def end(self, job: Job, end: TaskEnded | TaskFailed) -> None:
        """Receive the end of a worker's task."""
        self._write(job, partial(self._end, job, end))

    def on_worker_death(self, job: Job, cause: str) -> None:
        """Receive that the worker's process has died: release the job, or fail it after repeated losses."""
        if claim_of(job) not in self._jobs:
            return
        reached = self._reached.get(job.trial, 0)
        times, before = self._killed.get(job.trial, (0, reached))
        times = 1 if reached > before else times + 1
        self._killed[job.trial] = times, reached
        if times >= TRIES:
            reason = f"its process was lost {times} times after step {reached}, at last {cause}"
            self.end(job, TaskFailed(f"{reason}; it is not tried again", cause))
        else:
            self._give_back(job)
            self._lose(job, f"its process was {cause}")

    def _task(self, job: Job) -> TrialTask:
        before = job.resource - 1  # the last step is repeated if its value was not told
        reported = min(before, job.step)  # a step without a reported value is repeated, too
        newest = self._checkpoints.newest(job.trial, most=reported, job=_name_of(job))
        if newest is None and job.resume_from is not None:
            trial, resource = job.resume_from
            newest = self._checkpoints.newest(trial, most=min(resource, before))
        if newest is None:
            return TrialTask(job.config, job.resource, every=self._every)
        return TrialTask(job.config, job.resource, newest.step, newest.saved, self._every)

    def _end(self, job: Job, end: TaskEnded | TaskFailed) -> None:
        claim = claim_of(job)
        if claim not in self._jobs:
            return  # its last step has ended the job, or its lease is lost
        if isinstance(end, TaskFailed):
            self._fail(job, Reason(end.why, end.details))
        elif claim in self._values:
            self._tell(job, self._values[claim])
        else:
            self._fail(job, "it ended without a value")

    def _step(self, job: Job, step: TaskStep) -> bool:
        claim = claim_of(job)
        if claim not in self._jobs:
            return False
        self._reached[job.trial] = max(step.step, self._reached.get(job.trial, 0))
        value = first_number(step.value)
        result = step.value if isinstance(step.value, list | tuple | dict) else value
        if math.isnan(value):
            self._fail(job, f"its value after step {step.step} is {short_repr(step.value)}, and no number")
            return False
        if step.saved is not None:
            self._keep(job, step.step, step.saved)
        ended = [stopper.ends_trial(job.trial, step.step, value) for stopper in self._stoppers]
        try:
            if step.step >= job.resource:
                self._tell(job, result, step.details)
                return False
            stops = self._replica.report(job, step.step, value, step.details) == "STOP"
        except OptionError as error:  # the details of the step cannot be stored
            self._fail(job, f"after step {step.step}: {error}")
            return False
        self._values[claim] = result
        for callback in self._callbacks:
            callback.on_report(job, step.step, value)
        if stops or any(ended):
            self._tell(job, result, _without_lists(step.details))
            return False
        return True

    def _keep(self, job: Job, step: int, saved: bytes) -> None:
        """Save a checkpoint; if the disk fails, the trial continues with the previous checkpoint."""
        try:
            needed = self._replica.needed(job.trial)
            self._checkpoints.keep(claim_of(job), _name_of(job), step, saved, needed)
        except OSError as error:
            _LOG.warning("no checkpoint of trial %d after step %d: %s", job.trial, step, error)
            return
        for callback in self._callbacks:
            callback.on_checkpoint(job, step)

    def _tell(self, job: Job, result: Any, details: Details = None) -> None:
        try:
            self._replica.tell(job, result, details)
        except OptionError as error:  # there is not a value for each objective, or a detail cannot be stored
            self._fail(job, str(error))
            return
        self._forget(job)
        self._dispose(_AT_ONCE)
        for callback in self._callbacks:
            callback.on_result(job, first_number(result))

    def _fail(self, job: Job, reason: str) -> None:
        self._replica.fail(job, reason)
        self._forget(job)
        _LOG.warning("trial %d failed: %s", job.trial, reason)
        if trace := getattr(reason, "traceback", ""):
            _LOG.debug("%s", trace)
        for callback in self._callbacks:
            callback.on_error(job, reason)

    def _dispose(self, least: int) -> None:
        """Remove the checkpoints of disposable trials if there are more than `least` such trials."""
        self._disposable += self._replica.disposable()
        if len(self._disposable) > least:
            self._checkpoints.remove(self._disposable)
            self._disposable.clear()

    def _lose(self, job: Job, reason: str) -> None:
        self._forget(job)
        _LOG.warning("trial %d is dropped: %s", job.trial, reason)
        for callback in self._callbacks:
            callback.on_lost(job, reason)

    def _release(self, job: Job, *, early: bool = False) -> None:
        """Give back a job whose process is alive, which does not count as a loss."""
        self._forget(job)
        try:
            self._replica.release(job, early=early)
        except LeaseLost:
            return
        except UnreachableError as error:
            _LOG.warning("trial %d can be claimed again when its lease expires: %s", job.trial, error)

    def _give_back(self, job: Job) -> None:
        """End the lease of a job whose process has died."""
        claim = claim_of(job)
        self._forget(job)
        try:
            self._replica.store.heartbeat([claim], 0)
        except UnreachableError as error:
            _LOG.warning("trial %d can be claimed again when its lease expires: %s", job.trial, error)

    def _forget(self, job: Job) -> None:
        claim = claim_of(job)
        self._jobs.pop(claim, None)
        self._values.pop(claim, None)
        self._replica.heartbeat.drop(claim)

    def _retry_store(self, call: Callable[[], _T]) -> _T:
        """Call a function that needs the store; repeat the call while the store is unreachable."""
        return retry_call(call, _PATIENCE)


def _without_lists(details: Details) -> Details:
    """Return details without their lists, which were reported already."""
    if details is None:
        return None
    return {name: detail for name, detail in details.items() if not isinstance(detail, list)}


def _name_of(job: Job) -> str:
    """Return the name of a job, which all its attempts share.

    The name contains the beginning: a trial may have two jobs to one resource from different checkpoints.
    """
    if job.resume_from is None:
        return f"0 to {job.resource}"
    trial, resource = job.resume_from
    return f"{resource} of trial {trial} to {job.resource}"
