"""``run_study``: run the jobs of a study in this process, in worker processes or on Ray.

Workers know neither the study nor the store: all writes go through the controller. Each write names its
attempt, so messages of a worker that counts as lost are ignored.
"""

from __future__ import annotations

import json
import time
import traceback
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from onlineauto.errors import OptionError
from onlineauto.tune.schedulers.scheduler import Available
from onlineauto.tune.store import MemoryStore
from onlineauto.tune.store.checkpoints import MemoryCheckpoints
from onlineauto.tune.workers.controller import Controller
from onlineauto.tune.workers.process import TaskFailed, TaskStep, TrialProcesses, event_of, perform
from onlineauto.tune.workers.resources import Headcount, RayWorkers, Workers
from onlineauto.tune.workers.trainable import Trainable, n_arguments, takes_config_only
from onlineauto.work.crew import Crew, WorkerLost

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from onlineauto.tune.replica import Replica
    from onlineauto.tune.store import Store
    from onlineauto.tune.store.checkpoints import Checkpoints
    from onlineauto.tune.trial import Job
    from onlineauto.tune.workers.hooks import Callback, Stopper
    from onlineauto.tune.workers.trainable import AnyTrainable, Config
    from onlineauto.tune.workers.trial_actor import TrialActors

EXECUTORS: Final = ("processes", "ray")
"""Kinds of workers: processes of this machine, or actors of a Ray cluster."""
_SHORTEST: Final = 0.02
"""Seconds between two requests to a study that has no job now, at first."""
_LONGEST: Final = 1.0
"""Maximum of these seconds, which double with each request."""
_NOTICED: Final = 0.2
"""Maximum number of seconds until a change of the number of workers takes effect."""
_MOST_DEATHS: Final = 4
"""Number of workers lost in a row before any is up after which a run gives up."""


def run_study(
    replica: Replica,
    trainable: AnyTrainable,
    *,
    workers: int | Workers | RayWorkers,
    executor: str,
    jobs: int | None,
    every: int,
    folder: str | Path | None,
    stoppers: Sequence[Stopper],
    callbacks: Sequence[Callback],
) -> None:
    """Run jobs until the study is done or a limit is reached."""
    if executor not in EXECUTORS:
        raise OptionError(f"executor = {executor!r} is unknown; valid are {', '.join(EXECUTORS)}")
    if executor != "ray" and isinstance(workers, RayWorkers):
        raise OptionError('workers = RayWorkers(…) needs executor="ray"')
    if not (isinstance(trainable, type) and issubclass(trainable, Trainable)):
        n_arguments(trainable)  # raises an error if it cannot be called
    controller = Controller(
        replica,
        checkpoints_of(replica.store, folder),
        repeats=not takes_config_only(trainable),
        jobs=jobs,
        waits=not isinstance(replica.store, MemoryStore),
        every=every,
        stoppers=stoppers,
        callbacks=callbacks,
    )
    if executor == "ray":
        _run_on_ray(controller, trainable, workers or 1)
    elif workers:
        shared = workers if isinstance(workers, Workers | RayWorkers) else Workers(workers)
        _Pool(controller, TrialProcesses(trainable), shared).run()
    else:
        _run_here(controller, trainable)


def checkpoints_of(store: Store, folder: str | Path | None = None) -> Checkpoints:
    """Return the checkpoints of a study, which exist as long as its store."""
    if isinstance(store, MemoryStore):
        return store.checkpoints
    from onlineauto.tune.store.sql_store import SqlStore
    from onlineauto.tune.store.stored_checkpoints import StoredCheckpoints

    return StoredCheckpoints(store, folder) if isinstance(store, SqlStore) else MemoryCheckpoints()


def _run_here(controller: Controller, trainable: AnyTrainable) -> None:
    """Run jobs one after the other in this process until the study is done."""
    reusable: Trainable | None = None
    pause = _SHORTEST
    with controller:
        while not controller.is_over:
            job = controller.next()
            if job is None:
                if not controller.waits:
                    return
                pause = _wait_between_polls(controller, pause)
                continue
            pause = _SHORTEST
            listener = _Listener(controller, job)
            history = partial(controller.history, job)
            end, reusable = perform(trainable, controller.task(job), reusable, listener.report_step, history)
            if listener.error is not None:
                raise listener.error
            controller.end(job, end)


def _run_on_ray(controller: Controller, trainable: AnyTrainable, workers: int | Workers | RayWorkers) -> None:
    """Run jobs in parallel actors of a Ray cluster until the study is done."""
    from onlineauto.tune.workers.trial_actor import TrialActors
    from onlineauto.work.on_ray import ray_connection

    requested = RayWorkers.of(workers)
    with ray_connection(requested.address):
        shared = workers if isinstance(workers, Workers) else requested
        with TrialActors(trainable, requested, lease=controller.lease) as actors:
            _Pool(controller, actors, shared).run()


class _Listener:
    """Passes steps to a controller, and separates its errors from errors of the trainable."""

    def __init__(self, controller: Controller, job: Job) -> None:
        self._controller = controller
        self._job = job
        self.error: Exception | None = None

    def report_step(self, step: TaskStep) -> bool:
        """Pass a step to the controller; return whether the trial continues."""
        try:
            return self._controller.step(self._job, step)
        except Exception as error:
            self.error = error
            return False


