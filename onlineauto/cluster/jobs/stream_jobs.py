"""Jobs that learn a stream: ``RunJob`` with one learner, ``StreamJob`` in partitions with several workers."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final

from onlineauto.cluster.jobs.job import Demand, check_demand
from onlineauto.cluster.partitions.run import PARTITIONS, PartitionedRun, check_partitioned
from onlineauto.engine.options.registry import RunOptions
from onlineauto.engine.stream.position import Position
from onlineauto.errors import InputError, OptionError
from onlineauto.work.thread import Background

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from onlineauto.cluster.partitions.coordinator import RoundSchedule
    from onlineauto.engine.stream.source import Sources
    from onlineauto.workspace.run import Run
    from onlineauto.workspace.workspace import Workspace

_STEP: Final = 1000
"""Number of events of a `RunJob` between two checks whether it must pause."""
_AHEAD: Final = 1000
"""Number of events that are expected at least, until the end of the stream."""


class _LearningJob(ABC):
    """Learns a stream step by step in a thread, with a size that changes between steps."""

    _current_run: Run | None  # None before it has begun

    def __init__(
        self,
        *,
        demand: Demand,
        kind: str,
        learnt: int,
        ended: bool,
        events: int | None,
        model: str | os.PathLike[str] | None,
        save_every: int,
    ) -> None:
        if save_every < 1:
            raise OptionError(f"save_every = {save_every}: give 1 or more")
        self.kind = kind
        self.demand = check_demand(demand)
        self._events, self._model, self._save_every = events, model, save_every
        self._learnt = self._saved = learnt
        self._ended = ended
        self._changed = threading.Condition()
        self._requested = self._applied = (0, 0)
        self._stops = False
        self._thread = Background(self._work, "onlineauto stream")

    @property
    def resources_in_use(self) -> tuple[int, int]:
        """The workers and servers of the current step."""
        return self._applied

    @property
    def is_open(self) -> bool:
        """True while the total number of events is unknown."""
        return self._events is None and not self._ended

    def progress(self) -> tuple[float, float]:
        """Return the number of learned events, and the total number as far as it is known.

        Raises
        ------
        Exception
            The error that has ended the run.
        """
        self._thread.check()
        ended, done = self._ended, self._learnt
        return (done, done) if ended else (done, max(self._events or 0, done + _AHEAD))

    def resize(self, workers: int, servers: int) -> None:
        """Continue with this size after the current step; without workers, wait."""
        with self._changed:
            if workers and self._stops:  # the cluster runs again after a stop
                self._thread.renew()
                self._stops = False
            self._requested = (workers, servers) if workers and not self._ended else (0, 0)
            if any(self._requested):
                self._thread.start()
            self._changed.notify()

    def stop(self) -> None:
        """End all workers after the current step."""
        with self._changed:
            self._stops = True
            self._changed.notify()
        self._thread.join()

    def _work(self) -> None:
        """Learn step after step, and apply each change of size in between."""
        try:
            while not self._stops and not self._ended:
                with self._changed:
                    size = self._requested
                if any(size):
                    self._applied = size
                    self._learn(*size)
                else:
                    self._rest()
                    self._applied = (0, 0)
                    with self._changed:
                        self._changed.wait_for(lambda: self._stops or any(self._requested))
            self._rest()
        except BaseException as error:
            self._fail(error)
            raise
        finally:
            self._applied = (0, 0)

    def _learn(self, workers: int, servers: int) -> None:
        if not self._step(workers, servers):
            self._end_workers()
            self._save()  # before progress() says that the job is done
            self._ended = True
        elif self._learnt - self._saved >= self._save_every:
            self._save()

    def _rest(self) -> None:
        """End the workers, and save the run if it has learned more events since the last save."""
        self._end_workers()
        if self._learnt != self._saved:
            self._save()

    def _save(self) -> None:
        """Save the run if it has a file."""
        run = self._current_run
        if self._model is not None and run is not None:
            run.checkpoint(self._model)
        self._saved = self._learnt

    @abstractmethod
    def _step(self, workers: int, servers: int) -> bool:
        """Learn a step and count its events; return False at the end of the stream."""

    def _end_workers(self) -> None:  # noqa: B027 - without workers there is nothing to do
        """End workers and servers, if they are not the thread itself; the next step starts others."""

    @abstractmethod
    def _fail(self, error: BaseException) -> None:
        """Receive the error that ends the job."""


class RunJob(_LearningJob):
    """Learns a stream in a thread while it has a worker. One worker learns all live configs together.

    The run is in this process with any backend of the cluster. While the job works, only its thread may use
    the run, except for predictions of `Run.workspace`.

    With a `model`, the job survives a crash: the run is saved every `save_every` events, at each pause, when
    it is stopped, and at its end. A job of ``Run.resume(model, source)`` continues after the last save, with
    the same result as an uninterrupted run.

    Parameters
    ----------
    run : Run
        The stream, and the workspace that learns it.
    events : int, optional
        Number of events of the stream; None if unknown, in which case more events are expected until the end.
    worker : mapping, optional
        Resources of the learner; 1 CPU by default.
    kind : str
        Learners of one kind have about the same speed.
    model : path, optional
        The file for the run, which is replaced atomically.
    save_every : int
        Number of events between two saves, while the job works.
    """

    def __init__(
        self,
        run: Run,
        *,
        events: int | None = None,
        worker: Mapping[str, float] | None = None,
        kind: str = "stream",
        model: str | os.PathLike[str] | None = None,
        save_every: int = 100_000,
    ) -> None:
        super().__init__(
            demand=Demand(worker or {"CPU": 1.0}, most_workers=1),
            kind=kind,
            learnt=max(run.position.events, run.progress.example_number),
            ended=run.position.passes >= run.workspace.configuration[RunOptions].passes,
            events=events,
            model=model,
            save_every=save_every,
        )
        self.run = self._current_run = run

    def _step(self, workers: int, servers: int) -> bool:
        del workers, servers
        events = self.run.step(_STEP)
        self._learnt += events
        return events > 0

    def _fail(self, error: BaseException) -> None:
        if isinstance(error, InputError):  # the events before the error are learned
            self._rest()


class StreamJob(_LearningJob):
    """Learns a stream in partitions, with the workers and merge servers that the cluster allocates.

    The result does not depend on their numbers, which change between rounds. Without a worker, the job
    ends all workers, and keeps the model and its place in the stream; so any source can wait.

    With a `model`, the job survives a crash: the run is saved every `save_every` events, when it waits, when
    it is stopped, and at its end. A job with the workspace and the `stored` state of that file continues
    after the last save. If `partitions` and `schedule` are the same, so is the result.

    Parameters
    ----------
    workspace : Workspace
        The workspace that learns. While the job works, only its thread may use it, except for predictions.
    source : Sources
        The stream, as for `Run`.
    stored : mapping, optional
        The state of another run, as for `Run`.
    partitions : int
        Number of chunks of a round, and maximum number of workers.
    schedule : RoundSchedule, optional
        The lengths of rounds.
    events : int, optional
        Number of events of the stream; None if unknown, in which case more events are expected until the end.
    worker : mapping, optional
        Resources of a worker; 1 CPU by default.
    server : mapping, optional
        Resources of a server of Ray. With it the job has at least one merge server; without it, none.
    most_servers : int
        Maximum number of servers.
    backend : str, optional
        ``local`` for threads or ``ray`` for actors; by default the backend of the cluster.
    kind : str
        Streams of one kind have about the same speed.
    model : path, optional
        The file for the run, which is replaced atomically.
    save_every : int
        Number of events between two saves, while the job works.

    Attributes
    ----------
    workspace : Workspace
        The model.

    Raises
    ------
    OptionError
        A number is not positive, or the workspace cannot be learnt in partitions.
    """

    _current_run: PartitionedRun | None

    def __init__(
        self,
        workspace: Workspace,
        source: Sources,
        *,
        stored: Mapping[str, Any] | None = None,
        partitions: int = PARTITIONS,
        schedule: RoundSchedule | None = None,
        events: int | None = None,
        worker: Mapping[str, float] | None = None,
        server: Mapping[str, float] | None = None,
        most_servers: int = 2,
        backend: str | None = None,
        kind: str = "partitioned-stream",
        model: str | os.PathLike[str] | None = None,
        save_every: int = 100_000,
    ) -> None:
        if partitions < 1:
            raise OptionError(f"partitions = {partitions}: give 1 or more")
        check_partitioned(workspace.configuration, "partitions")
        start = Position(**(stored or {}).get("position", {}))
        ended = start.passes >= workspace.configuration[RunOptions].passes
        done = int((stored or {}).get("progress", {}).get("example_number", 0))
        super().__init__(
            demand=Demand(worker or {"CPU": 1.0}, server or {}, partitions, most_servers),
            kind=kind,
            learnt=done if ended else start.events,
            ended=ended,
            events=events,
            model=model,
            save_every=save_every,
        )
        self.workspace, self.backend = workspace, backend
        self._source, self._stored = source, stored
        self._partitions, self._schedule = partitions, schedule
        self._current_run = None

    @property
    def resources_in_use(self) -> tuple[int, int]:
        """The workers and servers that run or are to run."""
        run = self._current_run
        size = (0, 0) if run is None else (run.pool.size, run.pool.n_servers)
        return max(self._applied[0], size[0]), max(self._applied[1], size[1])

    def _step(self, workers: int, servers: int) -> bool:
        run = self._current_run
        if run is None:
            run = self._current_run = PartitionedRun(
                self.workspace,
                self._source,
                stored=self._stored,
                workers=workers,
                servers=servers,
                partitions=self._partitions,
                schedule=self._schedule,
                backend="ray" if self.backend == "ray" else "threads",
                worker=self.demand.worker,
                server=self.demand.server,
            )
        run.resize(workers, servers)
        is_more = run.learn_round()
        self._learnt = run.progress.example_number
        return is_more

    def _end_workers(self) -> None:
        if self._current_run is not None:
            self._current_run.rest()

    def _fail(self, error: BaseException) -> None:
        del error
        if self._current_run is not None:
            self._current_run.close()
