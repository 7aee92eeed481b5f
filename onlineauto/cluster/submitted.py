"""``Submitted``: a job in a cluster, with its allocation, progress and end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from onlineauto.cluster.history import Record
from onlineauto.cluster.jobs.job import check_progress, check_resources_in_use
from onlineauto.cluster.policies import Row
from onlineauto.cluster.policies.situation import LEAST_REMAINING, demand_of

if TYPE_CHECKING:
    from onlineauto.cluster.jobs.job import ClusterJob, Demand


@dataclass(eq=False)
class Submitted:
    """A job in a cluster."""

    name: str  # Name of the job, and name of a group of jobs with about the same speeds.
    kind: str
    job: ClusterJob
    demand: Demand  # The demand of one worker and of one server.
    arrived: float  # Time of submission, in slots.
    endless: bool = False  # True for a stream without end.
    workers: int = 0  # The current numbers.
    servers: int = 0
    # The numbers that the job gets in this slot, as soon as the resources are free.
    wanted: tuple[int, int] = (0, 0)
    done: float = 0.0  # Units of work.
    total: float = 1.0
    ended: bool = False  # True once the job is done or has failed.
    error: str = ""  # Why the job failed, or empty.
    was_seen: bool = field(default=False, repr=False)
    is_buried: bool = field(default=False, repr=False)
    before: float = field(default=0.0, repr=False)
    changed_at: float = field(default=0.0, repr=False)
    ended_at: float = field(default=0.0, repr=False)

    @property
    def state(self) -> str:
        """``running``, ``waiting``, ``failed`` or ``done``."""
        if self.ended:
            return "failed" if self.error else "done"
        return "running" if self.workers else "waiting"

    def poll(self, now: float) -> None:
        """Update the progress of the job, and end the job if it is done or raises an error."""
        if self.ended:
            return
        self.was_seen = True
        try:
            self.done, self.total = check_progress(self.job.progress())
        except BaseException as error:
            self._fail(error, now)
            return
        if not self.endless and self.done >= self.total:
            self._end(now)

    def resize(self, workers: int, servers: int, now: float) -> None:
        """Change the numbers of workers and servers of the job."""
        self.workers, self.servers, self.changed_at = workers, servers, now
        try:
            self.job.resize(workers, servers)
        except BaseException as error:
            self._fail(error, now)

    def resources_in_use(self, now: float) -> tuple[int, int]:
        """Return the workers and servers that the job still occupies; an error of the job ends it."""
        workers = servers = 0
        try:
            workers, servers = check_resources_in_use(getattr(self.job, "resources_in_use", (0, 0)))
        except BaseException as error:
            self._fail(error, now)
        return (workers, servers) if self.ended else (max(workers, self.workers), max(servers, self.servers))

    def stop(self) -> None:
        """Release all resources of the job. An error of this step becomes the error of the job."""
        try:
            stop: Any = getattr(self.job, "stop", None)
            if stop is None:
                self.job.resize(0, 0)
            else:
                stop()
        except BaseException as error:
            _pass_on(error)
            self.error = self.error or f"it could not be stopped: {_text(error)}"

    def row(self, at: float) -> Row:
        """Return the row of the job for a policy."""
        return Row(
            kind=self.kind,
            age=max(at - self.arrived, 0.0),
            done=self.done,
            remaining=max(self.total - self.done, LEAST_REMAINING),
            **demand_of(self.demand),
        )

    def record(self, slot: int, *, end: float, seconds: float, size: tuple[int, int]) -> Record:
        """Return the record of the slot that has ended."""
        until = self.ended_at if self.ended else end
        return Record(
            slot=slot,
            job=self.name,
            kind=self.kind,
            arrived=self.arrived,
            workers=size[0],
            servers=size[1],
            before=self.before,
            done=self.done,
            total=max(self.total, self.done) if not self.error else max(self.total, self.done + 1),
            used=min(max((until - self.changed_at) / seconds, 0.0), 1.0),
            endless=self.endless,
            **demand_of(self.demand),
        )

    def _end(self, now: float) -> None:
        self.ended, self.ended_at = True, now

    def _fail(self, error: BaseException, now: float) -> None:
        """End the job by its own error. Other jobs continue."""
        _pass_on(error)
        self.error = self.error or _text(error)
        if not self.ended:
            self._end(now)


def _pass_on(error: BaseException) -> None:
    """Raise an interrupt (Ctrl-C or SIGTERM) again: it is meant for the cluster and not for one job."""
    if isinstance(error, KeyboardInterrupt):
        raise error


def _text(error: BaseException) -> str:
    """Return an error as text."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # str() of a foreign exception may raise
        return type(error).__name__
