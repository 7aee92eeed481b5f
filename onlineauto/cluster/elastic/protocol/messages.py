"""Messages of the elastic protocol between coordinator, servers and workers.

Messages may arrive in any order and more than once. No message may be lost while its receiver lives.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

COORDINATOR, RUN, STORE = "coordinator", "run", "store"
"""Names of special nodes: the owner of the layout, the run itself, and the receiver of snapshots."""


class Message(msgspec.Struct, frozen=True):
    """A message of one node to another."""


Outbox: TypeAlias = list[tuple[str, Message]]
"""Messages to send, each with the name of the node that receives it."""


# -- from the run to the coordinator, and back ----------------------------------------------------------


class Resize(Message, frozen=True):
    """Request a layout with these workers and servers; the last request counts."""

    workers: tuple[str, ...]
    servers: tuple[str, ...]


class Copy(Message, frozen=True):
    """Request a copy of all blocks at one tick, which the servers send to the store."""


class Died(Message, frozen=True):
    """Report that a node has died; the content of its memory is lost."""

    node: str


class ServerLost(Message, frozen=True):
    """Report that a server with blocks has died: the run must return to its last snapshot."""

    server: str


class Reached(Message, frozen=True):
    """Report the version of the server that owns the first block."""

    version: int


# -- between the coordinator and all nodes --------------------------------------------------------------


class Plan(Message, frozen=True):
    """A layout, valid from a tick on: the owner of each block, and the workers in order of rank."""

    generation: int
    tick: int
    owner: dict[int, str]
    servers: tuple[str, ...]
    workers: tuple[str, ...]


class CoverPart(Message, frozen=True):
    """Ask a worker to do the part of a dead worker in addition to its own."""

    plan: Plan
    role: str


class Close(Message, frozen=True):
    """Report the number of ticks of the stream."""

    end: int


# -- between coordinator and servers: a change of layout ------------------------------------------------


class Fence(Message, frozen=True):
    """Ask a server of generation `base` for a tick that it promises not to pass."""

    attempt: int
    base: int
    margin: int


class Promise(Message, frozen=True):
    """Promise that a server's version will not pass `hold` in this attempt."""

    attempt: int
    server: str
    hold: int


class Move(Message, frozen=True):
    """Set the clock of a change: the tick at which servers send the blocks that move, or copies of all."""

    attempt: int
    clock: int
    destination: dict[int, str]
    copies: bool


class Install(Message, frozen=True):
    """Send a block at the clock to its new owner or to the store."""

    attempt: int
    block: int
    payload: Any


class Installed(Message, frozen=True):
    """Report that a server has received a block that it will own."""

    attempt: int
    block: int


class Arrived(Message, frozen=True):
    """Report that a server is at the clock, or at an earlier end of the stream."""

    attempt: int
    server: str
    version: int


class Abort(Message, frozen=True):
    """Cancel a change: its installed blocks are dropped, and its clock is void."""

    attempt: int


# -- between workers and servers: one tick --------------------------------------------------------------


class Pull(Message, frozen=True):
    """Ask a server for the values of its blocks that a role's part of a tick needs."""

    generation: int
    tick: int
    role: str
    worker: str
    keys: dict[int, Any]


class PulledValues(Message, frozen=True):
    """Answer a pull with the values of blocks at its tick."""

    generation: int
    tick: int
    role: str
    server: str
    values: dict[int, Any]


class WrongTick(Message, frozen=True):
    """Answer a pull with the server's version, because the server no longer has that tick (or it is -1)."""

    generation: int
    role: str
    version: int


class Push(Message, frozen=True):
    """Send a server the changes of its blocks by a role's part of a tick."""

    generation: int
    tick: int
    role: str
    updates: dict[int, Any]
