"""Executors: run all jobs of a study in this process, in processes that stay alive, or in actors of Ray."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onlineauto.tune.workers.on_ray.ray_workers import Checked, RayWorkers
from onlineauto.tune.workers.pool import SHORTEST, Pool, rest
from onlineauto.tune.workers.process import Processes, perform
from onlineauto.tune.workers.resources import Free, Workers
from onlineauto.tune.workers.trainable import Trainable, arguments

if TYPE_CHECKING:
    from onlineauto.tune.workers.controller import Controller
    from onlineauto.tune.workers.jobs import Job
    from onlineauto.tune.workers.process import Step
    from onlineauto.tune.workers.trainable import What


def run_here(controller: Controller, what: What) -> None:
    """Run jobs one after the other in this process until there will never be another one."""
    _check(what)
    kept: Trainable | None = None
    pause = SHORTEST
    with controller:
        while not controller.is_over:
            job = controller.next()
            if job is None:
                if not controller.waits:
                    return
                pause = rest(controller, pause)
                continue
            pause = SHORTEST
            listener = _Listener(controller, job)
            end, kept = perform(what, controller.task(job), kept, listener.say)
            if listener.error is not None:
                raise listener.error
            controller.end(job, end)


def run_in_processes(controller: Controller, what: What, workers: int | Workers) -> None:
    """Run jobs in processes, several at once, until there will never be another one.

    Raises
    ------
    OptionError
        The number of workers is not positive, or the trainable cannot be sent to a process.
    """
    _check(what)
    workers = workers if isinstance(workers, Workers) else Workers(workers)
    run_pool(controller, Pool(controller, Processes(what), workers.count, Free(workers)))


def run_on_ray(controller: Controller, what: What, workers: int | Workers | RayWorkers) -> None:
    """Run jobs in actors of a Ray cluster, several at once, until there will never be another one.

    Raises
    ------
    OptionError
        Ray is not installed, or the workers cannot import the trainable.
    """
    _check(what)
    from onlineauto.tune.workers.on_ray.actors import Actors
    from onlineauto.tune.workers.on_ray.connecting import connected

    asked = RayWorkers.of(workers)
    with connected(asked.address):
        account = Free(workers) if isinstance(workers, Workers) else Checked(asked)
        with Actors(what, asked, lease=controller.lease) as actors:
            run_pool(controller, Pool(controller, actors, asked.count, account))


def run_pool(controller: Controller, pool: Pool[Any]) -> None:
    """Run jobs in the workers of a pool, and end all of these in any case."""
    with controller:
        try:
            pool.run()
        finally:
            pool.close()


def _check(what: What) -> None:
    if not (isinstance(what, type) and issubclass(what, Trainable)):
        arguments(what)


class _Listener:
    """Hands steps to a controller, and keeps its errors apart from those of the trainable.

    Parameters
    ----------
    controller : Controller
        Hears of steps.
    job : Job
        Whose steps.
    """

    def __init__(self, controller: Controller, job: Job) -> None:
        self._controller = controller
        self._job = job
        self.error: Exception | None = None

    def say(self, step: Step) -> bool:
        """Hand on a step; return whether to go on."""
        try:
            return self._controller.step(self._job, step)
        except Exception as error:
            self.error = error
            return False
