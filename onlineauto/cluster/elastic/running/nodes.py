"""Contracts of a backend, which runs nodes and delivers messages to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from onlineauto.cluster.elastic.protocol.messages import Message, Outbox

if TYPE_CHECKING:
    from onlineauto.cluster.elastic.running.recipe import Recipe


class NodeDemand(NamedTuple):
    """Resources of one worker and of one server: ``CPU``, ``GPU``, ``memory``, or custom names."""

    worker: Mapping[str, float]
    server: Mapping[str, float]
    most_workers: int  # more workers would be idle
    most_servers: int


class Core(Protocol):
    """A state machine of the protocol."""

    stopped: bool

    def process_message(self, message: Message) -> Outbox:
        """Process a message; return the messages to send."""


class Ready(Message, frozen=True):
    """Report that a node has started."""

    node: str


class NodeFailed(Message, frozen=True):
    """Report an error of a node."""

    node: str
    reason: str


class Spec(NamedTuple):
    """The description of a node to start."""

    name: str
    serves: bool  # true for a server, false for a worker
    recipe: Recipe
    tick: int  # the first tick of the node
    resources: Mapping[str, float]


Post = Callable[[str, Message], None]
"""Passes a message for the run, the coordinator or the store to the hub."""


class Backend(Protocol):
    """Starts and ends nodes, and delivers messages to living nodes in any order and without loss."""

    def begin(self, spec: Spec, post: Post) -> None:
        """Start a node. It posts `Ready` once it accepts messages, `NodeFailed` on errors, and `Died`."""

    def send(self, node: str, message: Message) -> None:
        """Deliver a message; a message to a dead node is dropped."""

    def end(self, node: str) -> None:
        """End a node that is no longer in the layout."""

    def close(self) -> None:
        """End all nodes."""
