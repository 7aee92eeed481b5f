"""``Pool``: gives jobs to long-lived workers, which are processes of this machine or actors of a cluster.

A worker knows neither the study nor the store. It receives a `TrialTask`, sends a `TaskStep` after each unit
of resource, and waits for permission to continue. At the end it sends `TaskEnded` or `TaskFailed`. The pool
does all writes through the controller. Each write names its attempt, so messages of a worker that counts as
lost are ignored.
"""

from __future__ import annotations

import time
import traceback
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from onlineauto.errors import OnlineautoError
from onlineauto.tune.workers.headcount import Headcount
from onlineauto.tune.workers.process import TaskFailed, TaskStep, WorkerLost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.tune.workers.controller import Controller
    from onlineauto.tune.workers.jobs import TrialJob
    from onlineauto.tune.workers.process import TaskEnded, TrialTask
    from onlineauto.tune.workers.resources import Account
    from onlineauto.tune.workers.trainable import Config

SHORTEST: Final = 0.02
"""Seconds between two requests to a study that has no job now, at first."""

_LONGEST: Final = 1.0
"""Maximum of these seconds, which double with each request."""

_NOTICED: Final = 0.2
"""Maximum number of seconds until a change of the number of workers takes effect."""

_MOST_LOST: Final = 5
"""Number of workers lost in a row before any is up that ends the run."""


class TaskRunner(Protocol):
    """Runs one task after another. Methods except `close` and `kill` raise `WorkerLost` if it has ended."""

    @property
    def is_up(self) -> bool:
        """True if the worker can receive a task at once."""

    def receive_ready(self) -> None:
        """Receive the message that the worker is up."""

    def begin(self, task: TrialTask) -> None:
        """Send a task."""

    def receive(self) -> TaskStep | TaskEnded | TaskFailed:
        """Return the next message."""

    def answer(self, goes_on: bool) -> None:
        """Answer the last step: whether the worker continues."""

    def close(self) -> None:
        """End the worker, which has no task."""

    def kill(self) -> None:
        """End the worker at once."""


W = TypeVar("W", bound=TaskRunner)


class Crew(Protocol[W]):
    """Starts workers and waits for them."""

    @property
    def is_uniform(self) -> bool:
        """True if every worker can run every trial, so that workers are started before there are jobs."""

    @property
    def costs_idle(self) -> bool:
        """True if an idle worker occupies resources that others could use."""

    def start(self, config: Config | None) -> W:
        """Start a worker for trials with the resource demand of this config."""

    def fits(self, worker: W, config: Config) -> bool:
        """Return whether a worker has the resources that a trial needs."""

    def wait(self, workers: Sequence[W], seconds: float | None) -> Sequence[W]:
        """Return workers that are up, have sent a message, or have ended; none after the timeout."""


