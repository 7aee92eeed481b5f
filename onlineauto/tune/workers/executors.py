"""Executors: run all jobs of a study in this process, in long-lived processes, or in actors of Ray."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onlineauto.tune.workers.on_ray.ray_workers import Checked, RayWorkers
from onlineauto.tune.workers.pool import SHORTEST, Pool, wait_between_polls
from onlineauto.tune.workers.process import Processes, perform
from onlineauto.tune.workers.resources import Free, Workers
from onlineauto.tune.workers.trainable import Trainable, n_arguments

if TYPE_CHECKING:
    from onlineauto.tune.workers.controller import Controller
    from onlineauto.tune.workers.jobs import TrialJob
    from onlineauto.tune.workers.process import TaskStep
    from onlineauto.tune.workers.trainable import AnyTrainable


def run_here(controller: Controller, trainable: AnyTrainable) -> None:
    """Run jobs one after the other in this process until the study is done."""
    _check(trainable)
    reusable: Trainable | None = None
    pause = SHORTEST
    with controller:
        while not controller.is_over:
            job = controller.next()
            if job is None:
                if not controller.waits:
                    return
                pause = wait_between_polls(controller, pause)
                continue
            pause = SHORTEST
            listener = _Listener(controller, job)
            end, reusable = perform(trainable, controller.task(job), reusable, listener.report_step)
            if listener.error is not None:
                raise listener.error
            controller.end(job, end)


def run_in_processes(controller: Controller, trainable: AnyTrainable, workers: int | Workers) -> None:
    """Run jobs in parallel processes until the study is done."""
    _check(trainable)
    workers = workers if isinstance(workers, Workers) else Workers(workers)
    run_pool(controller, Pool(controller, Processes(trainable), workers.count, Free(workers)))


def run_on_ray(controller: Controller, trainable: AnyTrainable, workers: int | Workers | RayWorkers) -> None:
    """Run jobs in parallel actors of a Ray cluster until the study is done."""
    _check(trainable)
    from onlineauto.tune.workers.on_ray.actors import Actors
    from onlineauto.tune.workers.on_ray.connection import ray_connection

    requested = RayWorkers.of(workers)
    with ray_connection(requested.address):
        account = Free(workers) if isinstance(workers, Workers) else Checked(requested)
        with Actors(trainable, requested, lease=controller.lease) as actors:
            run_pool(controller, Pool(controller, actors, requested.count, account))


def run_pool(controller: Controller, pool: Pool[Any]) -> None:
    """Run jobs in the workers of a pool, and end all workers in any case."""
    with controller:
        try:
            pool.run()
        finally:
            pool.close()


def _check(trainable: AnyTrainable) -> None:
    if not (isinstance(trainable, type) and issubclass(trainable, Trainable)):
        n_arguments(trainable)


class _Listener:
    """Passes steps to a controller, and separates its errors from errors of the trainable."""

    def __init__(self, controller: Controller, job: TrialJob) -> None:
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
