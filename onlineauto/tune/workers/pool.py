"""``Pool``: gives jobs to workers that stay alive, be they processes of this machine or actors of a cluster.

A worker knows neither the study nor the store. It is given a `Task`, says a `Step` after each unit of
resource and waits for whether to go on, and at the end says `Ended` or `Failed`. All writes are the pool's,
through the controller, and fenced by the attempt: what a worker does after it was given up for lost is heard
by nobody.
"""

from __future__ import annotations

import time
import traceback
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from onlineauto.errors import OnlineautoError
from onlineauto.tune.workers.headcount import Headcount
from onlineauto.tune.workers.process import Failed, Step, WorkerLost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.tune.workers.controller import Controller
    from onlineauto.tune.workers.jobs import Job
    from onlineauto.tune.workers.process import Ended, Task
    from onlineauto.tune.workers.resources import Account
    from onlineauto.tune.workers.trainable import Config

SHORTEST: Final = 0.02
"""Seconds until a study that has no job now is asked again, at first."""

_LONGEST: Final = 1.0
"""The same, at last."""

_NOTICED: Final = 0.2
"""Seconds after which a change of the number of workers is noticed at the latest."""

_MOST_LOST: Final = 5
"""Workers that may be lost one after the other before any is up."""


class Worker(Protocol):
    """Runs one task after another. All methods but the last two raise `WorkerLost` if it is gone."""

    @property
    def is_up(self) -> bool:
        """True if it need not be waited for before it is given a task."""

    def greet(self) -> None:
        """Receive that it is up."""

    def begin(self, task: Task) -> None:
        """Give it a task."""

    def receive(self) -> Step | Ended | Failed:
        """Return what it says."""

    def answer(self, goes_on: bool) -> None:
        """Say whether it goes on after its last step."""

    def close(self) -> None:
        """Let it leave, if it has no task."""

    def kill(self) -> None:
        """End it at once."""


W = TypeVar("W", bound=Worker)


class Crew(Protocol[W]):
    """Starts workers and waits for them."""

    @property
    def is_uniform(self) -> bool:
        """True if every worker may run every trial, so that workers are started before there are jobs."""

    @property
    def costs_idle(self) -> bool:
        """True if a worker takes resources from others though it has no job."""

    def start(self, config: Config | None) -> W:
        """Start a worker, for trials that need what this config needs."""

    def fits(self, worker: W, config: Config) -> bool:
        """Return whether a worker has what a trial needs."""

    def wait(self, workers: Sequence[W], seconds: float | None) -> Sequence[W]:
        """Return workers that are up, or say something, or are gone; none if time is over."""


class Pool(Generic[W]):
    """Workers, and the job that each one has.

    Parameters
    ----------
    controller : Controller
        Hands out jobs, and receives values.
    crew : Crew
        Starts workers.
    count : int or Headcount
        How many.
    account : Account, optional
        Knows what is free of what trials share.
    """

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
        self._busy: dict[W, Job] = {}
        self._lacks = False  # whether the next job waits until another one gives its resources back
        self._lost = 0

    def run(self) -> None:
        """Hand out jobs and hear of them until all is done."""
        pause = SHORTEST
        while not self._count.is_closed:
            self._follow_count()
            begun, in_vain = self._begin_jobs()
            if not self._busy and (
                self._controller.is_over or (in_vain and not begun and not self._controller.waits)
            ):
                return
            waited = [*self._starting, *self._busy]
            if not waited:
                pause = SHORTEST if begun else rest(self._controller, min(pause, self._noticed or pause))
                continue
            asks_again = self._has_room and not self._controller.is_over
            ready = self._crew.wait(waited, pause if asks_again else self._noticed)
            pause = SHORTEST if ready else min(2 * pause, self._noticed or _LONGEST)
            for worker in ready:
                self._hear(worker)

    def close(self) -> None:
        """End all workers, those that have a job at once; nobody is busy any more."""
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
        """Start workers that are missing; let those leave that are too many and have no job."""
        while self._crew.is_uniform and self._has_vacancy:
            self._start()
        if not self._crew.costs_idle:
            return  # they begin sooner when there are more again
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
        """Give jobs to idle workers; return whether there were any, and whether there was none in the end."""
        begun = False
        while self._has_room and self._count.take():
            job = self._next()
            if job is None:
                self._count.give_back()
                return begun, not self._lacks
            begun = True
            task = self._controller.task(job)
            worker = self._worker_for(job.config)
            self._busy[worker] = job
            try:
                worker.begin(task)
            except WorkerLost as error:
                self._bury(worker, f"{error}")
        return begun, False

    def _worker_for(self, config: Config) -> W:
        """Return an idle worker that has what a trial needs, if need be instead of one that has not."""
        for worker in reversed(self._idle):
            if self._crew.fits(worker, config):
                self._idle.remove(worker)
                return worker
        if not self._has_vacancy:
            self._idle.pop(0).close()
        return self._crew.start(config)

    def _next(self) -> Job | None:
        """Return a job whose needs are met; the first whose needs are not is PENDING, and not overtaken."""
        job = None if self._lacks else self._controller.next()
        if job is None or self._account is None:
            return job
        try:
            if self._account.take(job.trial, job.config):
                return job
        except Exception as error:  # a function of the config may raise anything
            self._controller.end(job, Failed(f"{type(error).__name__}: {error}", traceback.format_exc()))
            return self._next()
        self._lacks = bool(self._busy)  # whose ends are waited for; without any, the study is asked again
        self._controller.postpone(job)
        return None

    def _hear(self, worker: W) -> None:
        """Receive one message of a worker, or that it is gone."""
        try:
            if worker in self._starting:
                self._greet(worker)
                return
            message = worker.receive()
            if isinstance(message, Step):
                worker.answer(self._controller.step(self._busy[worker], message))
                return
        except WorkerLost as error:
            self._bury(worker, f"{error}")
            return
        job = self._busy.pop(worker)
        self._controller.end(job, message)
        self._give_back(job)
        self._idle.append(worker)

    def _greet(self, worker: W) -> None:
        worker.greet()
        self._lost = 0
        self._starting.remove(worker)
        self._idle.append(worker)

    def _bury(self, worker: W, fate: str) -> None:
        """Give back the job of a worker that is gone; another one is started for it."""
        worker.kill()
        if worker in self._starting:
            self._starting.remove(worker)
            self._lost += 1
            if self._lost >= _MOST_LOST:
                raise OnlineautoError(
                    f"{self._lost} workers were lost before they began, the last one {fate}"
                )
            return
        job = self._busy.pop(worker)
        self._controller.killed(job, fate)
        self._give_back(job)

    def _give_back(self, job: Job) -> None:
        self._count.give_back()
        if self._account is not None:
            self._account.give_back(job.trial)
            self._lacks = False


def rest(controller: Controller, pause: float) -> float:
    """Wait until it is worth to ask again; return how long to wait next time."""
    if not controller.is_over:
        time.sleep(pause)
    return min(2 * pause, _LONGEST)
