"""``ShardedLearner``: a linear model with weights on servers, learned by a changing number of workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onlineauto.cluster.elastic.running.nodes import NodeDemand
from onlineauto.cluster.elastic.running.recipe import Cutting, Recipe
from onlineauto.cluster.elastic.running.run import ShardedRun, check_layout
from onlineauto.cluster.elastic.running.threads import Threads
from onlineauto.cluster.elastic.shardable import check_shardable
from onlineauto.engine.stream.source import can_be_read_again
from onlineauto.errors import OptionError
from onlineauto.tune.workers.on_ray.connection import imported_ray
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from onlineauto.cluster.elastic.running.nodes import Backend
    from onlineauto.cluster.elastic.running.snapshot import Snapshot
    from onlineauto.formats.sources.source import Source


class ShardedLearner:
    r"""A linear model in blocks, learned by synchronous workers; their number does not affect the result.

    A *tick* of the stream has `parts` parts of `part_events` events. Each part is learned event by event,
    like in a workspace, beginning with the weights of the previous tick. The servers then combine the weights
    of the parts. The result depends on how the stream is divided, and not on which worker learns which part.
    Workers and servers may therefore join and leave during the stream: the weights are bit-identical to those
    of a run with a fixed layout. With one part they are those of an ordinary workspace.

    Parameters
    ----------
    parts : int
        Number of parts of a tick, which is the maximum number of useful workers.
    part_events : int
        Number of events of a part. Larger parts need less communication per event.
    warm_up : int
        Number of events at the start that are learned in ticks of one part.
    blocks : int
        Number of blocks of the weights, a power of two, which is the maximum number of useful servers.
    **options
        Options of a `Workspace`: kind of events, interactions, update rule, a stateless explorer.

    Attributes
    ----------
    cutting : Cutting
        The division of the stream into parts and of the weights into blocks.

    Raises
    ------
    OptionError
        An option is not supported by a sharded learner, or a number is out of range.

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
                "parts, part_events and blocks must be whole numbers of 1 or more, and warm_up of 0 or more"
            )
        if blocks & (blocks - 1) or blocks > cells:
            raise OptionError(f"blocks is {blocks}: it must be a power of two, at most {cells}")

    def __repr__(self) -> str:
        """Return the options and the division as text."""
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
        """Return a run of a stream, which begins when `start` is called.

        Parameters
        ----------
        source : path, bytes or binary file
            VW text or JSON, according to the options, compressed or not. Every node must be able to read a
            path.
        workers, servers : int
            Initial numbers.
        backend : {"local", "ray"}
            Threads of this process, or actors of Ray, which is initialised if necessary.
        worker, server : mapping, optional
            Resources of each: by default 1 CPU for a worker and 0.5 CPU for a server.
        margin : int
            Number of ticks that servers may continue while a change is prepared.
        snapshot_every : int, optional
            Number of ticks between two snapshots. A run returns to the last snapshot if a server dies.
        begin : Snapshot, optional
            Continue from this snapshot of the same stream.

        Raises
        ------
        OptionError
            The backend is unknown, not all nodes can read the source, the snapshot has other options, or a
            number is out of range.
        """
        check_layout(workers, servers)
        if margin < 0 or (snapshot_every is not None and snapshot_every < 1):
            raise OptionError(
                f"margin = {margin} and snapshot_every = {snapshot_every}: give a margin of 0 ticks or "
                "more, and snapshot_every of 1 tick or more"
            )
        command = self._fresh.configuration.command()
        if begin is not None and (begin.command, begin.cutting) != (command, self.cutting):
            raise OptionError(
                "the snapshot was made with other options, so its weights do not fit this model"
            )
        if backend == "ray" and not can_be_read_again(source):
            raise OptionError("on Ray each worker reads the stream: give a path that all nodes can read")
        demand = NodeDemand(
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
            run.stop()  # after an interrupt the threads would continue


def _backend(name: str) -> Callable[[], Backend]:
    if name == "local":
        return Threads
    if name == "ray":
        imported_ray()  # raises an error that explains how to install Ray
        from onlineauto.cluster.elastic.running.ray_actors import RayActors

        return RayActors
    raise OptionError(f"backend = {name!r} is unknown; valid are local, ray")
