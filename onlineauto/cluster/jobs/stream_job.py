"""``StreamJob``: a stream that is learnt in partitions with a changing number of workers."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

from onlineauto.cluster.jobs.job import Demand, check_demand, check_stopped
from onlineauto.cluster.partitions.run import PARTITIONS, PartitionedRun, check_partitioned
from onlineauto.engine.options.registry import RunOptions
from onlineauto.engine.stream.position import Position
from onlineauto.errors import OptionError

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from onlineauto.cluster.partitions.coordinator import Schedule
    from onlineauto.engine.stream.source import Sources
    from onlineauto.workspace.workspace import Workspace

_AHEAD: Final = 1000
"""Number of events that are expected at least, until the end of the stream."""


class StreamJob:
    """Learns a stream in partitions, with the workers that the cluster allocates.

    The result does not depend on the workers. Their number changes between rounds. Without a worker, the job
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
    schedule : Schedule, optional
        The lengths of rounds.
    events : int, optional
        Number of events of the stream; None if unknown, in which case more events are expected until the end.
    worker : mapping, optional
        Resources of a worker; 1 CPU by default.
    backend : str, optional
        ``local`` for processes or ``ray`` for actors; by default the backend of the cluster.
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

    def __init__(
        self,
        workspace: Workspace,
        source: Sources,
        *,
        stored: Mapping[str, Any] | None = None,
        partitions: int = PARTITIONS,
        schedule: Schedule | None = None,
        events: int | None = None,
        worker: Mapping[str, float] | None = None,
        backend: str | None = None,
        kind: str = "partitioned-stream",
        model: str | os.PathLike[str] | None = None,
        save_every: int = 100_000,
    ) -> None:
        for name, value in (("partitions", partitions), ("save_every", save_every)):
            if value < 1:
                raise OptionError(f"{name} = {value}: give 1 or more")
        check_partitioned(workspace.configuration, "partitions")
        self.workspace, self.kind, self.backend = workspace, kind, backend
        self.demand = check_demand(Demand(worker or {"CPU": 1.0}, most_workers=partitions))
        self._source, self._stored = source, stored
        self._partitions, self._schedule = partitions, schedule
        self._events, self._model, self._save_every = events, model, save_every
        self._changed = threading.Condition()
        self._requested = self._applied = 0
        self._run: PartitionedRun | None = None
        start = Position(**(stored or {}).get("position", {}))
        self._learnt = self._saved = start.events
        self._ended = start.passes >= workspace.configuration[RunOptions].passes
        if self._ended:
            self._learnt = int((stored or {}).get("progress", {}).get("example_number", 0))
        self._stops = False
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None

    @property
    def resources_in_use(self) -> tuple[int, int]:
        """The workers that run or are to run, and no servers."""
        run = self._run
        return max(self._applied, 0 if run is None else run.pool.size), 0

    def progress(self) -> tuple[float, float]:
        """Return the number of learned events, and the total number as far as it is known.

        Raises
        ------
        Exception
            The error that has ended the run.
        """
        if self._error is not None:
            raise self._error
        ended, done = self._ended, self._learnt
        return (done, done) if ended else (done, max(self._events or 0, done + _AHEAD))

    def resize(self, workers: int, servers: int) -> None:
        """Continue with this number of workers after the current round; with 0, wait."""
        del servers
        with self._changed:
            if workers and self._stops:  # the cluster runs again after a stop
                check_stopped(self._thread)
                self._stops, self._thread = False, None
            self._requested = 0 if self._ended else workers
            if self._requested and self._thread is None:
                self._thread = threading.Thread(target=self._work, name="onlineauto stream", daemon=True)
                self._thread.start()
            self._changed.notify()

    def stop(self) -> None:
        """End all workers after the current round."""
        with self._changed:
            self._stops = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(60)

    def _work(self) -> None:
        """Learn round after round, and apply each change of the number of workers in between."""
        try:
            while not self._stops and not self._ended:
                with self._changed:
                    workers = self._applied = self._requested
                if workers:
                    self._learn_round(workers)
                else:
                    self._rest()
                    with self._changed:
                        self._changed.wait_for(lambda: self._stops or self._requested)
            self._rest()
        except BaseException as error:
            self._error = error
            if self._run is not None:
                self._run.close()
        finally:
            self._applied = 0

    def _learn_round(self, workers: int) -> None:
        if self._run is None:
            self._run = PartitionedRun(
                self.workspace,
                self._source,
                stored=self._stored,
                workers=workers,
                partitions=self._partitions,
                schedule=self._schedule,
                backend="ray" if self.backend == "ray" else "processes",
                worker=self.demand.worker,
            )
        self._run.resize(workers)
        is_more = self._run.learn_round()
        self._learnt = self._run.progress.example_number
        if not is_more:
            self._run.rest()
            self._save()  # before progress() says that the job is done
            self._ended = True
        elif self._learnt - self._saved >= self._save_every:
            self._save()

    def _rest(self) -> None:
        """End the workers, and save the run if it has learned more events since the last save."""
        if self._run is not None:
            self._run.rest()
            if self._learnt != self._saved:
                self._save()

    def _save(self) -> None:
        """Save the run if it has a file."""
        if self._model is not None and self._run is not None:
            self._run.checkpoint(self._model)
        self._saved = self._learnt
