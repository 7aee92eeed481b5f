"""``Recipe``: the description from which a node, on any machine, creates its model and its stream."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from onlineauto.cluster.elastic.learning.feed import TickFeed
from onlineauto.cluster.elastic.learning.model_work import ModelWork
from onlineauto.cluster.elastic.learning.rows import ModelShards
from onlineauto.cluster.elastic.protocol.server import Server
from onlineauto.cluster.elastic.protocol.worker import Worker
from onlineauto.formats.options import format_of
from onlineauto.workspace.options import REGISTRY
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from onlineauto.cluster.elastic.running.nodes import Core, Spec
    from onlineauto.formats.sources.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Cutting:
    """The division of a stream into ticks and of a table into blocks, on which the result depends.

    Attributes
    ----------
    parts : int
        Number of parts of a tick, each learned by one worker; further workers are idle.
    part_events : int
        Number of events of a part, which are learned one after the other.
    warm_up : int
        Number of events at the start whose ticks have one part each, because averages of untrained models are
        worse than one model.
    blocks : int
        Number of blocks of the table, each on one server; a power of two.
    """

    parts: int = 8
    part_events: int = 32
    warm_up: int = 2000
    blocks: int = 16

    def events_at(self, tick: int) -> int:
        """Return the number of events before a tick of a long enough stream.

        >>> cutting = Cutting(parts=4, part_events=10, warm_up=25)
        >>> [cutting.events_at(tick) for tick in range(6)]
        [0, 10, 20, 30, 70, 110]
        """
        single = min(tick, -(-self.warm_up // self.part_events))
        return self.part_events * (single + (tick - single) * self.parts)


@dataclass(slots=True)
class Recipe:
    """The options of a model, the stream, and the division of both.

    Attributes
    ----------
    command : str
        The options, as a command line.
    source : Source
        The stream; bytes and paths can be sent.
    cutting : Cutting
        The division into parts and blocks.
    kept : dict
        Blocks of a snapshot.
    """

    command: str
    source: Source
    cutting: Cutting
    kept: dict[int, Any] = field(default_factory=dict)

    def workspace(self) -> Workspace:
        """Return a workspace that has not learned any event."""
        return Workspace(configuration=REGISTRY.parse(self.command))

    def shards(self) -> ModelShards:
        """Return the factory that creates the blocks of the model."""
        return ModelShards(self.workspace(), self.cutting.blocks)

    def feed(self, tick: int) -> TickFeed:
        """Return the stream from a tick on, divided into parts."""
        cutting, kind = self.cutting, self.workspace().kind
        text = REGISTRY.parse(self.command)
        return TickFeed(
            self.source,
            parts=cutting.parts,
            part_events=cutting.part_events,
            warm_up=cutting.warm_up,
            multiline=kind.endswith("adf") and format_of(text) == "text",
            tick=tick,
        )

    def core(self, spec: Spec, feed: TickFeed | None = None) -> Core:
        """Return the state machine of a node."""
        if spec.serves:
            return Server(spec.name, self.shards(), dict(self.kept))
        work = ModelWork(self.workspace(), feed or self.feed(spec.tick), self.shards().shift)
        return Worker(spec.name, work)
