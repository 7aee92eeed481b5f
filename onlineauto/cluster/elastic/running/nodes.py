"""Contracts of a backend: where nodes live, and how messages reach them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from onlineauto.cluster.elastic.protocol.messages import Message, Outbox

if TYPE_CHECKING:
    from onlineauto.cluster.elastic.running.recipe import Recipe


class Demand(NamedTuple):
    """Resources of one worker and of one server, by name: ``CPU``, ``GPU``, ``memory``, or one's own."""

    worker: Mapping[str, float]
    server: Mapping[str, float]
    most_workers: int  # more have nothing to do
    most_servers: int


class Core(Protocol):
    """A state machine of the protocol."""

    stopped: bool

    def on(self, message: Message) -> Outbox:
        """Take a message; return what to send."""


class Ready(Message, frozen=True):
    """Report that a node has begun."""

    node: str


class Failed(Message, frozen=True):
    """Report an error of a node."""

    node: str
    reason: str


class Spec(NamedTuple):
    """A node that is to begin."""

    name: str
    serves: bool  # it is a server, not a worker
    recipe: Recipe
    tick: int  # at which the run begins
    resources: Mapping[str, float]


Post = Callable[[str, Message], None]
"""Hands the hub a message to itself, the coordinator or the store."""


class Backend(Protocol):
    """Begins and ends nodes, and delivers messages to them, in any order but without loss while they live."""

    def begin(self, spec: Spec, post: Post) -> None:
        """Begin a node. It posts `Ready` when it takes messages, `Failed` on errors, `Died` if it is gone."""

    def send(self, node: str, message: Message) -> None:
        """Deliver a message; nothing happens if the node is gone."""

    def end(self, node: str) -> None:
        """End a node, which the layout does not have any more."""

    def close(self) -> None:
        """End all nodes."""
