"""``ShardedRun``: the run of a sharded learner on a stream, as a job of a cluster."""

from __future__ import annotations

from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Any

from onlineauto.cluster.elastic.running.counting import events_of
from onlineauto.cluster.elastic.running.hub import Hub
from onlineauto.errors import InputError, OnlineautoError, OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from onlineauto.cluster.elastic.running.hub import LayoutChange
    from onlineauto.cluster.elastic.running.nodes import Backend, NodeDemand
    from onlineauto.cluster.elastic.running.recipe import Recipe
    from onlineauto.cluster.elastic.running.snapshot import Snapshot
    from onlineauto.workspace.workspace import Workspace


def check_layout(workers: int, servers: int) -> None:
    """Raise `OptionError` if the numbers of workers and servers are not valid."""
    counts: tuple[Any, ...] = workers, servers
    if not all(isinstance(count, int) and count > 0 for count in counts):
        raise OptionError(
            f"workers = {workers!r} and servers = {servers!r}: give whole numbers, "
            "at least one worker and one server"
        )


class ShardedRun:
    """A run on a stream, whose numbers of workers and servers may change. `ShardedLearner.run` creates it.

    Attributes
    ----------
    demand : Demand
        Resources of one worker and of one server.
    """

    def __init__(
        self,
        recipe: Recipe,
        backend: Callable[[], Backend],
        *,
        workers: int,
        servers: int,
        demand: NodeDemand,
        margin: int,
        every: int | None,
        begin: Snapshot | None,
    ) -> None:
        self.demand = demand
        self._recipe, self._first = recipe, (workers, servers)
        self._sizes = recipe.shards().sizes
        if begin is not None:
            recipe.kept = begin.blocks
        tick = 0 if begin is None else begin.tick
        self._hub = Hub(recipe, backend, demand, sizes=self._sizes, tick=tick, margin=margin, every=every)
        self._hub.snapshot = begin
        self._started = False
        self._events: tuple[int, bool] | None = None  # their number, and whether it is exact

    def __repr__(self) -> str:
        """Return the number of learned ticks as text."""
        return f"<ShardedRun: {self._hub.version} ticks>"

    # -- a job of a cluster ----------------------------------------------------------------------------

    def start(self) -> ShardedRun:
        """Start the run and return at once."""
        if not self._started:
            self._started = True
            self._hub.start(*self._first)
            Thread(target=self._count, name="elastic count", daemon=True).start()
        return self

    def progress(self) -> tuple[int, int]:
        """Return the number of learned events, and the total number of events.

        For a file of more than 4 MB, the total is estimated from its size until the end is reached. For a
        compressed or endless stream, the total is the number of events that have arrived.
        """
        hub = self._hub
        with hub.condition:
            done = self._recipe.cutting.events_at(hub.version)
            if hub.snapshot is not None and hub.snapshot.tick == hub.end:
                done = hub.snapshot.events
                return done, done
            ahead = self._recipe.cutting.events_at(hub.version + 1)
        total, is_exact = self._events or (ahead, False)
        return (min(done, total), total) if is_exact else (done, max(total, ahead))

    def resize(self, workers: int, servers: int) -> None:
        """Request numbers of workers and servers, and return at once. Several requests coalesce.

        Raises
        ------
        OptionError
            A number is less than 1.
        """
        check_layout(workers, servers)
        if self._started:
            self._hub.resize(workers, servers)
        else:
            self._first = workers, servers

    def stop(self) -> None:
        """End all nodes at once; events learned since the last snapshot are lost."""
        if self._started:
            self._hub.stop()

    # -- results ---------------------------------------------------------------------------------------

    @property
    def layout(self) -> tuple[int, int]:
        """Current numbers of workers and servers."""
        with self._hub.condition:
            last = self._hub.changes[-1] if self._hub.changes else None
        return self._first if last is None else (last.workers, last.servers)

    @property
    def changes(self) -> Sequence[LayoutChange]:
        """All committed layouts, including the first one."""
        with self._hub.condition:
            return list(self._hub.changes)

    @property
    def times(self) -> Sequence[tuple[int, float]]:
        """The ticks that were reached, each with its time by `time.monotonic`."""
        with self._hub.condition:
            return list(self._hub.times)

    @property
    def ended(self) -> bool:
        """True once the run is done or has failed."""
        return self._hub.done

    def wait(self, timeout: float | None = None) -> ShardedRun:
        """Wait for the end of the stream.

        Raises
        ------
        TimeoutError
            The timeout is over; the run continues.
        OnlineautoError
            A node has failed, or the run was stopped.
        """
        self.start()
        hub = self._hub
        with hub.condition:
            if not hub.condition.wait_for(lambda: hub.done, timeout):
                raise TimeoutError(f"the stream was not learned within {timeout} s, only {hub.version} ticks")
            if hub.error is not None:
                raise OnlineautoError(str(hub.error)) from hub.error
        return self

    def snapshot(self, timeout: float | None = None) -> Snapshot:
        """Return a copy of all blocks at one tick, while workers and servers continue.

        Raises
        ------
        TimeoutError
            There is no snapshot before the timeout.
        OnlineautoError
            A node has failed, or the run was stopped.
        """
        self.start()
        hub = self._hub
        with hub.condition:
            known = hub.snapshot
            if not hub.done:
                hub.copy()
                if not hub.condition.wait_for(lambda: hub.done or hub.snapshot is not known, timeout):
                    raise TimeoutError(f"no snapshot after {timeout} s")
            if hub.error is not None or hub.snapshot is None:
                raise OnlineautoError("the run has ended without a snapshot") from hub.error
            return hub.snapshot

    def workspace(self) -> Workspace:
        """Wait for the end; return the model as an ordinary workspace."""
        return self.wait().snapshot().workspace()

    def loss(self) -> float:
        """Wait for the end; return the mean progressive loss of all events with a label."""
        return self.wait().snapshot().loss

    def _count(self) -> None:
        """Count or estimate the events, for `progress`."""
        with suppress(InputError):  # a worker reports it
            self._events = events_of(self._recipe)