class Pool(Generic[W]):
    """Workers with their jobs."""

    def __init__(
        self, controller: Controller, crew: Crew[W], count: int | Headcount, account: Account | None = None
    ) -> None:
        self._controller = controller
        self._crew = crew
        self._count = count if isinstance(count, Headcount) else Headcount(count)
        self._noticed = _NOTICED if isinstance(count, Headcount) else None
        self._account = account
        self._starting: list[W] = []
        self._idle: list[W] = []
        self._busy: dict[W, TrialJob] = {}
        self._lacks = False  # whether the next job waits for resources of another job
        self._lost = 0

    def run(self) -> None:
        """Give jobs to workers and receive their messages until the run ends."""
        pause = SHORTEST
        while not self._count.is_closed:
            self._follow_count()
            has_begun, found_none = self._begin_jobs()
            if not self._busy and (
                self._controller.is_over or (found_none and not has_begun and not self._controller.waits)
            ):
                return
            waited = [*self._starting, *self._busy]
            if not waited:
                pause = (
                    SHORTEST
                    if has_begun
                    else wait_between_polls(self._controller, min(pause, self._noticed or pause))
                )
                continue
            asks_again = self._has_room and not self._controller.is_over
            ready = self._crew.wait(waited, pause if asks_again else self._noticed)
            pause = SHORTEST if ready else min(2 * pause, self._noticed or _LONGEST)
            for worker in ready:
                self._receive(worker)

    def close(self) -> None:
        """End all workers: kill those that start or have a job, and close those that are idle."""
        for worker in [*self._busy, *self._starting]:
            worker.kill()
        for worker in self._idle:
            worker.close()
        for job in self._busy.values():
            self._give_back(job)
        self._busy.clear()
        self._starting.clear()
        self._idle.clear()

    @property
    def _has_vacancy(self) -> bool:
        return len(self._starting) + len(self._idle) + len(self._busy) < self._count.now

    @property
    def _has_room(self) -> bool:
        return bool(self._idle) or (not self._crew.is_uniform and self._has_vacancy)

    def _follow_count(self) -> None:
        """Start missing workers, and end surplus workers that have no job."""
        while self._crew.is_uniform and self._has_vacancy:
            self._start()
        if not self._crew.costs_idle:
            return  # an idle worker saves its start when the number grows again
        too_many = len(self._starting) + len(self._idle) + len(self._busy) - self._count.now
        for _ in range(min(too_many, len(self._starting))):
            self._starting.pop().kill()
            too_many -= 1
        for _ in range(min(too_many, len(self._idle))):
            self._idle.pop().close()

    def _start(self) -> None:
        worker = self._crew.start(None)
        (self._idle if worker.is_up else self._starting).append(worker)

    def _begin_jobs(self) -> tuple[bool, bool]:
        """Give jobs to idle workers; return whether a job has begun, and whether the study had no more."""
        has_begun = False
        while self._has_room and self._count.take():
            job = self._next()
            if job is None:
                self._count.give_back()
                return has_begun, not self._lacks
            has_begun = True
            task = self._controller.task(job)
            worker = self._worker_for(job.config)
            self._busy[worker] = job
            try:
                worker.begin(task)
            except WorkerLost as error:
                self._return_job(worker, f"{error}")
        return has_begun, False

    def _worker_for(self, config: Config) -> W:
        """Return a worker that fits a trial; if none is idle, start one, if necessary in place of another."""
        for worker in reversed(self._idle):
            if self._crew.fits(worker, config):
                self._idle.remove(worker)
                return worker
        if not self._has_vacancy:
            self._idle.pop(0).close()
        return self._crew.start(config)

    def _next(self) -> TrialJob | None:
        """Return the next job if its resources are free. Otherwise postpone it; no later job overtakes it."""
        job = None if self._lacks else self._controller.next()
        if job is None or self._account is None:
            return job
        try:
            if self._account.take(job.trial, job.config):
                return job
        except Exception as error:  # a function of the config may raise anything
            self._controller.end(job, TaskFailed(f"{type(error).__name__}: {error}", traceback.format_exc()))
            return self._next()
        self._lacks = bool(self._busy)  # wait for a busy worker to end; without any, ask the study again
        self._controller.postpone(job)
        return None

    def _receive(self, worker: W) -> None:
        """Receive one message of a worker, or its end."""
        try:
            if worker in self._starting:
                self._add_ready(worker)
                return
            message = worker.receive()
            if isinstance(message, TaskStep):
                worker.answer(self._controller.step(self._busy[worker], message))
                return
        except WorkerLost as error:
            self._return_job(worker, f"{error}")
            return
        job = self._busy.pop(worker)
        self._controller.end(job, message)
        self._give_back(job)
        self._idle.append(worker)

    def _add_ready(self, worker: W) -> None:
        worker.receive_ready()
        self._lost = 0
        self._starting.remove(worker)
        self._idle.append(worker)

    def _return_job(self, worker: W, cause: str) -> None:
        """Give back the job of a worker that has ended; the pool then starts another worker."""
        worker.kill()
        if worker in self._starting:
            self._starting.remove(worker)
            self._lost += 1
            if self._lost >= _MOST_LOST:
                raise OnlineautoError(
                    f"{self._lost} workers were lost before they began, the last one {cause}"
                )
            return
        job = self._busy.pop(worker)
        self._controller.on_worker_death(job, cause)
        self._give_back(job)

    def _give_back(self, job: TrialJob) -> None:
        self._count.give_back()
        if self._account is not None:
            self._account.give_back(job.trial)
            self._lacks = False


def wait_between_polls(controller: Controller, pause: float) -> float:
    """Wait `pause` seconds, unless the run has ended; return the length of the next pause."""
    if not controller.is_over:
        time.sleep(pause)
    return min(2 * pause, _LONGEST)
