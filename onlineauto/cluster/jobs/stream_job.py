"""``StreamJob``: a stream that a sharded learner learns with changing numbers of workers and servers."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from onlineauto.cluster.jobs.job import Demand, check_demand, check_stopped
from onlineauto.engine.stream.source import can_be_read_again
from onlineauto.errors import OnlineautoError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onlineauto.cluster.elastic import ShardedLearner, ShardedRun, Snapshot
    from onlineauto.formats.sources.source import Source
    from onlineauto.workspace.workspace import Workspace


class StreamJob:
    """Learns a stream with the workers and servers that the cluster allocates; they do not affect the result.

    Without an allocation, the job takes a snapshot, ends all nodes, and later continues from the snapshot. A
    stream that cannot be read twice, like a pipe or an open file, retains a worker and a server to its end.

    Parameters
    ----------
    learner : ShardedLearner
        The model.
    source : path, bytes or binary file
        The stream, as for `ShardedLearner.run`.
    worker, server : mapping, optional
        Resources of each: by default 1 CPU for a worker and 0.5 CPU for a server.
    backend : str
        ``local`` or ``ray``; by default the backend of the cluster.
    kind : str
        Streams of one kind have about the same speed.
    **options
        Other options of `ShardedLearner.run`: ``margin``, ``snapshot_every``.
    """

    def __init__(
        self,
        learner: ShardedLearner,
        source: Source,
        *,
        worker: Mapping[str, float] | None = None,
        server: Mapping[str, float] | None = None,
        backend: str | None = None,
        kind: str = "sharded-stream",
        **options: Any,
    ) -> None:
        cutting = learner.cutting
        self.kind, self.backend = kind, backend
        self.demand = check_demand(
            Demand(worker or {"CPU": 1.0}, server or {"CPU": 0.5}, cutting.parts, cutting.blocks)
        )
        self._learner, self._source, self._options = learner, source, options
        self._can_wait = can_be_read_again(source)
        self._changed = threading.Condition()
        self._requested = (0, 0)
        self._applied = (0, 0)
        self._run: ShardedRun | None = None
        self._begin: Snapshot | None = None
        self._known: tuple[float, float] = (0.0, 1.0)
        self._stops = False
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None

    @property
    def resources_in_use(self) -> tuple[int, int]:
        """The resources in use: the larger numbers of the current and of the requested layout."""
        run, applied = self._run, self._applied
        if run is None or run.ended:
            return applied
        workers, servers = run.layout
        return max(workers, applied[0]), max(servers, applied[1])

    def progress(self) -> tuple[float, float]:
        """Return the number of learned events, and the total number as far as it is known.

        Raises
        ------
        Exception
            The error that has ended the run.
        """
        if self._error is not None:
            raise self._error
        run = self._run
        if run is not None:
            done, total = run.progress()
            if run.ended and run is self._run and not self._stops:  # The run ended, and was not paused.
                run.wait(0)  # wait() raises the exception that ended the run.
                total = done
            else:
                total = max(total, done + 1)  # The length of a stream is unknown until its end.
            self._known = float(done), float(total)
        return self._known

    def resize(self, workers: int, servers: int) -> None:
        """Continue soon with this number of workers and servers; with 0, keep a snapshot and wait."""
        with self._changed:
            if workers and self._stops:  # the cluster runs again after a stop
                self._begin_again()
            if not (workers and servers):
                workers, servers = (1, 1) if any(self._applied) and not self._can_wait else (0, 0)
            self._requested = workers, servers
            if any(self._requested) and self._thread is None:
                self._thread = threading.Thread(target=self._direct, name="onlineauto stream", daemon=True)
                self._thread.start()
            self._changed.notify()

    def stop(self) -> None:
        """End all nodes at once."""
        with self._changed:
            self._stops = True
            self._changed.notify()
        run = self._run  # A pause in the other thread may set self._run to None.
        if run is not None:
            run.stop()
        if self._thread is not None:
            self._thread.join(60)
        if self._run is not None:
            self._run.stop()  # The other thread may have begun another run before it ended.
        self._applied = 0, 0

    def _begin_again(self) -> None:
        """Drop the stopped run; a new run begins at the last snapshot, if there is one."""
        check_stopped(self._thread)
        self._thread = None
        if self._run is not None and not self._can_wait:
            raise OnlineautoError("it was stopped, and its stream cannot be read a second time")
        self._run, self._stops = None, False

    def workspace(self) -> Workspace:
        """Wait for the end of the stream, and return the model as an ordinary workspace."""
        assert self._run is not None
        return self._run.workspace()

    def _direct(self) -> None:
        """Apply each change of the requested numbers to the run."""
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._stops or self._requested != self._applied)
                    requested = self._requested
                    if self._stops:
                        return
                    if any(requested):
                        self._applied = requested
                self._resize(*requested)
        except BaseException as error:
            if not self._stops:  # stop() itself makes the run raise an error
                self._error = error

    def _resize(self, workers: int, servers: int) -> None:
        if workers and self._run is not None:
            self._run.resize(workers, servers)
        elif workers:
            backend = self.backend or "local"
            run = self._learner.run(
                self._source,
                workers=workers,
                servers=servers,
                backend=backend,
                worker=self.demand.worker,
                server=self.demand.server,
                begin=self._begin,
                **self._options,
            )
            self._run = run.start()
        elif self._run is not None:
            self._pause(self._run)
            self._applied = 0, 0

    def _pause(self, run: ShardedRun) -> None:
        """Take a snapshot and end all nodes; a run that has ended is unchanged."""
        self._begin = run.snapshot()
        if not run.ended:
            self._known = run.progress()
            self._run = None
            run.stop()
