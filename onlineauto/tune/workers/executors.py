"""Executors: run all jobs of a study in this process, or in processes that stay alive."""

from __future__ import annotations

import time
import traceback
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Final

from onlineauto.tune.workers.process import Failed, Process, Step, perform
from onlineauto.tune.workers.resources import Free, Workers
from onlineauto.tune.workers.trainable import Trainable, arguments

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from onlineauto.tune.workers.controller import Controller
    from onlineauto.tune.workers.jobs import Job
    from onlineauto.tune.workers.trainable import What

__all__ = ["run_here", "run_in_processes"]

_SHORTEST: Final = 0.02
_LONGEST: Final = 1.0
"""Seconds until a study that has no job now is asked again."""


def run_here(controller: Controller, what: What) -> None:
    """Run jobs one after the other in this process until there will never be another one."""
    _check(what)
    kept: Trainable | None = None
    pause = _SHORTEST
    with controller:
        while not controller.is_over:
            job = controller.next()
            if job is None:
                if not controller.waits:
                    return
                pause = _rest(controller, pause)
                continue
            pause = _SHORTEST
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
    pool = _Pool(controller, what, workers)
    with controller:
        try:
            pool.run()
        finally:
            pool.close()


def _check(what: What) -> None:
    if not (isinstance(what, type) and issubclass(what, Trainable)):
        arguments(what)


def _rest(controller: Controller, pause: float) -> float:
    """Wait until it is worth to ask again; return how long to wait next time."""
    if not controller.is_over:
        time.sleep(pause)
    return min(2 * pause, _LONGEST)


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


class _Pool:
    """Processes, and the job that each one has.

    Parameters
    ----------
    controller : Controller
        Hands out jobs.
    what : class or function
        The trainable.
    workers : Workers
        How many processes, and what they share.
    """

    def __init__(self, controller: Controller, what: What, workers: Workers) -> None:
        self._controller = controller
        self._what = what
        self._idle: list[Process] = []
        self._busy: dict[Connection, tuple[Process, Job]] = {}
        self._free = Free(workers)
        self._held: Job | None = None
        for _ in range(workers.count):
            self._idle.append(Process(what))

    def run(self) -> None:
        """Hand out jobs and hear of them until all is done."""
        pause = _SHORTEST
        while True:
            begun = self._begin_jobs()
            if not self._busy:
                if self._controller.is_over or not (begun or self._controller.waits):
                    return
                pause = _SHORTEST if begun else _rest(self._controller, pause)
                continue
            waits_for_others = bool(self._idle) and not self._controller.is_over
            ready = wait(list(self._busy), pause if waits_for_others else None)
            pause = _SHORTEST if ready else min(2 * pause, _LONGEST)
            for pipe in [each for each in self._busy if each in ready]:
                self._hear(pipe)

    def close(self) -> None:
        """End all processes; those that have a job at once."""
        for process, _ in self._busy.values():
            process.kill()
        for process in self._idle:
            process.pipe.close()
        for process in self._idle:
            process.close()

    def _begin_jobs(self) -> bool:
        """Give jobs to idle processes; return whether there were any."""
        begun = False
        while self._idle:
            job = self._next()
            if job is None:
                break
            begun = True
            task = self._controller.task(job)
            process = self._idle.pop()
            self._busy[process.pipe] = process, job
            try:
                process.pipe.send(task)
            except OSError:
                self._bury(process, job)
        return begun

    def _next(self) -> Job | None:
        """Return a job whose needs are met; the first whose needs are not is held, and not overtaken."""
        job = self._controller.next() if self._held is None else self._held
        self._held = None
        if job is None:
            return None
        try:
            if self._free.take(job.trial, job.config):
                return job
        except Exception as error:  # a function of the config may raise anything
            self._controller.end(job, Failed(f"{type(error).__name__}: {error}", traceback.format_exc()))
            return self._next()
        self._held = job
        return None

    def _hear(self, pipe: Connection) -> None:
        """Receive one message of a process, or that it is dead."""
        process, job = self._busy[pipe]
        try:
            message = pipe.recv()
        except (EOFError, OSError):
            self._bury(process, job)
            return
        if not isinstance(message, Step):
            self._controller.end(job, message)
            self._free.give_back(job.trial)
            del self._busy[pipe]
            self._idle.append(process)
            return
        goes_on = self._controller.step(job, message)
        try:
            pipe.send(goes_on)
        except OSError:
            self._bury(process, job)

    def _bury(self, process: Process, job: Job) -> None:
        """Give back the job of a dead process, and start another process."""
        del self._busy[process.pipe]
        fate = process.fate
        process.close()
        self._controller.killed(job, fate)
        self._free.give_back(job.trial)
        self._idle.append(Process(self._what))
