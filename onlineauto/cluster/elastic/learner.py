"""``ShardedLearner``: a linear model whose weights lie on servers, learnt by workers that come and go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onlineauto.cluster.elastic.running.nodes import Demand
from onlineauto.cluster.elastic.running.recipe import Cutting, Recipe
from onlineauto.cluster.elastic.running.run import ShardedRun, check_layout
from onlineauto.cluster.elastic.running.threads import Threads
from onlineauto.cluster.elastic.shardable import check_shardable
from onlineauto.engine.stream.source import can_be_read_again
from onlineauto.errors import OptionError
from onlineauto.tune.workers.on_ray.connecting import imported_ray
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from onlineauto.cluster.elastic.running.nodes import Backend
    from onlineauto.cluster.elastic.running.snapshot import Snapshot
    from onlineauto.formats.sources.source import Source


class ShardedLearner:
    r"""A linear model in blocks, learnt by workers in step; their number changes nothing of the result.

    A *tick* of the stream has `parts` of `part_events` events. Each part is learnt as a workspace learns, one
    event after the other, beginning with the weights of the tick before; then the servers put together what
    the parts have made of the weights. That depends on how the stream is cut, and not on who learns which
    part. So workers and servers may join and leave in mid-stream, and the weights are, bit for bit, those of
    a run in which nobody did. With one part they are those of an ordinary workspace.

    Parameters
    ----------
    parts : int
        Parts of a tick: the most workers that have something to do.
    part_events : int
        Events of a part. The larger, the less is sent for each event.
    warm_up : int
        Events at the start that are learnt in ticks of one part.
    blocks : int
        Blocks of the weights: the most servers that have something to do. A power of two.
    **options
        Options of a `Workspace`: kind of events, interactions, update rule, a stateless explorer.

    Attributes
    ----------
    cutting : Cutting
        How stream and weights are cut.

    Raises
    ------
    OptionError
        An option is one that a sharded learner does not have, or a number is out of range.

    Examples
    --------
    >>> learner = ShardedLearner(parts=4, part_events=1, warm_up=2, blocks=2)
    >>> run = learner.run(b"1 |a x\n0 |a y\n" * 50, workers=2, servers=1).start()
    >>> run.resize(3, 2)
    >>> run.workspace().predict("|a x").round(1)
    array([1.], dtype=float32)
    >>> run.progress()
    (100, 100)
    """

    def __init__(
        self,
        *,
        parts: int = 8,
        part_events: int = 32,
        warm_up: int = 2000,
        blocks: int = 16,
        **options: Any,
    ) -> None:
        self.cutting = Cutting(parts=parts, part_events=part_events, warm_up=warm_up, blocks=blocks)
        self._fresh = Workspace(**options)
        check_shardable(self._fresh.configuration)
        cells = self._fresh.learner.shape.cells
        counts: tuple[Any, ...] = parts, part_events, blocks, warm_up
        if not all(isinstance(each, int) for each in counts) or min(counts[:3]) < 1 or warm_up < 0:
            raise OptionError(
                "parts, part_events and blocks are whole numbers, at least 1, and warm_up is at least 0"
            )
        if blocks & (blocks - 1) or blocks > cells:
            raise OptionError(f"blocks must be a power of two, at most {cells}, and is {blocks}")

    def __repr__(self) -> str:
        """Show the options in force."""
        return f"ShardedLearner({self._fresh.configuration.command()!r}, {self.cutting})"

    def run(
        self,
        source: Source,
        *,
        workers: int = 1,
        servers: int = 1,
        backend: str = "local",
        worker: Mapping[str, float] | None = None,
        server: Mapping[str, float] | None = None,
        margin: int = 0,
        snapshot_every: int | None = None,
        begin: Snapshot | None = None,
    ) -> ShardedRun:
        """Return a run of a stream, which `start` starts.

        Parameters
        ----------
        source : path, bytes or binary file
            VW text or JSON, as the options say, packed or not. A path must be one that every node can read.
        workers, servers : int
            How many there are at first.
        backend : {"local", "ray"}
            Threads of this process, or actors of Ray, which then is initialised if it is not yet.
        worker, server : mapping, optional
            Resources of each: by default one CPU of a worker, half of one of a server.
        margin : int
            Ticks that servers may go on while a change is prepared.
        snapshot_every : int, optional
            Keep a snapshot each time that so many ticks have passed. A run goes back to the last one if a
            server dies.
        begin : Snapshot, optional
            Go on from this snapshot of the same stream.

        Raises
        ------
        OptionError
            There is no such backend; not all nodes can read the source; the snapshot is of other options; or
            a number is out of range.
        """
        check_layout(workers, servers)
        if margin < 0 or (snapshot_every is not None and snapshot_every < 1):
            raise OptionError(
                f"margin = {margin} and snapshot_every = {snapshot_every}: ticks, at least 0 and at least 1"
            )
        command = self._fresh.configuration.command()
        if begin is not None and (begin.command, begin.cutting) != (command, self.cutting):
            raise OptionError("the snapshot is of other options, and its weights mean something else")
        if backend == "ray" and not can_be_read_again(source):
            raise OptionError("on Ray each worker reads the stream by itself: give a path that all can read")
        demand = Demand(
            worker or {"CPU": 1.0}, server or {"CPU": 0.5}, self.cutting.parts, self.cutting.blocks
        )
        recipe = Recipe(command, source, self.cutting)
        return ShardedRun(
            recipe,
            _backend(backend),
            workers=workers,
            servers=servers,
            demand=demand,
            margin=margin,
            every=snapshot_every,
            begin=begin,
        )

    def fit(self, source: Source, *, workers: int = 1, servers: int = 1) -> Workspace:
        """Learn a stream in this process; return the model as an ordinary workspace."""
        run = self.run(source, workers=workers, servers=servers)
        try:
            return run.workspace()
        finally:
            run.stop()  # interrupted, it would go on in its threads


def _backend(name: str) -> Callable[[], Backend]:
    if name == "local":
        return Threads
    if name == "ray":
        imported_ray()  # or say how to install it
        from onlineauto.cluster.elastic.running.ray_actors import RayActors

        return RayActors
    raise OptionError(f"there is no backend {name!r}: it is 'local' or 'ray'")