class _Pool:
    """Workers with their jobs."""

    def __init__(
        self, controller: Controller, staff: TrialProcesses | TrialActors, workers: Workers | RayWorkers
    ) -> None:
        self._controller = controller
        self._staff = staff
        self._crew: Crew[Any, Job] = Crew(staff.start, staff.wait, most_deaths=_MOST_DEATHS)
        count = workers.count
        self._count = count if isinstance(count, Headcount) else Headcount(count)
        self._noticed = _NOTICED if isinstance(count, Headcount) else None
        self._workers = workers
        self._lacks = False  # whether the next job waits for resources of another job

    def run(self) -> None:
        """Run jobs until the run ends, and end all workers in any case."""
        with self._controller:
            try:
                self._run()
            finally:
                for _ in self._crew.busy:
                    self._count.give_back()
                self._crew.end()

    def _run(self) -> None:
        """Give jobs to workers and receive their messages until the run ends."""
        pause = _SHORTEST
        crew = self._crew
        while not self._count.is_closed:
            self._follow_count()
            has_begun, found_none = self._begin_jobs()
            if not crew.busy and (
                self._controller.is_over or (found_none and not has_begun and not self._controller.waits)
            ):
                return
            if not crew.busy and not crew.starting:
                pause = _SHORTEST if has_begun or self._controller.drafts else pause
                if not has_begun:
                    pause = _wait_between_polls(self._controller, min(pause, self._noticed or pause))
                continue
            asks_again = self._has_room and not self._controller.is_over
            messages = crew.wait(pause if asks_again else self._noticed)
            is_soon = messages or self._controller.drafts
            pause = _SHORTEST if is_soon else min(2 * pause, self._noticed or _LONGEST)
            for worker, job, message in messages:
                self._receive(worker, job, message)

    @property
    def _has_vacancy(self) -> bool:
        return len(self._crew) < self._count.now

    @property
    def _has_room(self) -> bool:
        return bool(self._crew.idle) or (not self._staff.is_uniform and self._has_vacancy)

    def _follow_count(self) -> None:
        """Start missing workers, and end surplus workers that have no job."""
        while self._staff.is_uniform and self._has_vacancy:
            self._crew.start()
        if self._staff.costs_idle:  # otherwise an idle worker saves its start when the number grows again
            self._crew.shrink(self._count.now)

    def _begin_jobs(self) -> tuple[bool, bool]:
        """Give jobs to idle workers; return whether a job has begun, and whether the study had no more."""
        has_begun = False
        while self._has_room and self._count.take():
            job = self._next()
            if job is None:
                self._count.give_back()
                return has_begun, not self._lacks and not self._controller.drafts
            has_begun = True
            task = self._controller.task(job)
            self._crew.begin(self._worker_for(job.config), job, "begin", *task.arguments())
        return has_begun, False

    def _worker_for(self, config: Config) -> Any:
        """Return a worker that fits a trial; if none is idle, start one, if necessary in place of another."""
        for worker in reversed(self._crew.idle):
            if self._staff.fits(worker, config):
                return worker
        if not self._has_vacancy:
            self._crew.idle.pop(0).close()
        return self._crew.start(config)

    def _next(self) -> Job | None:
        """Return the next job if its resources are free. Otherwise postpone it; no later job overtakes it."""
        running = [job.config for job in self._crew.busy.values()]
        available = Available(lambda: self._workers.free(running), self._needed)
        n_idle = self._count.now - len(running)
        drafts = None if self._lacks else self._controller.drafted(n_idle)
        job = None if drafts is None else self._controller.next(available, drafts)
        if job is None:
            return None
        try:
            if self._workers.are_free(job.config, running):
                return job
        except Exception as error:  # a function of the config may raise anything
            self._controller.end(job, TaskFailed(f"{type(error).__name__}: {error}", traceback.format_exc()))
            return self._next()
        # Wait for a busy worker to end; without any, ask the study again.
        self._lacks = bool(self._crew.busy)
        self._controller.postpone(job)
        return None

    def _needed(self, config: Config) -> Mapping[str, float]:
        """Return the resources that a trial needs; nothing if `needs` raises, which later fails the trial."""
        try:
            return self._workers.needed(config)
        except Exception:  # a function of the config may raise anything
            return {}

    def _receive(self, worker: Any, job: Job, message: Any) -> None:
        """Receive a message of a worker, or its end."""
        if isinstance(message, WorkerLost):
            self._controller.on_worker_death(job, f"{message}")
            self._note_end()
            return
        if message[0] == "history":
            worker.send("history", json.dumps(self._controller.history(job)))
            return
        event = event_of(message)
        if isinstance(event, TaskStep):
            worker.send("go_on", self._controller.step(job, event))
            return
        self._crew.release(worker)
        self._controller.end(job, event)
        self._note_end()

    def _note_end(self) -> None:
        self._count.give_back()
        self._lacks = False


def _wait_between_polls(controller: Controller, pause: float) -> float:
    """Wait `pause` seconds, unless the run has ended; return the length of the next pause."""
    if not controller.is_over:
        time.sleep(pause)
    return min(2 * pause, _LONGEST)
