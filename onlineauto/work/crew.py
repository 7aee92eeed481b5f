"""``Crew``: starts workers, waits for them, reports those that die, and gives up after deaths in a row.

A worker is a process of this machine (`onlineauto.work.process`) or an actor of Ray
(`onlineauto.work.on_ray`). It answers each message with one message. The death of a worker returns its job to
the owner of the crew, who begins the job again in another worker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from onlineauto.errors import OnlineautoError, WorkersError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class WorkerLost(OnlineautoError):  # noqa: N818 - the name says what happened
    """A worker has ended. The message completes a sentence that begins with 'its process was'."""


class CrewMember(Protocol):
    """Does one job after another."""

    @property
    def is_up(self) -> bool:
        """True if the worker can begin a job at once; False if it first sends a message that it is up."""

    def send(self, method: str, *arguments: Any) -> None:
        """Send a message. A message to a worker that has died has no effect: `receive` reports the death."""

    def receive(self) -> Any:
        """Return the next message; raise `WorkerLost` if the worker has died."""

    def close(self) -> None:
        """End the worker, which has no job."""

    def kill(self) -> None:
        """End the worker at once."""


W = TypeVar("W", bound=CrewMember)
Job = TypeVar("Job")


class Crew(Generic[W, Job]):
    """Workers: those that start, those that are idle, and those that are busy with a job.

    `start` starts a worker. `wait` returns those of some workers that have sent a message or died, after a
    maximum number of seconds. More than `most_deaths` deaths without a message in between are an error.
    """

    def __init__(
        self,
        start: Callable[..., W],
        wait: Callable[[Sequence[W], float | None], Sequence[W]],
        *,
        most_deaths: int,
    ) -> None:
        self._start, self._wait, self._most_deaths = start, wait, most_deaths
        self.starting: list[W] = []
        self.idle: list[W] = []
        self.busy: dict[W, Job] = {}
        self.deaths = 0

    def __len__(self) -> int:
        return len(self.starting) + len(self.idle) + len(self.busy)

    def start(self, *arguments: Any) -> W:
        """Start a worker."""
        worker = self._start(*arguments)
        (self.idle if worker.is_up else self.starting).append(worker)
        return worker

    def resize(self, n: int) -> None:
        """Start missing workers, or end surplus workers that have no job."""
        while len(self) < n:
            self.start()
        self.shrink(n)

    def shrink(self, n: int) -> None:
        """End workers without a job until there are `n`; those that are starting first."""
        while len(self) > n and self.starting:
            self.starting.pop().kill()
        while len(self) > n and self.idle:
            self.idle.pop().close()

    def remove(self, worker: W) -> None:
        """End one worker."""
        if worker in self.idle:
            self.idle.remove(worker)
            worker.close()
            return
        if worker in self.starting:
            self.starting.remove(worker)
        self.busy.pop(worker, None)
        worker.kill()

    def begin(self, worker: W, job: Job, method: str, *arguments: Any) -> None:
        """Send a worker without a job its next one; a worker that is starting receives it when it is up."""
        for workers in (self.idle, self.starting):
            if worker in workers:
                workers.remove(worker)
        self.busy[worker] = job
        worker.send(method, *arguments)

    def release(self, worker: W) -> Job:
        """Receive that a worker has done its job, and return the job."""
        self.idle.append(worker)
        return self.busy.pop(worker)

    def wait(self, seconds: float | None = None) -> list[tuple[W, Job, Any]]:
        """Wait for messages of busy workers; return each with its worker and the worker's job.

        The message of a worker that has died is a `WorkerLost`: the worker has left, and its job is to begin
        again. A worker that has started becomes idle.
        """
        messages: list[tuple[W, Job, Any]] = []
        for worker in self._wait([*self.starting, *self.busy], seconds):
            try:
                message = worker.receive()
            except WorkerLost as error:
                worker.kill()
                if worker in self.busy:
                    messages.append((worker, self.busy.pop(worker), error))
                else:
                    self.starting.remove(worker)
                    self.count_death(error)
                continue
            if worker in self.busy:
                self.deaths = 0
                messages.append((worker, self.busy[worker], message))
            else:
                self.starting.remove(worker)
                self.idle.append(worker)
        return messages

    def count_death(self, cause: WorkerLost) -> None:
        """Count a death, and raise an error if there were too many in a row.

        `wait` counts deaths of workers that start. If a job may be the cause of a death, its owner decides.
        """
        self.deaths += 1
        if self.deaths > self._most_deaths:
            raise WorkersError(f"workers have died {self.deaths} times in a row; the last one was {cause}")

    def end(self) -> None:
        """End all workers: kill those that start or have a job, and close those that are idle."""
        self.deaths = 0
        for worker in [*self.busy, *self.starting]:
            worker.kill()
        for worker in self.idle:
            worker.close()
        self.busy.clear()
        self.starting.clear()
        self.idle.clear()
