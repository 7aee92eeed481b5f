"""``StreamJob``: a stream that a sharded learner learns, with workers and servers that come and go."""

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
    """Learns a stream with as many workers and servers as the cluster gives it, with the same result.

    If it is given none, it keeps a snapshot, ends all its nodes, and goes on from there another time. A
    stream that cannot be read twice, as a pipe or an open file, keeps a worker and a server till its end.

    Parameters
    ----------
    learner : ShardedLearner
        The model.
    source : path, bytes or binary file
        The stream, as for `ShardedLearner.run`.
    worker, server : mapping, optional
        What each takes of the cluster: one CPU of a worker, and half of one of a server, by default.
    backend : str
        ``local`` or ``ray``; the cluster's by default.
    kind : str
        Streams of one kind have about the same speed.
    **options
        Others of `ShardedLearner.run`: ``margin``, ``snapshot_every``.
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
        self._wanted = (0, 0)
        self._given = (0, 0)
        self._run: ShardedRun | None = None
        self._begin: Snapshot | None = None
        self._known: tuple[float, float] = (0.0, 1.0)
        self._stops = False
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None

    @property
    def held(self) -> tuple[int, int]:
        """The nodes of the layout that is in force, or of that which was asked for."""
        run, given = self._run, self._given
        if run is None or run.ended:
            return given
        workers, servers = run.layout
        return max(workers, given[0]), max(servers, given[1])

    def progress(self) -> tuple[float, float]:
        """Return the events that are learnt, and how many there are as far as one knows.

        Raises
        ------
        Exception
            What has ended the run.
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
            if workers and self._stops:  # the cluster is run again
                self._begin_again()
            if not (workers and servers):
                workers, servers = (1, 1) if any(self._given) and not self._can_wait else (0, 0)
            self._wanted = workers, servers
            if any(self._wanted) and self._thread is None:
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
        self._given = 0, 0

    def _begin_again(self) -> None:
        """Forget the run that was stopped: another one goes on from the last snapshot, or begins."""
        check_stopped(self._thread)
        self._thread = None
        if self._run is not None and not self._can_wait:
            raise OnlineautoError("it was stopped, and its stream cannot be read a second time")
        self._run, self._stops = None, False

    def workspace(self) -> Workspace:
        """Return the model, once the stream has been learnt, as an ordinary workspace."""
        assert self._run is not None
        return self._run.workspace()

    def _direct(self) -> None:
        """Bring the run to what is wanted, whenever that changes."""
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._stops or self._wanted != self._given)
                    wanted = self._wanted
                    if self._stops:
                        return
                    if any(wanted):
                        self._given = wanted
                self._bring_to(*wanted)
        except BaseException as error:
            if not self._stops:  # which ends a run whatever it does
                self._error = error

    def _bring_to(self, workers: int, servers: int) -> None:
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
            self._given = 0, 0

    def _pause(self, run: ShardedRun) -> None:
        """Keep a snapshot and end all nodes; a run that has come to its end stays as it is."""
        self._begin = run.snapshot()
        if not run.ended:
            self._known = run.progress()
            self._run = None
            run.stop()
